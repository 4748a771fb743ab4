#!/bin/sh
# SPDX-License-Identifier: MIT
# What pnradar prints and its readers: one that stops, one that leaves, a full disk, one that waits for each line.
# usage: cli_outputs.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
running=''
trap 'for pid in $running; do kill -9 "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT
unset PNR_LOG

cat >"$work/radar.conf" <<END
[source]
rate_hz = 100000
format = ci16
[code]
type = m-sequence
degree = 7
[engine]
name = reference
deadline = 1000
[ring]
seconds = 1
[publisher]
endpoint =
[echo]
periods = 2400
noise_rms = 0.05
[target.1]
range_m = 60000
amplitude = 0.1
END
"$bin/pnradar-echo" -c "$work/radar.conf" "$work/echo.sc16" 2>/dev/null || exit 1
live="-c $work/radar.conf -s source.pace=real-time"

# account NAME: the count of NAME in the account of $work/err
account() {
    grep ' samples = ' "$work/err" | awk -v RS=' *[=+;] *|\n' -v name="$1" '$2 == name { print $1 }'
}

# A pipe has 64 KiB, and the ring a second: 2.5 s are more than both hold.
mkfifo "$work/stopped"
{ sleep 2.5; cat; } <"$work/stopped" >"$work/out" &
reader=$!
# shellcheck disable=SC2086 # the list of options is meant to be split
"$pnradar" $live --print json "$work/echo.sc16" >"$work/stopped" 2>"$work/err"
got=$?
wait $reader
[ $got -eq 0 ] && [ "$(account used)" = 304800 ] && [ "$(account sent)" = 2400 ] &&
    [ "$(wc -l <"$work/out")" -eq 2400 ] && ! grep -q 'lost\|unsent' "$work/err"
report $? "a live stream: a reader that stops for 2.5 s loses no sample and no result"

# Two periods wait in the pipe of the samples, which stays open: their lines come at once.
mkfifo "$work/samples"
"$pnradar" -c "$work/radar.conf" --print csv "$work/samples" >"$work/lines" 2>"$work/err" &
pid=$!
running="$running $pid"
{
    head -c 1016 "$work/echo.sc16"
    await "$work/lines" 3
    report $? "results are written when they are made, not when a buffer is full" >&3
} 3>&1 >"$work/samples"
wait "$pid" && [ "$(wc -l <"$work/lines")" -eq 3 ]
report $? "and the run ends with its samples"

if [ -w /dev/full ]; then
    # shellcheck disable=SC2086 # the list of options is meant to be split
    "$pnradar" $live -s source.rate_hz=1M --print csv "$work/echo.sc16" >/dev/full 2>"$work/err"
    [ $? -eq 74 ] && says 'No space left on device: .* samples =' && [ "$(account sent)" -lt 2400 ]
    report $? "74: a full disk ends a run that nobody else hears, and the end says so"
    # shellcheck disable=SC2086 # the list of options is meant to be split
    "$pnradar" $live -s source.rate_hz=1M -s publisher.endpoint="ipc://$work/socket" --print csv \
        "$work/echo.sc16" >/dev/full 2>"$work/err"
    [ $? -eq 74 ] && says 'warning: stdout: No space left on device: no more results are printed' &&
        says 'No space left on device: .* samples =' && [ "$(account used)" = 304800 ] &&
        [ "$(account sent)" = 2400 ]
    report $? "74: a live stream that is published goes on with a full disk"
else
    skip "74: a full disk ends a run that nobody else hears" "no /dev/full"
    skip "74: a live stream that is published goes on with a full disk" "no /dev/full"
fi

# A reader that never reads, this shell, does not hold up the end.
mkfifo "$work/never"
exec 4<>"$work/never"
# shellcheck disable=SC2086 # the list of options is meant to be split
"$pnradar" $live -s publisher.linger_s=0.1 --print json "$work/echo.sc16" >"$work/never" 2>"$work/err" &
pid=$!
running="$running $pid"
await "$work/err" 2
sleep 1
kill -TERM "$pid"
wait "$pid"
[ $? -eq 74 ] && says 'the reader has stopped: .* samples =' && ! grep -q 'does not close' "$work/err"
report $? "74: SIGTERM ends a run whose reader has stopped"

plan
