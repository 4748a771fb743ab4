#!/bin/sh
# SPDX-License-Identifier: MIT
# Samples that vanish from streams that numpy makes: found with their size, and nothing else is.
# usage: cli_slip.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

find_python numpy
PNR_LOG=info
judged "slips" slip_numpy.py "$bin" "$work"
plan
