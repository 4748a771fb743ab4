#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The map that pnradar publishes, against numpy's own of the same recording in double precision.

usage: map_message.py ENDPOINT SAMPLES DEGREE TAPS PERIODS LOOKS
SAMPLES is int16 I, Q. Subscribes, takes the first map, and compares it cell by cell as map_numpy.py
does; where the map begins and its rows are the header's own. Exits with 0 when they agree.
"""
import json
import sys

import numpy as np
import zmq

from map_numpy import LIMIT, dwell_map, m_sequence


def first_map(endpoint):
    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.RCVTIMEO, 60000)
    socket.connect(endpoint)
    socket.subscribe("map/")
    socket.subscribe("end/")
    socket.subscribe("range/")  # publisher.wait_s waits for who wants these
    cells = None
    while True:
        topic, text, *parts = socket.recv_multipart()
        if topic.startswith(b"end/"):
            return cells
        if cells is None and topic.startswith(b"map/"):
            header = json.loads(text)
            cells = header, np.frombuffer(parts[0], header["dtype"]).reshape(header["shape"])


def main():
    endpoint, path, degree = sys.argv[1], sys.argv[2], int(sys.argv[3])
    taps = [int(tap) for tap in sys.argv[4].split(",")]
    periods, looks = int(sys.argv[5]), int(sys.argv[6])
    header, got = first_map(endpoint)
    n, period_s = 2 ** degree - 1, (2 ** degree - 1) * header["step_s"]
    doppler = np.concatenate([r["first_hz"] + r["step_hz"] * np.arange(r["n_rows"])
                              for r in header["doppler"]]) * period_s
    # Each row is on the nearest quarter of a bin, half-way on the higher one.
    rows = [(np.floor(4 * f + 0.5 + 1e-9) / 4, f, 0) for f in np.round(doppler * periods) / periods]
    raw = np.fromfile(path, "<i2").reshape(-1, 2)[int(header["sample"]):] / 32768.0
    want = dwell_map(raw[:, 0] + 1j * raw[:, 1], m_sequence(degree, taps), got.shape[2], periods,
                     looks, 0, rows)
    apart = np.abs(got[0] - want) / np.maximum(want, want.mean())
    peak = np.unravel_index(want.argmax(), want.shape)
    lag = (peak[1] - header["first_cell"]) * header["step_s"] + header["delay_s"]
    print("map of", got.shape, "at sample", header["sample"], "apart by %.1e at most" % apart.max(),
          "strongest at %.1f m, %.1f Hz, %.1f dB" %
          (lag * header["metres_per_second"], doppler[peak[0]] / period_s,
           10 * np.log10(want[peak] / want.mean())))
    sys.exit(not (got.shape[0] == 1 and len(rows) == got.shape[1] and apart.max() <= LIMIT
                  and np.abs(doppler * periods - np.round(doppler * periods)).max() < 1e-6
                  and want[peak] > 5 * want.mean()))


if __name__ == "__main__":
    main()
