# SPDX-License-Identifier: MIT
"""Judges the stations for cli_stations.sh.
usage: stations_numpy.py targets CONF CSV N METRES: each of N results has each target of CONF within 5 sigma and METRES
       stations_numpy.py make FILE: a stream of cf32 with twelve random-phase codes, seeds 1 to 12, as numpy makes them
       stations_numpy.py twelve CSV: each result has each seed once, at its delay"""
import configparser
import csv
import math
import sys

import numpy as np

LENGTH, PERIODS = 10000, 20
DELAYS = [777 * seed % 900 + 13 for seed in range(1, 13)]  # samples

what, path = sys.argv[1:3]


def rows_of(path):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    return rows, sorted({int(row["sample"]) for row in rows})


def targets(conf_path, csv_path, n_results, most_m):
    conf = configparser.ConfigParser(inline_comment_prefixes="#")
    conf.read(conf_path)
    rate = float(conf["source"]["rate_hz"])
    rows, samples = rows_of(csv_path)
    assert len(samples) == n_results, samples
    for sample in samples:
        for section in (conf[name] for name in conf.sections() if name.startswith("target.")):
            true = float(section["range_m"]) - float(section.get("velocity_mps", 0)) * sample / rate
            near = [row for row in rows
                    if int(row["sample"]) == sample and row["range_m"] and row["code"] == section.get("code", "1")
                    and abs(float(row["range_m"]) - true) < 5 * float(row["range_sigma_m"]) + most_m]
            assert len(near) == 1, (sample, section.name, true, near)


def make(path):
    """The sum of all codes, each delayed and turned in phase, in noise 17 dB above each."""
    random = np.random.default_rng(12)
    period = np.zeros(LENGTH, complex)
    for seed, delay in zip(range(1, 13), DELAYS):
        u = np.random.RandomState(seed).random_sample(LENGTH)
        period += 0.05 * np.exp(1j * seed) * np.roll(np.exp(1j * 2 * math.pi * u), delay)
    noise = random.normal(size=(LENGTH * PERIODS, 2)) @ [1, 1j] * 0.35 / math.sqrt(2)
    (np.tile(period, PERIODS) + noise).astype("<c8").tofile(path)


def twelve(path):
    rows, samples = rows_of(path)
    assert len(samples) == PERIODS // 10, samples
    for sample in samples:
        here = [row for row in rows if int(row["sample"]) == sample]
        assert sorted(int(row["code"]) for row in here) == list(range(1, 13)), here
        for row in here:
            delay = DELAYS[int(row["code"]) - 1]
            sigma = float(row["delay_sigma_s"]) * 100e3
            assert abs(float(row["delay_samples"]) - delay) < 5 * sigma < 0.5, (row, delay)
            assert abs(float(row["amplitude"]) - 0.05) < 0.008, row


if what == "targets":
    targets(path, sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
elif what == "make":
    make(path)
else:
    twelve(path)
