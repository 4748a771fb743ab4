#!/bin/sh
# SPDX-License-Identifier: MIT
# The manuals: their examples run and fit on a terminal, and each option of a program is in its manual.
# usage: cli_manual.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
PATH=$bin:$PATH

# examples PAGE: the commands of its EXAMPLES, one a line
examples() {
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$1" | awk '
        /^\.Dl / { sub(/^\.Dl (\$ )?/, ""); print; next }
        /^\.Bd/ { inside = 1; next }
        /^\.Ed/ { inside = 0 }
        inside { sub(/^\$ /, ""); sub(/\\e$/, "\\"); print }' | sed ':a; /\\$/ { N; s/\\\n *//; ba }' |
        grep -E '(^| )(pnradar|pnradar-[a-z]+) |^[a-z]+='
}

# shorten: less time for the same options; a pipe in place of a terminal, no GPU, no other machine
shorten() {
    sed -e 's/--seconds [0-9]*/--seconds 0.2 -s ring.bytes=256K/; s/2^28/2^12/; s/2^20/2^12/; s/engine.name=cuda/engine.name=cpu/' \
        -e 's/--live //; /10\.0\.0\.7/d; s/62ms/1ms/; s/hf-sounder\(.*\)pace=real-time/hf-sounder\1pace=fast/' \
        -e 's/-n 2^10-1 accuracy/-n 63 accuracy/; s/-n 127 \(.*\)periods=8/-n 15 \1periods=2 -s engine.batch=64/; s/-bench/& --runs 10/' \
        -e 's/ methods\| stream\| seed / -n 2^10&/; s/ scene -n 8\(.* complex\)/ scene --seconds 0.05 -n 1\1 white/; s/ latency/& --seconds 0.1/'
}

# The configurations publish at an address of this test.
mkdir "$work/config"
for file in "$here"/../../config/*.conf; do
    case $file in */pnradar.conf) continue ;; esac
    printf '\n[publisher]\nendpoint = ipc://%s/socket\n' "$work" | cat "$file" - >"$work/config/${file##*/}"
done

# runs PAGE MANY: its examples, MANY commands or more, in their order and each with the status that it should have
runs() {
    examples "$here/../../$1" | shorten | awk '
        /&$/ { print; next }
        { status = /--strict/ ? 3 : 0; print; printf "[ $? -eq %d ] || { echo line $LINENO; bad=1; }\n", status }
        END { print "wait; exit $bad" }' >"$work/examples"
    [ "$(grep -c '^\(pnradar\|lost=\)' "$work/examples")" -ge "$2" ] &&
        (cd "$work" && timeout 600 bash ./examples) >"$work/out" 2>"$work/err" </dev/null
    report $? "the examples of $1 run"
}

runs src/pnradar.1 8
runs src/pnradar.7 7
runs tools/pnradar-echo.1 2
runs tools/pnradar-plan.1 3
if /usr/bin/python3 -c 'import distributed' 2>/dev/null; then
    runs tools/pnradar-archive.1 2
else
    skip "the examples of tools/pnradar-archive.1 run" "python3-distributed is not installed"
fi
runs tools/pnradar-listen.1 6
if [ -s "$work/run.png" ] && [ -s "$work/map.png" ]; then true; else false; fi
report $? "the pictures of the examples are there"
if works cpu; then
    runs tools/pnradar-bench.1 9
else
    skip "the examples of tools/pnradar-bench.1 run" "no cpu engine"
fi

# Text begins in column 5, and displays that are indented in column 11, as mandoc and groff render them.
for page in "$here"/../../src/*.[1-9] "$here"/../../src/*/*.[1-9] "$here"/../../tools/*.[1-9]; do
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$page" | awk -v page="${page##*/}" '
        /^\.Bd/ { inside = 1; column = /indent/ ? 11 : 5; next }
        /^\.Ed/ { inside = 0 }
        inside || sub(/^\.Dl /, "") {
            gsub(/\\e/, "\\"); gsub(/\\[-& ]/, "-")
            if (length($0) + (inside ? column : 11) > 80) print "# " page ": " $0
        }'
done >"$work/wide"
cat "$work/wide"
[ ! -s "$work/wide" ]
report $? "no line of an example is wider than 80 columns"

missing=''
for page in "$here"/../../src/pnradar.1 "$here"/../../tools/pnradar-*.1; do
    program=$(basename "$page" .1)
    "$bin/$program" --help | sed '/^Common options/q' | sed -n 's/^  \(-[a-zA-Z],\|   \) -\(-[a-z-]*\).*/\2/p' >"$work/options"
    while read -r option; do
        grep -q -e "^\.It .*Fl $option\>" "$page" || missing="$missing $program:-$option"
        sed '/^\.Sh DESCRIPTION/q' "$page" | grep -q -e "Fl $option\>" -e 'Op Ar option' ||
            missing="$missing $program:-$option(SYNOPSIS)"
    done <"$work/options"
done
[ -z "$missing" ] || echo "# missing:$missing"
[ -z "$missing" ]
report $? "each option is in the manual of its program"
plan
