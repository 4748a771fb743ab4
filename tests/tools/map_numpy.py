#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a map of several looks, with linear correlation, with a map that numpy computes in double precision.

usage: map_numpy.py FOLDER DEGREE TAPS LAGS PERIODS LOOKS ROWS
FOLDER has samples (int16 I, Q) and map (float32 [rows][lags]); ROWS is quarters:first_bin:n_rows,...
of each hypothesis. The m-sequence begins with ones, a = 1 - 2 bit. Prints TAP.

The power P of each cell and the power p of numpy must satisfy |P - p| <= 1e-5 max(p, mean p). So weak cells are
compared with the mean of the map, and echoes with their own power.
"""
import sys

import numpy as np

LIMIT = 1e-5


def m_sequence(degree, taps):
    bits = [1] * degree
    while len(bits) < 2 ** degree - 1:
        bits.append(sum(bits[-tap] for tap in taps) % 2)
    return 1.0 - 2.0 * np.array(bits)


def dwell_map(samples, code, n_lags, periods, looks, rows):
    """Returns the sum of |c|^2 over the looks for each (f, F) of rows:
    c[k] = sum_p exp(-2 pi i F p) sum_n x_p[n + k] exp(-2 pi i f (n + k) / N) conj(a[n])."""
    n = len(code)
    window = n + n_lags - 1
    length = 2 ** int(np.ceil(np.log2(window + n)))
    spectrum = np.conj(np.fft.fft(code, length))
    power = np.zeros((len(rows), n_lags))
    period = np.arange(periods)
    for look in range(looks):
        first = look * periods * n
        x = np.stack([samples[first + p * n:first + p * n + window] for p in period])
        for f in sorted({row[0] for row in rows}):
            turned = x * np.exp(-2j * np.pi * f * np.arange(window) / n)
            c = np.fft.ifft(np.fft.fft(turned, length) * spectrum)[:, :n_lags]
            for i, (rotation, doppler) in enumerate(rows):
                if rotation == f:
                    power[i] += np.abs(np.exp(-2j * np.pi * doppler * period) @ c) ** 2
    return power


def main():
    folder, degree = sys.argv[1], int(sys.argv[2])
    taps = [int(tap) for tap in sys.argv[3].split(",")]
    n_lags, periods, looks = (int(text) for text in sys.argv[4:7])
    rows = []
    for text in sys.argv[7].split(","):
        quarters, first, count = (int(part) for part in text.split(":"))
        rows += [(quarters / 4, quarters / 4 + s / periods) for s in range(first, first + count)]
    raw = np.fromfile(folder + "/samples", "<i2").reshape(-1, 2) / 32768.0
    want = dwell_map(raw[:, 0] + 1j * raw[:, 1], m_sequence(degree, taps), n_lags, periods, looks,
                     rows)
    got = np.fromfile(folder + "/map", "<f4").reshape(want.shape).astype(float)
    apart = np.abs(got - want) / np.maximum(want, want.mean())
    peak = np.unravel_index(want.argmax(), want.shape)
    good = apart.max() <= LIMIT and want[peak] > 5 * want.mean()
    print("%sok 1 - %d x %d cells, %.1e apart at most, %.1e of the peak; an echo %.1f dB above the "
          "mean at %d, %d" % ("" if good else "not ", *want.shape, apart.max(),
                              np.abs(got - want).max() / want.max(),
                              10 * np.log10(want[peak] / want.mean()), *peak))
    print("1..1")
    sys.exit(not good)


if __name__ == "__main__":
    main()
