#!/bin/sh
# SPDX-License-Identifier: MIT
# Modules: a source that is missing, broken or of another version is named with the input and the way out; engines of engine.name = auto.
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

conf=$here/../../config/demo.conf
"$bin/pnradar-echo" -c "$conf" -s echo.periods=10 "$work/echo.ci16" || exit 1
set -- -c "$conf" -s engine.name=reference -s recorder.format=digital-rf -s "recorder.samples=$work/channel" "$work/echo.ci16"
(unset PNR_MODULE_PATH && status 69 "$work/alone/pnradar" "$@" && says 'recorder.format = digital-rf' &&
    says 'recorder-digital-rf.so' && says 'libhdf5') &&
    ln -sf "$bin/../tests/engines/fault.so" "$work/modules/recorder-digital-rf.so" && status 69 "$pnradar" "$@" &&
    says 'recorder-digital-rf.so is of another version' && [ ! -e "$work/channel" ]
report $? "a recorder that is missing, or of another version, is refused with the package that brings it"
: >"$work/modules/cpu.so"
PNR_LOG=info status 69 "$work/alone/pnradar" -c "$conf" -s engine.name=auto "$work/echo.ci16" &&
    ! says 'not used: engine cuda' >/dev/null && says 'not used: engine cpu: .*file too short' &&
    PNR_LOG=debug status 69 "$work/alone/pnradar" -c "$conf" -s engine.name=auto "$work/echo.ci16" &&
    says 'not used: engine cuda: no module cuda.so was built or installed' &&
    cp "$work/modules/cpu.so" "$work/modules/cuda.so" &&
    PNR_LOG=info status 69 "$work/alone/pnradar" -c "$conf" -s engine.name=auto "$work/echo.ci16" &&
    says 'not used: engine cuda: .*file too short'
report $? "an engine that was never built is logged for debug alone, one that fails always"
plan
