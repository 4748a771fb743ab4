#!/bin/sh
# SPDX-License-Identifier: MIT
# Samples that vanish from streams that numpy makes: found with their size, and nothing else is.
# usage: cli_slip.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

find_python numpy
if [ -z "$python" ]; then
    skip "slips" "no python3 with numpy"
else
    PNR_LOG=info "$python" "$here/slip_numpy.py" "$bin" "$work" >"$work/out" 2>&1
    status=$?
    grep -q '^not ok' "$work/out" && status=1
    sed 's/^\(not \)\{0,1\}ok/# &/; /^1\.\./d' "$work/out"
    report $status "slips"
fi
plan
