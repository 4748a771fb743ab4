#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar with its engine in a worker: signals, ends, and workers that are killed.
# usage: cli_isolate.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
echo_=$bin/pnradar-echo
running=''
trap 'for pid in $running; do kill -9 "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT
unset PNR_LOG PNR_FAULT

engine=reference
works cpu && engine=cpu
{
    radar_station
    printf '[ring]\nseconds = 1\n[engine]\nisolate = yes\nname = %s\n' $engine
} >"$work/radar.conf"
"$echo_" -c "$work/radar.conf" "$work/echo.sc16" 2>/dev/null || exit 1

program() {
    "$pnradar" -c "$work/radar.conf" "$@"
}

# gone PID: the process ends, within five minutes
gone() {
    tries=0
    while kill -0 "$1" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 3000 ] || { echo "# process $1 is still there"; return 1; }
        sleep 0.1
    done
}

# worker: the process of the only worker of $pid
worker() {
    cat "/proc/$pid/task"/*/children | tr -d ' '
}

# begin NAME OPTION...: pnradar on an endless pipe as $pid, its csv in $work/NAME
begin() {
    name=$1
    shift
    rm -f "$work/pipe"
    mkfifo "$work/pipe"
    "$echo_" -c "$work/radar.conf" -s echo.periods=0 "$work/pipe" 2>/dev/null &
    writer=$!
    "$pnradar" -c "$work/radar.conf" --print csv "$@" "$work/pipe" >"$work/$name" 2>"$work/err" &
    pid=$!
    running="$running $pid $writer"
    await "$work/$name" 200
}

status 0 --print csv "$work/echo.sc16" && mv "$work/out" "$work/there" &&
    status 0 --print csv -s engine.isolate=no "$work/echo.sc16" && mv "$work/out" "$work/here" &&
    cut -d, -f1-11,13- "$work/here" >"$work/a" && cut -d, -f1-11,13- "$work/there" | cmp -s - "$work/a"
report $? "the same bits with and without a worker"
program --print csv - <"$work/echo.sc16" 2>"$work/err" | cut -d, -f1-2,4-11,13- >"$work/b" &&
    cut -d, -f1-2,4-11,13- "$work/here" | cmp -s - "$work/b"
report $? "the worker leaves standard input to its run"

begin term && at=$(worker) && [ -n "$at" ] && kill -TERM "$pid" && wait "$pid" && says 'stopped: .* samples =' && gone "$at"
report $? "SIGTERM: 0, and the worker ends"
begin all && at=$(worker) && kill -TERM "$at" && kill -INT "$at" && sleep 0.3 && kill -0 "$at" && kill -INT "$pid" &&
    wait "$pid" && says 'stopped: .* samples =' && gone "$at"
report $? "the worker ignores the signals that end its run"
begin killed && at=$(worker) && kill -9 "$pid" && gone "$at"
report $? "a run that is killed takes its worker along"
begin again && kill -9 "$(worker)" && lines=$(wc -l <"$work/again") && await "$work/again" $((lines + 5000)) &&
    says 'worker lost: process ended by signal 9' && says 'worker started' && kill -TERM "$pid" && wait "$pid" &&
    [ "$(cut -d, -f8 "$work/again" | grep -c restarted)" -eq 1 ] && ! says ' lost ' >/dev/null
report $? "a worker that is killed: one result says so, and nothing is lost"

# slow OPTION...: pnradar with an engine of the tests, whose create waits while $work/wait exists, as $pid
slow() {
    rm -f "$work/pipe" "$work/slow"
    : >"$work/err"
    mkfifo "$work/pipe"
    "$echo_" -c "$work/radar.conf" -s echo.periods=0 "$work/pipe" 2>/dev/null &
    running="$running $!"
    PNR_LOG=info PNR_MODULE_PATH=$bin/../tests/engines PNR_FAULT_CREATE_WHILE=$work/wait "$pnradar" \
        -c "$work/radar.conf" -s engine.name=fault --print csv "$@" "$work/pipe" >"$work/slow" 2>"$work/err" &
    pid=$!
    running="$running $pid"
}

# waits: create waits
waits() {
    until_true says 'create waits' >/dev/null
}

touch "$work/wait"
slow -s engine.isolate=no && waits && kill -TERM "$pid" && gone "$pid" && wait "$pid" &&
    says 'stopped before the first sample'
report $? "SIGTERM while an engine is created: 0"
slow && waits && at=$(worker) && kill -TERM "$pid" && gone "$pid" && wait "$pid" &&
    says 'stopped before the first sample' && gone "$at"
report $? "SIGTERM while the first worker sets up: 0, and the worker ends"
rm "$work/wait"
slow && await "$work/slow" 200 && touch "$work/wait" && kill -9 "$(worker)" && waits && at=$(worker) &&
    kill -TERM "$pid" && gone "$pid" && ! wait "$pid" && says 'no worker could finish the last views' &&
    says 'dropped engine error' && gone "$at"
report $? "SIGTERM while another worker sets up: the windows without a result are counted, and the worker ends"

from_pipe() {
    head -c 50800 "$work/echo.sc16" | program "$@" -
}
from_pipe -s ring.seconds=0 -s engine.batch=1 -s source.pace=real-time >"$work/out" 2>"$work/err" &&
    says 'ring of 2000000 samples'
report $? "a live ring holds two seconds by default"
status 64 --worker 0 && status 64 --worker 77 && "$pnradar" --worker 1 >"$work/out" 2>"$work/err" </dev/null
[ $? -eq 64 ]
report $? "64: --worker is for pnradar itself"

plan
