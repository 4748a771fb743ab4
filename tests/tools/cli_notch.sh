#!/bin/sh
# SPDX-License-Identifier: MIT
# The removal of DC and of carriers: signals that numpy makes, and what is refused.
# usage: cli_notch.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

# refused WORDS SETTING...: a wrong configuration, and stderr says the words
refused() {
    words=$1
    shift
    for one; do
        shift
        set -- "$@" -s "$one"
    done
    status 78 "$pnradar" -s source.rate_hz=1e6 -s source.format=ci16 -s publisher.endpoint= "$@" - && says "$words"
}

refused 'window.notch = "12": must be a list' window.notch=12 &&
    status 78 "$pnradar" -s window.notch=12 --print-config && says 'window.notch = "12": must be a list' &&
    refused 'window.notch = "1e3+-5x"' window.notch=1e3+-5x &&
    refused 'window.notch = "5e3+-1,"' window.notch=5e3+-1, &&
    refused 'window.notch = "5e3+--1"' window.notch=5e3+--1
report $? "a list that is none"
refused 'beyond half of source.rate_hz' window.notch=600e3+-1
report $? "a notch that the samples do not hold"
refused 'needs doppler.step = whole' window.dc=remove doppler.max_hz=1000
report $? "DC between the harmonics of rotated rows"
refused 'remove the whole code' window.notch=0+-500e3
report $? "a notch that removes all"

find_python numpy
PNR_LOG=info
judged "echoes in spite of DC and carriers" notch_numpy.py "$bin" "$work"
plan
