#!/bin/sh
# SPDX-License-Identifier: MIT
# The two lints of our own refuse what is planted: an upward include, and a comment that opens badly.
# usage: cli_lint.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

mkdir -p "$work/src/ring" "$work/cuda/base" "$work/tools/common" "$work/tests/ring"

# plant FILE LINE: the only file of a tree
plant() {
    find "$work/src" "$work/cuda" "$work/tools" "$work/tests" -type f -exec rm {} +
    printf '%s\n' "$2" >"$work/$1"
}

# is LINT WORD NAME: the lint accepts or refuses what is planted, and names its file when it refuses
is() {
    "$1" "$work" >"$work/out" 2>"$work/err"
    code=$?
    case $2 in
    accepted) [ $code -eq 0 ] && [ ! -s "$work/out" ] ;;
    refused) [ $code -ne 0 ] && grep -q "^$planted:1: " "$work/out" ;;
    esac
    report $? "$3"
}

planted=src/ring/read.c
plant $planted '#include "base/error.h"'
is tests/layers accepted "an include runs downwards"
plant $planted '#include "pipeline/pipeline.h"'
is tests/layers refused "an include runs upwards"
plant $planted '#include "cuda/base/pnr.h"'
is tests/layers refused "src includes cuda"
mkdir -p "$work/src/source/soapy"
planted=src/source/soapy/soapy.c
plant $planted '#include "source/kind.h"'
is tests/layers accepted "a module of a source includes the room of sources"
plant $planted '#include "ring/ring.h"'
is tests/layers refused "a module of a source includes upwards"
planted=src/source/source.c
plant $planted '#include "source/soapy/soapy.h"'
is tests/layers refused "a source includes a module"
planted=src/ring/read.c

plant $planted '/* Finds the oldest window. */'
is tests/prose accepted "a comment opens with its verb"
plant $planted 'int n; /* Of the oldest window. */'
is tests/prose refused "a comment in C opens with Of"
plant $planted '// Who reads it.'
is tests/prose refused "a comment in C of one line opens with Who"
plant $planted "/* $(printf '%94s' x | tr ' ' x) */"
is tests/prose accepted "a comment fills 100 columns"
plant $planted "/* $(printf '%95s' x | tr ' ' x) */"
is tests/prose refused "a comment of 101 columns"
planted=tests/ring/test.sh
plant $planted '# What has come.'
is tests/prose refused "a comment in shell opens with What has"
plant $planted 'n=0 #'' Those are counted.'
is tests/prose refused "a comment after a command opens with Those"

tests/layers >"$work/out" 2>"$work/err"
report $? "no include of this tree runs upwards"
plan
