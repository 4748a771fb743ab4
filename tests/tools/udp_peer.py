# SPDX-License-Identifier: MIT
"""A sender of datagrams for cli_udp.sh, written from the descriptions of the formats alone.
usage: udp_peer.py plan FOLDER: the losses of the sender below, as source.lost wants them
       udp_peer.py udp|vrt FOLDER PORT: FOLDER/echo.ci16, with losses, duplicates and packets out of order
       udp_peer.py packets FOLDER: the packets of VITA-49 in FOLDER/vrt.pcap, and what they state, a line each"""
import random
import socket
import struct
import sys
import time

import numpy as np

what, folder = sys.argv[1:3]
RATE, STREAM, START_S, N = 96000, 0x1F2E3D4C, 1795228812, 80  # N: samples of a packet
iq = np.fromfile(f"{folder}/echo.ci16", "<i2").reshape(-1, 2)
rng = random.Random(7)
count = len(iq) // N  # packets; of the last 30 none is lost
lost = {i for i in range(20, count - 30) if rng.random() < 0.01} | set(range(100, 119))


def vrt(number, type_, fields, at):
    """A packet with stream, UTC and picoseconds of sample `at`."""
    seconds, rest = divmod(at, RATE)
    body = struct.pack(">IIQ", STREAM, START_S + seconds, rest * 10**12 // RATE) + fields
    return struct.pack(">I", type_ << 28 | 1 << 22 | 2 << 20 | number % 16 << 16 | 1 + len(body) // 4) + body


def data_packet(number):
    at = number * N
    return vrt(number, 1, iq[at : at + N].astype(">i2").tobytes(), at)


def context(at):
    """Rate and frequency as 64-bit numbers with 20 bits after the point, and the format of the samples."""
    fields = struct.pack(">IQQII", 1 << 27 | 1 << 21 | 1 << 15, 99500000 << 20, RATE << 20, 0xA00003CF, 0)
    return vrt(at // N // 10, 4, fields, at)


def order():
    """Numbers of packets as they arrive: 1 % lost, 3 % up to ten places late, 3 % twice."""
    places = []
    for number in range(count):
        if number in lost:
            continue
        late = 0 if number < 20 or number >= count - 30 or rng.random() > 0.03 else rng.randrange(1, 11)
        places.append((number + late + late / 20, number))
        if 20 <= number < count - 30 and rng.random() < 0.03:
            places.append((number + rng.randrange(10) + 0.25, number))
    return [number for _, number in sorted(places)]


def datagrams():
    for n, number in enumerate(order()):
        if what == "udp":
            yield struct.pack("<Q", 10**15 + number * N) + iq[number * N : (number + 1) * N].tobytes()
            continue
        if n % 50 == 1:
            yield context(number * N)
            yield b"\x10\x00\x00\x04" + b"\0" * 12  # another stream
        yield data_packet(number)


if what == "plan":
    print(",".join(f"{number * N}+{N}" for number in sorted(lost)))
elif what == "packets":
    sent = [data_packet(0), context(0), data_packet(17), data_packet(1100)]
    with open(f"{folder}/vrt.pcap", "wb") as out:
        out.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))  # raw IP
        for packet in sent:
            length = 28 + len(packet)
            out.write(struct.pack("<IIII", 0, 0, length, length))
            out.write(struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1"))
            out.write(struct.pack(">HHHH", 4991, 4991, length - 20, 0) + packet)
    for number, at, type_ in ((0, 0, 1), (0, 0, 4), (1, 17 * N, 1), (12, 1100 * N, 1)):
        print(type_, f"0x{STREAM:08x}", number, START_S + at // RATE, at % RATE * 10**12 // RATE, sep="\t")
else:
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    begin = time.monotonic()
    for n, packet in enumerate(datagrams()):
        out.sendto(packet, ("127.0.0.1", int(sys.argv[3])))
        time.sleep(max(0, begin + n * N / RATE / 8 - time.monotonic()))
