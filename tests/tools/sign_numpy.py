#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes the sign of an echo inside looks of a stream that numpy made, and judges what pnradar finds.

usage: sign_numpy.py BIN_FOLDER WORK_FOLDER; prints TAP.
"""
import csv
import io
import subprocess
import sys

import numpy as np

N, K, DWELLS, RATE, BITS = 1023, 10, 200, 1e6, 20
DELAY, DOPPLER, AMPLITUDE = 417.3, 37.0, 0.05
programs, work = sys.argv[1:]
random = np.random.RandomState(11)
chips = 1.0 - 2.0 * random.randint(0, 2, N)
chips.astype(np.complex128).tofile(work + "/chips.cf64")
n = np.arange(N * K * DWELLS)
code = np.tile(np.fft.ifft(np.fft.fft(chips) * np.exp(-2j * np.pi * np.fft.fftfreq(N) * DELAY)), K * DWELLS)
period = np.floor((n - DELAY) / N).astype(int)  # of the code
done = 0


def judge(name, x, settings, changed, others=1):
    """changed: the looks that are flagged; others: echoes a look, the first at DELAY and DOPPLER."""
    global done
    power = AMPLITUDE ** 2 * N * K / 10 ** 2.7  # of the noise: 27 dB in a look
    x = x + np.sqrt(power / 2) * (random.normal(size=n.size) + 1j * random.normal(size=n.size))
    x.astype(np.complex64).tofile(work + "/sign.cf32")
    words = ["code.type=file", "code.path=%s/chips.cf64" % work, "source.rate_hz=1e6", "engine.name=cpu",
             "publisher.endpoint=", "detector.pfa=1e-6", "dwell.combine=doppler", "dwell.periods=%d" % K,
             "doppler.step=whole", *settings]
    ran = subprocess.run([programs + "/pnradar"] + [w for one in words for w in ("-s", one)] +
                         ["--print", "csv", work + "/sign.cf32"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    said = ran.stderr.decode()
    rows = [row for row in csv.DictReader(io.StringIO(ran.stdout.decode())) if row["echo"] != ""]
    near = [min((row for row in rows if row["seq"] == str(d)), key=lambda row: abs(float(row["doppler_hz"]) - DOPPLER))
            for d in range(DWELLS)]
    flagged = np.array(["sign-change" in row["flags"].split() for row in near])
    value = {key: np.array([float(row[key]) for row in near]) for key in
             ("delay_samples", "delay_sigma_s", "doppler_hz", "doppler_sigma_hz", "amplitude", "snr_db")}
    delay = (value["delay_samples"] - DELAY) / (value["delay_sigma_s"] * RATE)
    doppler = (value["doppler_hz"] - DOPPLER) / value["doppler_sigma_hz"]
    amplitude = np.mean(value["amplitude"]) / AMPLITUDE
    snr_db = 10 * np.log10(np.mean(10 ** (value["snr_db"] / 10)))
    good = (ran.returncode == 0 and len(rows) == others * DWELLS and np.mean(flagged[changed] if changed.any() else 1) > 0.98
            and not flagged[~changed].any() and 0.7 < np.mean(delay ** 2) < 1.4 and 0.7 < np.mean(doppler ** 2) < 1.4
            and max(abs(doppler)) < 5 and abs(amplitude - 1) < 0.02 and abs(snr_db - 27) < 0.3)
    done += 1
    print("%s %d - %s: %d echoes in %d looks, %d of %d changed ones flagged, %d others, (error/sigma)^2 of delay %.2f, "
          "Doppler %.2f, worst %.1f, amplitude %.3f, SNR %.2f dB" % (
              "ok" if good else "not ok", done, name, len(rows), DWELLS, np.sum(flagged & changed), np.sum(changed),
              np.sum(flagged & ~changed), np.mean(delay ** 2), np.mean(doppler ** 2), max(abs(doppler)), amplitude, snr_db))
    if not good:
        print("# " + said.replace("\n", "\n# "))


def echo(sign, doppler_hz=DOPPLER):
    return AMPLITUDE * sign * code * np.exp(2j * np.pi * doppler_hz / RATE * n)


def in_look(sign):
    """The looks in which the sign changes after the first and before the last window."""
    at = np.nonzero(np.diff(sign))[0] + 1
    inside = at[(at % (N * K) > N) & (at % (N * K) < N * (K - 1))] // (N * K)
    return np.isin(np.arange(DWELLS), inside)


bits = 1.0 - 2.0 * random.randint(0, 2, K * DWELLS // BITS + 3)
still = np.ones(n.size)
none = np.zeros(DWELLS, bool)
for phase in 3, 7:
    data = bits[(period + phase) // BITS + 1]
    judge("data bits %d periods after a look" % phase, echo(data), ["code.bits=%d" % BITS], in_look(data))
judge("no data", echo(still), ["code.bits=%d" % BITS], none)
judge("two echoes", echo(still) + echo(still, DOPPLER + 3.2 * RATE / N / K), ["code.bits=%d" % BITS], none, 2)
print("1..%d" % done)
