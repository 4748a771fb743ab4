#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/setup and tools/debian/build name each step before it begins. Programs that do nothing stand for apt, dpkg and lintian.
# usage: cli_setup.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
top=$(cd "$here/../.." && pwd)
mkdir "$work/bin"
PATH=$work/bin:$PATH

# stand_in NAME LINE: a program of one line
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# --- packages ---

stand_in id 'echo 0'
stand_in pkg-config 'exit 1'
stand_in apt-get 'echo noise; echo "begins: $*" >&3'
status 0 "$top/tools/setup" build 3>"$work/steps" && [ ! -s "$work/err" ] && [ "$(wc -l <"$work/out")" -eq 2 ] &&
    [ "$(head -n 1 "$work/out")" = 'setup: apt-get update' ] &&
    grep -q '^setup: apt-get install .*libzmq3-dev .*libfftw3-dev' "$work/out" &&
    [ "$(wc -l <"$work/steps")" -eq 2 ]
report $? "tools/setup: one line a step, and none of apt's"
stand_in apt-get 'echo "E: no network"; exit 100'
status 69 "$top/tools/setup" build && says 'E: no network' && says 'could not install: .*libzmq3-dev'
report $? "tools/setup: apt's reason, and the packages"

# --- make deb ---

stand_in dpkg-buildpackage 'echo noise; : >../pnradar_1.deb; : >../pnradar_1.changes'
stand_in lintian ''
cd "$top" && status 0 tools/debian/build 9.9 "$work/deb" && [ "$(cut -d ' ' -f 1-2 "$work/out" | head -n 3 | tr '\n' ,)" = 'deb: copy,deb: build,deb: check,' ] &&
    [ "$(tail -n +4 "$work/out")" = "$work/deb/pnradar_1.deb" ] && grep -q "the log is $work/deb/log" "$work/out"
report $? "make deb: one line a step, then the packages"
stand_in dpkg-buildpackage 'echo "cc1: broken"; exit 2'
status 1 tools/debian/build 9.9 "$work/deb" && says 'cc1: broken'
report $? "make deb: the end of the log when it fails"
plan
