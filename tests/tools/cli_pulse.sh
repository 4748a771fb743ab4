#!/bin/sh
# SPDX-License-Identifier: MIT
# The four pulses of a chip: signals that numpy makes in time.
# usage: cli_pulse.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

find_python numpy
judged "the pulses are numpy's" pulse_numpy.py "$bin" "$work"
plan
