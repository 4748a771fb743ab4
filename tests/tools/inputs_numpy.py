# SPDX-License-Identifier: MIT
"""Makes the inputs of cli_inputs.sh as other programs do, and checks what pnradar reads of them.
usage: inputs_numpy.py sound|packed|codes|m-sequence FOLDER [DEGREE TAPS STATE]"""
import struct
import sys
import wave

import numpy as np

what, folder = sys.argv[1:3]


def write_wav(name, samples, rate):
    with wave.open(f"{folder}/{name}", "wb") as out:
        out.setnchannels(samples.shape[1])
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.astype("<i2").tobytes())


def write_aiff(name, samples, rate):
    """AIFF 1.3: big-endian chunks, the rate as an 80-bit float."""
    exponent = rate.bit_length() - 1
    common = struct.pack(">hIhHQ", samples.shape[1], len(samples), 16, 16383 + exponent, rate << 63 - exponent)
    sound = struct.pack(">II", 0, 0) + samples.astype(">i2").tobytes()
    body = b"AIFF" + b"COMM" + struct.pack(">I", len(common)) + common + b"SSND" + struct.pack(">I", len(sound)) + sound
    with open(f"{folder}/{name}", "wb") as out:
        out.write(b"FORM" + struct.pack(">I", len(body)) + body)


def register_bits(degree, taps, state):
    """The Fibonacci register of the manual, step by step."""
    stages = list(state)
    bits = np.empty(2**degree - 1, int)
    for k in range(len(bits)):
        bits[k] = stages[0]
        stages = stages[1:] + [sum(stages[degree - t] for t in taps) % 2]
    return bits


if what == "sound":
    iq = np.fromfile(f"{folder}/iq.ci16", "<i2").reshape(-1, 2)
    real = np.fromfile(f"{folder}/real.i16", "<i2").reshape(-1, 1)
    noise = np.random.default_rng(1).integers(-2000, 2000, real.shape)
    write_wav("iq.wav", iq, 96000)
    write_aiff("iq.aiff", iq, 96000)
    write_wav("real.wav", real, 96000)
    write_wav("both.wav", np.hstack([noise, real]), 96000)
elif what == "packed":
    exact = np.fromfile(f"{folder}/exact.cf64", "<c16")
    packed = np.fromfile(f"{folder}/packed.ci4", "u1")
    iq = np.column_stack([packed >> 4, packed & 15]).astype("i1")
    iq[iq > 7] -= 16
    wanted = np.clip(np.rint(8 * np.column_stack([exact.real, exact.imag])), -8, 7)
    assert (iq == wanted).all() and iq.min() == -8 and iq.max() == 7
    (16 * iq).tofile(f"{folder}/unpacked.ci8")
elif what == "codes":
    random = np.random.default_rng(2)
    signs = 2 * random.integers(0, 2, 127) - 1
    phases = np.exp(2j * np.pi * random.random(127))
    for dtype in ("int8", "int64", "float32", "float64"):
        np.save(f"{folder}/real-{dtype}.npy", signs.astype(dtype))
    for dtype in ("complex64", "complex128"):
        np.save(f"{folder}/complex-{dtype}.npy", phases.astype(dtype))
    np.savetxt(f"{folder}/real-savetxt.txt", signs)
    np.savetxt(f"{folder}/complex-savetxt.txt", phases)
    np.savetxt(f"{folder}/complex-columns.csv", np.column_stack([phases.real, phases.imag]), delimiter=",", header="i,q")
    with open(f"{folder}/real-row.csv", "w") as out:
        out.write(",".join(str(chip) for chip in signs) + "\n")
else:
    degree, taps, state = int(sys.argv[3]), [int(t) for t in sys.argv[4].split(",")], [int(c) for c in sys.argv[5]]
    bits = register_bits(degree, taps, state)
    chips = np.fromfile(f"{folder}/transmit.cf32", "<c8")
    chips /= np.sqrt(np.mean(np.abs(chips) ** 2))
    assert len(chips) == len(bits), (len(chips), len(bits))
    assert np.abs(chips - (1 - 2 * bits)).max() < 1e-5, chips[:8]
    assert bits.sum() == 2 ** (degree - 1)
    try:
        from scipy.signal import max_len_seq
    except ImportError:
        print("no scipy")
    else:
        scipy_taps = [degree - t for t in taps if t != degree]
        assert (max_len_seq(degree, state, taps=scipy_taps)[0] == bits).all()
