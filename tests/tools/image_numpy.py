# SPDX-License-Identifier: MIT
"""A sonar's direct path in real samples, made here, seen through Doppler rows that are resampled: it has its SNR up to
110 dB, and so has an echo of 30 dB beside it, which is found after the direct path is subtracted.

    python3 image_numpy.py BIN_FOLDER WORK_FOLDER

Prints TAP.
"""
import csv
import io
import subprocess
import sys

import numpy as np

RATE, TUNE, CHIPS, Q, PERIODS, DWELLS = 48000, 12000, 127, 12, 16, 24
N = CHIPS * Q
programs, work = sys.argv[1:]
random = np.random.RandomState(5)
done = 0


def sequence():
    """A register of x^7 + x + 1."""
    state, chips = [1] * 7, []
    for _ in range(CHIPS):
        chips.append(1 - 2 * state[-1])
        state = [state[0] ^ state[6]] + state[:-1]
    return np.array(chips, float)


def case(snr_db, below_db, rows_hz=40):
    """The direct path, and an echo that is below_db weaker. rows_hz: the rows go so far to both sides; 0: the default."""
    global done
    chips, harmonic = sequence(), np.fft.fftfreq(N, 1 / N)
    chips.tofile(work + "/chips.f64")
    at = harmonic + TUNE * N / RATE
    spectrum = np.fft.fft(np.repeat(chips, Q)) * ((at > 0) & (at < N / 2))
    share = np.sum(np.abs(spectrum) ** 2) / N ** 2
    n = np.arange(N * PERIODS * DWELLS)
    x = 0
    for lag, level in ((61.37, 1), (305.21, 10 ** (-below_db / 20))):
        wave = np.fft.ifft(spectrum * np.exp(-2j * np.pi * lag * harmonic / N))
        x = x + level * (np.tile(wave, PERIODS * DWELLS) * np.exp(2j * np.pi * (n * TUNE % RATE) / RATE)).real
    # of a sample; an echo of amplitude 1 has 1 / 2 at positive frequencies
    noise = np.sqrt(10 ** (-snr_db / 10) * N * PERIODS * share) / 2
    x = (x + noise * random.standard_normal(n.size)) / 4
    x.astype(np.float32).tofile(work + "/signal.f32")
    words = ["code.type=file", "code.path=%s/chips.f64" % work, "source.rate_hz=%d" % RATE,
             "source.tune_hz=%d" % TUNE, "code.chip_rate_hz=%d" % (RATE // Q), "radar.speed_mps=343",
             "radar.carrier_hz=%d" % TUNE, "engine.name=cpu", "dwell.combine=doppler", "dwell.periods=%d" % PERIODS, "doppler.min_hz=%g" % -rows_hz,
             "doppler.max_hz=%g" % rows_hz, "detector.pfa=1e-3", "detector.subtract=2", "publisher.endpoint="]
    ran = subprocess.run([programs + "/pnradar"] + [w for one in words for w in ("-s", one)] +
                         ["--print", "csv", work + "/signal.f32"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    rows = [row for row in csv.DictReader(io.StringIO(ran.stdout.decode())) if row["echo"] != ""]
    direct, weak = ([10 ** (float(r["snr_db"]) / 10) for r in rows if abs(float(r["delay_samples"]) - lag) < 1]
                    for lag in (61.37, 305.21))
    n_false = len(rows) - len(direct) - len(weak)
    done += 1
    means_db = [10 * np.log10(np.mean(v)) if v else np.nan for v in (direct, weak)]
    good = (len(direct) == len(weak) == DWELLS and n_false <= 1 and abs(means_db[0] - snr_db) < 0.7 and
            abs(means_db[1] - snr_db + below_db) < 0.7)
    print("%s %d - %g dB and %g dB less, rows to %g Hz: %d and %d found of %d, %d false, SNR %.2f and %.2f dB" % (
        "ok" if good else "not ok", done, snr_db, below_db, rows_hz, len(direct), len(weak), DWELLS, n_false, *means_db))
    if not good:
        print("# " + ran.stderr.decode().replace("\n", "\n# "))


case(60, 30)
case(80, 50)
case(90, 60)
case(100, 70)
case(110, 80)
case(60, 30, 31)
case(60, 30, 25)
case(50, 25, 0)
case(70, 40, 0)
print("1..%d" % done)
