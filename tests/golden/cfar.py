#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes cfar.h: false-alarm probabilities of given CFAR factors, for tests/setup/test_cfar_factor.c.

    python3 tests/golden/cfar.py > tests/golden/cfar.h

src/setup/cfar_factor.c integrates over the statistic of the training cells. This script integrates over the tested
cell u: Pfa = E[G(u / f)], where G is the distribution of that statistic, by adaptive quadrature.
"""
import numpy as np
import scipy
from scipy import integrate, special


def distribution(kind, looks, before, after, z):
    shape = lambda cells: special.gammainc(cells * looks, cells * z)
    if kind == "CA":
        return shape(before + after)
    if kind == "OS":
        m = before + after
        rank = -(-3 * m // 4)
        return special.betainc(rank, m - rank + 1, special.gammainc(looks, z))
    b, a = shape(before), shape(after)
    return b * a if kind == "GO" else b + a - b * a


def pfa(kind, looks, before, after, factor):
    log_front = lambda s: looks * s - np.exp(s) - special.gammaln(looks)
    grid = np.linspace(np.log(looks) - 12, np.log(looks + 400.0), 20001)
    values = np.exp(log_front(grid)) * distribution(kind, looks, before, after, np.exp(grid) / factor)
    inside = np.flatnonzero(values > 1e-18 * values.max())
    edges = np.linspace(grid[inside[0]], grid[inside[-1]], 33)
    integrand = lambda s: np.exp(log_front(s)) * distribution(
        kind, looks, before, after, np.exp(s) / factor)
    return sum(integrate.quad(integrand, low, high, epsabs=0, epsrel=1e-12, limit=200)[0]
               for low, high in zip(edges, edges[1:]))


def factor_at(kind, looks, before, after, wanted):
    low, high = -3.0, 8.0  # limits of log2 of the factor
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if pfa(kind, looks, before, after, 2**middle) > wanted else (low, middle)
    return float(np.float32(2**low))


print("/* SPDX-License-Identifier: MIT */")
print(f"/* scipy {scipy.__version__}: the false-alarm probability at a CFAR factor.")
print(" * Made by tests/golden/cfar.py. */")
print("static const struct {")
print("    pnr_cfar_kind kind;")
print("    size_t looks, before, after;")
print("    double factor, pfa;")
print("} golden_cfar[] = {")
for kind in ("CA", "GO", "SO", "OS"):
    for looks, before, after in ((1, 16, 16), (1, 16, 3), (1, 5, 64), (4, 8, 8), (4, 12, 1), (31, 16, 16),
                                 (31, 7, 16), (31, 64, 64), (200, 2, 9)):
        for wanted in (0.5, 1e-3, 1e-6, 1e-12):
            factor = factor_at(kind, looks, before, after, wanted)
            got = pfa(kind, looks, before, after, factor)
            print(f"    {{PNR_CFAR_{kind}, {looks}, {before}, {after}, {factor!r}, {got!r}}},")
print("};")
