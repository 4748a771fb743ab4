#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar-bench accuracy: its table, and its bounds against numpy's.
# usage: cli_accuracy.sh BIN_FOLDER; prints TAP.
set -u
bench=$1/pnradar-bench
tests=$(dirname "$0")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export PNR_LOG=quiet
bad=0

# say GOOD NUMBER NAME
say() {
    if [ "$1" -eq 0 ]; then echo "ok $2 - $3"; else echo "not ok $2 - $3" && bad=1; fi
}

if ! "$bench" chain -n 127 -s engine.name=cpu --runs 10 >/dev/null 2>&1; then
    echo "ok 1 - accuracy # SKIP no cpu engine"
    echo "1..1"
    exit 0
fi

"$bench" --csv accuracy -n 201 --runs 10 -s engine.name=cpu >"$work/table" 2>"$work/err" &&
    awk -F, '/^#/ { next } !width { width = NF; next } NF != width { bad = 1 } { rows++ }
        $1 >= 20 && !($3 == 0 && $4 < 1.1 && $5 < 0.3 && $5 > -0.3 && $9 < 0.1 && $9 > -0.1) {
            bad = 1 }
        END { exit !(rows == 26 && !bad) }' "$work/table"
say $? 1 "accuracy: thirteen ratios, both oversamples, near the bound from 20 dB"
"$bench" accuracy -n 201,202 -s engine.name=cpu >/dev/null 2>&1
[ $? -eq 64 ]
say $? 2 "accuracy takes one size"

python=
for candidate in python3 /usr/bin/python3; do
    "$candidate" -c 'import numpy' 2>/dev/null && python=$candidate && break
done
if [ -z "$python" ]; then
    echo "ok 3 - the bounds are numpy's # SKIP no python3 with numpy"
else
    "$bench" serve -n 201 --dump "$work/code" -s engine.name=cpu </dev/null >/dev/null 2>"$work/err" &&
        "$python" "$tests/bound_numpy.py" "$work/code" 201 "$work/table" >"$work/out" 2>&1
    status=$?
    sed 's/^\(not \)\{0,1\}ok/# &/; /^1\.\./d' "$work/out"
    say $status 3 "the bounds are numpy's, from the samples alone"
fi
echo "1..3"
exit "$bad"
