#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes random_phase.h: random-phase codes as numpy makes them, for tests/code/test_code.c.

    python3 tests/golden/random_phase.py > tests/golden/random_phase.h
"""
import math

import numpy as np

SEEDS = (0, 1, 7, 1234567, 2**32 - 1)
LENGTH = 10000
# Both ends, and the places where the generator makes its next 624 words of 32 bits, which give 312
# numbers.
CHIPS = (0, 1, 2, 155, 156, 311, 312, 313, 623, 624, 625, 5000, 9998, 9999)

print("/* SPDX-License-Identifier: MIT */")
print(f"/* numpy {np.__version__}: RandomState(seed).random_sample({LENGTH}) = u, chip = exp(1j*2*pi*u).")
print(" * Made by tests/golden/random_phase.py. */")
print(f"enum {{ GOLDEN_LENGTH = {LENGTH} }};")
print("static const struct {")
print("    size_t seed, chip;")
print("    double u, re, im;")
print("} golden_random_phase[] = {")
for seed in SEEDS:
    u = np.random.RandomState(seed).random_sample(LENGTH)
    code = np.exp(1.0j * 2.0 * math.pi * u)
    for k in CHIPS:
        values = ", ".join(float(v).hex() for v in (u[k], code[k].real, code[k].imag))
        print(f"    {{{seed}, {k}, {values}}},")
print("};")
