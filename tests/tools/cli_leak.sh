#!/bin/sh
# SPDX-License-Identifier: MIT
# Strong direct paths, in signals that numpy makes: outside of the range gate, and in real samples of a sonar.
# usage: cli_leak.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python numpy

judged "echoes in the gate beside a direct path outside" leak_numpy.py "$bin" "$work"
judged "a direct path of 60 to 110 dB in the real samples of a sonar, and an echo beside it" image_numpy.py "$bin" "$work"
plan
