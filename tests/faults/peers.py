# SPDX-License-Identifier: MIT
"""Peers that keep to no protocol: ZMTP 3.0 over sockets, without libzmq, which would refuse to send this."""
import random
import socket
import struct
import time

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
# What a run may take more than before the peers came: the texts to the listener are 100 MB, all of which may wait in a queue
# of libzmq on a busy machine.
MOST_KIB = 160 << 10
PATIENCE_S = 30

peaks = {}  # folder: (KiB before, KiB at most after)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def peak_kib(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next((int(line.split()[1]) for line in status if line.startswith("VmHWM")), 0)


def memory_is_bounded(folder, _, outcome):
    del outcome
    before, after = peaks.pop(folder)
    return None if after - before < MOST_KIB else f"memory grew from {before} to {after} KiB"


def ready(kind):
    body = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    return b"\x04" + bytes([len(body)]) + body


def frame(body, more=False):
    if len(body) < 256:
        return bytes([more, len(body)]) + body
    return bytes([2 | more]) + struct.pack(">Q", len(body)) + body


def connect(port):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            peer = socket.create_connection(("127.0.0.1", port), timeout=2)
            return peer
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def half_open(n):
    """n peers that stop in the middle of the greeting, and stay."""
    def during(process, folder, port):
        draw = random.Random(1)
        open_peers = [connect(port)]
        before = peak_kib(process)
        for _ in range(n - 1):
            try:
                peer = connect(port)
                peer.sendall(GREETING[:draw.randrange(64)])
                open_peers.append(peer)
            except OSError:
                pass  # a publisher may refuse more
        time.sleep(0.3)
        peaks[folder] = (before, peak_kib(process))
        for peer in open_peers:
            peer.close()
    return during


def junk(draw):
    """A frame: a subscription that is none, a command that is none, or a length that no message has."""
    body = draw.randbytes(draw.choice((0, 1, 5, 200, 300, 900)))
    return draw.choice((frame(body), frame(body, more=True), b"\x04" + frame(body)[1:], frame(b"\x01" + body),
                        b"\x02" + struct.pack(">Q", 1 << 62) + body, draw.randbytes(40)))


def hostile_subscriber(n):
    def during(process, folder, port):
        draw, sent = random.Random(1), 0
        peer = None
        before = 0
        while sent < n and process.poll() is None:
            try:
                if peer is None:
                    peer = connect(port)
                    before = before or peak_kib(process)
                    peer.sendall(GREETING + ready(b"SUB"))
                peer.sendall(junk(draw))
                sent += 1
            except OSError:
                peer.close()
                peer = None
        assert sent == n, f"{sent} messages before the run ended"
        peaks[folder] = (before, peak_kib(process))
    return during


def text(draw):
    """A text that no listener can read."""
    return draw.choice((b"", b"{", b"[]", b"null", b'{"v":1}', b"[" * 5000, b'{"v":1e999}', b"\x1b[2J\x9b",
                        b'{"v":1,"run":"' + b"a" * 100000 + b'"}', draw.randbytes(50)))


def hostile_publisher(n):
    def during(process, folder, port):
        draw = random.Random(1)
        with socket.create_server(("127.0.0.1", port)) as server:
            server.settimeout(PATIENCE_S)
            peer = server.accept()[0]
            peer.settimeout(PATIENCE_S)
            peer.sendall(GREETING + ready(b"PUB"))
            time.sleep(0.3)
            before = peak_kib(process)
            for _ in range(n):
                topic = draw.choice((b"range/demo", b"end/demo"))
                peer.sendall(frame(topic, more=True) + frame(text(draw)))
            time.sleep(0.5)
            peaks[folder] = (before, peak_kib(process))
            process.wait(PATIENCE_S)
            peer.close()
    return during
