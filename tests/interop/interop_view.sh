#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of pnradar-view in headless Chromium, over the real chain.
# usage: interop_view.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"
find_python selenium

if [ -z "$python" ] || ! command -v chromedriver >/dev/null || [ ! -x "$bin/pnradar-view" ]; then
    skip "the page in a browser" "no chromium-driver, python3-selenium or pnradar-view"
    plan
    exit 0
fi
"$python" "$here/view_browser.py" "$bin" "$work"
