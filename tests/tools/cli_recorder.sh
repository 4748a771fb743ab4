#!/bin/sh
# SPDX-License-Identifier: MIT
# Recording while processing: a live run, replayed, gives the same results; every kind of file of results holds the
# same; a full disk, the signal USR1 and a kill at any moment.
# usage: cli_recorder.sh BIN_FOLDER; prints TAP. PNR_KILLS: number of kills (10).
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python numpy,zmq
if [ -z "$python" ]; then
    skip "recordings" "no Python with numpy and zmq"
    plan
    exit
fi
judge() {
    "$python" "$here/recorder_judge.py" "$@" >"$work/out" 2>"$work/err"
}
{
    sonar_station
    printf '[source]\nrate_hz = 96000\n[engine]\ndeadline = 3600\n'
} >"$work/radar.conf"
"$bin/pnradar-echo" -c "$work/radar.conf" -s target.1.range_m=0.789 -s target.1.amplitude=0.1 \
    -s echo.periods=600 "$work/echo.cf32" 2>"$work/err" &&
    "$bin/pnradar-echo" -c "$work/radar.conf" -s target.1.range_m=0.789 -s target.1.amplitude=0.1 \
        -s echo.periods=600 "$work/echo.ci16" 2>"$work/err"
report $? "an echo"

# --- replay = live ---

"$python" "$here/sources_peer.py" push "$work" tags &
peer=$!
until_true test -e "$work/port"
PNR_LOG=info "$pnradar" -c "$work/radar.conf" -s source.zmq_tags=yes -s recorder.samples="$work/zmq" \
    -s recorder.results="$work/live.jsonl" "zmq-pull:tcp://127.0.0.1:$(cat "$work/port")" 2>"$work/err" &
radar=$!
await "$work/live.jsonl" 70
kill -TERM $radar && wait $radar && says ' 4700 lost' && says 'recorder: .* samples in 1 recordings; 0 not recorded'
report $? "GNU Radio's sink with two losses, live and recorded"
kill $peer
wait $peer 2>/dev/null
status 0 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/replay.jsonl" "$work/zmq.sigmf-meta" &&
    judge same "$work/live.jsonl" "$work/replay.jsonl" && grep -q '"time_source":"source"' "$work/live.jsonl"
report $? "the recording gives the same results with the receiver's times"
mkfifo "$work/fifo"
cat "$work/echo.ci16" >"$work/fifo" &
status 0 "$pnradar" -c "$work/radar.conf" -s source.format=ci16 -s source.pace=real-time -s source.lost=10000+300,30000+9000 \
    -s recorder.samples="$work/fifo-record" -s recorder.results="$work/live2.jsonl" "$work/fifo" &&
    status 0 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/replay2.jsonl" "$work/fifo-record.sigmf-data" &&
    judge same "$work/live2.jsonl" "$work/replay2.jsonl" && grep -q '"time_source":"host"' "$work/live2.jsonl" &&
    cmp "$work/echo.ci16" "$work/fifo-record.sigmf-data"
report $? "a FIFO at pace with two losses, replayed: the same results with the host's times, and the same bytes"

if [ -e "$bin/../lib/pnradar/recorder-digital-rf.so" ] && [ -e "$bin/../lib/pnradar/source-digital-rf.so" ]; then
    cat "$work/echo.ci16" >"$work/fifo" &
    status 0 "$pnradar" -c "$work/radar.conf" -s source.format=ci16 -s source.lost=10000+300,30000+9000 \
        -s source.start_time=2026-11-21T02:59:59Z -s recorder.format=digital-rf -s recorder.rotate_s=0.1 \
        -s recorder.samples="$work/channel" -s recorder.results="$work/live3.jsonl" "$work/fifo" &&
        status 0 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/replay3.jsonl" "$work/channel" &&
        judge same "$work/live3.jsonl" "$work/replay3.jsonl" &&
        [ "$(find "$work/channel" -name 'rf@*' | wc -l)" -ge 10 ] && [ -d "$work/channel/2026-11-21T02-00-00" ] &&
        [ -d "$work/channel/2026-11-21T03-00-00" ]
    report $? "recorded in Digital RF over an hour's end, and replayed: the same results"
    status 78 "$pnradar" -c "$work/radar.conf" -s recorder.format=digital-rf -s recorder.rotate_bytes=1M \
        -s recorder.samples="$work/channel" "$work/echo.ci16" && says 'recorder.rotate_s sets'
    report $? "Digital RF: recorder.rotate_bytes is refused"
else
    skip "recordings in Digital RF" "source-digital-rf.so or recorder-digital-rf.so is not built"
fi

# --- files of results ---

find_python h5py
has_modules=no
[ -e "$bin/../lib/pnradar/recorder-sqlite.so" ] && [ -e "$bin/../lib/pnradar/recorder-hdf5.so" ] && [ -n "$python" ] && has_modules=yes
find_python numpy,zmq
good=0
kinds='jsonl csv'
[ $has_modules = yes ] && kinds="$kinds sqlite h5"
for kind in $kinds; do
    status 0 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/r.$kind" -s source.lost=10000+3000 "$work/echo.ci16" || good=1
done
if [ $has_modules = yes ]; then
    [ $good -eq 0 ] && judge tables "$work"
    report $? "JSON lines, CSV, SQLite and HDF5 hold the same echoes"
else
    skip "SQLite and HDF5" "no modules for them, or no h5py"
fi
if [ $has_modules = yes ]; then
    "$python" -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("CREATE TABLE mine(x)")' "$work/mine.sqlite" &&
        cp "$work/mine.sqlite" "$work/mine.before" &&
        status 78 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/mine.sqlite" "$work/echo.ci16" && says 'another application_id' &&
        cmp "$work/mine.sqlite" "$work/mine.before" && cp "$work/radar.conf" "$work/text.sqlite" &&
        status 78 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/text.sqlite" "$work/echo.ci16" && says 'no database of this program' &&
        cmp "$work/radar.conf" "$work/text.sqlite" &&
        status 78 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/r.h5" "$work/echo.ci16" && says 'r.h5: it exists' &&
        status 0 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/r.sqlite" "$work/echo.ci16" &&
        "$python" -c 'import sqlite3, sys
counts = [n for n, in sqlite3.connect(sys.argv[1]).execute("SELECT count(DISTINCT seq) FROM results GROUP BY run")]
assert len(counts) == 2 and min(counts) > 70, counts' "$work/r.sqlite"
    report $? "SQLite: a second run is added; a database of others, a text and an HDF5 file that exists are refused"
fi
status 0 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/r.jsonl" "$work/echo.ci16" && judge lines "$work/r.jsonl" 145 &&
    status 78 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/echo.ci16" "$work/echo.ci16" && says '.jsonl, .csv' &&
    cp "$work/radar.conf" "$work/mine.csv" &&
    status 78 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/mine.csv" "$work/echo.ci16" &&
    cmp "$work/radar.conf" "$work/mine.csv" &&
    status 78 "$pnradar" -c "$work/radar.conf" -s recorder.samples="$work/zmq" "$work/echo.ci16" && says 'not replaced' &&
    status 78 "$pnradar" -c "$work/radar.conf" -s recorder.rotate_s=1 "$work/echo.ci16" && says 'needs recorder.samples' &&
    status 78 "$pnradar" -c "$work/radar.conf" -s recorder.samples="$work/" -s recorder.trigger_snr_db=3 "$work/echo.ci16" && says 'needs recorder.pre_trigger_s'
report $? "results go on in the same file; files of others, and keys without a meaning, are refused"

# --- a full disk ---

# live ARGUMENT...: pnradar at pace, for 3 s, in $radar; its log in $work/err
live() {
    "$bin/pnradar-echo" -c "$work/radar.conf" -s echo.periods=1200 -s source.format=ci16 -s target.1.range_m=0.789 \
        -s target.1.amplitude=0.1 - 2>/dev/null >"$work/fifo" &
    PNR_LOG=info "$pnradar" -c "$work/radar.conf" -s source.format=ci16 -s source.pace=real-time "$@" "$work/fifo" \
        2>"$work/err" &
    radar=$!
}
logs() {
    grep -q -e "$1" "$work/err"
}
if command -v prlimit >/dev/null; then
    live --strict -s recorder.samples="$work/full" -s recorder.results="$work/full.jsonl"
    until_true test -s "$work/full.partial.sigmf-data"
    prlimit --pid $radar --fsize=50001:
    until_true logs 'recording-stops: .*File too large'
    prlimit --pid $radar --fsize=unlimited:
    wait $radar
    got=$?
    [ $got -eq 3 ] && says 'recording-resumes: [1-9][0-9]* samples' && says 'unrecorded samples' && says '150 results = 150 sent' &&
        judge lines "$work/full.jsonl" 5 &&
        status 0 "$pnradar" -c "$work/radar.conf" -s recorder.results="$work/full2.jsonl" "$work/full.sigmf-meta"
    report $? "a full disk: processing goes on, the loss is counted, lines are whole, and recording begins again"
else
    skip "a full disk" "no prlimit"
fi

# --- events ---

mkdir "$work/events"
live -s recorder.samples="$work/events" -s recorder.pre_trigger_s=0.2 -s recorder.post_trigger_s=0.1 -s recorder.results="$work/events.jsonl"
await "$work/events.jsonl" 30
kill -USR1 $radar && wait $radar && grep -q '"pnradar:event": "signal"' "$work"/events/*.sigmf-meta &&
    size=$(cat "$work"/events/*.sigmf-data | wc -c) && [ "$size" -ge 115200 ] && [ "$size" -le 250000 ]
report $? "the signal USR1 keeps what is around it"

"$bin/pnradar-echo" -c "$work/radar.conf" -s source.format=ci16 -s echo.periods=600 "$work/noise.ci16" 2>"$work/err"
cat "$work/noise.ci16" "$work/echo.ci16" "$work/noise.ci16" >"$work/three.ci16"
rm -f "$work"/events/*
around="-s recorder.samples=$work/events -s recorder.pre_trigger_s=0.2 -s recorder.post_trigger_s=0.1"
# shellcheck disable=SC2086 # a list of options
status 0 "$pnradar" -c "$work/radar.conf" $around -s recorder.trigger_snr_db=20 "$work/three.ci16" &&
    judge around "$work/events" 133200 312368 && grep -q '"pnradar:event": "echo"' "$work"/events/*.sigmf-meta && rm -f "$work"/events/* &&
    status 0 "$pnradar" -c "$work/radar.conf" $around -s recorder.trigger_loss=yes -s source.lost=70000+500 "$work/noise.ci16" &&
    judge around "$work/events" 50800 79600 && grep -q '"pnradar:event": "loss"' "$work"/events/*.sigmf-meta
report $? "an echo and a loss keep what is around them"

# --- kills ---

kills=${PNR_KILLS:-10}
i=0
good=0
"$bin/pnradar-echo" -c "$work/radar.conf" -s source.format=ci16 -s echo.periods=60000 -s echo.leak_amplitude=0.3 "$work/long.ci16" 2>"$work/err"
while [ $i -lt "$kills" ] && [ $good -eq 0 ]; do
    left=$work/killed-$i
    mkdir "$left"
    case $((i % 4)) in 0) kind=jsonl ;; 1) kind=csv ;; 2) kind=sqlite ;; 3) kind=h5 ;; esac
    [ $((i % 4)) -lt 2 ] || [ $has_modules = yes ] || kind=jsonl
    "$pnradar" -c "$work/radar.conf" -s recorder.samples="$left/" -s recorder.rotate_bytes=300K \
        -s recorder.results="$left/r.$kind" -s radar.zero=direct-path -s radar.zero_state_path="$left/state" \
        "$work/long.ci16" 2>"$work/err" &
    radar=$!
    while [ -z "$(ls "$left")" ] && kill -0 $radar 2>/dev/null; do sleep 0.01; done
    sleep "0.$(awk -v i=$i 'BEGIN { srand(); printf "%03d", (rand() * 1000 + 7 * i) % 150 }')"
    kill -KILL $radar 2>/dev/null
    wait $radar 2>/dev/null
    i=$((i + 1))
    if [ $((i % 10)) -eq 0 ] || [ $i -eq "$kills" ]; then
        judge killed "$work/long.ci16" "$work"/killed-* || good=1
        cat "$work/out" >>"$work/kills"
        rm -rf "$work"/killed-*
    fi
done
[ $good -eq 0 ] && awk '$2 > 0 && $2 < 15240000 { n++ } END { exit !(n > 0) }' "$work/kills"
report $? "$kills kills: no file is damaged beyond its last line"
plan
