#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Drops samples from a stream that numpy made, and judges the slips that pnradar reports.

usage: slip_numpy.py BIN_FOLDER WORK_FOLDER; prints TAP.
"""
import csv
import io
import subprocess
import sys

import numpy as np

N, PERIODS, RATE = 2047, 300, 1e6
programs, work = sys.argv[1:]
random = np.random.RandomState(7)
chips = 1.0 - 2.0 * random.randint(0, 2, N)
chips.astype(np.complex128).tofile(work + "/chips.cf64")
spectrum = np.fft.fft(chips)
ramp = np.fft.fftfreq(N)
done = 0


def stream(echoes):
    """echoes: delay in samples, amplitude, Doppler in Hz, first and last period."""
    n = np.arange(N * PERIODS)
    x = 0.05 * (random.normal(size=n.size) + 1j * random.normal(size=n.size))
    for delay, amplitude, doppler_hz, first, last in echoes:
        code = np.fft.ifft(spectrum * np.exp(-2j * np.pi * ramp * delay))
        there = (n >= first * N) & (n < last * N)
        x += amplitude * there * np.tile(code, PERIODS) * np.exp(2j * np.pi * doppler_hz / RATE * n)
    return x


def judge(name, x, wanted, settings=()):
    """wanted: list of (sample, vanished); settings: more of the configuration."""
    global done
    path = work + "/slip.cf32"
    x.astype(np.complex64).tofile(path)
    words = ["code.type=file", "code.path=%s/chips.cf64" % work, "source.rate_hz=1e6", "engine.name=cpu",
             "publisher.endpoint=", "detector.pfa=1e-4", *settings]
    ran = subprocess.run([programs + "/pnradar"] + [w for one in words for w in ("-s", one)] + ["--print", "csv", path],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    said = ran.stderr.decode()
    rows = [row for row in csv.DictReader(io.StringIO(ran.stdout.decode())) if row["echo"] in ("", "1")]
    found = [(int(row["sample"]), int(row["slip"])) for row in rows if row["slip"] != "0"]
    dwell = int(rows[1]["sample"]) - int(rows[0]["sample"])
    good = (ran.returncode == 0 and len(found) == len(wanted) and len(rows) > 30 and
            all((row["slip"] != "0") == ("slip" in row["flags"].split()) for row in rows) and
            all(size == n and 0 < sample - at <= 4 * dwell for (sample, size), (at, n) in zip(found, wanted)) and
            said.count("vanished uncounted") == len(wanted))
    done += 1
    print("%s %d - %s: slips %s, wanted %s" % ("ok" if good else "not ok", done, name, found, wanted))
    if not good:
        print("# " + said.replace("\n", "\n# "))


def drop(x, at, count):
    return np.concatenate([x[:at], x[at + count:]])


ONE, TWO = (300.3, 0.05, 0, 0, PERIODS), (911.8, 0.02, 0, 0, PERIODS)
AT = 123 * N + 456
both = stream([ONE, TWO])
judge("965 samples", drop(both, AT, 965), [(AT, 965)])
judge("965 samples, a single echo", drop(stream([ONE]), AT, 965), [(AT, 965)])
judge("5877 samples, three periods less 264", drop(both, AT, 5877), [(AT, 5877 - 2 * N)])
judge("twice", drop(drop(both, 200 * N, 17), AT, 1), [(AT, 1), (200 * N - 1, 17)])
judge("in dwells of four periods", drop(both, AT, 965), [(AT, 965)], ["dwell.periods=4", "dwell.combine=coherent"])
judge("nothing vanishes", both, [])
judge("a counted gap", drop(both, AT, 965), [], ["source.lost=%d+965" % AT])
judge("an echo sets as another rises", stream([(300.3, 0.05, 0, 0, 150), (500.3, 0.03, 0, 150, PERIODS)]), [])
judge("one of two echoes jumps", stream([(300.3, 0.05, 0, 0, 150), (500.3, 0.05, 0, 150, PERIODS), TWO]), [])
print("1..%d" % done)
