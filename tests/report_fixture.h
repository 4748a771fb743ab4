/* SPDX-License-Identifier: MIT */
/* A report with every field set, for the tests of what is written of it. */
#ifndef REPORT_FIXTURE_H
#define REPORT_FIXTURE_H

#include "message.h"

#include <math.h>
#include <string.h>

static inline void report_fixture(pnr_report *report, size_t n_echoes)
{
    size_t i;

    memset(report, 0, sizeof *report);
    strcpy(report->run, "9f2c00112233aabb");
    strcpy(report->stream, "demo");
    strcpy(report->engine, "cuda/walsh");
    report->seq = 41;
    report->sample = 41943;
    report->has_time = true;
    report->time_ns = INT64_C(1795228812000041943); /* 2026-11-21T02:40:12.000041943Z */
    report->time_source = PNR_TIME_FILE;
    report->periods = 1;
    report->latency_us = 61.25;
    report->pfa_cell = 1e-6;
    report->cells_above = 7;
    report->detection.noise_power = 0.0575439937337; /* -12.4 dB */
    report->detection.n_echoes = n_echoes;
    for (i = 0; i < n_echoes; i++)
        report->detection.echoes[i] = (pnr_echo){
            .code = (uint32_t)i,
            .channel = 1,
            .delay_s = 0.0025 + (double)i * 1e-3,
            .delay_samples = 2500.125 + (double)i,
            .delay_sigma_s = 1.5e-8,
            .lag = 2500.125,
            .range_m = 374740.625 + 1000 * (double)i,
            .range_sigma_m = 2.25,
            .snr_db = 27.5 - (double)i,
            .amplitude = 0.015625,
            .amplitude_sigma = 0.0009765625,
            .phase_rad = -1.25,
            .phase_sigma_rad = 0.0625,
            .doppler_hz = NAN,
            .doppler_sigma_hz = NAN,
            .velocity_mps = NAN,
            .velocity_sigma_mps = NAN,
        };
}

#endif
