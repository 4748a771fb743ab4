#!/bin/sh
# SPDX-License-Identifier: MIT
# The whole program in random scenes of several echoes: errors are what the sigmas state. numpy is not needed.
# usage: cli_answers.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

answers() { # rows of the table, what they show, options
    only=$1 what=$2
    shift 2
    "$python" "$here/answer_table.py" "$bin" --dwells 200 --scenes 10 --check --only "$only" "$@" >"$work/out" 2>&1
    status=$?
    sed 's/^/# /' "$work/out"
    report $status "$what"
}

find_python json
if [ -z "$python" ]; then
    skip "random scenes" "no python3"
else
    answers "white | 1 looks | 1 | 8 " "eight echoes in one row"
    answers "white | 16 rows | 1 | 8 " "eight echoes in Doppler rows"
    answers "white | 16 rows | 10 | 4 " "four echoes of ten codes in Doppler rows"
    answers "white | 1 looks | 10 | 8 " "eight echoes of ten codes in one row, the weak ones hidden" --scenes 40
    answers "white | 16 looks | 1 | 2 " "two echoes in powers of 16 looks"
    answers "white | 16 looks | 1 | 8 " "eight echoes in powers of 16 looks" --scenes 50
    answers "| complex | white | 16 looks | 1 | 4 " "the mean SNR of four echoes in powers of 16 looks" \
        --dwells 60 --scenes 60 --snr-limit 0.15
    answers "| 4 | rectangular | complex | coloured | 1 looks | 1 | 1 " "one echo in filtered noise"
    answers "| complex | coloured | 1 looks | 1 | 8 " "eight echoes in filtered noise"
    answers "| complex | coloured | 16 rows | 1 | 4 " "four echoes in filtered noise, in Doppler rows"
    answers "| real | coloured | 16 rows | 1 | 4 " "four echoes in filtered noise, in Doppler rows of real samples"
fi
plan
