# SPDX-License-Identifier: MIT
"""Signals with DC and carriers, made here, judge window.dc and window.notch: the echoes behind them are found
with the SNR and the scatter that remain without these frequencies.

    python3 notch_numpy.py BIN_FOLDER WORK_FOLDER

Prints TAP.
"""
import csv
import io
import re
import subprocess
import sys

import numpy as np

N, RATE, DWELLS = 1000, 1e6, 400
programs, work = sys.argv[1:]
random = np.random.RandomState(2)
chips = np.exp(2j * np.pi * random.rand(N))
spectrum = np.fft.fft(chips)
grid = np.fft.fftfreq(N)
done = 0


def masked(bands):
    """The share of the code's energy at harmonics within these bands: (centre, half width) in Hz."""
    hit = np.zeros(N, bool)
    for centre, width in bands:
        hit |= np.abs((grid - centre / RATE + 0.5) % 1 - 0.5) <= max(width / RATE, 0.5 / N) + 1e-9
    return np.sum(np.abs(spectrum[hit]) ** 2) / np.sum(np.abs(spectrum) ** 2)


def case(name, settings, share, carrier_hz=0.0, carrier=0.0, dc=0.0, snr_db=25.0, tune=0.0, doppler_hz=0.0,
         inverted=False, real=False, periods=1, dwells=DWELLS, steady=None, scatter=1.25):
    """carrier, dc: amplitudes against a noise of power 1 a sample; share: of the energy that is lost."""
    global done
    n = np.arange(dwells * periods * N)
    delays = random.rand(dwells) * N if steady is None else np.repeat(steady, dwells)
    shown = np.abs(grid) < 0.25 - 1e-9 if real else np.ones(N, bool)  # real: tuned by a quarter of the rate
    ramps = shown * spectrum * np.exp(-2j * np.pi * np.outer(delays, grid))
    x = np.repeat(np.fft.ifft(ramps), periods, axis=0).reshape(-1)
    amplitude = np.sqrt(10 ** (snr_db / 10) / (N * periods)) * (np.sqrt(2 / masked([(0, 249.9e3)])) if real else 1)
    x = amplitude * x * np.exp(2j * np.pi * (n * ((tune + doppler_hz) / RATE) % 1))
    noise = random.normal(0, np.sqrt(0.5), (2, n.size))
    x = np.conj(x) if inverted else x
    x = x + (noise[0] + 1j * noise[1]) + dc + carrier * np.exp(2j * np.pi * (carrier_hz / RATE * n % 1))
    x = (x.real if real else x) / 100
    path = work + ("/signal.f32" if real else "/signal.cf32")
    x.astype(np.float32 if real else np.complex64).tofile(path)
    words = ["code.type=file", "code.path=%s/chips.cf64" % work, "source.rate_hz=%d" % RATE, "engine.name=cpu",
             "radar.carrier_hz=0", "publisher.endpoint=", "detector.pfa=1e-4"] + settings
    ran = subprocess.run([programs + "/pnradar"] + [w for one in words for w in ("-s", one)] + ["--print", "csv", path],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    said = ran.stderr.decode()
    errors, snr, gain, cn0, n_false = [], [], [], [], 0
    for row in csv.DictReader(io.StringIO(ran.stdout.decode())):
        if row["echo"] == "":
            continue
        error = (float(row["delay_samples"]) - delays[int(row["sample"]) // (N * periods)] + N / 2) % N - N / 2
        if abs(error) > 1:
            n_false += 1
            continue
        errors.append(error / (float(row["delay_sigma_s"]) * RATE))
        snr.append(10 ** (float(row["snr_db"]) / 10))
        cn0.append(10 ** (float(row["cn0_dbhz"]) / 10))
        gain.append(float(row["amplitude"]) / amplitude * 100)
    z2 = np.mean(np.square(errors)) if errors else np.nan
    mean_db = 10 * np.log10(np.mean(snr)) if snr else np.nan
    want_db = snr_db + 10 * np.log10(1 - share)
    cn0_db = 10 * np.log10(np.mean(cn0) * N * periods / RATE) if cn0 else np.nan
    mean = np.mean(gain) if gain else np.nan
    counted = re.search(r"remove ([0-9.e-]+) % of the energy", said)
    good = (len(errors) >= 0.99 * dwells and n_false <= 2 and 0.8 < z2 < scatter and abs(mean_db - want_db) < 0.25 and
            abs(cn0_db - snr_db) < 0.25 and abs(mean - 1) < 0.02 and counted and abs(float(counted.group(1)) - 100 * share) < 0.01)
    done += 1
    print("%s %d - %s: %d found, %d false, (error/sigma)^2 %.2f, SNR %.2f of %.2f dB, C/N0 T %.2f dB, amplitude %.3f, counted %s" % (
        "ok" if good else "not ok", done, name, len(errors), n_false, z2, mean_db, want_db, cn0_db, mean,
        counted and counted.group(1)))
    if not good:
        print("# " + said.replace("\n", "\n# "))


chips.tofile(work + "/chips.cf64")
DC = ["window.dc=remove"]
case("DC", DC, masked([(0, 0)]), dc=300)
LINEAR = ["window.correlation=linear", "radar.speed_mps=1e6", "radar.path=one-way", "radar.max_range_m=500"]
case("DC in linear windows", DC + LINEAR, masked([(0, 0)]), dc=300, steady=321.4)
case("DC below a tuned frequency", DC + ["source.tune_hz=100e3"], masked([(-100e3, 0)]), dc=300, tune=100e3)
case("a carrier on a harmonic", ["window.notch=-123e3+-0"], masked([(-123e3, 0)]), carrier_hz=-123e3, carrier=300)
case("a carrier between harmonics", ["window.notch=50.3e3+-20e3"], masked([(50.3e3, 20e3)]), carrier_hz=50.3e3, carrier=1.5)
case("DC and two notches", DC + ["window.notch=200 kHz+-2e3, -300e3+-5000 Hz"], masked([(0, 0), (200e3, 2e3), (-300e3, 5e3)]),
     carrier_hz=200e3, carrier=100, dc=100)
case("an inverted spectrum", ["window.notch=123e3+-1e3", "source.spectrum=inverted", "source.tune_hz=50e3"],
     masked([(-173e3, 1e3)]), carrier_hz=123e3, carrier=300, inverted=True, tune=50e3)
ROWS = ["doppler.min_hz=-4e3", "doppler.max_hz=4e3", "doppler.step=whole"]
case("rotated rows", DC + ROWS + ["window.notch=100e3+-0"], masked([(0, 4e3), (100e3, 4e3)]), carrier_hz=100e3, carrier=300,
     dc=300, doppler_hz=2000, scatter=1.6)  # 1.34 also without DC, carrier and their removal
case("a Doppler dwell", DC + ["dwell.combine=doppler", "dwell.periods=16", "window.notch=100e3+-0"],
     masked([(0, 0), (100e3, 0)]), carrier_hz=100e3, carrier=300, dc=300, doppler_hz=125, periods=16, dwells=150)
case("real samples", DC + ["window.notch=300e3+-1e3", "source.tune_hz=250e3"],
     1 - (masked([(0, 250e3)]) - masked([(50e3, 1e3), (-250e3, 0), (250e3, 0)])) / masked([(0, 249.9e3)]),
     carrier_hz=300e3, carrier=30, dc=30, tune=250e3, real=True)
print("1..%d" % done)
