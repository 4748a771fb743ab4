# SPDX-License-Identifier: MIT
# The air around the sound card of cli_sonar.sh, and its waveform, computed from the definitions alone.
# usage: sonar_numpy.py waveform SENT FORMAT CHANNELS CHANNEL | resumed SENT STOP:LOST... |
#        echo SENT GOT RANGE_M NOISE [ZERO_SAMPLES]; status 1: SENT is not the waveform.
import sys

import numpy as np

RATE, CARRIER, CHIP_RATE, SPEED, AMPLITUDE = 48000, 12000, 4000, 343.0, 0.5
CHIPS = 511
N = CHIPS * RATE // CHIP_RATE


def baseband():
    """A Fibonacci register of the polynomial x^9 + x^4 + 1 from ones, a chip for 12 samples, on the carrier.
    Only what lies between 0 and half of the rate is left."""
    register, bits = [1] * 9, []
    for _ in range(CHIPS):
        bits.append(register[0])
        register = register[1:] + [register[0] ^ register[5]]
    chips = 1 - 2 * np.array(bits)
    spectrum = np.fft.fft(chips[np.arange(N) * CHIPS // N])
    harmonic = np.fft.fftfreq(N, 1 / N) + CARRIER * N / RATE
    spectrum[(harmonic <= 0) | (harmonic >= N / 2)] = 0
    return np.fft.ifft(spectrum)


def wave():
    a = baseband()
    return AMPLITUDE * a / np.abs(a).max() * np.exp(2j * np.pi * CARRIER / RATE * np.arange(N))


def values(path, form):
    raw = np.fromfile(path, np.uint8)
    if form == "FLOAT_LE":
        return raw.view("<f4").astype(float), 2.0**-24
    if form == "S24_3LE":
        raw = np.pad(raw.reshape(-1, 3), ((0, 0), (1, 0))).ravel()
        return raw.view("<i4") * 2.0**-31, 2.0**-23
    if form == "S24_LE":
        return (raw.view("<i4") << 8) * 2.0**-31, 2.0**-23
    bits = int(form[1:3])
    return raw.view("<i%d" % (bits // 8)) * 2.0 ** (1 - bits), 2.0 ** (1 - bits)


def differs(found, wanted, step):
    worst = np.abs(found - wanted).max()
    if worst > 0.51 * step + 1e-12:
        print("differs by", worst, "at", np.abs(found - wanted).argmax())
    return worst > 0.51 * step + 1e-12


def check_waveform(path, form, channels, channel):
    found, step = values(path, form)
    found = found.reshape(-1, channels)
    n = len(found)
    assert n > 2 * N, n
    bad = False
    for c in range(channels):
        sounds = channel in (c, -1)
        bad |= differs(found[:, c], np.resize(wave().real, n) if sounds else np.zeros(n), step)
    return bad


def check_resumed(path, stops):
    """After each stop, POSITION:LOST, the waveform goes on at the position of the stream, after an eighth of a second of
    silence. The card has half a second ahead."""
    found, step = values(path, "S16_LE")
    start, at, bad = 0, 0, False
    for position, lost in stops + [(None, 0)]:
        n = len(found) - at if position is None else position - start + RATE // 2
        wanted = wave().real[(start + np.arange(n)) % N]
        wanted[: RATE // 8 if start else 0] = 0
        bad |= differs(found[at : at + n], wanted, step)
        at += n
        start = position + lost if position is not None else start
    return bad


def delayed(x, samples):
    spectrum = np.fft.rfft(x)
    return np.fft.irfft(spectrum * np.exp(-2j * np.pi * np.fft.rfftfreq(len(x)) * samples), len(x))


def make_echo(sent, got, range_m, noise, zero):
    x = np.fromfile(sent, "<i2") / 32768.0
    x = x[: len(x) // N * N]
    y = 0.2 * delayed(x, 2 * range_m / SPEED * RATE + (zero or 0))
    y += noise * np.random.default_rng(1).standard_normal(len(y))
    y = y if zero is None else np.column_stack([y, delayed(x, zero)])
    np.round(32768 * y).astype("<i2").tofile(got)


what, *rest = sys.argv[1:]
if what == "waveform":
    sys.exit(int(check_waveform(rest[0], rest[1], int(rest[2]), int(rest[3]))))
if what == "resumed":
    sys.exit(int(check_resumed(rest[0], [tuple(map(int, stop.split(":"))) for stop in rest[1:]])))
make_echo(rest[0], rest[1], float(rest[2]), float(rest[3]), float(rest[4]) if len(rest) > 4 else None)
