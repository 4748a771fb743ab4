#!/bin/sh
# SPDX-License-Identifier: MIT
# The four pulses of a chip: signals that numpy makes in time.
# usage: cli_pulse.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

find_python numpy
if [ -z "$python" ]; then
    skip "the pulses are numpy's" "no python3 with numpy"
else
    "$python" "$here/pulse_numpy.py" "$bin" "$work" >"$work/out" 2>&1
    status=$?
    grep -q '^not ok' "$work/out" && status=1
    sed 's/^\(not \)\{0,1\}ok/# &/; /^1\.\./d' "$work/out"
    report $status "the pulses are numpy's"
fi
plan
