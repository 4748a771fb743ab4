# SPDX-License-Identifier: MIT
"""Judges a channel of Digital RF by the published layout, with h5py and numpy alone.
usage: digital_rf_judge.py CHANNEL FORM IS_COMPLEX N_CHANNELS RATE_NUM RATE_DEN FILE_MS BASE: prints the runs of
           samples, first+count, counted from BASE; each number of a sample must be its place in the stream,
           (position * n_numbers + k) modulo 100, in the numpy type FORM
       digital_rf_judge.py whole CHANNEL: each finished file opens; prints the number of files and of samples"""
import glob
import os
import re
import sys
import time

import h5py
import numpy as np

TEXTS = {"epoch": "1970-01-01T00:00:00Z", "digital_rf_version": "2.6.0"}


def number(attributes, name):
    value = attributes[name]
    assert value.shape == (1,) and value.dtype.kind in "iu", name
    return int(value[0])


def check_properties(attributes, form, is_complex, n_channels, num, den, file_ms):
    form = np.dtype(form)
    wanted = {
        "H5Tget_class": 1 if form.kind == "f" else 0, "H5Tget_size": form.itemsize, "H5Tget_order": 0,
        "H5Tget_precision": 8 * form.itemsize, "H5Tget_offset": 0, "subdir_cadence_secs": 3600,
        "file_cadence_millisecs": file_ms, "sample_rate_numerator": num, "sample_rate_denominator": den,
        "is_complex": is_complex, "num_subchannels": n_channels, "is_continuous": 0}
    for name, value in wanted.items():
        assert number(attributes, name) == value, (name, attributes[name], value)
    for name, value in TEXTS.items():
        found = attributes[name]
        assert (found.decode() if isinstance(found, bytes) else found) == value, (name, found)
    assert len(attributes["digital_rf_time_description"]) > 100


def files_of(channel):
    """(seconds of the folder, ms of the file, path) in the order of time; nothing else is in the channel."""
    found = []
    for folder in os.listdir(channel):
        if folder == "drf_properties.h5":
            continue
        seconds = int(time.strftime("%s", time.strptime(folder, "%Y-%m-%dT%H-%M-%S")))  # TZ is UTC
        for name in os.listdir(f"{channel}/{folder}"):
            s, ms = re.fullmatch(r"rf@(\d+)\.(\d{3})\.h5", name).groups()
            found.append((seconds, int(s) * 1000 + int(ms), f"{channel}/{folder}/{name}"))
    return sorted(found)


def judge(channel, form, is_complex, n_channels, num, den, file_ms, base):
    with h5py.File(f"{channel}/drf_properties.h5") as file:
        check_properties(file.attrs, form, is_complex, n_channels, num, den, file_ms)
    element = np.dtype([("r", form), ("i", form)]) if is_complex else np.dtype(form)
    if is_complex and element["r"].kind == "f":  # h5py takes a pair of floats for a complex number
        element = np.dtype({"<f4": "c8", "<f8": "c16"}[form])
    n_numbers = n_channels * (2 if is_complex else 1)
    runs, sequence, uuids = [], [], set()
    for folder_s, ms, path in files_of(channel):
        assert ms % file_ms == 0 and ms // 1000 // 3600 * 3600 == folder_s, path
        first, end = (-(-t * num // (1000 * den)) for t in (ms, ms + file_ms))
        with h5py.File(path) as file:
            data, index = file["rf_data"], file["rf_data_index"][:]
            assert data.dtype == element and data.shape[1:] == (n_channels,) and index.dtype == np.dtype("<u8")
            check_properties(data.attrs, form, is_complex, n_channels, num, den, file_ms)
            sequence.append(number(data.attrs, "sequence_num"))
            uuids.add(data.attrs["uuid_str"])
            assert abs(number(data.attrs, "computer_time") - time.time()) < 86400
            assert index[0, 1] == 0 and (np.diff(index.astype("i8"), axis=0) > 0).all()
            ends = np.append(index[1:, 1], len(data))
            numbers = np.ascontiguousarray(data[:]).view(form).reshape(len(data), n_numbers)
        for (sample, local), stop in zip(index.astype("i8"), ends.astype("i8")):
            count = stop - local
            assert first <= sample and sample + count <= end, path
            places = (sample - base + np.arange(count)) * n_numbers
            assert (numbers[local:stop] == (places[:, None] + np.arange(n_numbers)) % 100).all(), path
            if runs and runs[-1][0] + runs[-1][1] == sample - base:
                runs[-1][1] += count
            else:
                assert not runs or runs[-1][0] + runs[-1][1] < sample - base
                runs.append([sample - base, count])
    assert sequence == list(range(len(sequence))) and len(uuids) <= 1
    print(",".join(f"{a}+{n}" for a, n in runs))


if sys.argv[1] == "whole":
    paths = glob.glob(f"{sys.argv[2]}/*/rf@*.h5")
    n = 0
    for path in paths:
        with h5py.File(path) as file:
            n += len(file["rf_data"])
    print(len(paths), n)
else:
    judge(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
