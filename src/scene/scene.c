/* SPDX-License-Identifier: MIT */
/* Makes the synthetic scene. A table has the sum of all echoes at rest. The samples of moving
 * echoes are computed one by one. */
#include "scene/scene.h"

#include "base/complex.h"
#include "scene/front_end.h"
#include "setup/setup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Times and phases are computed from the absolute index at every multiple of BLOCK. The bits of a
 * sample therefore depend only on its index, and rounding errors do not accumulate. */
enum { BLOCK = PNR_NOISE_WALK };

static const double turn = 6.283185307179586476925;
/* samples; added to the code time of a data bit, so that rounding does not select the previous
 * bit */
static const double edge = 1e-9;

/* A rotation by `turns` cycles per sample, and its first BLOCK steps. */
typedef struct rotation {
    long double turns;
    double complex *steps; /* [BLOCK] exp(2 pi i turns j); NULL: no rotation */
} rotation;

/* An echo. Its code time at sample n is n + drift n + start. */
typedef struct echo {
    long double start; /* samples, 0 <= start < N */
    long double drift; /* samples per sample: the stretch and the error of the clock */
    double amplitude;
    double complex value; /* amplitude exp(i phase) */
    size_t code;          /* index of the code, from 0 */
    double bit_samples;   /* samples of code time in a data bit; 0: no data */
    uint32_t bits;        /* channel of the noise (noise.h) that defines the data bits */
    bool moves;           /* false: the echo is at rest and in the table `still` */
    rotation doppler;
} echo;

struct pnr_scene {
    const pnr_config *config;
    pnr_setup *setup; /* contains only the codes and the radar */
    size_t n;         /* N, samples of a period */
    double rate;
    long double clock; /* 1 + clock_ppm 1e-6 */
    pnr_front_end front_end;
    const pnr_run *slips; /* [n_slips] owned by the configuration */
    size_t n_slips;
    echo *echoes; /* [n_targets + 1]: the targets, then the leak */
    size_t n_echoes;
    double complex *still; /* [N] the sum of the echoes at rest; NULL: there are none */
    double cw_amplitude;
    rotation cw;
    pnr_rational tune; /* cycles per sample */
    bool tuned;
    rotation tuning;
    bool conjugate;
};

static int rotation_init(rotation *r, long double turns)
{
    r->turns = turns;
    r->steps = malloc(BLOCK * sizeof *r->steps);
    if (!r->steps)
        return PNR_ENOMEMORY;
    for (int j = 0; j < BLOCK; j++) {
        long double angle = turns * j;
        r->steps[j] = pnr_cis(turn * (double)(angle - roundl(angle)));
    }
    return PNR_OK;
}

/* Returns exp(2 pi i turns n). */
static double complex rotation_at(const rotation *r, uint64_t n)
{
    long double angle = r->turns * (long double)n;

    return pnr_cis(turn * (double)(angle - roundl(angle)));
}

/* Returns x mod n, 0 <= result < n. */
static long double wrap_time(long double x, long double n)
{
    long double rest = fmodl(x, n);

    if (rest < 0)
        rest += n;
    return rest < n ? rest : 0;
}

/* Returns a(u), the waveform of code c at u >= 0 samples. */
static double complex code_at(const pnr_scene *scene, size_t c, double u)
{
    return pnr_waveform_at(scene->setup->codes[c].waveform, u);
}

/* --- construction --- */

static int create_codes(pnr_scene *scene, pnr_error *error)
{
    /* Real samples on a carrier have the band from 0 to half of the rate. The frequencies of the
     * pulse outside this band would alias into it, so PNR_BAND_SHOWN removes them. An analogue
     * receiver has no such aliases. */
    const pnr_format format = scene->config->source.format;
    const bool is_shown = scene->config->source.tune_hz.num != 0 && format != PNR_FORMAT_NONE &&
                          !pnr_format_get(format)->is_complex;
    int rc = pnr_setup_create_codes(scene->config, is_shown ? PNR_BAND_SHOWN : PNR_BAND_WHOLE,
                                    &scene->setup, error);

    if (rc != PNR_OK)
        return rc;
    scene->n = scene->setup->radar.n_samples;
    scene->rate = pnr_rational_double(scene->setup->radar.rate_hz);
    return rc;
}

/* Computes the geometry of one target: code time, drift, Doppler. See scene.h. */
static int aim_target(pnr_scene *scene, const pnr_target *target, size_t number, echo *out,
                      pnr_error *error)
{
    const pnr_config *config = scene->config;
    long double speed = config->radar.speed_mps, velocity = target->velocity_mps;
    long double ways = config->radar.path == PNR_PATH_TWO_WAY ? 2 : 1;

    /* -d tau / d t: the decrease of the delay per second */
    long double gain = ways * velocity / (speed - velocity);
    long double delay = ways * target->range_m / (speed - velocity) + config->radar.zero_delay_s;

    out->start = wrap_time(-delay * scene->rate - (long double)scene->setup->radar.epoch_sample -
                               scene->setup->radar.epoch_fraction,
                           (long double)scene->n);
    out->drift = (gain - (scene->clock - 1)) / scene->clock;
    out->amplitude = target->amplitude;
    if (target->amplitude == 0 && target->has_snr)
        out->amplitude = scene->front_end.noise_rms * pow(10, target->snr_db / 20);
    out->value = out->amplitude * pnr_cis(target->phase_rad);
    out->code = target->code > 0 ? target->code - 1 : 0;
    out->bit_samples = (double)target->data_bit_periods * (double)scene->n;
    out->bits = (uint32_t)(PNR_NOISE_FIRST_INNER + number);
    out->moves = out->drift != 0 || out->bit_samples > 0;
    if (gain == 0 || config->radar.carrier_hz == 0)
        return PNR_OK;
    if (rotation_init(&out->doppler, (long double)config->radar.carrier_hz * gain /
                                         (scene->rate * scene->clock)) != PNR_OK)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for target %zu", number);
    return PNR_OK;
}

static int create_echoes(pnr_scene *scene, pnr_error *error)
{
    const pnr_config *config = scene->config;
    int rc = PNR_OK;

    scene->echoes = calloc(config->n_targets + 1, sizeof *scene->echoes);
    if (!scene->echoes)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu targets", config->n_targets);
    while (rc == PNR_OK && scene->n_echoes < config->n_targets) {
        size_t i = scene->n_echoes++;
        rc = aim_target(scene, &config->targets[i], i + 1, &scene->echoes[i], error);
    }
    if (rc != PNR_OK)
        return rc;

    if (config->echo.leak_amplitude != 0) {
        const pnr_target leak = {.amplitude = config->echo.leak_amplitude};
        rc = aim_target(scene, &leak, 0, &scene->echoes[scene->n_echoes++], error);
    }
    return rc;
}

/* Sets still[m] to the sum of e.value * a(m + e.start) over the echoes e at rest, where a is the
 * waveform of the echo's code. Prepares the waveforms of moving echoes. */
static int create_still(pnr_scene *scene, pnr_error *error)
{
    double complex *shifted = NULL;
    int rc = PNR_OK;

    for (size_t i = 0; i < scene->n_echoes && rc == PNR_OK; i++) {
        const echo *e = &scene->echoes[i];

        if (e->moves) /* a moving echo needs the waveform between the samples */
            rc = pnr_waveform_prepare(scene->setup->codes[e->code].waveform);
        if (e->moves || e->amplitude == 0)
            continue;
        if (!scene->still) {
            scene->still = calloc(scene->n, sizeof *scene->still);
            shifted = malloc(scene->n * sizeof *shifted);
        }
        if (!scene->still || !shifted) {
            rc = PNR_ENOMEMORY;
            break;
        }
        rc = pnr_waveform_shift(scene->setup->codes[e->code].waveform, -(double)e->start, shifted);
        for (size_t m = 0; m < scene->n && rc == PNR_OK; m++)
            scene->still[m] += shifted[m] * e->value;
    }
    free(shifted);
    return rc == PNR_OK ? rc : pnr_error_set(error, rc, "no memory for %zu samples", scene->n);
}

static void set_receiver(pnr_scene *scene)
{
    const pnr_config *config = scene->config;
    const double centre = pnr_rational_double(config->source.tune_hz) / scene->rate;

    pnr_front_end_init(config, scene->rate, scene->conjugate ? -centre : centre, &scene->front_end);
    scene->slips = config->echo.slips;
    scene->n_slips = config->echo.n_slips;
}

static int create_rotations(pnr_scene *scene, pnr_error *error)
{
    const pnr_config *config = scene->config;
    int rc = PNR_OK;

    if (config->source.tune_hz.num != 0) {
        if (pnr_rational_div(config->source.tune_hz, scene->setup->radar.rate_hz, &scene->tune) !=
            PNR_OK)
            return pnr_refuse(error, "source.tune_hz over source.rate_hz does not fit 64 bits");
        scene->tuned = true;
        rc = rotation_init(&scene->tuning, (long double)scene->tune.num / scene->tune.den);
    }
    if (rc == PNR_OK && config->echo.cw_amplitude != 0) {
        scene->cw_amplitude = config->echo.cw_amplitude;
        rc = rotation_init(&scene->cw,
                           (long double)config->echo.cw_hz / (scene->rate * scene->clock));
    }
    return rc == PNR_OK ? rc : pnr_error_set(error, rc, "no memory for the scene");
}

int pnr_scene_create(const pnr_config *config, pnr_scene **out, pnr_error *error)
{
    int rc;

    *out = NULL;
    pnr_scene *scene = calloc(1, sizeof *scene);
    if (!scene)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for the scene");
    scene->config = config;
    scene->conjugate = config->source.spectrum == PNR_SPECTRUM_INVERTED;
    scene->clock = 1 + (long double)config->echo.clock_ppm * 1e-6L;

    rc = create_codes(scene, error);
    if (rc == PNR_OK)
        set_receiver(scene);
    if (rc == PNR_OK && (rc = create_echoes(scene, error)) == PNR_OK &&
        (rc = create_still(scene, error)) == PNR_OK &&
        (rc = create_rotations(scene, error)) == PNR_OK)
        *out = scene;
    else
        pnr_scene_destroy(scene);
    return rc;
}

void pnr_scene_destroy(pnr_scene *scene)
{
    if (!scene)
        return;
    for (size_t i = 0; i < scene->n_echoes; i++)
        free(scene->echoes[i].doppler.steps);
    free(scene->echoes);
    free(scene->still);
    free(scene->cw.steps);
    free(scene->tuning.steps);
    pnr_setup_destroy(scene->setup);
    free(scene);
}

const pnr_radar *pnr_scene_radar(const pnr_scene *scene)
{
    return &scene->setup->radar;
}

/* --- generation: samples n = block + j, from <= j < to; block is a multiple of BLOCK --- */

static void put_still(const pnr_scene *scene, uint64_t block, size_t from, size_t to,
                      double complex *out)
{
    size_t m = (size_t)((block + from) % scene->n);

    for (size_t j = from; j < to; j++, out++) {
        *out = scene->still ? scene->still[m] : 0;
        m = m + 1 < scene->n ? m + 1 : 0;
    }
}

/* Returns the sign of the data bit of an echo at sample n. */
static double data_sign(const pnr_scene *scene, const echo *e, uint64_t n)
{
    long double time = (long double)n + e->drift * (long double)n + e->start + edge;

    double z[1][2];

    pnr_noise_gaussian(scene->config->echo.seed, e->bits, (uint64_t)(time / e->bit_samples), 1, z);
    return z[0][0] < 0 ? -1 : 1;
}

static void add_moving(const pnr_scene *scene, const echo *e, uint64_t block, size_t from,
                       size_t to, double complex *out)
{
    long double n = (long double)scene->n;
    double start = (double)wrap_time(
        (long double)(block % scene->n) + fmodl(e->drift * (long double)block, n) + e->start, n);
    double step = (double)(1 + e->drift);
    double complex value = e->value;

    if (e->doppler.steps)
        value *= rotation_at(&e->doppler, block);
    for (size_t j = from; j < to; j++, out++) {
        double complex a = code_at(scene, e->code, start + (double)j * step) * value;

        if (e->bit_samples > 0)
            a *= data_sign(scene, e, block + j);
        *out += e->doppler.steps ? a * e->doppler.steps[j] : a;
    }
}

static void add_cw(const pnr_scene *scene, uint64_t block, size_t from, size_t to,
                   double complex *out)
{
    double complex value = rotation_at(&scene->cw, block);

    for (size_t j = from; j < to; j++, out++)
        *out += scene->cw_amplitude * (value * scene->cw.steps[j]);
}

/* Multiplies the samples by exp(+2 pi i tune_hz n / rate). The phase at the start of each block is
 * exact. */
static void tune_samples(const pnr_scene *scene, uint64_t block, size_t from, size_t to,
                         double complex *out)
{
    double complex value =
        pnr_cis(turn * ((double)(int64_t)pnr_rational_phase(scene->tune, block) * 0x1p-64));

    for (size_t j = from; j < to; j++, out++)
        *out *= value * scene->tuning.steps[j];
}

static void signal_block(const pnr_scene *scene, uint64_t block, size_t from, size_t to,
                         double complex *out)
{
    put_still(scene, block, from, to, out);
    for (size_t i = 0; i < scene->n_echoes; i++)
        if (scene->echoes[i].moves && scene->echoes[i].amplitude != 0)
            add_moving(scene, &scene->echoes[i], block, from, to, out);
    if (scene->cw_amplitude != 0)
        add_cw(scene, block, from, to, out);
    if (scene->tuned)
        tune_samples(scene, block, from, to, out);
    pnr_front_end_turn(&scene->front_end, block, from, to, out);
    if (scene->conjugate)
        for (size_t i = 0; i < to - from; i++)
            out[i] = conj(out[i]);
}

/* Converts the index `position` of a sample in the recording to its index in the scene. *run:
 * samples from this sample to the next slip. */
static uint64_t skip_slips(const pnr_scene *scene, uint64_t position, uint64_t *run)
{
    *run = UINT64_MAX;
    for (size_t i = 0; i < scene->n_slips; i++) {
        if (position < scene->slips[i].first) {
            *run = scene->slips[i].first - position;
            break;
        }
        position += scene->slips[i].count;
    }
    return position;
}

void pnr_scene_generate(const pnr_scene *scene, size_t channel, uint64_t first, size_t n_samples,
                        double (*out)[2])
{
    const bool has_signal = channel == scene->config->source.channel;

    while (n_samples > 0) {
        uint64_t run, index = skip_slips(scene, first, &run);
        size_t from = index % BLOCK, n = BLOCK - from;

        n = n < n_samples ? n : n_samples;
        n = n < run ? n : (size_t)run;
        if (has_signal)
            signal_block(scene, index - from, from, from + n, (double complex *)out);
        else
            memset(out, 0, n * sizeof *out);
        pnr_front_end_receive(&scene->front_end, channel, index, n, out);
        first += n;
        out += n;
        n_samples -= n;
    }
}

/* --- the truth --- */

void pnr_scene_truth(const pnr_scene *scene, size_t target, uint64_t period, pnr_truth *out)
{
    const pnr_config *config = scene->config;
    const pnr_target *t = &config->targets[target];
    const echo *e = &scene->echoes[target];
    long double n = (long double)scene->n, first = (long double)scene->setup->radar.first_window;
    uint64_t run,
        centre_index = scene->setup->radar.first_window + period * scene->n + (scene->n - 1) / 2;
    long double slip = (long double)(skip_slips(scene, centre_index, &run) - centre_index);
    long double centre = first + slip + (long double)period * n + (n - 1) / 2;
    long double time = centre / (scene->rate * scene->clock);
    long double speed = config->radar.speed_mps, velocity = t->velocity_mps;

    /* The receiver counts the samples of the recording, which has no slipped samples: lag = (centre
     * - slip) - first - u, mod N, where u = centre + drift centre + start is the code time at
     * `centre`. */
    double lag = (double)wrap_time(-e->drift * centre - e->start - first - slip, n);

    if (scene->setup->radar.is_linear && lag < (double)scene->setup->radar.gate_first)
        /* the gate begins after this lag: the echo is found one period later */
        lag += (double)n;
    out->delay_s = pnr_radar_delay_s(&scene->setup->radar, config, lag);
    out->delay_samples = out->delay_s * scene->rate;
    out->range_m = (double)((t->range_m - velocity * time) * speed / (speed - velocity));
    out->velocity_mps = t->velocity_mps;
    out->snr_db =
        e->amplitude == 0 ? -INFINITY : 20 * log10(e->amplitude / scene->front_end.noise_rms);
}
