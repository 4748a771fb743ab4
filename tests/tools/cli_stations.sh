#!/bin/sh
# SPDX-License-Identifier: MIT
# The stations of config/ run as their first lines say and find their targets; twelve seeds of one stream that numpy
# made are decoded at once.
# usage: cli_stations.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
top=$(cd "$here/../.." && pwd)
PATH=$bin:$PATH
for file in hf-network gps-rtlsdr channel-sounder; do
    printf '\n[publisher]\nendpoint =\n' | cat "$top/config/$file.conf" - >"$work/$file.conf"
done

# command NAME N: the n-th command of the head of a configuration, in one line
command_of() {
    sed -n '1,/^\[/s/^#     //p' "$top/config/$1.conf" | sed -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}' | sed -n "$2p"
}
# perform NAME N [EDIT]: runs it, edited by sed; stdout in $work/out
perform() {
    (cd "$work" && command_of "$1" "$2" | sed -e "${3:-}" >line && sh -e ./line) >"$work/out" 2>"$work/err"
}

find_python numpy
if [ -z "$python" ]; then
    skip "stations" "no Python with numpy"
    plan
    exit
fi
judge() {
    "$python" "$here/stations_numpy.py" "$@" >"$work/judge" 2>&1 || { cat "$work/judge"; false; }
}

# station NAME N_RESULTS METRES: its first two commands; each target is in each result, within 5 sigma and so many metres
station() {
    perform "$1" 1 && perform "$1" 2 's/--print table/--print csv/' && judge targets "$work/$1.conf" "$work/out" "$2" "$3"
    report $? "$1: the commands of its head run and find its targets"
}
station hf-network 5 0
station gps-rtlsdr 4 0
station channel-sounder 10 0.5

# --- twelve transmitters at once ---

perform hf-network 3 && { ! works cpu || grep -q '^cpu *would take .* 1 transform a look forward, 1 x 12 back' "$work/out"; }
report $? "twelve codes take one forward transform and twelve products"
judge make "$work/network.cf32" && perform hf-network 2 's/--print table/--print csv/' && judge twelve "$work/out"
report $? "twelve seeds of a stream that numpy made, each at its delay in each result"
if [ -e "$bin/../lib/pnradar/recorder-sqlite.so" ] && command -v sqlite3 >/dev/null; then
    mkdir "$work/hf"
    here_not_data="s|/data/hf/|$work/hf/|g"
    perform hf-network 4 "s/^receiver/cat network.cf32/; s/rotate_s=3600/rotate_s=1.5/; $here_not_data" &&
        perform hf-network 5 "$here_not_data" && [ "$(wc -l <"$work/out")" -eq 12 ] && grep -q '^seed 12|2|' "$work/out" &&
        [ "$(find "$work/hf" -name "*.sigmf-meta" | wc -l)" -eq 2 ] && cat "$work"/hf/*.sigmf-data | cmp - "$work/network.cf32"
    report $? "hf-network records hours of samples, and results that answer SQL"
else
    skip "hf-network records" "no sqlite3"
fi
perform gps-rtlsdr 1 && perform gps-rtlsdr 4 's/--print csv/--print csv -s doppler.min_hz=-4e3 -s doppler.max_hz=3e3/' &&
    [ "$(cut -d, -f14 "$work/out" | sort | uniq -c | awk '$2 ~ /^(3|17|31)$/ && $1 == 4' | wc -l)" -eq 3 ] &&
    [ "$(wc -l <"$work/out")" -eq 13 ]
report $? "gps-rtlsdr finds three satellites among all 32 codes, and no other"
perform channel-sounder 3 && [ -s "$work/channel.npy" ]
report $? "channel-sounder writes every cell"
plan
