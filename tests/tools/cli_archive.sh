#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar-archive on this machine: one table and one account whatever the tasks and workers are; broken recordings; a
# second run. Workers of other machines and Slurm: tests/interop.
# usage: cli_archive.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
archive=$bin/pnradar-archive

find_python distributed, h5py, numpy
if [ -z "$python" ]; then
    skip "archives" "python3-distributed is not installed"
    plan
    exit 0
fi

# The table is HDF5 but where a test says otherwise, also where pyarrow is.
mkdir "$work/hdf5"
echo 'raise ImportError("left out by the test")' >"$work/hdf5/pyarrow.py"
export PYTHONPATH="$work/hdf5"

cat >"$work/radar.conf" <<END
[source]
rate_hz = 1e6
lost = 5000+700, 9000+100
[code]
degree = 6
epoch = 40
[dwell]
periods = 4
combine = incoherent
[detector]
pfa = 0.1
[engine]
name = reference
[publisher]
endpoint = tcp://127.0.0.1:1
[echo]
periods = 300
noise_rms = 0.1
[target.1]
range_m = 3000
amplitude = 0.05
END

# A day: hour i begins after a gap, and states its time.
mkdir "$work/day"
for hour in 00 01 02; do
    "$bin/pnradar-echo" -c "$work/radar.conf" -s "echo.seed=1$hour" "$work/day/$hour.sigmf-data.ci16" 2>/dev/null
    mv "$work/day/$hour.sigmf-data.ci16" "$work/day/$hour.sigmf-data"
    cat >"$work/day/$hour.sigmf-meta" <<END
{"global":{"core:datatype":"ci16_le","core:version":"1.2.0","core:sample_rate":1000000},
 "captures":[{"core:sample_start":0,"core:datetime":"2026-11-21T$hour:00:00.5Z"}],"annotations":[]}
END
done
echo text >"$work/day/notes.txt"

# alone: the results of each recording, one process each, in the form of the table
alone() {
    recording=0
    for file; do
        "$pnradar" -c "$work/radar.conf" -s publisher.endpoint= --print json --end "$work/end.$recording" "$file" |
            sed "s/^{\"v\":1,/&\"recording\":$recording,/"
        recording=$((recording + 1))
    done
}

# same FILE FILE: the same results but for what a run and an archive number for themselves
same() {
    for file; do
        sed 's/"run":"[0-9a-f]*",//; s/"seq":[0-9]*,//; s/"latency_us":[^,]*,//' "$file" >"$file.same"
    done
    diff "$1.same" "$2.same" >"$work/diff"
}

# count NAME FILE...: the sum of a count over end messages
count() {
    name=$1
    shift
    cat "$@" | sed -n 's/.*"'"$name"'": *"\([0-9]*\)".*/\1/p' | awk '{ sum += $1 } END { print sum }'
}

alone "$work"/day/*.sigmf-meta >"$work/alone"
status 0 "$archive" -c "$work/radar.conf" --part 1G --workers 1 -o "$work/one" "$work/day"
report $? "a folder of recordings is processed"
[ "$(wc -l <"$work/alone")" -gt 200 ] && same "$work/alone" "$work/one/results.jsonl"
report $? "the table is that of a process for each recording"
[ "$(sed -n 's/.*"seq":\([0-9]*\),.*/\1/p' "$work/one/results.jsonl" | awk '$1 != NR - 1' | wc -l)" -eq 0 ]
report $? "its results are numbered through"
good=0
for name in positions used skipped_alignment skipped_tail skipped_refused lost_source windows results; do
    [ "$(count $name "$work/one/account.json")" -eq "$(count $name "$work"/end.*)" ] || good=1
done
[ $good -eq 0 ] && grep -q '"closes": true' "$work/one/account.json"
report $? "the account is the sum of theirs, and closes"

for workers in 2 4; do
    status 0 "$archive" -c "$work/radar.conf" --part 16K --workers $workers -o "$work/many$workers" "$work/day"
    [ "$(wc -l <"$work/many$workers/plan.jsonl")" -ge 12 ] &&
        cmp "$work/one/results.jsonl" "$work/many$workers/results.jsonl" &&
        cmp "$work/one/results.h5" "$work/many$workers/results.h5" &&
        [ "$(count used "$work/many$workers/account.json")" -eq "$(count used "$work/one/account.json")" ]
    report $? "$workers workers and many tasks a recording: the same bits, table and account"
done

"$python" - "$work/one" <<'END' >"$work/out" 2>&1
import json, sys
import h5py, numpy
rows = h5py.File(sys.argv[1] + "/results.h5")["results"][:]
lines = [json.loads(line) for line in open(sys.argv[1] + "/results.jsonl")]
echoes = [(line, i, echo) for line in lines for i, echo in enumerate(line["echoes"] or [None])]
assert len(rows) == len(echoes)
for row, (line, i, echo) in zip(rows, echoes):
    assert (row["seq"], row["sample"], row["recording"]) == (line["seq"], int(line["sample"]), line["recording"])
    assert (row["lost"], row["lost_before"]) == (line["lost"], line["lost_before"])
    assert numpy.isnan(row["latency_us"]) and line["latency_us"] is None
    assert row["n_echoes"] == len(line["echoes"])
    assert echo is None or abs(row["range_m"] - echo["range_m"]) < 1e-6 and row["echo"] == i
    times = numpy.datetime64(int(row["time_ns"]), "ns")
    assert str(times) == line["time"].rstrip("Z")
assert any(row["lost_before"] > 0 for row in rows)
END
report $? "the table of HDF5 has the columns of the wire and agrees with the JSON lines"

status 0 "$archive" -c "$work/radar.conf" --part 16K -o "$work/many2" "$work/day/0*" "$work/day" "$work/day/00.sigmf-meta" &&
    says '3 recordings: 3 whole' && cmp "$work/one/results.jsonl" "$work/many2/results.jsonl"
report $? "a pattern in quotes is a list of files, and a recording that is found again is processed once"

# A truncated file, one of garbage: the others are processed.
mkdir "$work/broken"
for hour in 00 01 02; do
    "$bin/pnradar-echo" -c "$work/radar.conf" -s "echo.seed=1$hour" "$work/broken/$hour.wav" 2>/dev/null
done
truncate -s 30000 "$work/broken/01.wav"
head -c 20000 "$work/day/00.sigmf-data" >"$work/broken/03.wav"
status 3 "$archive" -c "$work/radar.conf" --workers 2 -o "$work/some" "$work/broken" &&
    says 'given up after 3 attempts: .*01.wav' && says 'not processed: .*03.wav'
report $? "a truncated recording and one of garbage are reported"
grep -q '"closes": true' "$work/some/account.json" && grep -q '/01.wav' "$work/some/account.json" &&
    grep -q 'the header says' "$work/some/account.json" &&
    "$python" -c "
import json, sys
a = json.load(open(sys.argv[1]))
assert a['recordings'] == {'given': 4, 'whole': 2, 'partial': 0, 'failed': 2}, a['recordings']
assert int(a['bytes']['failed']) == 30000 + 20000 and int(a['bytes']['given']) > 2 * 70000
assert [(len(f['workers']), len(set(f['workers']))) for f in a['failed']] == [(3, 2), (3, 2)], a['failed']
" "$work/some/account.json" >"$work/out" 2>&1 &&
    alone "$work/broken/00.wav" >"$work/alone" && grep '"recording":0,' "$work/some/results.jsonl" >"$work/first" &&
    same "$work/alone" "$work/first"
report $? "all others are processed, and the account names the two with their bytes"

# --- Parquet ---

# Debian has no package of pyarrow. Where it is missing, a module in its place keeps what it is given.
pyarrow=
if ! PYTHONPATH='' "$python" -c 'import pyarrow' 2>/dev/null; then
    pyarrow=$work/parquet
    mkdir -p "$pyarrow/pyarrow"
    cat >"$pyarrow/pyarrow/__init__.py" <<'END'
class Table(dict):
    schema = property(lambda self: self.metadata)

    def replace_schema_metadata(self, metadata):
        self.metadata = metadata
        return self


def array(values, from_pandas):
    assert from_pandas and values.flags["C_CONTIGUOUS"] and values.ndim == 1
    return [None if value != value else value for value in values.tolist()]


def table(columns):
    assert len({len(values) for values in columns.values()}) == 1
    return Table(columns)
END
    cat >"$pyarrow/pyarrow/parquet.py" <<'END'
import json


class ParquetWriter:
    def __init__(self, path, schema):
        self.path, self.whole = path, {"metadata": schema, "groups": []}

    def write_table(self, table):
        self.whole["groups"].append(table)

    def close(self):
        with open(self.path, "w") as file:
            json.dump(self.whole, file)


class Read(dict):
    to_pydict = lambda self: self  # noqa: E731


def read_table(path):
    with open(path) as file:
        groups = json.load(file)["groups"]
    return Read({name: [value for group in groups for value in group[name]] for name in groups[0]})
END
fi
for name in one many4; do # their tasks are done: only the tables are made again
    cp -r "$work/$name" "$work/$name.parquet"
done
PYTHONPATH=$pyarrow status 0 "$archive" -c "$work/radar.conf" --part 1G -o "$work/one.parquet" "$work/day" &&
    PYTHONPATH=$pyarrow status 0 "$archive" -c "$work/radar.conf" --part 16K -o "$work/many4.parquet" "$work/day" &&
    says 'results.parquet' && cmp "$work/one.parquet/results.parquet" "$work/many4.parquet/results.parquet" &&
    [ ! -e "$work/one.parquet/results.h5" ]
report $? "where pyarrow is the table is Parquet, whatever the tasks are, and no older table stays"
PYTHONPATH=$pyarrow "$python" - "$work" <<'END' >"$work/out" 2>&1
import sys
import h5py, numpy
from pyarrow import parquet
rows = h5py.File(sys.argv[1] + "/one/results.h5")["results"][:]
columns = parquet.read_table(sys.argv[1] + "/one.parquet/results.parquet").to_pydict()
assert list(columns) == list(rows.dtype.names)
for name, values in columns.items():
    kind = rows[name].dtype.kind
    expected = [None if value != value else value.decode() if kind == "S" else value for value in rows[name].tolist()]
    assert len(rows) > 200 and values == expected, (name, values[:5], expected[:5])
assert set(columns["latency_us"]) == {None} and None not in columns["noise_db"]
END
report $? "Parquet has the columns and rows of HDF5, with null for what is not known"
"$python" - "$bin" "$work" <<'END' >"$work/out" 2>&1
import sys
sys.path.insert(0, sys.argv[1] + "/../share/pnradar/archive")
import numpy, table
table.BLOCK_ROWS = 100
rows = numpy.zeros(1234, [("seq", "<u8")])
rows["seq"] = range(len(rows))
for lengths in ([1234], [0, 99, 1, 100, 101, 0, 799, 134], [1] * 1234):
    one = table.Table(sys.argv[2], {})
    one.file.close()
    blocks = []
    one.file = type("File", (), {"write": lambda self, rows: blocks.append(rows), "close": lambda self: None})()
    first = 0
    for n in lengths:
        one.add(rows[first:first + n])
        first += n
    assert one.close() and [len(block) for block in blocks] == [100] * 12 + [34], lengths
    assert (numpy.concatenate(blocks) == rows).all()
END
report $? "the blocks of a table do not depend on the tasks"

# --- the picture ---

mkdir "$work/stub"
cp -r "$work/one" "$work/drawn" # its tasks are done
cat >"$work/stub/gnuplot" <<END
#!/bin/sh
cat >"$work/commands"
touch "$work/drawn/ranges.png.partial"
END
chmod +x "$work/stub/gnuplot"
# draws PATTERN...: succeeds if the commands for gnuplot match each PATTERN
draws() {
    for pattern; do
        grep -q -e "$pattern" "$work/commands" || { echo "# no '$pattern' in:" && sed 's/^/# /' "$work/commands"; return 1; }
    done
}
PATH=$work/stub:$PATH status 0 "$archive" -c "$work/radar.conf" --part 1G -o "$work/drawn" "$work/day" &&
    draws "^set title 'drawn: [0-9]* echoes, 2026-11-21T00:00:00Z to 2026-11-21T02:00:00Z'" '^set format x "%H:%M"' "^set cblabel .* offset"
report $? "the picture has a title, and its label is beside the numbers"
PATH=$work/stub:$PATH status 0 "$archive" -c "$work/radar.conf" --part 1G -o "$work/drawn" "$work/day/00.sigmf-meta" &&
    says '1 recording: 1 whole' && draws "^set title 'drawn: [0-9]* echoes, 2026-11-21T00:00:00Z' noenhanced" '^set format x "%H:%M:%.3S"'
report $? "a short one has ticks of parts of a second"
"$python" - "$bin" <<'END' >"$work/out" 2>&1
import sys
sys.path.insert(0, sys.argv[1] + "/../share/pnradar/archive")
import numpy, picture, table
table.PICTURE_ECHOES = 3
points = table.Points()
rows = numpy.zeros(4, [("n_echoes", "<u4"), ("time_ns", "<i8"), ("range_m", "<f8"), ("snr_db", "<f4")])
rows["n_echoes"], rows["time_ns"], rows["snr_db"] = 1, 10 ** 9, range(4)
points.add(rows)
title = picture.make_title("/a/it's/", points.all(), points.n_echoes)
assert title == "it's: the strongest 3 of 4 echoes, 1970-01-01T00:00:01Z", title
assert picture.quote(title + "\n").startswith("'it''s: ") and picture.quote("\n") == "'?'"
END
report $? "its title says that only the strongest echoes are drawn, and a quote in a name is text"

# The same command goes on.
victim=$(find "$work/many4/tasks" -name "*.json" | sort | head -n 1)
rm "$victim"
ls -l --time-style=full-iso "$work"/many4/tasks/*/*.json >"$work/before"
status 0 "$archive" -c "$work/radar.conf" --part 16K --workers 2 -o "$work/many4" "$work/day"
ls -l --time-style=full-iso "$work"/many4/tasks/*/*.json >"$work/after"
[ "$(diff "$work/before" "$work/after" | grep -c '^[<>]')" -eq 1 ] && cmp "$work/one/results.h5" "$work/many4/results.h5"
report $? "a second run processes what is missing and nothing twice"
status 0 "$archive" -c "$work/radar.conf" -s detector.pfa=1e-5 --part 1G -o "$work/one" "$work/day/00.sigmf-meta" &&
    [ "$(find "$work/one/tasks" -name "*.json" | wc -l)" -eq 4 ] && [ "$(wc -l <"$work/one/results.jsonl")" -lt 100 ]
report $? "another configuration is another task"

# The table grows while the last task is held.
mkdir -p "$work/held/bin"
cp "$archive" "$bin/pnradar-plan" "$work/held/bin"
ln -s "$bin/../share" "$work/held/share"
cat >"$work/held/bin/pnradar" <<END
#!/bin/sh
[ "\$1" = --tasks ] || exec "$pnradar" "\$@"
echo start >>"$work/starts"
while IFS= read -r task; do
    case \$task in *02.sigmf-meta*) while [ ! -e "$work/go" ]; do sleep 0.05; done ;; esac
    printf '%s\\n' "\$task"
done | "$pnradar" --tasks
END
chmod +x "$work/held/bin/pnradar"
"$work/held/bin/pnradar-archive" -c "$work/radar.conf" --part 16K --workers 1 -o "$work/grown" "$work/day" 2>"$work/err" &
pid=$!
tries=0
until [ -s "$work/grown/results.jsonl.partial" ] || [ $tries -eq 400 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
grep -q '"recording":0,' "$work/grown/results.jsonl.partial"
report $? "the table grows while tasks run"
kill -TERM $pid
wait $pid
[ $? -eq 130 ] && says 'stopped' && [ -z "$(find "$work/grown" -maxdepth 1 -name '*.partial')" ]
report $? "a run that is stopped leaves no part of a table"
touch "$work/go"
status 0 "$work/held/bin/pnradar-archive" -c "$work/radar.conf" --part 16K --workers 1 -o "$work/grown" "$work/day" &&
    cmp "$work/many4/results.jsonl" "$work/grown/results.jsonl" && cmp "$work/many4/results.h5" "$work/grown/results.h5"
report $? "the same command goes on to the same table"
[ "$(wc -l <"$work/starts")" -eq 2 ]
report $? "a worker starts one program for all its tasks"
cat >"$work/held/bin/pnradar" <<END
#!/bin/sh
[ "\$1" = --tasks ] || exec "$pnradar" "\$@"
echo start >>"$work/starts"
IFS= read -r task && printf '%s\\n' "\$task" | "$pnradar" --tasks
END
: >"$work/starts"
status 0 "$work/held/bin/pnradar-archive" -c "$work/radar.conf" --part 16K --workers 2 -o "$work/short" "$work/day" &&
    cmp "$work/many4/results.jsonl" "$work/short/results.jsonl" && [ "$(wc -l <"$work/starts")" -eq "$(wc -l <"$work/short/plan.jsonl")" ]
report $? "a program that has ended while it waited is replaced"

# A program in the place of one that needs more than half of the memory of a GPU: the second at a time fails.
mkdir "$work/gpu"
cp -R "$work/held/." "$work/gpu"
cat >"$work/gpu/bin/pnradar" <<END
#!/bin/sh
case "\$*" in
    --list-engines) exec cat "$work/gpu/engines" ;;
    --tasks) ;;
    *) exec "$pnradar" "\$@" ;;
esac
while IFS= read -r task; do
    echo "\$CUDA_VISIBLE_DEVICES: \$(nproc) \$(taskset -cp \$\$ | sed 's/.*: //'): \$task" >>"$work/gpu/seen"
    if ! mkdir "$work/gpu/memory\$CUDA_VISIBLE_DEVICES" 2>/dev/null; then
        printf '%s\\n' "\$task" | sed 's/"--end", "[^"]*"//; s/"out".*//' >>"$work/gpu/refused"
        echo '{"exit_status": 71}'
        exit 71
    fi
    tries=0
    until [ -s "$work/gpu/refused" ] || [ \$tries -eq 400 ]; do
        sleep 0.05
        tries=\$((tries + 1))
    done
    answer=\$(printf '%s\\n' "\$task" | "$pnradar" --tasks)
    rmdir "$work/gpu/memory\$CUDA_VISIBLE_DEVICES" # before the answer, after which the next task may come
    printf '%s\\n' "\$answer"
done
END
status 0 "$work/gpu/bin/pnradar-archive" -c "$work/radar.conf" --gpu --workers 1 -o "$work/shared" "$work/day" &&
    cmp "$work/many4/results.jsonl" "$work/shared/results.jsonl" && cmp "$work/many4/results.h5" "$work/shared/results.h5"
report $? "a GPU without memory for two tasks: the same bits"
[ -s "$work/gpu/refused" ] && [ -z "$(sort "$work/gpu/refused" | uniq -d)" ]
report $? "two tasks share a GPU, and one that has failed has it for itself"
if [ "$(nproc)" -gt 1 ]; then
    [ "$(cut -d ' ' -f 2,3 "$work/gpu/seen" | cut -d : -f 1 | sort -u | awk '{n += $1} END {print n, NR}')" = "$(nproc) 2" ]
    report $? "two tasks share out the processors"
else
    skip "two tasks share out the processors" "one processor"
fi
cat >"$work/gpu/engines" <<END
cuda       not here    engine cuda: device 0: no GPU here
cpu        works       FFTW
END
status 69 "$work/gpu/bin/pnradar-archive" -c "$work/radar.conf" --gpu -o "$work/none" "$work/day" && says 'no GPU here' &&
    status 64 "$archive" --cluster slurm --gpu -o "$work/none" "$work/day" && says 'workers is needed'
report $? "a machine without a GPU is refused, and a cluster without the number of GPUs"
cat >"$work/gpu/engines" <<END
cuda       works       NVIDIA GPUs: one
cuda       device 0    one
cuda       device 1    one
cpu        works       FFTW
END
: >"$work/gpu/refused"
rm "$work/gpu/seen"
status 0 "$work/gpu/bin/pnradar-archive" -c "$work/radar.conf" --gpu -o "$work/all" "$work/day" &&
    cmp "$work/many4/results.jsonl" "$work/all/results.jsonl" &&
    "$python" -c "import sys; sys.exit(len({line.split(':')[0] for line in open(sys.argv[1])}) != 2)" "$work/gpu/seen"
report $? "without a number of workers all GPUs of the machine work"

# --- the dashboard ---

status 64 "$archive" --dashboard here -o "$work/none" "$work/day" && says 'dashboard'
report $? "a dashboard without a port is refused"
status 64 "$archive" --cluster tcp://127.0.0.1:1 --dashboard 0 -o "$work/none" "$work/day" && says 'has its own'
report $? "a scheduler that runs has its own dashboard"

status 64 "$archive" -o "$work/none" && says 'no INPUT'
report $? "no input is refused"
status 66 "$archive" -c "$work/radar.conf" -o "$work/none" "$work/nowhere" && says 'nowhere'
report $? "a missing input is refused"
status 78 "$archive" -s detector.pfa=2 -o "$work/none" "$work/day" && says 'detector.pfa'
report $? "a wrong configuration is refused before any task"
status 78 "$archive" -s source.n_samples=2 -o "$work/none" "$work/day" && says 'cuts the recordings itself'
report $? "a part of a part is refused"
plan
