#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the receiver in the scene of pnradar-echo with numpy: filtered noise, the image of real samples, DC, IQ
imbalance, phase noise, data bits and slips.

usage: scene_numpy.py BIN_FOLDER; prints TAP.
Statistics of noise may differ by five standard deviations of their estimates, exact values by 1e-12.
"""
import csv
import io
import subprocess
import sys

import numpy as np

N = 1024
RATE = 1e6
BASE = {"source.rate_hz": 1000000, "source.format": "cf64", "code.type": "zadoff-chu", "code.length": 256,
        "code.chip_rate_hz": 250000, "echo.noise_rms": 0, "echo.periods": 64}
ECHO = {"target.1.range_m": 30000, "target.1.amplitude": 0.25}
done = 0


def scene(*parts, **kept):
    """Returns the complex samples of a scene; with truth=True also the rows of its truth."""
    settings = dict(BASE)
    for part in parts:
        settings.update(part)
    command = [sys.argv[1] + "/pnradar-echo"]
    for key, value in settings.items():
        command += ["-s", "%s=%s" % (key, value)]
    if kept:
        out = subprocess.run(command + ["--truth", "-", "/dev/null"], stdout=subprocess.PIPE, check=True)
        return list(csv.DictReader(io.StringIO(out.stdout.decode())))
    out = subprocess.run(command + ["-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return np.frombuffer(out, {"cf64": "c16", "f64": "f8"}[settings["source.format"]])


def check(good, name):
    global done
    done += 1
    print("%s %d - %s" % ("ok" if good else "not ok", done, name))


def near(a, b, limit=1e-12):
    return np.max(np.abs(a - b)) <= limit


def firwin(width, centre):
    """Returns scipy.signal.firwin(101, width), scaled to unit energy and moved to `centre` cycles a sample."""
    t = np.arange(101) - 50.0
    h = width * np.sinc(width * t) * (0.54 + 0.46 * np.cos(np.pi * t / 50))
    return h / np.sqrt(np.sum(h ** 2)) * np.exp(2j * np.pi * centre * t)


def noise():
    white = scene({"echo.noise_rms": 0.2})
    check(abs(np.mean(np.abs(white) ** 2) / 0.04 - 1) < 5 / np.sqrt(len(white)), "white noise has its power")
    coloured = scene({"echo.noise_rms": 0.2, "echo.noise_bandwidth_hz": 0.625 * RATE, "source.tune_hz": 100000})
    h = firwin(0.625, 0.1)
    check(near(coloured[50:-50], np.convolve(white, h, "valid")), "filtered noise is the white one after firwin")
    power = np.mean(np.abs(np.fft.fft(coloured.reshape(-1, N), axis=1)) ** 2, axis=0) / N / 0.04
    shape = np.abs(np.fft.fft(h, N)) ** 2
    check(np.max(np.abs(power - shape)) < 6 * np.max(shape) / np.sqrt(len(coloured) / N) and
          np.mean(power[np.abs((np.fft.fftfreq(N) - 0.1 + 0.5) % 1 - 0.5) > 0.35]) < 1e-3,
          "and has the spectrum of the filter, around the tuned frequency")


def image():
    tuned = {"source.tune_hz": 250000}
    spectrum = np.fft.fft(scene(ECHO, tuned)[:8 * N])
    twice = 2 * np.fft.fft(scene(ECHO, tuned, {"source.format": "f64"})[:8 * N])
    held = slice(1, 4 * N)
    check(near(twice[held], spectrum[held], 1e-9), "real samples have the band of the complex ones, and no image")


def front_end():
    clean = scene(ECHO)
    offset = scene(ECHO, {"echo.dc_amplitude": 0.3, "echo.dc_phase_rad": 0.7})
    check(near(offset - clean, 0.3 * np.exp(0.7j)), "the offset is constant")
    gain = 10 ** (1 / 20) * np.exp(0.05j)
    skewed = scene(ECHO, {"echo.iq_gain_db": 1, "echo.iq_phase_rad": 0.05})
    check(near(skewed, (1 + gain) / 2 * clean + (1 - np.conj(gain)) / 2 * np.conj(clean)), "IQ imbalance")
    turned = scene(ECHO, {"echo.phase_noise_rad": 30}, {"echo.periods": 400})
    clean = scene(ECHO, {"echo.periods": 400})
    walk = np.unwrap(np.angle(turned * np.conj(clean)))
    good = near(np.abs(turned), np.abs(clean))
    for step in 1, 16, 256, 4096:
        moves = np.diff(walk[::step])
        good = good and abs(np.mean(moves ** 2) / (900 * step / RATE) - 1) < 5 * np.sqrt(2 / len(moves))
        good = good and abs(np.mean(moves[1:] * moves[:-1])) < 5 * 900 * step / RATE / np.sqrt(len(moves))
    check(good, "the phase is a random walk at every step")


def data_bits():
    clean = scene(ECHO)
    ratio = (scene(ECHO, {"target.1.data_bit_periods": 3}) / clean).real
    delay = 2 * 30000 / 299792458 * RATE
    edges = np.nonzero(np.diff(ratio) < -1)[0] + 1, np.nonzero(np.diff(ratio) > 1)[0] + 1
    edges = np.sort(np.concatenate(edges))
    check(near(np.abs(ratio), 1, 1e-7) and len(edges) > 3 and
          near((edges - np.ceil(delay)) % (3 * N) % N, 0, 0) and len(np.unique((edges - np.ceil(delay)) % (3 * N))) == 1,
          "data bits change the sign where the echo's code starts, every third time at most")


def slips():
    whole = scene(ECHO, {"echo.noise_rms": 0.1}, {"echo.periods": 70})
    slipped = scene(ECHO, {"echo.noise_rms": 0.1, "echo.slips": "5000+100,20000+965"})
    kept = np.concatenate([whole[:5000], whole[5100:20000], whole[20965:]])
    check(near(slipped, kept[:len(slipped)], 0) and len(slipped) == 64 * N, "a slip removes samples unseen")
    truth = [float(row["delay_samples"]) for row in scene(ECHO, {"echo.slips": "5000+100,20000+965"}, truth=True)]
    delay = 2 * 30000 / 299792458 * RATE
    wanted = np.array([delay if p < 5 else delay - 100 if p < 19 else delay - 1065 for p in range(64)]) % N
    check(near(truth, wanted, 1e-6), "and the truth moves with it")


for part in noise, image, front_end, data_bits, slips:
    part()
print("1..%d" % done)
