#!/bin/sh
# SPDX-License-Identifier: MIT
# The progress line: on a terminal alone, never within results or the log, and gone at the end.
# usage: cli_progress.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
unset PNR_LOG
find_python pty
if [ -z "$python" ]; then
    skip "the progress line" "no Python with pty"
    plan
    exit
fi
cat >"$work/radar.conf" <<END
[source]
rate_hz = 100e3
format = ci16
pace = real-time
[code]
degree = 7
[dwell]
periods = 50
combine = coherent
[publisher]
endpoint =
[target.1]
range_m = 60e3
amplitude = 0.1
END
"$bin/pnradar-echo" -c "$work/radar.conf" -s source.pace=fast -s echo.periods=1700 "$work/echo.ci16" 2>"$work/err" || exit 1

# on_terminal WHICH ARGUMENT...: status 0; $work/out, raw and screen
on_terminal() {
    which=$1
    shift
    "$python" "$here/progress_terminal.py" "$which" "$work" "$pnradar" -c "$work/radar.conf" "$@" 2>"$work/err"
}
line='[0-9][0-9]* %, [0-9.]* ksamples/s, [0-9]* s left, [0-9]* echoes'

# a recording of 2.2 s in real time, so two lines
on_terminal err --print table "$work/echo.ci16" && [ "$(grep -c "$line" "$work/raw")" -ge 1 ] &&
    tr '\r' '\n' <"$work/raw" | grep "$line" | awk '{ sub(/^\033\[K/, "") } $1 + 0 < last + 0 || $1 + 0 > 100 { bad = 1 }
        $3 < 50 || $3 > 110 || $5 > 4 { bad = 1 } { last = $1; n++ } END { exit bad || n < 2 || last < 40 }'
report $? "share, rate, time left and echoes"
[ "$(grep -c '^[0-9]' "$work/out")" -eq 34 ] && ! grep -q '%\|\[K' "$work/out"
report $? "the results in a file have none of it"
! grep -q '%,' "$work/screen" && tail -n 2 "$work/screen" | grep -q '^pnradar: end of input: '
report $? "the line is gone at the end, and the log is whole"
on_terminal both "$work/echo.ci16" && grep -q "$line" "$work/raw" && ! grep -q '%,' "$work/screen" &&
    [ "$(grep -c '^[0-9]' "$work/screen")" -eq 34 ] && [ "$(grep -c '^[0-9.]*  *1  *[56][0-9]*' "$work/screen")" -eq 34 ]
report $? "a table on the same terminal stays whole"
on_terminal err -s source.input="$work/none.ci16" --quiet
[ $? -eq 66 ] && ! grep -q '%,' "$work/raw"
report $? "none when nothing runs"
PNR_LOG=quiet on_terminal err --quiet "$work/echo.ci16" && [ ! -s "$work/raw" ]
report $? "PNR_LOG=quiet: none"
"$pnradar" -c "$work/radar.conf" --quiet "$work/echo.ci16" 2>"$work/err" && ! grep -q '%,\|\[K' "$work/err"
report $? "none in a file"
"$python" "$here/progress_terminal.py" err "$work" sh -c "'$bin/pnradar' -c '$work/radar.conf' --quiet - <'$work/echo.ci16'" &&
    grep -q "$line" "$work/raw"
report $? "a file as standard input has a length"
"$python" "$here/progress_terminal.py" err "$work" \
    sh -c "cat '$work/echo.ci16' | '$bin/pnradar' -c '$work/radar.conf' --quiet -" && ! grep -q '%,' "$work/raw"
report $? "none for a pipe, whose length is not known"
plan
