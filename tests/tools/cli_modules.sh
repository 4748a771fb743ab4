#!/bin/sh
# SPDX-License-Identifier: MIT
# Modules of sources: one that is missing, broken or of another version is named with the input and the way out.
# usage: cli_modules.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

mkdir -p "$work/alone" "$work/modules"
cp "$pnradar" "$work/alone"
set -- -s source.rate_hz=1e6 -s publisher.endpoint= "soapy:driver=none"

# No module lies beside this program.
status 69 "$work/alone/pnradar" "$@" && says 'soapy:driver=none' && says 'source-soapy.so' &&
    says 'where libsoapysdr-dev is installed'
report $? "a missing module is named with the package that brings it"

export PNR_MODULE_PATH="$work/modules"
echo none >"$work/modules/source-soapy.so"
status 69 "$pnradar" "$@" && says 'soapy:driver=none' && says 'file too short'
report $? "what is no module is refused with the loader's reason"

# The module of an engine has no source.
ln -sf "$bin/../tests/engines/fault.so" "$work/modules/source-soapy.so"
status 69 "$pnradar" "$@" && says 'of interface 0, this program needs [0-9]* *: install both of one version'
report $? "a module without this program's interface is refused with both numbers"
plan
