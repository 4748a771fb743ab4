#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the speed of the cpu engine with scipy.fft. Both correlate the same int16 samples in turns, and must
find the same peaks.

usage: bench_numpy.py BIN_FOLDER [--runs N] [--threads N] [--check]
--check: exit status 1 when a ratio is above its limit.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import scipy
    from scipy import fft
except ImportError as missing:
    print(f"bench_numpy: left out, {missing} (Debian: python3-scipy)")
    sys.exit(0)

# Cases: log2 N; windows a submit; greatest time of the cpu engine divided by the time of scipy.
CASES = ((13, 64, 0.35), (16, 8, 0.40), (20, 1, 0.45))


class Engine:
    """Runs pnradar-bench serve, which measures one correlation for each line of input."""

    def __init__(self, folder, log2_n, batch, threads, dump):
        self.process = subprocess.Popen(
            [os.path.join(folder, "pnradar-bench"), "serve", "-n", f"2^{log2_n}", "--dump", dump,
             "-s", "engine.name=cpu", "-s", f"engine.batch={batch}",
             "-s", f"engine.threads={threads}", "-s", "detector.oversample=1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if not first.startswith("ready"):
            sys.exit("bench_numpy: pnradar-bench serve did not start")

    def run(self):
        """Returns the nanoseconds from submit to collected result, and the lag of each window's echo."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        if not words:
            sys.exit("bench_numpy: pnradar-bench serve stopped")
        return int(words[0]), np.array(words[1:], dtype=np.int64)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def correlate(raw, spectrum, threads):
    """Returns the lag of each row's peak. raw: int16 [batch][N][2]; all values are complex64."""
    samples = raw.astype(np.float32).view(np.complex64)[..., 0]
    bins = fft.fft(samples, axis=1, workers=threads, overwrite_x=True)
    bins *= spectrum
    profile = fft.ifft(bins, axis=1, workers=threads, overwrite_x=True)
    return np.argmax(profile.real**2 + profile.imag**2, axis=1)


def measure(folder, log2_n, batch, threads, runs):
    """Returns two medians in milliseconds, of the cpu engine and of scipy, which run in turns. Discards the first run
    of each."""
    n = 1 << log2_n
    with tempfile.TemporaryDirectory() as work:
        dump = os.path.join(work, "samples")
        engine = Engine(folder, log2_n, batch, threads, dump)
        with open(dump, "rb") as file:
            code = np.fromfile(file, np.float64, 2 * n).view(np.complex128)
            raw = np.fromfile(file, np.int16).reshape(batch, n, 2)
        spectrum = (np.conj(np.fft.fft(code)) / 32768).astype(np.complex64)
        ours, theirs = [], []
        for run in range(runs + 1):
            ns, lags = engine.run()
            start = time.perf_counter_ns()
            peaks = correlate(raw, spectrum, threads)
            theirs_ns = time.perf_counter_ns() - start
            if not np.array_equal(lags, peaks):
                sys.exit(f"bench_numpy: 2^{log2_n}: the peaks differ: {lags} and {peaks}")
            if run > 0:
                ours.append(ns * 1e-6)
                theirs.append(theirs_ns * 1e-6)
        engine.close()
    return statistics.median(ours), statistics.median(theirs)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder")
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--check", action="store_true")
    options = arguments.parse_args()
    if options.runs < 10:
        arguments.error("at least 10 runs are counted")
    print(f"cpu engine against scipy.fft {scipy.__version__} (complex64, workers="
          f"{options.threads}), int16 in, peaks out, {options.runs} runs in turns, medians")
    print(f"{'N':>6} {'windows':>8} {'cpu_ms':>9} {'scipy_ms':>9} {'ratio':>7} {'limit':>6}")
    above = False
    for log2_n, batch, limit in CASES:
        ours, theirs = measure(options.folder, log2_n, batch, options.threads, options.runs)
        ratio = ours / theirs
        above |= ratio > limit
        print(f"  2^{log2_n:<3d} {batch:7d} {ours:9.3f} {theirs:9.3f} {ratio:7.3f} {limit:6.2f}"
              f"  {'ABOVE' if ratio > limit else 'within'}", flush=True)
    return 1 if above and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
