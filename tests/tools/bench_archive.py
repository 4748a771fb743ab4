#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the processor time of pnradar-archive with that of a shell loop over the same files, in turns.

The scene is config/doppler-radar.conf with recordings of 100 MB (25 s). Both get the same options; a process of the loop
has as many threads as there are cores, and the archive as many processes. The archive writes its table, its account and
its picture besides the JSON lines that the loop writes too.

usage: bench_archive.py BIN_FOLDER [--files N] [--runs N] [SECTION.KEY=VALUE...]
"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

LOOP = 'for file in "$FOLDER"/in/*; do "$BIN/pnradar" "$@" --print json "$file" >>"$FOLDER/loop"; done'
ARCHIVE = '"$BIN/pnradar-archive" "$@" -o "$FOLDER/out" "$FOLDER/in"'


def seconds(script, options, folders):
    """Runs a script. Returns the processor time of its processes, user and system, and the time that passed."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(["sh", "-ec", script, "sh", *options], env={**os.environ, **folders}, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_folder")
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("keys", nargs="*")
    asked = parser.parse_args()
    station = os.path.join(os.path.dirname(__file__), "../../config/doppler-radar.conf")
    options = ["-c", os.path.abspath(station)]
    for key in ["publisher.endpoint=", "source.start_time=2026-11-21T00:00:00Z", *asked.keys]:
        options += ["-s", key]
    with tempfile.TemporaryDirectory() as folder:
        folders = {"BIN": os.path.abspath(asked.bin_folder), "FOLDER": folder}
        os.mkdir(folder + "/in")
        subprocess.run([folders["BIN"] + "/pnradar-echo", *options, "-s", "echo.periods=25600", folder + "/in/00.ci16"],
                       check=True, stderr=subprocess.DEVNULL)
        for i in range(1, asked.files):
            os.link(folder + "/in/00.ci16", f"{folder}/in/{i:02}.ci16")
        pairs = []
        for _ in range(asked.runs):
            pairs.append((seconds(LOOP, options, folders), seconds(ARCHIVE, options, folders)))
            shutil.rmtree(folder + "/out")
            (loop, loop_passed), (archive, archive_passed) = pairs[-1]
            print(f"loop {loop:.2f} s in {loop_passed:.1f} s, archive {archive:.2f} s in {archive_passed:.1f} s: "
                  f"{100 * (archive / loop - 1):+.1f} %", flush=True)
    loop, archive = (statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
    ratio = statistics.median(pair[1][0] / pair[0][0] for pair in pairs)
    print(f"medians of {asked.runs}, {asked.files} files: loop {loop:.2f} s, archive {archive:.2f} s of processor time, "
          f"overhead {100 * (ratio - 1):.1f} %")


if __name__ == "__main__":
    main()
