# SPDX-License-Identifier: MIT
# What shell tests share; a test sources it when it has $pnradar and $work, its own folder.
# shellcheck shell=sh
# shellcheck disable=SC2154 # both are the test's

n=0

# report STATUS NAME: one TAP line; what the last program said where it failed
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

# works ENGINE: is it here?
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
