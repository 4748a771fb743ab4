# SPDX-License-Identifier: MIT
"""Writes noisy, delayed codes of satellites as cf32, two periods each, by registers of its own.

    python3 satellites_numpy.py FOLDER < CASES

A case is a line TYPE PRN COMPONENT SAMPLES_A_CHIP CHIP_RATE DELAY ...; the file is
FOLDER/TYPE-PRN-COMPONENT.cf32.
"""
import sys

import numpy as np

NOISE = 4  # of a sample; the code has amplitude 1


def register(length, taps, output, n, start=None, period=None):
    """The sum of the output stages (from 1) at n steps; the register starts again after a period."""
    state = list(start or [1] * length)
    bits = np.zeros(period or n, int)
    for i in range(bits.size):
        bits[i] = sum(state[k - 1] for k in output) % 2
        state = [sum(state[k - 1] for k in taps) % 2] + state[:-1]
    return np.resize(bits, n)


def galois(state, n):
    bits = np.zeros(n, int)
    for i in range(n):
        bits[i] = state & 1
        state = state >> 1 ^ (0o445112474 if state & 1 else 0)
    return bits


def l1ca(prn, _):
    delay = {3: 7, 120: 145, 138: 386, 194: 208, 202: 900}[prn]
    g2 = register(10, (2, 3, 6, 8, 9, 10), [10], 1023)
    return 1 - 2 * (register(10, (3, 10), [10], 1023) ^ np.roll(g2, delay))


def l2c(prn, component):
    start = {(7, "data"): 0o124510070, (7, "pilot"): 0o652521276, (193, "data"): 0o204244652}
    turns = np.zeros((10230 if component == "data" else 767250, 2))
    turns[:, int(component == "pilot")] = 1 - 2 * galois(start[prn, component], len(turns))
    return turns.ravel()


def l5(prn, component):
    start = {(4, "data"): "1011000100110", (4, "pilot"): "0011101101010"}[prn, component]
    xa = register(13, (9, 10, 12, 13), [13], 10230, period=8190)
    xb = register(13, (1, 3, 4, 6, 7, 8, 12, 13), [13], 10230, [int(bit) for bit in start])
    return 1 - 2 * (xa ^ xb)


def glonass(*_):
    return 1 - 2 * register(9, (5, 9), [7], 511)


def b1i(prn, _):
    start = [0, 1] * 5 + [0]
    g1 = register(11, (1, 7, 8, 9, 10, 11), [11], 2046, start)
    stages = {6: (1, 9), 40: (1, 3, 6)}[prn]
    return 1 - 2 * (g1 ^ register(11, (1, 2, 3, 4, 5, 8, 9, 11), stages, 2046, start))


def b3i(prn, _):
    start = {9: "1010000000010", 63: "0010001001110"}[prn]
    g1 = register(13, (1, 3, 4, 13), [13], 10230, period=8190)
    g2 = register(13, (1, 5, 6, 7, 9, 10, 12, 13), [13], 10230, [int(bit) for bit in start])
    return 1 - 2 * (g1 ^ g2)


FAMILIES = {"gps-l1ca": l1ca, "gps-l2c": l2c, "gps-l5": l5, "glonass": glonass,
            "bds-b1i": b1i, "bds-b3i": b3i}

for line in sys.stdin:
    family, prn, component, samples, _, delay = line.split()[:6]
    code = np.repeat(FAMILIES[family](int(prn), component), int(samples))
    signal = np.tile(np.roll(code, int(delay)), 2)
    noise = np.random.RandomState(1).normal(0, NOISE / 2**0.5, (2, signal.size))
    recording = 0.05 * (signal + noise[0] + 1j * noise[1])
    recording.astype(np.complex64).tofile(f"{sys.argv[1]}/{family}-{prn}-{component}.cf32")
