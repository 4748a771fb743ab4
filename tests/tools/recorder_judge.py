# SPDX-License-Identifier: MIT
"""Judges the files of [recorder], for cli_recorder.sh.
usage: recorder_judge.py same A.jsonl B.jsonl: the results but for what a replay cannot have again
       recorder_judge.py tables FOLDER: r.jsonl, r.csv, r.sqlite and r.h5 hold the same echoes
       recorder_judge.py killed TRUTH FOLDER...: nothing that killed programs left is damaged beyond its last line;
           TRUTH has the samples that the recordings hold, as ci16; prints recordings and samples of each
       recorder_judge.py around FOLDER FIRST END: one recording, of these positions
       recorder_judge.py lines FILE N: a JSON object in each line, N in all or more"""
import csv
import glob
import json
import os
import sqlite3
import sys

import numpy as np

what, first = sys.argv[1:3]


def results(path):
    """A replay has another run, other latencies, and the time from the file."""
    for line in open(path):
        result = json.loads(line)
        for key in ("run", "latency_us", "time_source"):
            del result[key]
        result["flags"] = [flag for flag in result["flags"] if flag not in ("late", "coarse")]
        yield result


def tables(folder):
    rows = []
    for result in results(f"{folder}/r.jsonl"):
        for number, echo in enumerate(result["echoes"] or [{}]):
            rows.append((result["seq"], int(result["sample"]), result["lost"], number + 1 if echo else None,
                         echo.get("range_m"), echo.get("snr_db"), echo.get("code")))
    number = lambda text, kind=float: kind(text) if text != "" else None
    with open(f"{folder}/r.csv") as file:
        of_csv = [(int(r["seq"]), int(r["sample"]), int(r["lost"]), number(r["echo"], int), number(r["range_m"]),
                   number(r["snr_db"]), number(r["code"], int)) for r in csv.DictReader(file)]
    of_sql = sqlite3.connect(f"{folder}/r.sqlite").execute(
        "SELECT seq, sample, lost, echo, range_m, snr_db, code FROM results ORDER BY rowid").fetchall()
    assert len(rows) > 50 and len(of_csv) == len(of_sql) == len(rows), (len(rows), len(of_csv), len(of_sql))
    for a, b, c in zip(rows, of_csv, of_sql):
        for x, y, z in zip(a, b, c):
            assert x == y and (x == z or abs(x - z) <= 1e-11 * abs(x)), (a, b, c)
    import h5py
    with h5py.File(f"{folder}/r.h5") as file:
        data = file["results"][:]
        assert file["results"].attrs["rate_hz"] == 96000 and file["results"].attrs["stream"] == b"pnradar"
    assert len(data) == len(rows)
    for row, record in zip(rows, data):
        assert row[:3] == (record["seq"], record["sample"], record["lost"])
        assert (row[3] is None) == np.isnan(record["range_m"])
        assert row[4] is None or abs(row[4] - record["range_m"]) <= 1e-11 * abs(row[4])


def check_recording(meta, truth):
    """Its captures state where the samples of TRUTH are, which has no sample of the gaps."""
    captures = json.load(open(meta))["captures"]
    data = np.fromfile(meta.replace(".sigmf-meta", ".sigmf-data"), "<i2")
    data = data[: len(data) // 2 * 2].reshape(-1, 2)
    starts = [c["core:sample_start"] for c in captures] + [len(data)]
    for capture, start, end in zip(captures, starts, starts[1:]):
        at = capture["core:global_index"]
        assert start <= end
        assert np.array_equal(data[start:end], truth[at : at + end - start]), (meta, capture)
    return len(data)


def check_rows(folder):
    """The tables that grow."""
    if os.path.exists(f"{folder}/r.sqlite"):
        base = sqlite3.connect(f"{folder}/r.sqlite")
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    for path in glob.glob(f"{folder}/r.h5*"):
        import h5py
        if os.path.getsize(path) == 0:
            continue
        with h5py.File(path, "r") as file:
            seq = file["results"]["seq"]
            assert len(seq) == 0 or (seq[0] == 0 and np.all(np.diff(seq.astype(int)) >= 0))


def killed(folder, samples):
    metas = glob.glob(f"{folder}/*.sigmf-meta")
    datas = glob.glob(f"{folder}/*.sigmf-data")
    total = sum(check_recording(meta, samples) for meta in metas)
    alone = [d for d in datas if d.replace("-data", "-meta") not in metas]
    linked = [d for d in alone if any(os.path.samefile(d, other) for other in datas if other != d)]
    # The only data file without metadata is new and empty, or is on its way to its final name.
    assert all(os.path.getsize(d) == 0 for d in alone if d not in linked), alone
    for path in glob.glob(f"{folder}/r.jsonl"):
        whole = open(path, "rb").read().rpartition(b"\n")[0]
        for line in whole.split(b"\n") if whole else []:
            json.loads(line)
    for path in glob.glob(f"{folder}/r.csv"):
        lines = open(path).read().split("\n")
        assert all(line.count(",") == lines[0].count(",") for line in lines[:-1])
    check_rows(folder)
    for path in glob.glob(f"{folder}/state"):
        assert json.loads(open(path).read())
    print(len(metas), total)


def around(folder, begin, end):
    """One recording, from `begin` to `end`."""
    (meta,) = glob.glob(f"{folder}/*.sigmf-meta")
    captures = json.load(open(meta))["captures"]
    n = os.path.getsize(meta.replace("-meta", "-data")) // 4
    last = captures[-1]["core:global_index"] + n - captures[-1]["core:sample_start"]
    assert captures[0]["core:global_index"] == begin and end == last, (captures, last)


if what == "same":
    a, b = list(results(first)), list(results(sys.argv[3]))
    assert len(a) == len(b) > 5, (len(a), len(b))
    for x, y in zip(a, b):
        assert x == y, (x, y)
elif what == "around":
    around(first, int(sys.argv[3]), int(sys.argv[4]))
elif what == "tables":
    tables(first)
elif what == "killed":
    samples = np.fromfile(first, "<i2").reshape(-1, 2)
    for folder in sys.argv[3:]:
        killed(folder, samples)
else:
    lines = open(first).read().split("\n")
    assert lines[-1] == "" and len([json.loads(line) for line in lines[:-1]]) >= int(sys.argv[3]), len(lines)
