#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar-view under attack, with 50 clients, and its page in headless Chromium over the real chain.
# usage: interop_view.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"

if [ ! -x "$bin/pnradar-view" ]; then
    skip "pnradar-view" "not built here (libmicrohttpd-dev, libjs-chart.js)"
    plan
    exit 0
fi

# --- attacks ---

find_python json
"$bin/pnradar-view" --listen 127.0.0.1:0 "ipc://$work/socket" >"$work/url" 2>"$work/err" &
view=$!
trap 'kill $view 2>/dev/null; rm -rf "$work"' EXIT
for _ in $(seq 200); do
    [ -s "$work/url" ] && break
    sleep 0.05
done
client() {
    case=$1
    shift
    "$python" "$here/../tools/view_client.py" "$case" "$(cat "$work/url")" "$@" >"$work/out" 2>"$work/err"
}
client storm $view 10000
report $? "10,000 connections one after the other: $(cat "$work/out")"
client slow
report $? "requests that arrive byte by byte are closed, others are answered: $(cat "$work/out")"
client refused
report $? "other methods, other sites, paths upwards, an address of 1 MB and junk are refused"
kill $view
wait $view 2>/dev/null

# --- clients, and the page ---

# run PROGRAM ARGUMENT...: a test in Python; its numbers follow ours
run() {
    "$python" "$here/$1" "$bin" "$work" >"$work/tap" 2>"$work/err" || echo "not ok 0 - $1 ends" >>"$work/tap"
    while IFS= read -r line; do
        case $line in
            'ok '* | 'not ok '*)
                n=$((n + 1))
                echo "$line" | sed "s/ok [0-9]* /ok $n /"
                ;;
            1..*) ;;
            *) echo "$line" ;;
        esac
    done <"$work/tap"
    grep -q '^not ok' "$work/tap" && sed 's/^/# /' "$work/err" | tail -n 20
}

find_python selenium
if [ -z "$python" ] || ! command -v chromedriver >/dev/null; then
    skip "the page in a browser" "no chromium-driver or python3-selenium"
    plan
    exit 0
fi
run view_crowd.py
run view_frames.py
run view_browser.py
plan
