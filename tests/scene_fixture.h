/* SPDX-License-Identifier: MIT */
/* What the tests of the scene share:
 * a scene from settings, its samples, and a delay from samples. */
#ifndef PNR_SCENE_FIXTURE_H
#define PNR_SCENE_FIXTURE_H

#include "code.h"
#include "scene.h"
#include "transform.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double turn = 6.283185307179586476925;

/* A fresh scene of the settings; the list ends with NULL. Fails the test when refused. */
typedef struct stage {
    pnr_config config;
    pnr_scene *scene;
    size_t n;
    double rate;
} stage;

static const char *const base[] = {
    "code.type=m-sequence",      "code.degree=10",   "source.rate_hz=1000000", "source.format=cf64",
    "radar.carrier_hz=30000000", "echo.noise_rms=0", "echo.leak_amplitude=0",  NULL};

static inline void set_all(pnr_config *config, const char *const *settings)
{
    pnr_error error;

    for (; *settings; settings++)
        if (pnr_config_set(config, *settings, &error) != PNR_OK)
            fail_msg("%s", error.text);
}

static inline int try_stage(stage *s, pnr_scene_kind kind, const char *const *settings,
                            pnr_error *error)
{
    pnr_config_init(&s->config);
    set_all(&s->config, base);
    set_all(&s->config, settings);
    int rc = pnr_scene_create(&s->config, kind, &s->scene, error);
    if (rc == PNR_OK) {
        s->n = pnr_scene_radar(s->scene)->n_samples;
        s->rate = pnr_rational_double(pnr_scene_radar(s->scene)->rate_hz);
    }
    return rc;
}

static inline void open_stage(stage *s, const char *const *settings)
{
    pnr_error error;

    if (try_stage(s, PNR_SCENE_ECHOES, settings, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static inline void close_stage(stage *s)
{
    pnr_scene_destroy(s->scene);
    pnr_config_clear(&s->config);
}

static inline double (*make(const stage *s, uint64_t first, size_t n_samples))[2]
{
    double(*x)[2] = malloc(n_samples * sizeof *x);

    assert_non_null(x);
    pnr_scene_generate(s->scene, s->config.source.channel, first, n_samples, x);
    return x;
}

/* The spectrum of the code's samples. */
static inline double (*spectrum_of_code(const stage *s))[2]
{
    double(*c)[2] = malloc(s->n * sizeof *c);
    pnr_code *code;
    pnr_error error;

    assert_non_null(c);
    assert_int_equal(pnr_code_create(&s->config, &code, &error), PNR_OK);
    assert_int_equal(pnr_code_sample(code, &s->config, s->n, c, &error), PNR_OK);
    assert_int_equal(pnr_transform_forward(c, s->n), PNR_OK);
    pnr_code_destroy(code);
    return c;
}

/* Delay and complex amplitude of x against the code by the slope of X conj(C) over all harmonics,
 * around a first guess: exact for a still echo, a mean over the period for a slow one. */
static inline double measured_delay(const stage *s, const double (*c)[2], double (*x)[2],
                                    double guess, double amplitude[2])
{
    double n = (double)s->n, slope = 0, weight = 0;

    assert_int_equal(pnr_transform_forward(x, s->n), PNR_OK);
    amplitude[0] = amplitude[1] = 0;
    for (int pass = 0; pass < 3; pass++) {
        double sum[2] = {0}, energy = 0;

        for (int step = 0; step < 2; step++) {
            slope = weight = 0;
            for (size_t i = 0; i < s->n; i++) {
                double m = i <= s->n / 2 ? (double)i : (double)i - n;
                double angle = turn * m * guess / n, re, im;

                re = x[i][0] * c[i][0] + x[i][1] * c[i][1];
                im = x[i][1] * c[i][0] - x[i][0] * c[i][1];
                double turned[2] = {re * cos(angle) - im * sin(angle),
                                    re * sin(angle) + im * cos(angle)};
                if (step == 0) {
                    sum[0] += turned[0];
                    sum[1] += turned[1];
                    energy += c[i][0] * c[i][0] + c[i][1] * c[i][1];
                } else {
                    double phase = turned[1] * sum[0] - turned[0] * sum[1];
                    slope += m * phase;
                    weight += m * m * (turned[0] * sum[0] + turned[1] * sum[1]);
                }
            }
            amplitude[0] = sum[0] / energy;
            amplitude[1] = sum[1] / energy;
        }
        guess -= slope / weight * n / turn;
    }
    return guess;
}

#endif
