#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints sample, range, its sigma and SNR of the strongest echo of each result, until the run ends.
# usage: echoes.sh [ENDPOINT [STREAM]]; pnradar-listen must be on the PATH.
pnradar-listen --format csv --stream "${2:-pnradar}" "${1:-tcp://127.0.0.1:5555}" | LC_ALL=C awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } # the header names the columns
    $at["echo"] == 1 {                                     # the strongest is the first
        printf "%s %.6g %.3g %.3g\n", $at["sample"], $at["range_m"], $at["range_sigma_m"], $at["snr_db"]
    }'
