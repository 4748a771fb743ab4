#!/bin/sh
# SPDX-License-Identifier: MIT
# Strong direct paths, in signals that numpy makes: outside of the range gate, and in real samples of a sonar.
# usage: cli_leak.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python numpy

# judged SCRIPT NAME: the script prints TAP
judged() {
    if [ -z "$python" ]; then
        skip "$2" "no python3 with numpy"
        return
    fi
    "$python" "$here/$1" "$bin" "$work" >"$work/out" 2>&1
    status=$?
    grep -q '^not ok' "$work/out" && status=1
    sed 's/^\(not \)\{0,1\}ok/# &/; /^1\.\./d' "$work/out"
    report $status "$2"
}

judged leak_numpy.py "echoes in the gate beside a direct path outside"
judged image_numpy.py "a direct path of 60 to 110 dB in the real samples of a sonar, and an echo beside it"
plan
