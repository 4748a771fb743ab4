# SPDX-License-Identifier: MIT
"""Sends a recording as `pnradar udp:HOST:PORT` reads it: python3 send.py FILE.ci16 HOST PORT RATE_HZ"""
import socket, struct, sys, time

path, host, port, rate_hz = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin, first = time.monotonic(), 0
with open(path, "rb") as samples:
    while data := samples.read(4 * 360):  # 360 samples of int16 I and Q
        out.sendto(struct.pack("<Q", first) + data, (host, port))
        first += len(data) // 4
        time.sleep(max(0, begin + first / rate_hz - time.monotonic()))
