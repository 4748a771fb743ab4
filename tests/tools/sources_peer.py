# SPDX-License-Identifier: MIT
"""The other end of the sources in cli_sources.sh, written from the formats' descriptions alone.
usage: sources_peer.py sigmf FOLDER: echo.ci16 as SigMF recordings, and raw without its lost samples
       sources_peer.py rtl_tcp FOLDER HEADER COMMANDS: one client gets echo.cu8 after so many commands and half a
           second at another gain; the port is in FOLDER/port, the commands in FOLDER/commands
       sources_peer.py push|pub FOLDER TAGS: echo.cf32 as GNU Radio's sinks send it, with key "radar" and with or
           without tags; one loss is a message that is missing, the other one of the receiver; ends when killed"""
import hashlib
import json
import os
import signal
import socket
import struct
import sys
import tarfile

import numpy as np
import zmq

what, folder = sys.argv[1:3]
LOST = [(5000, 700), (12345, 4000)]  # first, count
START = "2026-11-21T02:40:12.25Z"


def without_losses(iq):
    keep = np.ones(len(iq), bool)
    for first, count in LOST:
        keep[first : first + count] = False
    return iq[keep]


def publish_port(number):
    with open(f"{folder}/port.part", "w") as out:
        out.write(str(number))
    os.rename(f"{folder}/port.part", f"{folder}/port")


def symbol(text):
    return struct.pack(">BH", 2, len(text)) + text.encode()


def tagged(offset, tags):
    """The header before the items: tags are (offset, key, serialized value)."""
    header = struct.pack("<HBQQ", 0x5FF0, 1, offset, len(tags))
    for at, key, value in tags:
        header += struct.pack("<Q", at) + symbol(key) + value + symbol("usrp")
    return header


def rx_time(sample):
    """UTC of a sample as a tuple of seconds and fraction."""
    seconds = 1795228812.25 + sample / 96000
    whole = int(seconds // 1)
    fraction = 0.25 + sample / 96000 - (whole - 1795228812)
    return struct.pack(">BIBQBd", 12, 2, 11, whole, 4, fraction)


def gnuradio_messages(iq, has_tags):
    """Blocks of 1000 items and less. The samples of LOST[0] are sent and do not arrive; those of LOST[1] never
    left the receiver, whose count goes on without them while its time does not."""
    (first, n_first), (second, n_second) = LOST
    seen = np.concatenate([iq[:second], iq[second + n_second :]])  # by the flow graph
    borders = sorted({*range(0, len(seen), 1000), first, first + n_first, second, len(seen)})
    for start, end in zip(borders, borders[1:]):
        tags = [(start, "rx_rate", struct.pack(">Bd", 4, 96000.0))] if start == 0 else []
        if start in (0, second):
            tags.append((start, "rx_time", rx_time(start + (n_second if start == second else 0))))
        if not first <= start < first + n_first:
            yield (tagged(start, tags) if has_tags else b"") + seen[start:end].tobytes()


def captures(first_index):
    """One at the start, and one after each loss."""
    found = [{"core:sample_start": 0, "core:global_index": first_index, "core:datetime": START}]
    removed = 0
    for first, count in LOST:
        found.append({"core:sample_start": first - removed, "core:global_index": first_index + first + count})
        removed += count
    return found


def write_recording(name, datatype, samples, header=b""):
    found = captures(10**12)
    found[0]["core:header_bytes"] = len(header)
    data = header + samples.tobytes()
    meta = {
        "global": {
            "core:datatype": datatype,
            "core:version": "1.2.0",
            "core:sample_rate": 96000.0,
            "core:sha512": hashlib.sha512(data).hexdigest(),
        },
        "captures": found,
        "annotations": [{"core:sample_start": 3, "core:label": "none of our business"}],
    }
    with open(f"{folder}/{name}.sigmf-meta", "w") as out:
        json.dump(meta, out, indent=2)
    with open(f"{folder}/{name}.sigmf-data", "wb") as out:
        out.write(data)


if what == "sigmf":
    iq = np.fromfile(f"{folder}/echo.ci16", "<i2").reshape(-1, 2)
    short = without_losses(iq)
    short.tofile(f"{folder}/short.ci16")
    print(",".join(f"{first}+{count}" for first, count in LOST))
    write_recording("le", "ci16_le", short)
    write_recording("be", "ci16_be", short.astype(">i2"), b"a foreign header")
    for form, name in ((tarfile.USTAR_FORMAT, "ustar"), (tarfile.PAX_FORMAT, "pax"), (tarfile.GNU_FORMAT, "gnu")):
        with tarfile.open(f"{folder}/{name}.sigmf", "w", format=form) as archive:
            for end in ("meta", "data"):
                archive.add(f"{folder}/le.sigmf-{end}", f"rec/rec.sigmf-{end}")
    with tarfile.open(f"{folder}/two.sigmf", "w") as archive:
        for name in ("le", "be"):
            for end in ("meta", "data"):
                archive.add(f"{folder}/{name}.sigmf-{end}", f"{name}.sigmf-{end}")
elif what == "rtl_tcp":
    header, n_commands = sys.argv[3].encode(), int(sys.argv[4])
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(300)
        publish_port(server.getsockname()[1])
        client, _ = server.accept()
    with client:
        client.settimeout(300)
        for byte in header + bytes([0, 0, 0, 5, 0, 0, 0, 29]):  # in pieces
            client.sendall(bytes([byte]))
        commands = b""
        while len(commands) < 5 * n_commands and (got := client.recv(64)):
            commands += got
        with open(f"{folder}/commands", "w") as out:
            for at in range(0, len(commands), 5):
                out.write(f"{commands[at]} {int.from_bytes(commands[at + 1:at + 5], 'big', signed=True)}\n")
        if commands:
            old = np.random.default_rng(3).integers(0, 256, 250000, "u1").tobytes()
            samples = old + open(f"{folder}/echo.cu8", "rb").read()
            for at in range(0, len(samples), 4099):  # odd: samples are split
                client.sendall(samples[at : at + 4099])
elif what in ("push", "pub"):
    iq = np.fromfile(f"{folder}/echo.cf32", "<c8")
    out = zmq.Context.instance().socket(zmq.PUSH if what == "push" else zmq.XPUB)
    publish_port(out.bind_to_random_port("tcp://127.0.0.1"))
    if what == "pub":
        out.recv()  # somebody listens
    for items in gnuradio_messages(iq, sys.argv[3] == "tags"):
        out.send_multipart([b"radar", items])
    signal.pause()
