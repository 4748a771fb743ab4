#!/bin/sh
# SPDX-License-Identifier: MIT
# The packets of VITA-49 that the tests send, as tshark reads them.
# usage: interop_vrt.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"
find_python numpy
if [ -z "$python" ] || ! command -v tshark >/dev/null 2>&1; then
    skip "VITA-49" "no tshark, or no Python with numpy: tools/setup interop"
    plan
    exit
fi
# fields FIELD...: of all packets, a line each
fields() {
    options=''
    for field in "$@"; do options="$options -e $field"; done
    # shellcheck disable=SC2086 # a list of options
    tshark -r "$work/vrt.pcap" -d udp.port==4991,vrt -T fields $options 2>"$work/err"
}
"$bin/pnradar-echo" -s source.rate_hz=96000 -s code.chip_rate_hz=96e3 -s echo.periods=100 "$work/echo.ci16" 2>"$work/err" &&
    "$python" "$here/../tools/udp_peer.py" packets "$work" >"$work/stated" &&
    fields vrt.type vrt.sid vrt.seq vrt.ts_int vrt.ts_frac_picosecond >"$work/out" && cmp "$work/stated" "$work/out"
report $? "type, stream, packet count and time of the test's packets are what tshark reads"
fields vrt.data >"$work/out" && "$python" - "$work" <<'END'
import sys
import numpy as np
iq = np.fromfile(sys.argv[1] + "/echo.ci16", "<i2")
lines = open(sys.argv[1] + "/out").read().split("\n")
assert np.array_equal(np.frombuffer(bytes.fromhex(lines[0]), ">i2"), iq[:160])
END
report $? "the payload that tshark reads is big-endian samples"
plan
