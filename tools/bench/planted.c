/* SPDX-License-Identifier: MIT */
/* Fills the samples of dwells with noise and with echoes at random delays. */
#include "tools/bench/planted.h"

#include "base/format.h"
#include "base/random.h"
#include "cli.h"
#include "engine/plan.h"
#include "scene/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 16 /* greatest number of scenes */, CHUNK = 4096, MOST_SAMPLES = 1 << 22 };
static const double weakest_db = 20;       /* SNR of the weakest echo in one look, in dB */
static const double leak_db = 10;          /* level of the direct path (leak) above the strongest
                                            * echo, in dB */
static const double most_noise_rms = 1e-3; /* full scale = 1 */
static const double most_amplitude = 0.4;  /* greatest amplitude of an echo or of the leak, full
                                            * scale = 1 */
static const double gap_chips = 2;         /* least distance of the lags of two echoes, in chips */
/* least number of chips for each echo; with fewer chips draw_lag may find no free lag */
static const double room_chips = 8;
static const double doppler_share = 0.8; /* greatest Doppler of a target / greatest Doppler of the
                                          * search */
static const double spread_db = 40;      /* span_db of planted_begin, in dB */

/* The data from which one scene is created. */
typedef struct making {
    planted *to;
    pnr_config config; /* configuration with the targets and the noise of the scene */
    pnr_target targets[PLANTED_MAX];
    const pnr_setup *setup;
} making;

planted planted_begin(size_t n_echoes, pnr_config *config)
{
    config->source.format = PNR_FORMAT_CI16;
    if (config->detector.max_echoes < n_echoes)
        config->detector.max_echoes = n_echoes;
    return (planted){.n_echoes = n_echoes, .span_db = spread_db, .leaks = true};
}

/* Returns a random lag that is at least gap_chips from the lags of the first n echoes. */
static double draw_lag(making *m, const double *lags, size_t n)
{
    const pnr_radar *radar = &m->setup->radar;
    const double period = (double)radar->n_samples;
    const double gap = gap_chips * period / (double)radar->n_chips;

    for (;;) {
        const double lag = pnr_random_uniform(&m->to->random_state) * period;
        size_t i = 0;

        while (i < n && fabs(remainder(lag - lags[i], period)) >= gap)
            i++;
        if (i == n)
            return lag;
    }
}

/* Returns the amplitude gain of a look: the square root of the number of its samples. */
static double look_gain(const pnr_plan *plan)
{
    return sqrt((double)plan->n_samples * (double)plan->n_periods);
}

/* Draws new ranges, velocities and phases for the targets. In a scene with a leak and several
 * echoes the first target is the leak. */
static void place_targets(making *m)
{
    planted *p = m->to;
    const pnr_radar *radar = &m->setup->radar;
    const double gain = look_gain(&m->setup->plan);
    const double mps_per_hz =
        p->max_doppler_hz > 0 ? radar->metres_per_second / m->config.radar.carrier_hz : 0;
    const size_t first = p->leaks && p->n_echoes > 1;
    const size_t last = p->n_echoes - 1;
    double lags[PLANTED_MAX];

    for (size_t i = 0; i < p->n_echoes; i++) {
        const bool leak = i < first;
        const double share = last > first ? (double)(i - first) / (double)(last - first) : 0.5;
        const double db = weakest_db + (leak ? p->span_db + leak_db : p->span_db * share);

        lags[i] = leak ? 0 : draw_lag(m, lags, i);
        m->targets[i] = (pnr_target){
            .number = i + 1,
            .code = i % m->setup->n_codes + 1,
            .range_m = lags[i] / pnr_rational_double(radar->rate_hz) * radar->metres_per_second,
            .velocity_mps = leak ? 0
                                 : doppler_share * p->max_doppler_hz * mps_per_hz *
                                       (2 * pnr_random_uniform(&p->random_state) - 1),
            .amplitude = m->config.echo.noise_rms * pow(10, db / 20) / gain,
            .phase_rad = 2 * M_PI * pnr_random_uniform(&p->random_state),
        };
    }
}

/* Writes the samples of dwell d, counted from p->first. Stores the true values that each echo has
 * at the centre of the dwell. */
static void fill_dwell(const making *m, const pnr_scene *scene, size_t d)
{
    const planted *p = m->to;
    const pnr_plan *plan = &m->setup->plan;
    const size_t n = pnr_plan_dwell_samples(plan), bytes = pnr_plan_sample_bytes(plan);
    const uint64_t first = (uint64_t)d * n, periods = n / plan->n_samples, dwell = p->first + d;
    double x[CHUNK][2];

    for (size_t done = 0; done < n; done += CHUNK) {
        const size_t count = n - done < CHUNK ? n - done : CHUNK;

        pnr_scene_generate(scene, 0, p->first * n + first + done, count, x);
        for (size_t i = 0; i < count; i++)
            pnr_format_write(plan->format, x[i],
                             (unsigned char *)p->samples + (first + done + i) * bytes);
    }
    for (size_t i = 0; i < p->n_echoes; i++) {
        const pnr_target *target = &m->targets[i];
        pnr_truth a, b;

        pnr_scene_truth(scene, i, dwell * periods + (periods - 1) / 2, &a);
        pnr_scene_truth(scene, i, dwell * periods + periods / 2, &b);
        p->truths[d * p->n_echoes + i] = (planted_echo){
            .code = (uint32_t)(target->code - 1),
            .delay_samples =
                a.delay_samples +
                remainder(b.delay_samples - a.delay_samples, (double)plan->n_samples) / 2,
            .velocity_mps = a.velocity_mps,
            .amplitude = target->amplitude};
    }
}

/* Fills the samples and the truths of the dwells from p->first. */
static int fill_dwells(planted *p, const pnr_config *config, const pnr_setup *setup,
                       pnr_error *error)
{
    const size_t n_dwells = p->n_dwells, in_set = (n_dwells + SETS - 1) / SETS;
    const double strongest = pow(10, (weakest_db + p->span_db + (p->leaks ? leak_db : 0)) / 20) /
                             look_gain(&setup->plan);
    making m = {.to = p, .config = *config, .setup = setup};
    int rc = PNR_OK;

    m.config.targets = m.targets;
    m.config.n_targets = p->n_echoes;
    m.config.echo.noise_rms = fmin(most_noise_rms, most_amplitude / strongest);
    for (size_t d = 0; d < n_dwells && rc == PNR_OK && !pnr_stop; d += in_set) {
        pnr_scene *scene;

        place_targets(&m);
        rc = pnr_scene_create(&m.config, &scene, error);
        for (size_t i = d; i < d + in_set && i < n_dwells && rc == PNR_OK; i++)
            fill_dwell(&m, scene, i);
        pnr_scene_destroy(scene);
    }
    return rc;
}

int planted_fill(planted *p, const pnr_config *config, const pnr_setup *setup,
                 const pnr_engine_ops *ops, size_t n_dwells, pnr_error *error)
{
    const pnr_plan *plan = &setup->plan;
    const size_t bytes = pnr_plan_view_samples(plan, n_dwells) * pnr_plan_sample_bytes(plan);
    const double room = fmax((double)setup->radar.n_chips / room_chips, 1);

    p->n_echoes = (size_t)fmin((double)p->n_echoes, room);
    p->n_dwells = n_dwells;
    p->ops = ops;
    p->samples = ops->alloc(bytes);
    p->truths = calloc(n_dwells * p->n_echoes, sizeof *p->truths);
    if (p->samples == NULL || p->truths == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu dwells", n_dwells);
    return fill_dwells(p, config, setup, error);
}

int planted_next(planted *p, const pnr_config *config, const pnr_setup *setup, pnr_error *error)
{
    p->first += p->n_dwells;
    return fill_dwells(p, config, setup, error);
}

size_t planted_dwells(const pnr_plan *plan, size_t wanted)
{
    const size_t most = MOST_SAMPLES / pnr_plan_dwell_samples(plan);

    return most < 1 ? 1 : most < wanted ? most : wanted;
}

void planted_copy(const planted *p, const pnr_plan *plan, void *memory, size_t n_samples)
{
    const size_t bytes = pnr_plan_sample_bytes(plan),
                 n = p->n_dwells * pnr_plan_dwell_samples(plan);

    for (size_t done = 0; done < n_samples; done += n)
        memcpy((char *)memory + done * bytes, p->samples,
               (n < n_samples - done ? n : n_samples - done) * bytes);
}

void planted_clear(planted *p)
{
    if (p->samples != NULL)
        p->ops->free(p->samples);
    free(p->truths);
    *p = (planted){0};
}
