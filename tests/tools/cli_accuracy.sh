#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the table of pnradar-bench accuracy, and compares its bounds with those of numpy.
# usage: cli_accuracy.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
bench=$bin/pnradar-bench

if ! "$bench" chain -n 127 -s engine.name=cpu --runs 10 >/dev/null 2>&1; then
    skip accuracy "no cpu engine"
    plan
    exit 0
fi

"$bench" --csv accuracy -n 201 --runs 10 -s engine.name=cpu >"$work/table" 2>"$work/err" &&
    awk -F, '/^#/ { next } !width { width = NF; next } NF != width { bad = 1 } { rows++ }
        $1 >= 20 && !($3 == 0 && $4 < 1.1 && $5 < 0.3 && $5 > -0.3 && $9 < 0.1 && $9 > -0.1) {
            bad = 1 }
        END { exit !(rows == 26 && !bad) }' "$work/table"
report $? "accuracy: thirteen ratios, both oversamples, near the bound from 20 dB"
"$bench" accuracy -n 201,202 -s engine.name=cpu >/dev/null 2>&1
[ $? -eq 64 ]
report $? "accuracy takes one size"

find_python numpy
if [ -z "$python" ]; then
    skip "the bounds are numpy's" "no python3 with numpy"
else
    "$bench" serve -n 201 --dump "$work/code" -s engine.name=cpu </dev/null >/dev/null 2>"$work/err" &&
        "$python" "$here/bound_numpy.py" "$work/code" 201 "$work/table" >"$work/out" 2>&1
    status=$?
    sed 's/^\(not \)\{0,1\}ok/# &/; /^1\.\./d' "$work/out"
    report $status "the bounds are numpy's, from the samples alone"
fi
plan
