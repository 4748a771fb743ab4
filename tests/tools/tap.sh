# SPDX-License-Identifier: MIT
# The head of every shell test: `. "$(dirname "$0")/tap.sh"` with the folder of the programs as $1.
# It gives $bin, $here (the folder of this file) and $work, a folder that is removed at the end.
# shellcheck shell=sh
# shellcheck disable=SC2034 # the tests use the variables
set -u
bin=$(cd "$1" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
pnradar=$bin/pnradar
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export PNR_LOG=quiet
n=0

# report STATUS NAME: one TAP line; when the test failed, also the last program's output
report() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        cat "$work/out" "$work/err" 2>/dev/null | sed 's/^/# /' | head -n 10
    fi
}

# skip NAME REASON
skip() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

# plan: the last line of TAP
plan() {
    echo "1..$n"
}

# program ARGUMENT...: the program of `status`; a test may define another
program() {
    "$@"
}

# status EXPECTED ARGUMENT...: runs `program`; stdout in $work/out, stderr in $work/err
status() {
    want=$1
    shift
    program "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ "$got" -eq "$want" ] || { echo "# $*: status $got, not $want: $(cat "$work/err")"; false; }
}

# says PATTERN: on stderr
says() {
    grep -q -e "$1" "$work/err" || { echo "# no '$1' in: $(cat "$work/err")"; false; }
}

# hear EXPECTED LISTENER_ARGUMENT... -- PUBLISHER_ARGUMENT...: the listener's status when pnradar
# publishes echo.ci16 by radar.conf; stdout in $work/out, stderr in $work/err
hear() {
    want=$1
    shift
    heard=''
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        heard="$heard $1"
        shift
    done
    [ $# -gt 0 ] && shift
    # shellcheck disable=SC2086 # a list of options
    PNR_LOG=info "$bin/pnradar-listen" -c "$work/radar.conf" --timeout 60 $heard \
        >"$work/out" 2>"$work/err" </dev/null &
    listener=$!
    "$pnradar" -c "$work/radar.conf" -s publisher.wait_s=30 "$@" "$work/echo.ci16" 2>"$work/publisher"
    wait $listener
    got=$?
    [ $got -eq "$want" ] || { echo "# status $got, not $want: $(cat "$work/err" "$work/publisher")"; false; }
}

# find_python MODULE...: $python, one that has these modules; empty: none
find_python() {
    python=
    for candidate in python3 /usr/bin/python3; do
        "$candidate" -c "import $*" 2>/dev/null && python=$candidate && break
    done
}

# judged NAME SCRIPT ARGUMENT...: one test: a script for $python in $here prints its cases as TAP. Skipped if no python
# was found.
judged() {
    name=$1 script=$2
    shift 2
    if [ -z "$python" ]; then
        skip "$name" "no python3 with numpy"
        return
    fi
    "$python" "$here/$script" "$@" >"$work/out" 2>&1
    status=$?
    grep -q '^not ok' "$work/out" && status=1
    sed 's/^\(not \)\{0,1\}ok/# &/; /^1\.\./d' "$work/out"
    report $status "$name"
}

# value KEY [FILE]: the first member of this name in printed JSON with one member a line; $work/out
value() {
    sed -n 's/^ *"'"$1"'": "\{0,1\}\([^",]*\).*$/\1/p' "${2:-$work/out}" | head -n 1
}

# works ENGINE: on this machine
works() {
    "$pnradar" --list-engines | grep -q "^$1 *works"
}

# echoes FILE PROGRAM: each echo of csv results goes through the awk program, its columns as f("name");
# the program counts `good` and `bad`: good ones are needed, and no bad ones
echoes() {
    awk -F, 'function f(name) { return $at[name] }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["echo"] == "" { results++; next }
        $at["echo"] == "1" { results++ }
        '"$2"'
        END { exit !(good > 0 && bad == 0) }' "$1"
}

# until_true COMMAND...: waits for it, five minutes at most
until_true() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 3000 ] || { echo "# never: $*"; return 1; }
        sleep 0.1
    done
}
has_lines() { # FILE LINES
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}
# await FILE LINES: until it has them
await() {
    until_true has_lines "$1" "$2"
}

# radar_station: prints the configuration of a radar of 127 samples that publishes nothing, with 100 periods of an
# echo; a ring and an engine may follow
radar_station() {
    cat <<END
[source]
rate_hz = 1000000
format = ci16
[code]
type = m-sequence
degree = 7
[publisher]
endpoint =
[echo]
periods = 100
noise_rms = 0.05
[target.1]
range_m = 6000
amplitude = 0.1
END
}

# sonar_station: prints the configuration of a small sonar that publishes nothing; its rate is that of the input
sonar_station() {
    cat <<END
[code]
type = m-sequence
degree = 7
chip_rate_hz = 48e3
[dwell]
periods = 8
combine = coherent
[radar]
speed_mps = 1500
[publisher]
endpoint =
END
}

# columns FILE: csv without latency and flags
columns() {
    cut -d, -f1-7,9-11,13- "$1"
}
