#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar reads its configuration again at SIGHUP, and drains when its terminal goes.
# usage: cli_reload.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
echo_=$bin/pnradar-echo
running=''
trap 'for pid in $running; do kill -9 "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT
unset PNR_LOG

# configure PFA DEGREE [RATE]: writes radar.conf
configure() {
    cat >"$work/new.conf" <<END
[source]
rate_hz = ${3:-100000}
format = ci16
[code]
type = m-sequence
degree = $2
[detector]
pfa = $1
[ring]
seconds = 0.1
[publisher]
endpoint =
[echo]
periods = 0
noise_rms = 0.05
[target.1]
range_m = 60000
amplitude = 0.1
END
    mv "$work/new.conf" "$work/radar.conf"
}

# has N FILE: at least so many lines
has() {
    [ -f "$2" ] && [ "$(wc -l <"$2")" -ge "$1" ]
}

# begin OPTION...: pnradar on an endless pipe as $pid, its results in $work/json
begin() {
    configure 1e-4 7
    rm -f "$work/pipe" "$work/json"
    mkfifo "$work/pipe"
    "$echo_" -c "$work/radar.conf" -s source.pace=real-time "$work/pipe" 2>/dev/null &
    writer=$!
    "$pnradar" -c "$work/radar.conf" --print json "$@" "$work/pipe" >"$work/json" 2>"$work/err" &
    pid=$!
    running="$running $pid $writer"
    until_true has 200 "$work/json"
}

# reload PATTERN: SIGHUP, then the pattern in the log, and more results
reload() {
    kill -HUP "$pid" && until_true grep -q "$1" "$work/err" &&
        until_true has $(($(wc -l <"$work/json") + 200)) "$work/json"
}

# finish RUNS: SIGTERM; nothing is lost, and the results have so many runs
finish() {
    kill -TERM "$pid" && wait "$pid" && says 'stopped: .* samples =' && ! grep -q 'samples = .* lost' "$work/err" || return 1
    runs=$(grep -o '"run":"[0-9a-f]*"' "$work/json" | uniq | wc -l)
    [ "$runs" -eq "$1" ] || { echo "# $runs runs, not $1"; false; }
}

for isolate in no yes; do
    begin -s engine.isolate=$isolate && configure 1e-9 7 && reload 'read again: a new run begins at sample' &&
        grep -q '"pfa_cell":7.87[0-9]*e-12' "$work/json" &&
        configure 1e-9 6 && reload 'm-sequence n=6 .* N = 63' && until_true grep -q '"pfa_cell":1.5[0-9]*e-11' "$work/json" && finish 3
    report $? "engine.isolate = $isolate: another threshold, then another code, each as a new run"
    begin -s engine.isolate=$isolate && configure 1e-4 99 && reload 'stays as it was: .*code.degree = "99"' &&
        configure 1e-4 7 2e6 && reload 'source.rate_hz = "2000000", and it was "100000": this key needs a new start' &&
        rm "$work/radar.conf" && reload "radar.conf: No such file" && finish 1
    report $? "engine.isolate = $isolate: wrong values and a missing file are refused, and the run goes on"
done

find_python os
cat >"$work/terminal.py" <<'END'
import os, pty, signal, socket, sys, time

work, command = sys.argv[1], sys.argv[2:]
inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
inbox.bind(work + "/notify")
inbox.settimeout(60)
os.environ["NOTIFY_SOCKET"] = work + "/notify"
process, terminal = pty.fork()
if process == 0:
    log = os.open(work + "/err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 2)
    os.dup2(log, 1)
    os.execv(command[0], command)
assert inbox.recv(200) == b"READY=1"
os.kill(process, signal.SIGHUP)
lines = inbox.recv(200).split(b"\n")
assert lines[0] == b"RELOADING=1" and lines[1].startswith(b"MONOTONIC_USEC="), lines
assert abs(int(lines[1].split(b"=")[1]) - time.monotonic_ns() // 1000) < 60e6
assert inbox.recv(200) == b"READY=1"
os.close(terminal)  # the kernel sends SIGHUP
assert inbox.recv(200) == b"STOPPING=1"
assert os.waitpid(process, 0)[1] == 0
END
if [ -n "$python" ]; then
    configure 1e-4 7
    rm -f "$work/pipe" && mkfifo "$work/pipe"
    "$echo_" -c "$work/radar.conf" -s source.pace=real-time "$work/pipe" 2>/dev/null &
    running="$running $!"
    "$python" "$work/terminal.py" "$work" "$pnradar" -c "$work/radar.conf" "$work/pipe" 2>"$work/out" &&
        says 'read again' && says 'stopped: .* samples ='
    report $? "the service manager hears of a reload; when the terminal goes, the run drains"
else
    skip "a terminal that goes" "no Python"
fi
plan
