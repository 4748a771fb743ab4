#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the Cramer-Rao bounds of pnradar-bench accuracy with those of numpy. numpy computes the Fisher
information of amplitude, phase and delay from finite differences of the samples.

usage: bound_numpy.py CODE N TABLE.csv; CODE begins with float64 [N][2], as serve --dump writes it.
Prints TAP.
"""
import csv
import sys

import numpy as np

STEP = 1e-4
LIMIT = 1e-6  # greatest relative difference; finite differences have errors of about STEP^2
RMS = 1.06


def shifted(code, delay):
    """Returns a(n - delay); N is odd."""
    frequency = np.fft.fftfreq(len(code))
    return np.fft.ifft(np.fft.fft(code) * np.exp(-2j * np.pi * frequency * delay))


def bounds(code, snr):
    """Returns the standard deviations of relative amplitude, phase and delay, when all three are unknown."""
    def echo(amplitude, phase, delay):
        return amplitude * np.exp(1j * phase) * shifted(code, delay)

    # The delay is half-way between two samples; the bounds are the same at any delay.
    at = np.array([1.0, 0.7, 0.5])
    slopes = np.array([(echo(*(at + STEP * unit)) - echo(*(at - STEP * unit))) / (2 * STEP)
                       for unit in np.eye(3)])
    noise = np.sum(np.abs(code) ** 2) / snr  # power of the noise of one complex sample
    information = 2 / noise * np.real(slopes.conj() @ slopes.T)
    return np.sqrt(np.diag(np.linalg.inv(information)))


def main():
    path, n, table = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    code = np.fromfile(path, np.float64, 2 * n).view(np.complex128)
    with open(table, encoding="ascii") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    worst, good = 0.0, bool(rows)
    for row in rows:
        snr_db = float(row["snr_db"])
        want = bounds(code, 10 ** (snr_db / 10))
        got = np.array([float(row[name]) for name in ("bound_amp", "bound_phase_rad",
                                                      "bound_samples")])
        worst = max(worst, np.max(np.abs(got / want - 1)))
        if snr_db >= 20:  # with 5000 dwells one standard deviation of the rms is 1 percent
            good &= float(row["rms_samples"]) <= (RMS + 0.04) * want[2]
            good &= float(row["rms_samples"]) >= 0.96 * want[2]
    print(f"# the bounds differ by {worst:.1e} at most")
    print("ok" if worst < LIMIT else "not ok", "1 - the bounds are numpy's, from the samples alone")
    print("ok" if good else "not ok", f"2 - the rms error of the delay is within {RMS} of numpy's bound")
    print("1..2")
    return 0 if good and worst < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
