# SPDX-License-Identifier: MIT
"""Pulses as their transmitter sends them, made by formulas in time, judge the generator and the detector.

    python3 pulse_numpy.py BIN_FOLDER WORK_FOLDER

A rectangular chip is its two edges: the Fourier series of a signal of jumps b_i at times t_i is
sum_i b_i exp(-2 pi i m t_i / N) / (2 pi i m). A root-raised cosine is the closed form of its impulse
response. Prints TAP.
"""
import csv
import io
import subprocess
import sys

import numpy as np

L, Q = 255, 4
N = L * Q
RATE = 1e6
ROLLOFF, CUTOFF = 0.35, 180e3
DWELLS, SNR = 1000, 1e4
programs, work = sys.argv[1:]
random = np.random.RandomState(1)
chips = np.sign(random.rand(L) - 0.5)
done = 0


def check(good, name, said=""):
    global done
    done += 1
    print("%s %d - %s" % ("ok" if good else "not ok", done, name))
    if not good and said:
        print("# " + said)


def edges(cutoff, begin):
    """The code of rectangular chips, of which the first begins at sample `begin`, below the cut-off."""
    m = np.arange(1, int(np.ceil(cutoff / RATE * N)))
    times = np.arange(L) * Q + begin
    jumps = chips - np.roll(chips, 1)
    series = np.exp(-2j * np.pi * np.outer(m, times) / N) @ jumps / (2j * np.pi * m)
    spectrum = np.zeros(N, complex)
    spectrum[0] = np.mean(chips)
    spectrum[m], spectrum[-m] = series, np.conj(series)
    return np.fft.ifft(spectrum) * N


def held(delay):
    """Chips of whole samples, interpolated between the samples."""
    spectrum = np.fft.fft(np.repeat(chips, Q)) * np.exp(-2j * np.pi * np.fft.fftfreq(N) * delay)
    return np.fft.ifft(spectrum)


def root_raised_cosine(centre, b=ROLLOFF):
    t = (np.arange(-40 * N, 40 * N) - centre) / Q + 1e-9
    pulse = (np.sin(np.pi * t * (1 - b)) + 4 * b * t * np.cos(np.pi * t * (1 + b))) / (
        np.pi * t * (1 - (4 * b * t) ** 2))
    sparse = np.zeros(N)
    sparse[::Q] = chips
    return np.fft.ifft(np.fft.fft(pulse.reshape(80, N).sum(axis=0)) * np.fft.fft(sparse))


def unit(a):
    return a / np.sqrt(np.mean(np.abs(a) ** 2))


PULSES = {
    "band-limited": held,
    "rectangular": lambda delay: edges(RATE / 2, delay),
    "filtered": lambda delay: edges(CUTOFF, delay),
    "rrc": root_raised_cosine,
}


MEASURED = {
    "rrc 0.22": (lambda delay: root_raised_cosine(delay, 0.22), 0),
    "rrc 0.35": (lambda delay: root_raised_cosine(delay, 0.35), 0),
    "rrc 0.5": (lambda delay: root_raised_cosine(delay, 0.5), 0),
    "filtered": (PULSES["filtered"], Q / 2),  # from the begin of the chip to its middle
}


def settings(pulse):
    out = ["code.type=file", "code.path=%s/chips.cf64" % work, "code.chip_rate_hz=%d" % (RATE / Q),
           "source.rate_hz=%d" % RATE, "radar.speed_mps=%d" % RATE, "radar.path=one-way", "code.pulse=" + pulse]
    out += ["code.rolloff=%g" % ROLLOFF] if pulse == "rrc" else []
    out += ["code.cutoff_hz=%g" % CUTOFF] if pulse == "filtered" else []
    return [word for one in out for word in ("-s", one)]


def run(program, pulse, *words):
    done = subprocess.run(["%s/%s" % (programs, program)] + settings(pulse) + list(words),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return done.stdout, done.stderr.decode()


def generator(pulse):
    good = True
    for delay in 0, 17.25, 803.6:
        out, said = run("pnradar-echo", pulse, "-s", "source.format=cf64", "-s", "echo.periods=2", "-s",
                        "echo.noise_rms=0", "-s", "target.1.amplitude=1", "-s", "target.1.range_m=%g" % delay, "-")
        x = np.frombuffer(out, "c16")
        good = good and x.size == 2 * N and np.max(np.abs(x[N:] - unit(PULSES[pulse](delay)))) < 1e-5
    check(good, "the generator writes the pulse %s" % pulse, said)


def measure(name):
    """One echo of 55 dB a period, whose delay and phase drift, in 100 periods; then dwells with the pulse measured."""
    shape, middle = MEASURED[name]
    start, drift, turn = 311.3, 2e-4, 0.13
    first = np.fft.fft(unit(shape(0)))
    delay = start + drift * np.arange(100)
    harmonics = np.fft.fftfreq(N) * N
    x = np.fft.ifft(first * np.exp(-2j * np.pi * np.outer(delay, harmonics) / N)).ravel()
    x *= 0.1 * np.exp(2j * np.pi * turn * np.arange(x.size) / N)
    noise = random.normal(0, 0.1 * np.sqrt(N / 10 ** 5.5 / 2), (2, x.size))
    (x + noise[0] + 1j * noise[1]).astype(np.complex64).tofile(work + "/loop.cf32")
    path = ["-s", "code.pulse_path=%s/measured.cf64" % work]
    out, said = run("pnradar-plan", "band-limited", *path, "--measure-pulse", work + "/loop.cf32")
    check(b"error of the pulse" in out, "the pulse %s is measured" % name, said)
    shifted = lambda delay: np.fft.ifft(first * np.exp(-2j * np.pi * (delay - middle) / N * harmonics))
    detector("file", shifted, "the detector measures with the measured pulse " + name, path,
             500)


def detector(pulse, shape, name, words=(), n_dwells=DWELLS):
    delays = random.rand(n_dwells) * N
    x = np.array([unit(shape(delay)) for delay in delays])
    noise = random.normal(0, np.sqrt(N / SNR / 2), (2,) + x.shape)
    (0.1 * (x + noise[0] + 1j * noise[1])).astype(np.complex64).tofile(work + "/signal.cf32")
    out, said = run("pnradar", pulse, "-s", "engine.name=cpu", "-s", "publisher.endpoint=", "-s", "detector.pfa=1e-4",
                    "--print", "csv", *words, work + "/signal.cf32")
    rows = list(csv.DictReader(io.StringIO(out.decode())))
    errors, amplitudes, n_false = [], [], 0
    for row in rows:
        if row["echo"] == "":
            continue
        delay = delays[int(row["sample"]) // N]
        error = (float(row["delay_samples"]) - delay + N / 2) % N - N / 2
        if abs(error) > 1:
            n_false += 1
            continue
        errors.append(error / (float(row["delay_sigma_s"]) * RATE))
        amplitudes.append(float(row["amplitude"]) / 0.1)
    z = np.array(errors) if errors else np.array([np.nan])
    found = "%d found, %d false, mean %.2f, (error/sigma)^2 %.2f, amplitude %.3f" % (
        len(errors), n_false, np.mean(z), np.mean(z ** 2), np.mean(amplitudes))
    check(len(errors) == n_dwells and n_false <= 2 and abs(np.mean(z)) < 0.15 and 0.8 < np.mean(z ** 2) < 1.25 and
          abs(np.mean(amplitudes) - 1) < 0.01, "%s: %s" % (name, found), said)


chips.astype(np.complex128).tofile(work + "/chips.cf64")
for name in PULSES:
    generator(name)
    detector(name, PULSES[name], "the detector measures the pulse " + name)
for name in MEASURED:
    measure(name)
print("1..%d" % done)
