# SPDX-License-Identifier: MIT
"""Digital RF recordings as their specification has them, written with h5py and numpy alone.
usage: digital_rf_numpy.py FOLDER: channels FOLDER/good-*, each with NAME.bytes, the samples in memory, and NAME.text,
           "rate_num rate_den start_utc_ns format n_channels n_positions first+count,...", its gaps;
           and channels FOLDER/bad-*, each with NAME.text, words of the refusal
       digital_rf_numpy.py FOLDER echo FILE FIRST+COUNT,...: FOLDER/gaps and FOLDER/fill, of FILE in ci16 at 96 kHz"""
import os
import shutil
import sys
import time

import h5py
import numpy as np

MEMORY = {"i1": "i8", "u1": "u8", "i2": "i16", "u2": "i16", "f2": "f32", "f4": "f32", "i4": "f32", "u4": "f32"}


def ceil_div(a, b):
    return -(-a // b)


class Channel:
    """The properties of a channel, and how its files are stored."""

    def __init__(self, number, is_complex, n_channels=1, rate=(1000, 1), folder_s=3, file_ms=500, **storage):
        self.number = np.dtype(number)
        self.is_complex = is_complex
        self.n_channels = n_channels
        self.num, self.den = rate
        self.folder_s, self.file_ms = folder_s, file_ms
        self.is_continuous = storage.pop("is_continuous", 0)
        self.is_old = storage.pop("is_old", False)
        self.storage = storage  # of h5py: chunks, compression, fletcher32
        self.type = np.dtype([("r", self.number), ("i", self.number)]) if is_complex else self.number
        self.fill = np.nan if self.number.kind == "f" else np.iinfo(self.number).min

    def attributes(self):
        found = {
            "H5Tget_class": np.array([1 if self.number.kind == "f" else 0], "u8"),
            "H5Tget_size": np.array([self.number.itemsize], "u8"),
            "subdir_cadence_secs": np.array([self.folder_s], "u8"),
            "file_cadence_millisecs": np.array([self.file_ms], "u8"),
            "is_complex": np.array([int(self.is_complex)], "i4"),
            "num_subchannels": np.array([self.n_channels], "i4"),
            "is_continuous": np.array([self.is_continuous], "i4"),
            "epoch": np.bytes_("1970-01-01T00:00:00Z"),
        }
        if self.is_old:
            found["samples_per_second"] = np.array([self.num / self.den], "f8")
        else:
            found["sample_rate_numerator"] = np.array([self.num], "u8")
            found["sample_rate_denominator"] = np.array([self.den], "u8")
        return found

    def write_properties(self, folder, **changes):
        os.makedirs(folder, exist_ok=True)
        with h5py.File(f"{folder}/{'metadata' if self.is_old else 'drf_properties'}.h5", "w") as out:
            for name, value in {**self.attributes(), **changes}.items():
                if value is not None:
                    out.attrs[name] = value

    def slots(self, first, n):
        """(ms of the file, its first sample, the one after its last) for all files of n samples from `first` on."""
        ms = first * self.den * 1000 // self.num // self.file_ms * self.file_ms
        while ceil_div(ms * self.num, 1000 * self.den) < first + n:
            yield ms, *(ceil_div(t * self.num, 1000 * self.den) for t in (ms, ms + self.file_ms))
            ms += self.file_ms

    def path(self, folder, ms):
        inner = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(ms // 1000 // self.folder_s * self.folder_s))
        os.makedirs(f"{folder}/{inner}", exist_ok=True)
        return f"{folder}/{inner}/rf@{ms // 1000}.{ms % 1000:03d}.h5"

    def write(self, folder, first, samples, present):
        """samples: [n][n_channels] of self.type, from sample `first` since 1970 on; present: [n]."""
        self.write_properties(folder)
        for ms, begin, end in self.slots(first, len(samples)):
            index = np.arange(begin, end) - first
            is_here = (index >= 0) & (index < len(samples))
            is_here[is_here] = present[index[is_here]]
            if not is_here.any():
                continue
            with h5py.File(self.path(folder, ms), "w") as out:
                if self.is_continuous:
                    data = np.zeros((end - begin, self.n_channels), self.type)
                    data[:] = np.array((self.fill, self.fill) if self.is_complex else self.fill, self.type)
                    data[is_here] = samples[index[is_here]]
                    rows = [(begin, 0)]
                else:
                    data = samples[index[is_here]]
                    starts = np.flatnonzero(np.diff(is_here.astype(int), prepend=0) == 1)
                    rows = [(begin + s, is_here[:s].sum()) for s in starts]
                out.create_dataset("rf_data", data=data, **self.storage)
                out.create_dataset("rf_data_index", data=np.array(rows, "u8"), maxshape=(None, 2), chunks=(100, 2))

    def in_memory(self, samples):
        """The numbers as pnradar has them."""
        x = np.ascontiguousarray(samples).view(self.number).astype(self.number.newbyteorder("<"))
        form = self.number.str[1:]
        if form == "u2":
            x = (x ^ np.uint16(0x8000)).view("i2")
        if form in ("i4", "u4"):
            x = (x ^ np.uint32(1 << 31) if form == "u4" else x).view("i4").astype("f4") * np.float32(2.0**-31)
        if form in ("i8", "u8"):
            x = (x ^ np.uint64(1 << 63) if form == "u8" else x).view("i8").astype("f8") * 2.0**-63
        return x.astype("f4") if form == "f2" else x

    def random(self, n, rng):
        numbers = n * self.n_channels * (2 if self.is_complex else 1)
        if self.number.kind == "f":
            x = rng.standard_normal(numbers).astype(self.number)
            if self.number.itemsize > 2 and not self.is_continuous:
                x[5] = np.nan  # a sample like any other
        else:
            info = np.iinfo(self.number)
            x = rng.integers(info.min + 1, info.max, numbers, dtype=info.dtype.newbyteorder("="), endpoint=True).astype(self.number)
        return x.view(self.type).reshape(n, self.n_channels)


def runs(present):
    """first+count of each run that is missing; first counts from the first one that is there."""
    there = np.flatnonzero(present)
    return [(a + 1 - there[0], b - a - 1) for a, b in zip(there, there[1:]) if b > a + 1]


def good(top, name, channel, first, n, missing, rng):
    samples, present = channel.random(n, rng), np.ones(n, bool)
    for a, b in missing:
        present[a:b] = False
    channel.write(f"{top}/good-{name}", first, samples, present)
    channel.in_memory(samples[present]).tofile(f"{top}/good-{name}.bytes")
    there = np.flatnonzero(present)
    begin = first + int(there[0])
    form = MEMORY.get(channel.number.str[1:], "f64")
    with open(f"{top}/good-{name}.text", "w") as out:
        gaps = ",".join(f"{a}+{b}" for a, b in runs(present))
        out.write(f"{channel.num} {channel.den} {begin * 10**9 * channel.den // channel.num} "
                  f"{'c' if channel.is_complex else ''}{form} {channel.n_channels} {there[-1] - there[0] + 1} {gaps}\n")


def write_good(top, rng):
    missing = [(50, 93), (700, 1800), (2100, 2101)]  # in a file, over files and a folder, one sample
    for form in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"):
        for order in "<>":
            for is_complex in (False, True):
                for is_continuous in (0, 1):
                    name = f"{'c' if is_complex else 'r'}{form}{'le' if order == '<' else 'be'}{is_continuous}"
                    channel = Channel(order + form, is_complex, is_continuous=is_continuous)
                    good(top, name, channel, 1795228812250, 2500, missing, rng)
    first = 1795228812 * 200 // 3 + 40
    good(top, "thirds", Channel("<i2", True, rate=(200, 3), file_ms=1000), first, 900, [(300, 301), (400, 640)], rng)
    good(top, "channels", Channel("<i2", True, 3), 1795228812000, 2500, missing, rng)
    good(top, "edges", Channel("<f4", True, is_continuous=1), 1795228812333, 2500, [(0, 3), (2400, 2500)], rng)
    packed = {"chunks": (100, 1), "compression": "gzip", "fletcher32": True}
    good(top, "packed", Channel("<i2", True, **packed), 1795228812250, 2500, missing, rng)
    good(top, "old", Channel("<i2", True, rate=(2001, 2), is_old=True), 1795228812 * 2001 // 2, 2500, missing, rng)
    good(top, "long", Channel("<i2", True, rate=(25000000, 1), file_ms=10), 1795228812 * 25000000, 60000, [], rng)


BAD_ATTRIBUTES = [
    ("sample_rate_numerator", np.array([0], "u8"), "sample_rate_numerator is 0"),
    ("sample_rate_numerator", np.array([-5], "i8"), "sample_rate_numerator is -5"),
    ("sample_rate_numerator", np.array([1000.5], "f8"), "sample_rate_numerator"),
    ("sample_rate_numerator", np.array([1000, 1], "u8"), "sample_rate_numerator"),
    ("sample_rate_numerator", np.bytes_("1000"), "sample_rate_numerator"),
    ("sample_rate_numerator", None, "samples_per_second"),
    ("sample_rate_denominator", np.array([0], "u8"), "sample_rate_denominator is 0"),
    ("sample_rate_denominator", None, "sample_rate_denominator"),
    ("subdir_cadence_secs", np.array([0], "u8"), "subdir_cadence_secs is 0"),
    ("subdir_cadence_secs", np.array([2**63], "u8"), "subdir_cadence_secs is 9223372036854775807"),
    ("file_cadence_millisecs", np.array([0], "u8"), "file_cadence_millisecs is 0"),
    ("file_cadence_millisecs", np.array([700], "u8"), "does not divide subdir_cadence_secs"),
    ("num_subchannels", np.array([0], "i4"), "num_subchannels is 0"),
    ("num_subchannels", np.array([257], "i4"), "num_subchannels is 257"),
    ("num_subchannels", np.array([2], "i4"), "not of 1 or more x num_subchannels, 2"),
    ("is_complex", np.array([2], "i4"), "is_complex is 2"),
    ("is_complex", np.array([0], "i4"), "as is_complex is 0"),
    ("is_complex", None, "is_complex"),
    ("is_continuous", np.array([-1], "i4"), "is_continuous is -1"),
]


def replace(out, name, **arguments):
    del out[name]
    out.create_dataset(name, **arguments)


def write_virtual(out, path):
    del out["rf_data"]
    layout = h5py.VirtualLayout(shape=(500, 1), dtype=COMPLEX)
    layout[:] = h5py.VirtualSource(path + "-other", "rf_data", shape=(500, 1))
    out.create_virtual_dataset("rf_data", layout)


def index_of(*rows):
    return lambda out, path: replace(out, "rf_data_index", data=np.array(rows, "u8"))


COMPLEX = np.dtype([("r", "<i2"), ("i", "<i2")])
FIRST = 1795228812000
BAD_FILES = [
    (lambda out, path: out.pop("rf_data"), "no data set rf_data of its own"),
    (lambda out, path: out.pop("rf_data_index"), "no data set rf_data_index of its own"),
    (lambda out, path: out.move("rf_data", "other") or out.__setitem__("rf_data", h5py.SoftLink("/other")),
     "no data set rf_data of its own"),
    (lambda out, path: out.pop("rf_data") and out.__setitem__("rf_data", h5py.ExternalLink("/etc/passwd", "/rf_data")),
     "no data set rf_data of its own"),
    (write_virtual, "in another file"),
    (lambda out, path: replace(out, "rf_data", shape=(500, 1), dtype=COMPLEX, external=[("/etc/passwd", 0, 2000)]),
     "in another file"),
    (lambda out, path: replace(out, "rf_data", shape=(2**40, 1), dtype=COMPLEX, chunks=(2**29, 1)), "chunks of more than"),
    (lambda out, path: replace(out, "rf_data", shape=(2**40, 1), dtype=COMPLEX, chunks=(1, 1)), "of samples"),
    (lambda out, path: replace(out, "rf_data", shape=(0, 1), dtype=COMPLEX, maxshape=(None, 1)), "rf_data is of 0 x 1"),
    (lambda out, path: replace(out, "rf_data", shape=(500, 1, 1), dtype=COMPLEX), "rf_data has 3 dimensions"),
    (lambda out, path: replace(out, "rf_data", shape=(), dtype=COMPLEX), "rf_data has 0 dimensions"),
    (lambda out, path: replace(out, "rf_data", shape=(500, 2), dtype=COMPLEX), "rf_data is of 500 x 2"),
    (lambda out, path: replace(out, "rf_data", shape=(500, 1), dtype="<i2"), "two members r and i"),
    (lambda out, path: replace(out, "rf_data", shape=(500, 1), dtype=[("i", "<i2"), ("r", "<i2")]), "two members r and i"),
    (lambda out, path: replace(out, "rf_data", shape=(500, 1), dtype=[("r", "<i2"), ("i", "<i4")]), "two members r and i"),
    (lambda out, path: replace(out, "rf_data", shape=(500, 1), dtype="S4"), "two members r and i"),
    (lambda out, path: replace(out, "rf_data_index", shape=(500, 1), dtype="u8"), "rf_data_index is of 500 x 1"),
    (lambda out, path: replace(out, "rf_data_index", shape=(501, 2), dtype="u8"), "rf_data_index is of 501 x 2"),
    (lambda out, path: replace(out, "rf_data_index", shape=(0, 2), dtype="u8", maxshape=(None, 2)), "rf_data_index is of 0 x 2"),
    (index_of((FIRST, 1)), "no row for the first sample"),
    (index_of((FIRST, 0), (FIRST + 500, 500)), "rf_data_index[1] is row 500 of rf_data, the one after it row 500 of 500"),
    (index_of((FIRST, 0), (FIRST + 10, 501)), "rf_data_index[0] is row 0 of rf_data, the one after it row 501 of 500"),
    (index_of((FIRST, 0), (FIRST + 10, 0)), "rf_data_index[0] is row 0 of rf_data, the one after it row 0 of 500"),
    (index_of((FIRST, 0), (FIRST + 9, 10)), "rf_data_index[1] is sample 1795228812009"),
    (index_of((FIRST + 400, 0), (FIRST, 10)), "rf_data_index[1] is sample 1795228812000"),
    (index_of((FIRST + 2, 0)), "rf_data_index[0] has 500 samples from 1795228812002 on"),
    (index_of((FIRST - 2, 0)), "rf_data_index[0] has 500 samples from 1795228811998 on"),
    (index_of((2**64 - 1, 0)), "rf_data_index[0] has 500 samples from 18446744073709551615 on"),
]


def write_bad(top, rng):
    channel = Channel("<i2", True)
    samples = channel.random(500, rng)
    number = 0

    def bad(words):
        nonlocal number
        number += 1
        with open(f"{top}/bad-{number}.text", "w") as out:
            out.write(words)
        channel.write(f"{top}/bad-{number}", FIRST, samples, np.ones(500, bool))
        return f"{top}/bad-{number}"

    for name, value, words in BAD_ATTRIBUTES:
        channel.write_properties(bad(words), **{name: value})
    for change, words in BAD_FILES:
        path = channel.path(bad(words), FIRST // 1000 * 1000)
        with h5py.File(path, "a") as out:
            change(out, path)
    for text in (b"", b"no HDF5", b"\x89HDF\r\n\x1a\n" + bytes(100)):
        with open(f"{bad('HDF5 cannot read it')}/drf_properties.h5", "wb") as out:
            out.write(text)
    path = channel.path(bad("HDF5 cannot read it"), FIRST // 1000 * 1000)
    os.truncate(path, os.path.getsize(path) // 2)
    folder = os.path.dirname(channel.path(bad("tmp.rf@"), FIRST // 1000 * 1000))
    os.rename(f"{folder}/rf@1795228812.000.h5", f"{folder}/tmp.rf@1795228812.000.h5")
    shutil.rmtree(os.path.dirname(channel.path(bad("no file YYYY"), FIRST // 1000 * 1000)))


def write_echo(top, file, lost):
    samples = np.fromfile(file, COMPLEX).reshape(-1, 1)
    present = np.ones(len(samples), bool)
    for run in lost.split(","):
        first, count = map(int, run.split("+"))
        present[first : first + count] = False
    for name, is_continuous in (("gaps", 0), ("fill", 1)):
        channel = Channel("<i2", True, rate=(96000, 1), folder_s=1, file_ms=20, is_continuous=is_continuous)
        channel.write(f"{top}/{name}", 1795228812 * 96000 + 24000, samples, present)


if len(sys.argv) > 2:
    write_echo(sys.argv[1], *sys.argv[3:])
else:
    write_good(sys.argv[1], np.random.default_rng(7))
    write_bad(sys.argv[1], np.random.default_rng(8))
