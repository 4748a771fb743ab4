#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar --tasks, as pnradar-archive uses it: many command lines in one process.
# usage: cli_tasks.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
pnradar=$bin/pnradar
export PNR_LOG=info

radar_station >"$work/radar.conf"
"$bin/pnradar-echo" -c "$work/radar.conf" "$work/echo.ci16" 2>/dev/null || exit 1
sed 's/degree = 7/degree = 8/' "$work/radar.conf" >"$work/other.conf"

# task NUMBER CONFIG INPUT WORD...: a line for --tasks
task() {
    printf '{"words": ["-c", "%s", "--print", "csv", "--end", "%s", "%s"' "$2" "$work/end$1" "$3"
    number=$1
    shift 3
    [ $# -eq 0 ] || printf ', "%s"' "$@"
    printf '], "out": "%s", "err": "%s"}\n' "$work/out$number" "$work/err$number"
}

# bits FILE: csv without latency, which differs from run to run
bits() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) left[i] = $i == "latency_us" || $i == "run" }
        { for (i = 1; i <= NF; i++) if (left[i]) $i = ""; print }' "$1"
}

{
    task 1 "$work/radar.conf" "$work/echo.ci16"
    task 2 "$work/other.conf" "$work/echo.ci16" -s dwell.periods=5 -s dwell.combine=incoherent
    task 3 "$work/radar.conf" "$work/echo.ci16" -s source.first_sample=1270 -s source.n_samples=1270
} | "$pnradar" --tasks >"$work/answers" 2>"$work/err" && [ "$(sort "$work/answers" | uniq -c | tr -s ' ')" = ' 3 {"exit_status": 0}' ] && [ ! -s "$work/err" ]
report $? "three tasks, three answers, nothing else on stdout and stderr"
"$pnradar" -c "$work/radar.conf" --print csv "$work/echo.ci16" >"$work/alone1" 2>"$work/err" &&
    "$pnradar" -c "$work/other.conf" --print csv "$work/echo.ci16" -s dwell.periods=5 -s dwell.combine=incoherent \
        >"$work/alone2" 2>>"$work/err" &&
    "$pnradar" -c "$work/radar.conf" --print csv "$work/echo.ci16" -s source.first_sample=1270 -s source.n_samples=1270 \
        >"$work/alone3" 2>>"$work/err"
same=$?
for i in 1 2 3; do
    bits "$work/alone$i" >"$work/wanted" && bits "$work/out$i" | cmp - "$work/wanted" && [ -s "$work/end$i" ] || same=1
done
cat "$work/err1" "$work/err2" "$work/err3" | cmp - "$work/err" || same=1
report $same "their results, their log and their account are those of a process of their own"

{
    task 4 "$work/none.conf" "$work/echo.ci16"
    task 5 "$work/radar.conf" "$work/echo.ci16"
} | "$pnradar" --tasks >"$work/out" 2>"$work/err"
[ $? -eq 66 ] && [ "$(cat "$work/out")" = '{"exit_status": 66}' ] && grep -q none.conf "$work/err4" && [ ! -e "$work/out5" ]
report $? "a task that fails ends the process with its status: a GPU may be lost to it"
{
    task 6 "$work/radar.conf" "$work/echo.ci16" | sed "s|$work/out6|$work/none/out|"
} | "$pnradar" --tasks >"$work/out" 2>"$work/err"
[ $? -eq 74 ] && [ "$(cat "$work/out")" = '{"exit_status": 74}' ] && grep -q 'No such file' "$work/err6"
report $? "a file that cannot be opened is an error of the task"

refused=0
for line in 'text' '{}' '[]' '{"words": [], "out": "a", "err": "b"}' '{"words": [1], "out": "a", "err": "b"}' \
    '{"words": ["-V"], "out": "a"}' '{"words": "-V", "out": "a", "err": "b"}'; do
    printf '%s\n' "$line" | "$pnradar" --tasks >"$work/out" 2>"$work/err"
    [ $? -eq 64 ] && says 'is for pnradar-archive' && [ ! -s "$work/out" ] || refused=1
done
printf '{"words": ["-V"]' | "$pnradar" --tasks >"$work/out" 2>"$work/err"
[ $? -eq 64 ] && says 'is for pnradar-archive' || refused=1
head -c 2M /dev/zero | tr '\0' ' ' | "$pnradar" --tasks >"$work/out" 2>"$work/err"
[ $? -eq 64 ] || refused=1
"$pnradar" --tasks </dev/null >"$work/out" 2>"$work/err" && [ ! -s "$work/err" ] || refused=1
report $refused "a line that is no task is refused, however long; without a line nothing happens"

# A task that reads from a pipe which nobody writes: SIGTERM ends it, and then the process.
mkfifo "$work/fifo" "$work/tasks"
exec 3<>"$work/fifo" 4<>"$work/tasks"
task 7 "$work/radar.conf" "$work/fifo" -s source.format=ci16 >&4
"$pnradar" --tasks <&4 >"$work/out" 2>"$work/err" &
for _ in $(seq 200); do
    grep -q 'source:' "$work/err7" 2>/dev/null && break
    sleep 0.05
done
kill -TERM $!
wait $! && [ "$(cat "$work/out")" = '{"exit_status": 0}' ] && grep -q 'stopped' "$work/err7"
report $? "SIGTERM stops the task, and the process after it"
plan
