# SPDX-License-Identifier: MIT
"""50 clients of one view: 48 read, one has stopped, one takes 10 kB/s.
usage: view_crowd.py BIN WORK [SECONDS] [PAIRS]; prints TAP. Rates and times are printed, not judged: they depend on
the machine. PAIRS of runs, with the view and its clients or with one plain subscriber, compare the latency of pnradar."""
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import time

from view_chain import open_view, plan, report

bin_folder, work = sys.argv[1], sys.argv[2]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 8
pairs = int(sys.argv[4]) if len(sys.argv) > 4 else 0
endpoint = f"ipc://{work}/crowd"
READERS, SLOW_BYTES, SLOW_S = 48, 1000, 0.1

settings = f"""
[stream]
name = crowd
[source]
rate_hz = 1e6
format = ci16
pace = real-time
[code]
type = m-sequence
degree = 12
[radar]
max_range_m = 400e3
[dwell]
periods = 12
combine = coherent
[engine]
deadline = 1s
[publisher]
endpoint = {endpoint}
profile = power
[echo]
periods = {int(seconds * 1e6 / 4095)}
noise_rms = 0.05
[target.1]
range_m = 30000
amplitude = 0.05
[target.2]
range_m = 80000
velocity_mps = 40
amplitude = 0.05
"""
with open(f"{work}/crowd.conf", "w", encoding="utf-8") as file:
    file.write(settings)
config = ["-c", f"{work}/crowd.conf"]
subprocess.run([f"{bin_folder}/pnradar-echo", *config, "-s", "source.pace=fast", f"{work}/crowd.ci16"], check=True,
               capture_output=True)


class Client:
    def __init__(self, port, receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(b"GET /api/live?width=600 HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        self.rest, self.kind, self.lines, self.seqs, self.last_s, self.bytes, self.has_end = b"", b"", 0, [], 0, 0, False

    def read(self, most=65536):
        data = self.socket.recv(most)
        self.bytes += len(data)
        *done, self.rest = (self.rest + data).split(b"\n")
        for line in done:
            if line.startswith(b"event: "):
                self.kind = line[7:]
                self.has_end |= self.kind == b"end"
            elif line.startswith(b"data: ") and self.kind == b"lines":
                lines = json.loads(line[6:])["lines"]
                self.lines += len(lines)
                self.last_s = lines[-1][1] if lines else self.last_s
            elif line.startswith(b"data: ") and self.kind == b"results":
                self.seqs += [result[0] for result in json.loads(line[6:])["results"]]


def processor_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return [int(line.split()[1]) for line in file if line.startswith("VmHWM")][0] / 1024


def publish():
    """One run with one plain subscriber in place of the view."""
    listener = subprocess.Popen([f"{bin_folder}/pnradar-listen", *config, "--format", "json", endpoint],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([f"{bin_folder}/pnradar", *config, "-s", "publisher.wait_s=30", "--quiet", "--end", f"{work}/end.json",
                    f"{work}/crowd.ci16"], stderr=subprocess.DEVNULL, check=False)
    listener.wait()


def run_crowd():
    """One run with all clients. Returns the view, the readers, the slow client, the share of a core and the seconds."""
    view, url = open_view(bin_folder, endpoint)
    port = int(url.split(":")[2].strip("/"))
    readers = [Client(port) for _ in range(READERS)]
    stopped, slow = Client(port, 4096), Client(port, 4096)
    slow.socket.setblocking(False)
    radar = subprocess.Popen([f"{bin_folder}/pnradar", *config, "-s", "publisher.wait_s=30", "--quiet", "--end",
                              f"{work}/end.json", f"{work}/crowd.ci16"], stderr=subprocess.DEVNULL)
    by_socket = {client.socket: client for client in readers}
    begin, used = time.monotonic(), processor_s(view.pid)
    slow_at = begin
    while not all(client.has_end for client in readers) and time.monotonic() - begin < seconds + 60:
        for ready in select.select(list(by_socket), [], [], 0.05)[0]:
            by_socket[ready].read()
        if time.monotonic() - slow_at > SLOW_S:
            slow_at += SLOW_S
            try:
                slow.read(SLOW_BYTES)
            except BlockingIOError:
                pass
    took = time.monotonic() - begin
    share, memory = (processor_s(view.pid) - used) / took, memory_mib(view.pid)
    radar.wait()
    view.kill()
    stopped.socket.close()
    return readers, slow, share, memory, took


def latency():
    with open(f"{work}/end.json", encoding="utf-8") as file:
        end = json.load(file)
    return end["latency_us"]["p50"], end["latency_us"]["p99"]


readers, slow, share, memory, took = run_crowd()
with open(f"{work}/end.json", encoding="utf-8") as file:
    sent = int(json.load(file)["account"]["sent"])
print(f"# {min(c.lines for c in readers) / seconds:.1f} to {max(c.lines for c in readers) / seconds:.1f} lines a second to each reader; "
      f"the slow client took {slow.bytes / took / 1000:.1f} kB/s, its newest line is of {slow.last_s:.1f} s of {seconds:.0f} s; "
      f"the server took {100 * share:.1f} % of a core and {memory:.0f} MiB")
report(all(c.has_end for c in readers), "a stopped and a slow client keep no other from the end of the run",
       [c.has_end for c in readers])
report(all(c.seqs == list(range(c.seqs[0], sent)) for c in readers), "each reader gets every result from its first one on",
       (sent, [c.seqs for c in readers]))
report(memory < 200, "the server takes less than 200 MiB", memory)
both = []
for pair in range(pairs):
    order = (True, False) if pair % 2 else (False, True)
    found = {}
    for has_view in order:
        if has_view:
            run_crowd()
        else:
            publish()
        found[has_view] = latency()
    both.append((found[True][0] - found[False][0], found[True][1] - found[False][1], found[True][0], found[False][0]))
    print(f"# latency with the view and with a plain subscriber: {found[True]}, {found[False]} us", flush=True)
if both:
    print(f"# {pairs} pairs: median of the differences {statistics.median(b[0] for b in both):.1f} us (p50), "
          f"{statistics.median(b[1] for b in both):.1f} us (p99); medians of p50 {statistics.median(b[2] for b in both):.1f} "
          f"and {statistics.median(b[3] for b in both):.1f} us")
plan()
