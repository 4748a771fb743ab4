#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests pnradar --profile: the array in the file equals the published profiles, also after the
# program was killed.
# usage: cli_profile.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

cat >"$work/radar.conf" <<'EOF'
[source]
format = ci16
rate_hz = 1e6
[code]
type = m-sequence
degree = 7
chip_rate_hz = 1e6
[publisher]
endpoint =
[engine]
name = reference
[echo]
periods = 64
[target.1]
range_m = 4000
amplitude = 0.1
EOF
maps="-s dwell.periods=8 -s dwell.combine=doppler -s code.1.state=0000001 -s code.2.state=0000101"
"$bin/pnradar-echo" -c "$work/radar.conf" "$work/echo.ci16" 2>/dev/null

status 64 "$pnradar" -c "$work/radar.conf" --profile "$work/profile.dat" "$work/echo.ci16" &&
    says 'does not end in .npy' && [ ! -e "$work/profile.dat" ]
report $? "a name that does not end in .npy is refused"
cp "$work/echo.ci16" "$work/echo.npy"
status 78 "$pnradar" -c "$work/radar.conf" --profile "$work/echo.npy" "$work/echo.npy" && says 'is not replaced' &&
    cmp -s "$work/echo.ci16" "$work/echo.npy"
report $? "the input, or a file that is no array, is not overwritten"
program() { head -c 100 "$work/echo.ci16" | "$@"; }
status 69 "$pnradar" -c "$work/radar.conf" --profile "$work/none.npy" -s engine.name=none - &&
    [ ! -e "$work/none.npy" ] && [ ! -e "$work/none.jsonl" ] &&
    status 0 "$pnradar" -c "$work/radar.conf" --profile "$work/none.npy" - && [ -s "$work/none.npy" ]
report $? "a refused run makes no array, a run without a result an empty one"
program() { "$@"; }
status 74 "$pnradar" -c "$work/radar.conf" --profile "$work/no/p.npy" "$work/echo.ci16" && says 'No such file'
report $? "a folder that is not there is named"
(ulimit -f 8 && trap '' XFSZ && status 74 "$pnradar" -c "$work/radar.conf" --profile "$work/full.npy" \
    "$work/echo.ci16" && says 'full.npy.*File too large')
report $? "an array that cannot grow ends the run with an error"

find_python numpy, zmq
if [ -z "$python" ]; then
    skip "profiles and maps: the published ones" "no numpy or zmq"
else
    # shellcheck disable=SC2086 # a list of options
    "$python" "$here/profile_numpy.py" "$pnradar" "$work" >"$work/out" 2>"$work/err" &&
        "$python" "$here/profile_numpy.py" "$pnradar" "$work" $maps >"$work/out" 2>"$work/err" &&
        "$python" "$here/profile_numpy.py" "$pnradar" "$work" -s publisher.profile=complex $maps \
            >"$work/out" 2>"$work/err"
    report $? "profiles and maps: the published ones, and those of a killed program"
fi
plan
