#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar-archive with workers of their own: a scheduler of Dask, workers that are killed, a scheduler that starts again;
# a real Slurm on this machine. The same bits as one worker's each time.
# usage: interop_archive.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"
archive=$bin/pnradar-archive
chmod 755 "$work"

find_python distributed, h5py, numpy
if [ -z "$python" ]; then
    skip "archives on clusters" "python3-distributed is not installed"
    plan
    exit 0
fi

# A task of 20 dwells takes about a second: the reference engine, and several codes to search.
cat >"$work/radar.conf" <<END
[source]
rate_hz = 1e6
start_time = 2026-11-21T00:00:00Z
[code]
degree = 10
[dwell]
periods = 8
combine = incoherent
[engine]
name = reference
[publisher]
endpoint =
[echo]
periods = 1600
noise_rms = 0.1
[target.1]
range_m = 3000
amplitude = 0.05
END
"$bin/pnradar-echo" -c "$work/radar.conf" "$work/echo.ci16" 2>/dev/null

# go_on NAME OPTION...: in the background, as $run; its log in $work/NAME.log
go_on() {
    name=$1
    shift
    "$archive" -c "$work/radar.conf" --part 300K -o "$work/$name" "$@" "$work/echo.ci16" \
        >"$work/out" 2>"$work/$name.log" </dev/null &
    run=$!
}

# ended NAME: the run ends well, and its table has the bits of one worker's
ended() {
    wait "$run"
    got=$?
    cp "$work/$1.log" "$work/err"
    [ $got -eq 0 ] && cmp "$work/one/results.jsonl" "$work/$1/results.jsonl" &&
        cmp "$work"/one/results.[hp]* "$work/$1"/results.[hp]* && grep -q '"closes": true' "$work/$1/account.json"
}

# n_done NAME: finished tasks
n_done() {
    find "$work/$1/tasks" -name '*.json' 2>/dev/null | wc -l
}

# until_done NAME COUNT: waits for so many finished tasks, while the run lasts
until_done() {
    while [ "$(n_done "$1")" -lt "$2" ] && kill -0 "$run" 2>/dev/null; do sleep 0.05; done
}

go_on one --workers 1
wait $run
[ "$(wc -l <"$work/one/plan.jsonl")" -ge 15 ] && [ "$(wc -l <"$work/one/results.jsonl")" -eq 200 ]
report $? "one worker on this machine: the table to compare with"

"$python" -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' \
    "$archive" -c "$work/radar.conf" --part 300K --workers 2 -o "$work/bar" "$work/echo.ci16" >"$work/out" 2>&1 </dev/null
tr '\r' '\n' <"$work/out" | grep -q '\[#* *\]  *[1-9][0-9]* %  *[0-9]* tasks, 0:0[0-9]:[0-9][0-9] left' &&
    tr '\r' '\n' <"$work/out" | grep -q '\[########################\] 100 %'
report $? "a terminal shows a bar with the time left"

# --- the dashboard ---

# look DASHBOARD_OPTION...: what an archive shows while its task waits for a FIFO; the log in $work/err
look() {
    "$archive" -c "$work/radar.conf" -s source.format=ci16 --workers 2 "$@" -o "$work/waits$#" "$work/waits.ci16" >"$work/out" 2>"$work/err" </dev/null &
    run=$!
    "$python" - $run "$work/err" "$work/waits$#" "$@" <<'END' >"$work/out" 2>&1
import glob, os, re, sys, time, urllib.error, urllib.request
pid, log, folder = sys.argv[1:4]
while not glob.glob(folder + "/tasks/*/*.partial/jsonl"):
    os.kill(int(pid), 0)  # it has not ended
    time.sleep(0.05)
links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd") if os.path.islink(entry.path)]
ports = []
for name in ("tcp", "tcp6"):
    for fields in (line.split() for line in open(f"/proc/{pid}/net/{name}")):
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in links:
            ports.append((fields[1].split(":")[0], int(fields[1].split(":")[1], 16)))
print(ports)
assert len(ports) == 3 and {address for address, _ in ports} == {"0100007F"}, ports
said = re.search(r"dashboard: (http://127.0.0.1:(\d+)/[a-z/.]*)", open(log).read())
assert bool(said) == ("--dashboard" in sys.argv), said
if said:
    print(said[0])
    page = urllib.request.urlopen(said[1]).read().decode()
    assert "<html" in page and ("inproc://" in page or "bokeh" in page), page
    counts = urllib.request.urlopen(f"http://127.0.0.1:{said[2]}/json/counts.json").read()
    assert b'"workers": 2' in counts and b'"processing": 1' in counts, counts
else:
    for _, port in ports:
        for path in ("", "info/main/workers.html", "json/counts.json", "metrics", "health"):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}")
                raise AssertionError(path)
            except urllib.error.HTTPError as error:
                assert error.code == 404, error
END
    good=$?
    kill $run
    wait $run
    [ $? -eq 130 ] && return $good
}
mkfifo "$work/waits.ci16"
look --dashboard 0 && if "$python" -c 'import bokeh' 2>/dev/null; then says '/status'; else says 'its graphs need bokeh'; fi
report $? "pages of Dask show the workers and the task, on the loopback address"
look
report $? "without a dashboard there is no page, and nothing listens but on the loopback address"

# --- a day in 24 recordings ---

mkdir "$work/day"
for hour in $(seq -w 0 23); do
    "$bin/pnradar-echo" -c "$work/radar.conf" -s "echo.seed=1$hour" -s echo.periods=80 "$work/hour.ci16" 2>/dev/null
    mv "$work/hour.ci16" "$work/day/$hour.sigmf-data"
    cat >"$work/day/$hour.sigmf-meta" <<END
{"global":{"core:datatype":"ci16_le","core:version":"1.2.0","core:sample_rate":1000000},"annotations":[],"captures":[
 {"core:sample_start":0,"core:global_index":5000,"core:datetime":"2026-11-21T$hour:00:00Z"},
 {"core:sample_start":50000,"core:global_index":75000}]}
END
done
truncate -s 100000 "$work/day/07.sigmf-data"
head -c 500 "$work/day/12.sigmf-data" >"$work/day/13.sigmf-meta"
"$archive" -c "$work/radar.conf" -s engine.name=auto -s source.start_time= --part 100K -o "$work/hours" "$work/day" \
    >"$work/out" 2>"$work/err"
[ $? -eq 3 ] && says 'not processed: .*/07.sigmf-meta.*captures.1. begins at sample 50000 .*which has 25000' &&
    says 'not processed: .*/13.sigmf-meta'
report $? "a truncated recording and one of garbage are named, with their samples"
"$python" - "$work/hours/account.json" <<'END' >"$work/out" 2>&1
import json, sys
a = json.load(open(sys.argv[1]))
count = {name: int(n) for name, n in a["account"].items()}
assert a["closes"] and a["recordings"] == {"given": 24, "whole": 22, "partial": 0, "failed": 2}, a
assert count["positions"] == 22 * (80 * 1023 + 20000) and count["lost_source"] == 22 * 20000, count
assert a["tasks"]["done"] == a["tasks"]["planned"] - 2 > 40, a["tasks"]
END
report $? "the other 22 are processed, and the account closes"
for hour in $(seq -w 0 23); do
    "$pnradar" -c "$work/radar.conf" -s engine.name=auto -s source.start_time= --print json "$work/day/$hour.sigmf-meta"
done 2>/dev/null | sed 's/"run":"[0-9a-f]*",//; s/"seq":[0-9]*,//; s/"latency_us":[^,]*,//' >"$work/loop"
sed 's/"recording":[0-9]*,//; s/"run":"[0-9a-f]*",//; s/"seq":[0-9]*,//; s/"latency_us":[^,]*,//' "$work/hours/results.jsonl" |
    diff "$work/loop" - >"$work/out" && [ "$(wc -l <"$work/loop")" -gt 200 ]
report $? "their results are those of a shell loop, bit for bit"

truncate -s 100G "$work/sparse.ci16"
"$python" - "$bin" "$work" <<'END' >"$work/out" 2>&1
import sys, tracemalloc
sys.path.insert(0, sys.argv[1] + "/../share/pnradar/archive")
from recordings import make_tasks
work = sys.argv[2]
settings = {"plan": sys.argv[1] + "/pnradar-plan", "config": work + "/radar.conf", "part": 1 << 20, "cuts": True,
            "identity": "a text that does not change"}
tracemalloc.start()
tasks = make_tasks(settings, [work + "/sparse.ci16"])
last, n = next(tasks), 1
for task in tasks:
    assert task["first_sample"] == last["first_sample"] + last["n_samples"], task
    last, n = task, n + 1
print(n, tracemalloc.get_traced_memory())
assert n > 99_000 and last["n_samples"] == 0
assert tracemalloc.get_traced_memory()[1] < 4 << 20
END
report $? "100,000 tasks are planned in little memory, each begins where the one before ends"
rm "$work/sparse.ci16"

# --- a scheduler and workers of Dask ---

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_scheduler() {
    "$python" -m distributed.cli.dask_scheduler --host 127.0.0.1 --port "$port" --no-dashboard >"$work/scheduler" 2>&1 &
    scheduler=$!
}
# start_worker RESOURCES: its number is $!
start_worker() {
    "$python" -m distributed.cli.dask_worker "tcp://127.0.0.1:$port" --nthreads 1 --no-nanny --no-dashboard \
        --memory-limit 0 --resources "$1" --local-directory "$work/scratch" --death-timeout 120 >>"$work/worker" 2>&1 &
}
start_scheduler
start_worker CORES=1
first=$!
start_worker CORES=1
second=$!
started="$scheduler $first $second"
trap 'kill $started 2>/dev/null; rm -rf "$work"' EXIT

go_on killed --cluster "tcp://127.0.0.1:$port" --cores 1 --patience 60
until_done killed 4
until programs=$(pgrep -d, -P $first) || ! kill -0 $run 2>/dev/null; do sleep 0.1; done # it may have begun late
kill -9 $first
ended killed
report $? "a worker is killed in the middle: the same bits"
find "$work/killed/tasks" >"$work/out"
[ "$(n_done killed)" -eq "$(wc -l <"$work/killed/plan.jsonl")" ] && ! grep -q partial "$work/out"
report $? "each task has one result, and the killed one left nothing"
[ -n "$programs" ] && ! ps -o stat= -p "$programs" | grep -qv Z # nobody may wait for them
report $? "no program outlives its worker"

start_worker CORES=1
third=$!
started="$scheduler $second $third"
go_on again --cluster "tcp://127.0.0.1:$port" --cores 1 --patience 60
until_done again 4
kill -9 $scheduler
n_before=$(n_done again)
wait $scheduler 2>/dev/null
kill $second $third 2>/dev/null # they would wait for the old scheduler
while ! grep -q 'Failed to reconnect' "$work/again.log" && kill -0 $run 2>/dev/null; do sleep 0.1; done # Dask gives up
start_scheduler
start_worker CORES=1
fourth=$!
started="$scheduler $fourth"
ended again && grep -q 'the scheduler is lost' "$work/again.log" && [ "$n_before" -lt 15 ]
report $? "the scheduler starts again in the middle: the same bits"
"$python" - "$bin/../share/pnradar/archive" >"$work/out" 2>&1 <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from dealer import Dealer
class Cluster:  # of a client that has closed, or not
    def __init__(self, connected): self.is_connected = lambda: connected
class Future:
    status = "finished"
    def result(self, timeout): raise Exception("Tried sending message after closing.  Status: closed")
assert Dealer(Cluster(False), {}, None, None).outcome_of(Future()) is None
try:
    Dealer(Cluster(True), {}, None, None).outcome_of(Future())
except Exception as error:
    sys.exit("after closing" not in str(error))
sys.exit("an error with a connection was taken for a lost scheduler")
END
report $? "a client that closes while it collects a result has lost its scheduler"

# Stopped, then the same command.
go_on stopped --cluster "tcp://127.0.0.1:$port" --cores 1 --patience 60
until_done stopped 3
kill -TERM $run
wait $run
[ $? -eq 130 ] && n_before=$(n_done stopped) && [ "$n_before" -lt 15 ] && [ ! -e "$work/stopped/results.jsonl" ]
report $? "a stopped run says so and leaves no table"
go_on stopped --cluster "tcp://127.0.0.1:$port" --cores 1 --patience 60
ended stopped
report $? "the same command goes on to the same bits"

go_on refused --cluster "tcp://127.0.0.1:$port" --gpu --patience 3
wait $run
[ $? -eq 69 ] && grep -q "no worker with the resource {'GPU': 1}" "$work/refused.log"
report $? "workers without the resource of a task are refused in words"
# shellcheck disable=SC2086 # a list of processes
kill $started 2>/dev/null
started=''

# --- Slurm ---

missing=
for program in slurmctld slurmd sbatch munged; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || missing="$missing $program"
done
if [ -n "$missing" ] || [ "$(id -u)" -ne 0 ]; then
    skip "an array job of Slurm" "${missing:+no$missing}${missing:-not root, whom slurmd needs}"
    plan
    exit 0
fi
PATH=$PATH:/usr/sbin
host=$(hostname -s)
controller=$("$python" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
daemon=$("$python" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
mkdir -p "$work/slurmd/state" "$work/slurmd/spool" "$work/munge"
head -c 1024 /dev/urandom >"$work/munge/key"
chmod 600 "$work/munge/key"
munged --force --foreground --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" >"$work/munge/out" 2>&1 &
started=$!
cat >"$work/slurmd/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=$controller
SlurmdPort=$daemon
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/slurmd/state
SlurmdSpoolDir=$work/slurmd/spool
SlurmctldPidFile=$work/slurmd/slurmctld.pid
SlurmdPidFile=$work/slurmd/slurmd.pid
SlurmctldLogFile=$work/slurmd/slurmctld.log
SlurmdLogFile=$work/slurmd/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$work/slurmd/slurm.conf"
while [ ! -S "$work/munge/socket" ] && kill -0 "$started" 2>/dev/null; do sleep 0.05; done
slurmctld -D >"$work/slurmd/out1" 2>&1 &
started="$started $!"
slurmd -D -N "$host" >"$work/slurmd/out2" 2>&1 &
started="$started $!"
for _ in $(seq 300); do # a minute: without a node there is nothing to wait for
    sinfo -h -o %T 2>/dev/null | grep -q idle && break
    sleep 0.2
done
sinfo -h -o %T >"$work/out" 2>&1 && grep -q idle "$work/out"
report $? "slurmctld and slurmd run, with one idle node"
export PNR_ARCHIVE_HOST=127.0.0.1
go_on slurm --cluster slurm --workers 2 --patience 60
ended slurm && grep -q 'job [0-9]* of Slurm: 2 workers' "$work/slurm.log"
report $? "an array job of two workers joins, and gives the same bits"
grep -q '^#SBATCH --array=1-2$' "$work/slurm/slurm.sh" && [ ! -e "$work/slurm/keys" ] &&
    [ -z "$(squeue -h -t PENDING,RUNNING -o %i)" ]
report $? "the job is over, and its keys are removed"
# shellcheck disable=SC2086 # a list of processes
kill $started 2>/dev/null
plan
