#!/bin/sh
# SPDX-License-Identifier: MIT
# A direct path outside of the range gate: signals that numpy makes.
# usage: cli_leak.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python numpy
if [ -z "$python" ]; then
    skip "echoes in the gate beside a direct path outside" "no python3 with numpy"
else
    "$python" "$here/leak_numpy.py" "$bin" "$work" >"$work/out" 2>&1
    status=$?
    grep -q '^not ok' "$work/out" && status=1
    sed 's/^\(not \)\{0,1\}ok/# &/; /^1\.\./d' "$work/out"
    report $status "echoes in the gate beside a direct path outside"
fi
plan
