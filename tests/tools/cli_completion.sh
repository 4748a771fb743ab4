#!/bin/sh
# SPDX-License-Identifier: MIT
# The completion of bash and zsh: every key and option is there, and TAB completes what a user types.
# usage: cli_completion.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

complete=$bin/../complete

# words NAME: what the completion of bash has for a key, an option or a program
words() {
    bash -c '. "$1" && _pnradar_words "$2"' words "$complete/bash" "$1" | tr ' ' '\n' | sort
}

"$pnradar" --print-config | awk -F' *=' '
    /^\[/ { section = $1; gsub(/[][]/, "", section) }
    /^[a-z]/ { print section "." $1 "=" }' | sort >"$work/keys"
words keys | grep -v '\.1\.' >"$work/out"
[ "$(wc -l <"$work/keys")" -gt 80 ] && diff "$work/keys" "$work/out" >"$work/err"
report $? "every key is completed"

missing=''
for program in pnradar pnradar-echo pnradar-listen pnradar-plan pnradar-bench pnradar-keys pnradar-view pnradar-archive; do
    [ -x "$bin/$program" ] || continue
    words "$program:" >"$work/out"
    for option in $("$bin/$program" --help | sed -n 's/^  \(-[a-zA-Z],\|   \) \(--[a-z-]*\).*/\2/p'); do
        grep -qx -e "$option" "$work/out" || missing="$missing $program $option"
    done
    grep -qx -e --set "$work/out" || missing="$missing $program --set"
done
[ -z "$missing" ] || echo "# missing: $missing"
[ -z "$missing" ]
report $? "every option of every program is completed"

words engine.name | tr '\n' ' ' >"$work/out"
[ "$(cat "$work/out")" = "auto cpu cuda reference " ]
report $? "a key has its words"

# What is typed, a TAB, and the line that it becomes.
cat >"$work/cases" <<'END'
pnradar --pri|pnradar --print
pnradar --print t|pnradar --print table
pnradar --print=j|pnradar --print=json
pnradar -s engine.na|pnradar -s engine.name=
pnradar -s engine.name=cu|pnradar -s engine.name=cuda
pnradar --set=engine.wait=sp|pnradar --set=engine.wait=spin
pnradar -s code.3.type=gps-l1|pnradar -s code.3.type=gps-l1ca
pnradar -s target.2.ra|pnradar -s target.2.range_m=
pnradar --set=code.12.ta|pnradar --set=code.12.taps=
pnradar-plan --measure-pulse tw|pnradar-plan --measure-pulse two.ci16
pnradar-archive -o tw|pnradar-archive -o two.ci16
pnradar -c conf/my|pnradar -c conf/my.conf
pnradar two|pnradar two.ci16
pnradar-echo --trans|pnradar-echo --transmit
pnradar-bench meth|pnradar-bench methods
pnradar-listen --curve-key tw|pnradar-listen --curve-key tw
pnradar-listen --map ti|pnradar-listen --map time
END
mkdir -p "$work/typed/conf" "$work/functions"
touch "$work/typed/conf/my.conf" "$work/typed/two.ci16"
cp "$complete/zsh" "$work/functions/_pnradar"
cut -d'|' -f2 "$work/cases" >"$work/wanted"
find_python pty

# completes SHELL SETUP: each case becomes what it should
completes() {
    (cd "$work/typed" && cut -d'|' -f1 "$work/cases" | "$python" "$here/completion_pty.py" "$1" "$2") 2>"$work/err" |
        sed 's/ *$//' >"$work/out"
    diff "$work/wanted" "$work/out" >>"$work/err"
}

if [ -z "$python" ]; then
    skip "TAB in bash" "no python3"
else
    completes "bash --norc --noprofile -i" ". '$complete/bash'"
    report $? "TAB in bash"
fi
if [ -z "$python" ] || ! command -v zsh >/dev/null; then
    skip "TAB in zsh" "no zsh"
else
    completes "zsh -f -i" "PS1='READY> '; fpath=('$work/functions' \$fpath); autoload -U compinit; compinit -u -d '$work/dump'"
    report $? "TAB in zsh"
fi
plan
