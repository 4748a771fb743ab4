# SPDX-License-Identifier: MIT
"""Finds recordings and cuts them into tasks."""
import glob
import hashlib
import json
import os
import subprocess

from words import EXIT_NO_INPUT, Refusal

SOUNDS = "wav wave rf64 w64 aiff aif aifc au snd flac"
RAW = ("ci4 ci8 cs8 sc8 cu8 uc8 ci16 cs16 sc16 cf32 fc32 cfile complex64 cf64 fc64 complex128 i8 s8 u8 "
       "i16 s16 f32 float32 f64 float64")


def has_end(name, words):
    return os.path.splitext(name)[1][1:].lower() in words.split()


def is_recording(folder, name):
    """True if a folder as INPUT includes the file with this name."""
    return (has_end(name, SOUNDS) or has_end(name, RAW) or
            has_end(name, "sigmf-meta sigmf") and not name.startswith("."))


def is_digital_rf(path):
    return any(os.path.exists(os.path.join(path, n)) for n in ("drf_properties.h5", "metadata.h5"))


def find_named(inputs):
    """Yields the path of each recording, once for each INPUT that names it. The recordings of a folder are
    sorted by name."""
    for name in inputs:
        paths = [name] if os.path.exists(name) else sorted(glob.iglob(name))
        if not paths:
            raise Refusal(EXIT_NO_INPUT, f"{os.path.abspath(name)}: {os.strerror(2)}")
        for path in map(os.path.abspath, paths):
            if not os.path.isdir(path):
                yield path
                continue
            for folder, folders, names in os.walk(path):
                if is_digital_rf(folder):
                    folders.clear()
                    yield folder
                    continue
                folders.sort()
                yield from (os.path.join(folder, n) for n in sorted(names) if is_recording(folder, n))


def find_recordings(inputs):
    """Yields the path of each recording once, also if a pattern finds both files of a SigMF recording."""
    found = set()
    for path in find_named(inputs):
        base, end = os.path.splitext(path)
        if end.lower() == ".sigmf-data" and os.path.exists(base + ".sigmf-meta"):
            path = base + ".sigmf-meta"
        key = hashlib.sha256(os.fsencode(path)).digest()[:16]
        if key not in found:
            found.add(key)
            yield path


def files_of(path):
    """Returns the paths of the files of one recording."""
    if os.path.isdir(path):
        return sorted(os.path.join(f, n) for f, _, names in os.walk(path) for n in names)
    base, end = os.path.splitext(path)
    other = {".sigmf-meta": ".sigmf-data", ".sigmf-data": ".sigmf-meta"}.get(end.lower())
    return [path] + ([base + other] if other and os.path.exists(base + other) else [])


def identity_of(path):
    """Returns the bytes of a recording, and the state of its files for the hash of its tasks."""
    states = [(os.path.basename(f), s.st_size, s.st_mtime_ns)
              for f in files_of(path) for s in [os.stat(f)]]
    return sum(s[1] for s in states), repr((path, states))


def describe(settings, path):
    """Returns the samples of a recording, the samples of a dwell, and the first sample of a dwell. None: pnradar
    refuses the recording."""
    run = subprocess.run([settings["plan"], "-c", settings["config"], "-s", f"source.input={path}",
                          "--json"], capture_output=True, check=False)
    try:
        found = json.loads(run.stdout)["recording"]
        return found["n_samples"], found["dwell_samples"], found["first_window"]
    except (ValueError, KeyError):
        return None


def cut(settings, path, n_bytes):
    """Cuts a recording into parts. Returns the number of parts, the samples of the first part, the samples of
    each further part, and the result of describe. One part: the recording is not cut."""
    n_parts = -(-n_bytes // settings["part"])
    found = describe(settings, path) if n_parts > 1 and settings["cuts"] else None
    if found is None:
        return 1, 0, 0, None
    n_samples, dwell, first = found
    length = -(-n_samples // n_parts // dwell) * dwell
    return max(1, (n_samples - first - 2 * dwell) // length), first + length, length, found


def make_tasks(settings, inputs):
    """Yields the tasks of all recordings, in the order of the table."""
    for number, path in enumerate(find_recordings(inputs)):
        n_bytes, identity = identity_of(path)
        n_parts, head, length, found = cut(settings, path, n_bytes)
        for i in range(n_parts):
            first = head + (i - 1) * length if i > 0 else 0
            n_samples = 0 if i == n_parts - 1 else length if i > 0 else head  # 0: all following samples
            text = repr((settings["identity"], identity, first, n_samples))
            yield {"id": hashlib.sha256(text.encode()).hexdigest()[:32], "recording": number,
                   "input": path, "first_sample": first, "n_samples": n_samples,
                   "part": i, "n_parts": n_parts, "n_bytes": n_bytes // n_parts,
                   "all_samples": found[0] if found else None,
                   "dwell_samples": found[1] if found else None}
