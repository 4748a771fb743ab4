#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests pnradar-plan: its numbers against the formulas, its refusals, and its measurement.
# usage: cli_plan.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
plan=$bin/pnradar-plan

# near KEY FILE EXPECTED TOLERANCE: succeeds if the value of KEY is within TOLERANCE of EXPECTED
near() {
    awk -v got="$(value "$1" "$2")" -v want="$3" -v by="$4" \
        'BEGIN { exit !(got != "" && got - want <= by && want - got <= by) }'
}

base="-s code.type=m-sequence -s code.degree=10 -s source.rate_hz=1e6 -s source.format=ci16
      -s radar.path=two-way -s radar.carrier_hz=30e6 -s detector.oversample=1
      -s detector.pfa=1.023e-3 -s engine.name=reference"
# shellcheck disable=SC2086 # the list of options is meant to be split
set -- $base

status 0 "$plan" "$@" --json
report $? "a configuration is planned"
cp "$work/out" "$work/json"

near n_samples "$work/json" 1023 0 && near n_chips "$work/json" 1023 0
report $? "N is the code's length at one sample a chip"
near period_s "$work/json" 1.023e-3 1e-12 && near rate_hz "$work/json" 1e6 0
report $? "Tr = N / rate"
near gain_db "$work/json" 30.0988 1e-3
report $? "processing gain is 10 log10 N"
near resolution_m "$work/json" 149.896229 1e-6 && near spacing_m "$work/json" 149.896229 1e-6
report $? "range resolution is v / (2 chip rate)"
near unambiguous_m "$work/json" 153343.842267 1e-5
report $? "unambiguous range is v Tr / 2"
near span_hz "$work/json" 488.758553 1e-5 && near resolution_hz "$work/json" 977.517107 1e-5
report $? "Doppler span is 1 / (2 Tr), its resolution 1 / (K Tr)"
near wavelength_m "$work/json" 9.99308193 1e-7 && near span_mps "$work/json" 2442.1021 1e-3
report $? "radial velocity is Doppler times half the wavelength"
# A flat spectrum gives sigma = 0.390 / sqrt(S) samples of 149.9 m at the SNR S.
near sigma_15db_m "$work/json" 10.395 0.06 && near sigma_30db_m "$work/json" 1.8486 0.011
report $? "sigma of range follows the bandwidth of a flat spectrum"
near pfa_search "$work/json" 1.023e-3 1e-12 && near pfa_cell "$work/json" 1e-6 2e-8
report $? "the cell's false-alarm probability is the search's, shared by the cells"
# An echo of constant amplitude, one look, Pfa 1e-6: probability 0.5 needs 11.2 dB, and 0.9 needs
# 13.2 dB (J. Marcum, 1947).
near snr_50_db "$work/json" 11.2 0.1 && near snr_90_db "$work/json" 13.2 0.1
report $? "SNR for detection as in Marcum's tables"
near link_bytes_per_s "$work/json" 4e6 0
report $? "bytes a second on the link"
grep -q '"choice": "reference/' "$work/json" && grep -q '"name": "cpu"' "$work/json" &&
    grep -q '"name": "cuda"' "$work/json"
report $? "every engine is asked and the named one runs"

status 0 "$plan" "$@" -s dwell.periods=8 -s dwell.combine=coherent --json &&
    near gain_db "$work/out" 39.1297 1e-3 && near resolution_hz "$work/out" 122.189638 1e-5 &&
    near dwell_s "$work/out" 8.184e-3 1e-12
report $? "eight coherent periods: 9.03 dB more, an eighth of the Doppler resolution"
status 0 "$plan" "$@" -s dwell.periods=8 -s dwell.combine=incoherent --json &&
    near gain_db "$work/out" 30.0988 1e-3 && near looks "$work/out" 8 0 &&
    awk -v one="$(value snr_90_db "$work/json")" -v eight="$(value snr_90_db "$work/out")" \
        'BEGIN { exit !(one - eight > 5 && one - eight < 9.03) }'
report $? "eight looks need less SNR each, and more than an eighth"
status 0 "$plan" "$@" -s detector.cfar=ca -s detector.cfar_training=16 --json &&
    near cfar_loss_db "$work/out" 0.968 0.002 && near factor_db "$work/out" 12.375 0.002
report $? "CFAR of 32 cells at Pfa 1e-6: 32 (1e6^(1/32) - 1), and 0.97 dB lost"
status 0 "$plan" "$@" -s detector.cfar=go --json && near edge_ratio "$work/out" 17.5 0.1
report $? "GO with 16 cells a side at Pfa 1e-6: 17.5 times as many false alarms at an edge"
status 0 "$plan" "$@" -s window.filter=least-squares --json &&
    near filter_loss_db "$work/out" 3.006 0.002 && near condition "$work/out" 1024 1
report $? "least squares over all lags of an m-sequence: 2 N / (N + 1), condition N + 1"
status 78 "$plan" "$@" -s window.filter=least-squares -s source.rate_hz=4092000 \
    -s code.chip_rate_hz=1023000 --json && grep -q 'condition number' "$work/err"
report $? "band-limited chips of four samples leave nothing to solve with: refused in words"
status 0 "$plan" "$@" -s dwell.combine=doppler -s dwell.periods=16 -s dwell.taper=hann \
    -s dwell.clutter=remove -s doppler.min_hz=-4e3 -s doppler.max_hz=4e3 --json
report $? "a Doppler search is planned"
cp "$work/out" "$work/doppler"
# A row is 61.095 Hz, and 65 rows fit into 4 kHz.
near n_rows "$work/doppler" 131 0 && near last_row_hz "$work/doppler" 3971.163 1e-3 &&
    near n_hypotheses "$work/doppler" 33 0 && near n_cells "$work/doppler" 134013 0 &&
    near map_bytes "$work/doppler" 536052 0
report $? "its rows are multiples of 1 / (K Tr), its rotations quarters of 1 / Tr"
near rotation_loss_db "$work/doppler" 0.2244 1e-4 && near row_loss_db "$work/doppler" 1.4238 1e-2 &&
    near taper_loss_db "$work/doppler" 1.7609 1e-4
report $? "losses of quarter bins and of Hann's window"
near blind_hz "$work/doppler" 977.517107 1e-5 && near blind_mps "$work/doppler" 4884.204 1e-2 &&
    near last_row_mps "$work/doppler" 19842.08 0.01
report $? "velocities are Doppler times half the wavelength"
# c / (4 * 16 periods * 1023 samples), in m/s
near half_sample_mps "$work/doppler" 4578.9415 1e-3 && near walk_samples "$work/doppler" 2.16667 1e-4 &&
    grep -q '"resampled": "yes"' "$work/doppler" && grep -q '"resampled": "no"' "$work/json"
report $? "the speed that stretches the code by half a sample"
awk -v got="$(value input_snr_90_db "$work/doppler")" -v snr="$(value snr_90_db "$work/doppler")" \
    'BEGIN { off = got - (snr - 30.0988 - 12.0412 + 1.7609); exit !(off < 1e-3 && off > -1e-3) }'
report $? "the taper costs its loss of the coherent gain"
status 0 "$plan" "$@" -s radar.speed_mps=1500 -s radar.carrier_hz=10e3 -s dwell.combine=doppler \
    -s dwell.periods=16 -s source.rate_hz=48e3 -s doppler.min_hz=-20 -s doppler.max_hz=20 --json &&
    grep -q '"resampled": "yes"' "$work/out" && near walk_samples "$work/out" 28.8 1e-6 &&
    near n_hypotheses "$work/out" "$(value n_rows "$work/out")" 0
report $? "a sonar's codes are resampled, row by row"
# The value is from numpy: sum over p of exp(i pi x) sinc(2.4 x), x = (p + 0.5) / 16 - 0.5.
near row_loss_db "$work/out" 7.507 0.02
report $? "half-way between its rows an echo walks, too"
status 0 "$plan" "$@" -s dwell.combine=incoherent -s dwell.periods=4 -s doppler.min_hz=-14e3 \
    -s doppler.max_hz=14e3 -s doppler.step=half -s code.1.degree=10 -s code.2.taps=10,9,8,5 --json &&
    near n_rows "$work/out" 59 0 && near n_codes "$work/out" 2 0 &&
    near looks "$work/out" 4 0 && near rotation_loss_db "$work/out" 0.9121 1e-3 &&
    near dwell_s "$work/out" 4.092e-3 1e-9
report $? "codes, rotations and looks make one search"
status 78 "$plan" "$@" -s dwell.combine=doppler -s dwell.periods=10 &&
    grep -q 'multiple of 4' "$work/err"
report $? "rows that do not meet are refused in words"
status 0 "$plan" "$@" -s ring.bytes=8388608 --json && near ring_bytes "$work/out" 8388608 0
report $? "the ring's memory is the configured one"

status 0 "$plan" "$@" && grep -q 'unambiguous  *153\.34 km' "$work/out" &&
    grep -q 'samples a period N  *1023$' "$work/out"
report $? "the same for people, with units"

mkdir "$work/none"
PNR_MODULE_PATH=$work/none
export PNR_MODULE_PATH
status 69 "$plan" "$@" -s engine.name=cuda --json && near n_samples "$work/out" 1023 0 &&
    grep -q cuda "$work/err"
report $? "an engine that is not there: status 69, its reason, and what does not need it"
unset PNR_MODULE_PATH

status 78 "$plan" -s source.rate_hz=2.1e6 -s code.degree=11 -s code.chip_rate_hz=1e6 &&
    grep -q 'good rates: 2000000, .*(2099658.036), .*(2100146.556); or code.chip_rate_hz 1006250, .*(1000162.866)' "$work/err"
report $? "a rate that fits no period: the nearest rates in decimals, and the chip rates that fit"

bad=0
for budget in 62 ms -1ms 0ms 1e3ms '62 min' 62min infs 0x10ms 1.2.3ms 7200s; do
    status 64 "$plan" "$@" --budget "$budget" || bad=1
    grep -q unit "$work/err" || bad=1
done
report $bad "a budget without a good unit or number is refused"

status 0 "$plan" "$@" --budget 1ns --json && [ "$(value longest_m_sequence "$work/out")" = null ] &&
    [ "$(value longest_power_of_two "$work/out")" = null ] && grep -q '"fits": false' "$work/out"
report $? "nothing fits into a nanosecond"
status 0 "$plan" "$@" --budget 30ms --json && near memoir_matlab_log2 "$work/out" 18 0 &&
    near memoir_gpu_log2 "$work/out" 19 0 && near runs "$work/out" 20 0 &&
    awk '/"code": "/ { kind = $2 } /"n_samples"/ { size = $2 + 0 } /"median_s"/ { median = $2 + 0 }
         /"p99_s"/ { p99 = $2 + 0; if (!(median > 0 && median <= p99)) bad = 1 }
         /"fits"/ { rows++; fits = ($2 ~ /true/); if (fits != (p99 <= 0.03)) bad = 1
                    if (fits) longest[kind] = size }
         /"longest_m_sequence"/ { if ($2 + 0 != longest["\"m_sequence\","] + 0) bad = 1; seen++ }
         /"longest_power_of_two"/ { if ($2 + 0 != longest["\"power_of_two\","] + 0) bad = 1; seen++ }
         END { exit !(rows >= 2 && seen == 2 && !bad) }' "$work/out"
report $? "the longest code is the longest whose 99th percentile fits"
plan
