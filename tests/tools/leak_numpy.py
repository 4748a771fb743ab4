# SPDX-License-Identifier: MIT
"""Signals with a strong direct path outside of the range gate, made here: the echoes in the gate have the SNR and the
scatter that they have without it, and the direct path is not reported.

    python3 leak_numpy.py BIN_FOLDER WORK_FOLDER

Prints TAP.
"""
import csv
import io
import subprocess
import sys

import numpy as np

CHIPS, Q, RATE = 255, 4, 1e6
N = CHIPS * Q
METRES = 299792458.0 / 2 / RATE  # a sample
programs, work = sys.argv[1:]
random = np.random.RandomState(7)
grid = np.fft.fftfreq(N)
done = 0


def sequence():
    """A register of x^8 + x^4 + x^3 + x^2 + 1: an m-sequence, whose sidelobes are -1 beside 255."""
    state, chips = [1] * 8, []
    for _ in range(CHIPS):
        chips.append(1 - 2 * state[-1])
        state = [state[1] ^ state[2] ^ state[3] ^ state[7]] + state[:-1]
    return np.array(chips, complex)


CODES = {"m": sequence(), "random": np.exp(2j * np.pi * random.rand(CHIPS))}


def wave(code, lag, bins, periods, turns, real):
    """The code at a lag, with a Doppler in bins of one period; turns: the phase of each look."""
    n = np.arange(N * periods)
    ramp = np.fft.fft(np.repeat(CODES[code], Q)) * np.exp(-2j * np.pi * lag * grid)
    if real:
        ramp *= np.abs(grid) < 0.25 - 1e-9  # tuned by a quarter of the rate
    one = np.tile(np.fft.ifft(ramp), periods) * np.exp(2j * np.pi * (bins * n / N % 1))
    return np.exp(2j * np.pi * random.rand()) * np.concatenate([one * np.exp(2j * np.pi * t) for t in turns])


def case(name, settings, leak_db, snr_db, code="m", periods=1, looks=1, real=False, bins=0.0, gate=(100, 900),
         leak_bins=0.0, dwells=150):
    global done
    length, gain = N * periods * looks, N * periods
    lags = random.uniform(gate[0] + 40, gate[1] - 40, dwells)
    leak_lag = gate[0] - 60 + random.rand()
    energy = np.abs(np.fft.fft(np.repeat(CODES[code], Q))) ** 2
    shown = np.sum(energy[np.abs(grid) < 0.25 - 1e-9]) / np.sum(energy) if real else 1
    scale = np.sqrt(2 / shown) if real else 1
    amplitude = np.sqrt(10 ** (snr_db / 10) / gain) * scale if snr_db is not None else 0
    x = []
    for lag in lags:
        turns = random.rand(looks)
        x.append(amplitude * wave(code, lag, bins, periods, turns, real) + np.sqrt(10 ** (leak_db / 10) / gain) * scale *
                 wave(code, leak_lag, leak_bins, periods, turns, real))
    x = np.concatenate(x)
    if real:
        x = x * np.exp(2j * np.pi * (np.arange(x.size) / 4 % 1))
    noise = random.normal(0, np.sqrt(0.5), (2, x.size))
    x = (x + noise[0] + 1j * noise[1]) / 1000
    path = work + ("/signal.f32" if real else "/signal.cf32")
    (x.real if real else x).astype(np.float32 if real else np.complex64).tofile(path)
    CODES[code].tofile(work + "/chips.cf64")
    words = ["code.type=file", "code.path=%s/chips.cf64" % work, "source.rate_hz=%d" % RATE,
             "code.chip_rate_hz=%d" % (RATE / Q),
             "engine.name=cpu", "publisher.endpoint=", "detector.pfa=1e-3", "radar.min_range_m=%r" % (gate[0] * METRES),
             "radar.max_range_m=%r" % (gate[1] * METRES)] + settings + (["source.tune_hz=250e3"] if real else [])
    ran = subprocess.run([programs + "/pnradar"] + [w for one in words for w in ("-s", one)] + ["--print", "csv", path],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    errors, turns, gains, snr, n_false = [], [], [], [], 0
    for row in csv.DictReader(io.StringIO(ran.stdout.decode())):
        if row["echo"] == "":
            continue
        error = float(row["delay_samples"]) - lags[int(row["sample"]) // length]
        if snr_db is None or abs(error) > 1:
            n_false += 1
            continue
        errors.append(error / (float(row["delay_sigma_s"]) * RATE))
        snr.append(10 ** (float(row["snr_db"]) / 10))
        gains.append((float(row["amplitude"]) * 1000 - amplitude) / (float(row["amplitude_sigma"]) * 1000))
        if row["doppler_hz"]:
            turns.append((float(row["doppler_hz"]) - bins * RATE / N) / float(row["doppler_sigma_hz"]))
    means = [np.mean(np.square(v)) for v in (errors, turns, gains) if v]
    mean_db = 10 * np.log10(np.mean(snr)) if snr else np.nan
    good = ran.returncode == 0 and n_false == 0 and (
        snr_db is None or len(errors) == dwells and all(0.7 < m < 1.35 for m in means) and abs(mean_db - snr_db) < 0.3)
    done += 1
    print("%s %d - %s: %d found of %d, %d false, (error/sigma)^2 %s, SNR %.2f of %s dB" % (
        "ok" if good else "not ok", done, name, len(errors), dwells, n_false,
        " ".join("%.2f" % m for m in means), mean_db, snr_db))
    if not good:
        print("# " + ran.stderr.decode().replace("\n", "\n# "))


SUBTRACT = ["detector.subtract=2"]
ROWS = ["dwell.combine=doppler", "dwell.periods=16", "doppler.step=half", "radar.carrier_hz=0"]
case("single windows, 45 dB", [], 45, 25)
case("half lags", ["detector.oversample=2"], 45, 25)
case("no echo in the gate", [], 60, None, dwells=300)
case("60 dB, subtracted", SUBTRACT, 60, 25)
case("70 dB, subtracted", SUBTRACT, 70, 25)
case("a code with sidelobes", [], 40, 33, code="random")
case("a code with sidelobes, subtracted", SUBTRACT, 50, 25, code="random")
case("16 periods", ["dwell.combine=coherent", "dwell.periods=16"], 45, 25, periods=16)
case("16 rows", ROWS, 60, 25, periods=16, bins=0.2)
case("16 rows, the direct path between them", ROWS, 60, 25, periods=16, bins=0.2, leak_bins=0.013)
case("rows of a code with sidelobes, subtracted", ROWS + SUBTRACT, 60, 25, code="random", periods=16, bins=0.2)
case("a sum of 16 looks", ["dwell.combine=incoherent", "dwell.periods=16"], 40, 20, looks=16)
case("real samples", [], 45, 25, real=True)
case("real samples, subtracted", SUBTRACT, 60, 25, real=True)
print("1..%d" % done)
