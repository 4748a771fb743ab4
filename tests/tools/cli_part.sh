#!/bin/sh
# SPDX-License-Identifier: MIT
# Parts of a recording (source.first_sample, source.n_samples): put together they are the whole run, results and
# account; refusals in words.
# usage: cli_part.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

cat >"$work/radar.conf" <<END
[source]
rate_hz = 1e6
start_time = 2026-11-21T00:00:00Z
[code]
degree = 7
epoch = 90
[dwell]
periods = 4
combine = incoherent
[engine]
name = reference
[publisher]
endpoint =
[echo]
periods = 120
noise_rms = 0.1
[target.1]
range_m = 5000
amplitude = 0.05
END
"$bin/pnradar-echo" -c "$work/radar.conf" "$work/echo.ci16" 2>/dev/null
"$bin/pnradar-echo" -c "$work/radar.conf" "$work/echo.wav" 2>/dev/null

# part FIRST N NAME SETTING...: results without what differs in every run, and the end message, of a part of $input
part() {
    first=$1 length=$2 end=$3
    shift 3
    "$pnradar" -c "$work/radar.conf" "$@" -s source.first_sample="$first" -s source.n_samples="$length" \
        --print json --end "$work/$end.end" "$work/$input" 2>"$work/err" |
        sed 's/"run":"[0-9a-f]*",//; s/"seq":[0-9]*,//; s/"latency_us":[^,]*,//'
}

# counts FILE...: the sum of each count of the account over the end messages
counts() {
    cat "$@" | sed 's/.*"account":{\([^}]*\)}.*/\1/' | tr ',' '\n' | tr -d '"' |
        awk -F: '$2 ~ /^[0-9]+$/ { sum[$1] += $2 } END { for (name in sum) print name, sum[name] }' | sort
}

# together NAME SETTING...: the parts of $input give the results and the account of the whole
together() {
    name=$1
    shift
    part 0 0 whole "$@" >"$work/whole"
    {
        part 0 3000 a "$@"
        part 3000 2032 b "$@"
        part 5032 1 c "$@"
        part 5033 0 d "$@"
    } >"$work/parts"
    [ "$(wc -l <"$work/whole")" -ge 20 ] && diff "$work/whole" "$work/parts" >"$work/out" &&
        counts "$work/whole.end" >"$work/sum" && grep -q '^positions 1[0-9]*$' "$work/sum" &&
        counts "$work/a.end" "$work/b.end" "$work/c.end" "$work/d.end" | diff "$work/sum" - >>"$work/out"
    report $? "$name: parts together are the whole, results and account"
}

input=echo.ci16
together "raw samples"
together "linear windows, which reach into the next part" -s window.correlation=linear -s radar.max_range_m=12000
together "lost runs" -s source.lost=2000+40,5000+60
grep -q '"sample":"5170"' "$work/parts" && grep -q '"time":"2026-11-21T00:00:00.005170' "$work/parts"
report $? "a part keeps the sample numbers and times of the recording"
input=echo.wav
together "a sound file" -s source.rate_hz=

input=echo.ci16
part 5033 600 e >"$work/out"
[ "$(grep -c sample "$work/out")" -eq 1 ] && counts "$work/e.end" | grep -q '^positions 508$'
report $? "a part is rounded to the dwells that begin in it"

status 65 "$pnradar" -c "$work/radar.conf" -s source.first_sample=20000 "$work/echo.ci16" && says '15330 samples'
report $? "a part after the end is refused"
status 65 "$pnradar" -c "$work/radar.conf" -s source.first_sample=5100 -s source.n_samples=10 "$work/echo.ci16" &&
    says 'no whole dwell begins'
report $? "a part in which no dwell begins is refused"
program() { "$@" <"$work/fifo"; }
mkfifo "$work/fifo"
cat "$work/echo.ci16" >"$work/fifo" 2>/dev/null &
status 78 "$pnradar" -c "$work/radar.conf" -s source.format=ci16 -s source.n_samples=5000 - && says 'from the middle'
report $? "a part of a pipe is refused"
wait
program() { "$@"; }
status 78 "$pnradar" -c "$work/radar.conf" -s source.format=ci16 \
    -s source.first_sample=5000 zmq-sub:tcp://127.0.0.1:1 && says 'from the middle'
report $? "a part of a receiver is refused"
status 74 "$pnradar" -c "$work/radar.conf" --end "$work/none/end" "$work/echo.ci16" && says '--end'
report $? "an end message that cannot be written is an error at the start"
cp "$work/echo.ci16" "$work/copy.ci16"
status 78 "$pnradar" -c "$work/radar.conf" --end "$work/copy.ci16" "$work/copy.ci16" && says 'is not replaced' &&
    cmp -s "$work/echo.ci16" "$work/copy.ci16" && status 0 "$pnradar" -c "$work/radar.conf" --end "$work/kept" "$work/echo.ci16" &&
    cp "$work/kept" "$work/before" && status 69 "$pnradar" -c "$work/radar.conf" --end "$work/kept" -s engine.name=none \
    "$work/echo.ci16" && cmp -s "$work/kept" "$work/before"
report $? "an end message replaces no other file, and a refused run leaves the old one"
plan
