/* SPDX-License-Identifier: MIT */
/* Makes the plan from a configuration: codes, waveforms, thresholds, submits. */
#include "setup/setup.h"

#include "base/available.h"
#include "base/complex.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/transform.h"
#include "code/band.h"
#include "config/keys.h"
#include "engine/plan.h"
#include "setup/cfar_factor.h"
#include "setup/hypothesis.h"
#include "setup/taper.h"
#include "setup/threshold.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_LOOKS = 16, MAX_BATCH = 4096, MAX_WINDOWS = 1 << 24 };
/* Limits of a submit. samples_a_submit: the upload of this number of samples takes longer than the
 * launch of the kernels. power_a_submit: bytes of |c|^2. */
static const size_t samples_a_submit = (size_t)1 << 23, power_a_submit = (size_t)1 << 28;

/* Returns the number of looks that the threshold assumes for `used` windows. Counts only whole
 * looks, because a further partial look only reduces the variance of the sum. */
static size_t looks_in(const pnr_plan *plan, size_t used)
{
    return used > plan->n_periods ? used / plan->n_periods : 1;
}

/* Returns the threshold for `used` windows of a dwell. *pfa_cell: the false-alarm probability of a
 * cell. */
static double threshold_for(const pnr_config *config, const pnr_setup *setup, size_t used,
                            double *pfa_cell)
{
    const pnr_plan *plan = &setup->plan;
    const size_t n_looks = looks_in(plan, used);
    /* the noise of a real sample counts as half a complex dimension */
    const double dimensions = pnr_format_get(plan->format)->is_complex ? 1 : 0.5;
    const double n_samples = dimensions * (double)plan->n_samples * (double)used / (double)n_looks;
    const double step = 1.0 / (double)plan->oversample;
    const double rho2 = pnr_power(pnr_waveform_at(setup->codes[0].autocorrelation, step));
    const double n_cells = (double)(plan->gate_count * plan->oversample) *
                           (double)(pnr_plan_rows(plan) * plan->n_codes);

    *pfa_cell = pnr_threshold_cell_pfa(config->detector.pfa, n_cells, rho2, n_looks);
    return plan->linear ? pnr_threshold_ratio_apart(*pfa_cell, n_looks, n_samples)
                        : pnr_threshold_ratio(*pfa_cell, n_looks, n_samples);
}

/* Fills the thresholds. A step of `stride` windows is one look, or one window if the dwell has one
 * look. The thresholds are exact for 1 to 16 steps, for 32, 64, 128 and so on, and for the whole
 * dwell. All other thresholds are interpolated, linearly in 1 / sqrt(steps), with an error below
 * 1 %. Only dwells that lost windows use them. */
static void fill_thresholds(const pnr_config *config, pnr_setup *setup)
{
    const size_t stride = setup->plan.n_looks > 1 ? setup->plan.n_periods : 1;
    const size_t n_windows = pnr_plan_windows(&setup->plan), n = n_windows / stride;
    size_t below = 1;
    double pfa_cell = 0;

    for (size_t used = 1; used <= n; used++) {
        const bool is_power = (used & (used - 1)) == 0;

        if (used > EXACT_LOOKS && !is_power && used != n)
            continue;
        setup->threshold[used - 1] = threshold_for(config, setup, used * stride, &pfa_cell);

        const double from = 1 / sqrt((double)below), to = 1 / sqrt((double)used);

        for (size_t i = below + 1; i < used; i++) {
            const double share = (1 / sqrt((double)i) - from) / (to - from);

            setup->threshold[i - 1] =
                setup->threshold[below - 1] * (1 - share) + setup->threshold[used - 1] * share;
        }
        below = used;
    }
    setup->pfa_cell = pfa_cell;
    for (size_t used = n_windows; stride > 1 && used > 0; used--)
        setup->threshold[used - 1] = setup->threshold[used < stride ? 0 : used / stride - 1];
}

/* Filters the samples `a` of the code: keeps only the frequencies of the band `which`. If `which`
 * is a band of a receiver, scales the samples to mean power 1 again. */
static int keep_band(const pnr_config *config, pnr_code_band which, const pnr_radar *radar,
                     double complex *a, pnr_setup_code *to, pnr_error *error)
{
    const bool is_received = which == PNR_BAND_RECEIVED || which == PNR_BAND_RECEIVED_REAL;
    const double tune = pnr_rational_double(config->source.tune_hz);
    const double rate = pnr_rational_double(config->source.rate_hz);
    const size_t n = radar->n_samples;
    pnr_band band = {.is_half = which == PNR_BAND_SHOWN || which == PNR_BAND_RECEIVED_REAL,
                     .tune = tune / rate};
    char notch[PNR_VALUE_MAX + 1];
    double lowest, highest;
    int code = PNR_OK;

    if (is_received &&
        ((code = pnr_hypotheses_rotations(config, radar, &lowest, &highest, error)) != PNR_OK ||
         (code = pnr_band_add_notches(&band, config, band.is_half, lowest, highest, error)) !=
             PNR_OK))
        return code;
    to->share = 1;
    if (!band.is_half && band.n_notches == 0)
        return PNR_OK;
    if (pnr_band_keep(&band, a, n, &to->share, &to->removed) != PNR_OK)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu samples", n);
    if (to->removed > 1 - 1e-9)
        return pnr_refuse(error, "window.dc and window.notch = \"%.200s\" remove the whole code",
                          pnr_value_format(pnr_key_find("window", "notch"), config, notch));
    if (!(to->share > 0))
        return pnr_refuse(error,
                          "source.tune_hz = %.10g: real samples of %.10g Hz show nothing of the "
                          "code at positive frequencies",
                          tune, rate);
    for (size_t i = 0; i < n && is_received; i++)
        a[i] /= sqrt(to->share);
    return PNR_OK;
}

/* Refuses codes that need more memory than is available. Without this check, the system grants the
 * memory and later kills the program. */
static int check_memory(const pnr_config *config, const pnr_radar *radar, pnr_error *error)
{
    /* Numbers of values for each sample of a code. KEPT: the samples and the spectrum of a
     * waveform, the spectrum of an autocorrelation, and 4 values of its table (code/waveform.c).
     * WORK: values that are computed before they are copied to the table. */
    enum { VALUE = sizeof(double complex), KEPT = 2 + 1 + 4, WORK = 1 };
    const double n = (double)radar->n_samples, n_codes = (double)pnr_config_codes(config);
    const double values = n * (KEPT + (double)config->detector.oversample) + (double)radar->n_chips;
    const double needed =
        VALUE * (n_codes * values + WORK * n) + pnr_transform_bytes(radar->n_samples);
    const double available = pnr_memory_available();

    if (needed <= available)
        return PNR_OK;
    return pnr_error_set(error, PNR_ENOMEMORY,
                         "the set-up of %zu %s of %zu samples takes %.4g GiB, and %.4g GiB are "
                         "available: a lower rate or shorter codes",
                         pnr_config_codes(config), pnr_config_codes(config) > 1 ? "codes" : "code",
                         radar->n_samples, needed / 0x1p30, available / 0x1p30);
}

static int derive_code(const pnr_config *config, pnr_setup_code *to, pnr_radar *radar,
                       pnr_error *error)
{
    const int code = pnr_code_create(config, &to->code, error);

    return code == PNR_OK ? pnr_radar_derive(config, to->code->n_chips, radar, error) : code;
}

/* Makes the waveform of one code. The samples of each code have mean power 1, so all codes have the
 * same energy. */
static int make_code(const pnr_config *config, pnr_code_band band, pnr_setup_code *to,
                     const pnr_radar *radar, pnr_error *error)
{
    double complex *samples;
    int code;

    if ((samples = pnr_memory_large(radar->n_samples * sizeof *samples)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu samples",
                             radar->n_samples);
    code = pnr_code_sample(to->code, config, radar->n_samples, (double(*)[2])samples, error);
    if (code == PNR_OK)
        code = keep_band(config, band, radar, samples, to, error);
    if (code == PNR_OK &&
        (code = pnr_waveform_create(samples, radar->n_samples, &to->waveform)) != PNR_OK)
        pnr_error_set(error, code, "no memory for a waveform of %zu samples", radar->n_samples);
    free(samples);
    return code;
}

/* Returns the next word of a name; *length: its bytes. NULL: there is no further word. */
static const char *next_word(const char *at, size_t *length)
{
    at += strspn(at, " ");
    *length = strcspn(at, " ");
    return *length > 0 ? at : NULL;
}

static bool has_word(const char *name, const char *word, size_t length)
{
    size_t n;

    for (const char *at = name; (at = next_word(at, &n)) != NULL; at += n)
        if (n == length && memcmp(at, word, n) == 0)
            return true;
    return false;
}

/* Labels each code. The label consists of the words of its name that are not in all names. */
static void label_codes(pnr_setup *setup)
{
    char common[sizeof setup->codes[0].code->name] = "";
    size_t n;

    for (const char *at = setup->codes[0].code->name; (at = next_word(at, &n)) != NULL; at += n) {
        size_t c = 1;

        while (c < setup->n_codes && has_word(setup->codes[c].code->name, at, n))
            c++;
        if (c == setup->n_codes)
            snprintf(common + strlen(common), sizeof common - strlen(common), " %.*s", (int)n, at);
    }
    for (size_t c = 0; c < setup->n_codes; c++) {
        char text[sizeof common] = "", *label = setup->codes[c].label.text;

        for (const char *at = setup->codes[c].code->name; (at = next_word(at, &n)) != NULL; at += n)
            if (!has_word(common, at, n))
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s",
                         text[0] != '\0' ? " " : "", (int)n, at);
        for (char *equals = text; (equals = strchr(equals, '=')) != NULL;)
            *equals = ' ';
        if (strlen(text) < PNR_CODE_LABEL_LEN)
            strcpy(label, text);
    }
}

int pnr_setup_create_codes(const pnr_config *config, pnr_code_band band, pnr_setup **out,
                           pnr_error *error)
{
    pnr_setup *setup = calloc(1, sizeof *setup);
    int code = PNR_OK;

    *out = setup;
    if (setup == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "setup: out of memory");
    setup->n_codes = pnr_config_codes(config);
    setup->codes = calloc(setup->n_codes, sizeof *setup->codes);
    if (setup->codes == NULL)
        code = pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu codes", setup->n_codes);
    for (size_t c = 0; c < setup->n_codes && code == PNR_OK; c++) {
        pnr_config one;
        pnr_radar radar;

        pnr_config_code(config, c, &one);
        if ((code = derive_code(&one, &setup->codes[c], &radar, error)) == PNR_OK && c == 0)
            code = check_memory(config, &radar, error);
        if (code == PNR_OK)
            code = make_code(&one, band, &setup->codes[c], &radar, error);
        if (code != PNR_OK)
            pnr_config_rename_keys(config, c, error);
        if (code == PNR_OK && c == 0)
            setup->radar = radar;
        if (code == PNR_OK && radar.n_samples != setup->radar.n_samples)
            code = pnr_refuse(error,
                              "code.%zu is %s, %zu samples a period, and code.1 %zu: all codes "
                              "must repeat together",
                              c + 1, setup->codes[c].code->name, radar.n_samples,
                              setup->radar.n_samples);
    }
    if (code == PNR_OK) {
        label_codes(setup);
    } else {
        pnr_setup_destroy(setup);
        *out = NULL;
    }
    return code;
}

typedef struct reference_work {
    pnr_setup *setup;
    size_t oversample;
    atomic_int code; /* PNR_OK, or the error of a code */
} reference_work;

/* Makes the references of code c: its samples and, with oversample 2, its samples delayed by half a
 * sample. Also makes its autocorrelation. */
static void make_reference(void *context, size_t c, size_t thread)
{
    reference_work *work = context;
    pnr_setup_code *of = &work->setup->codes[c];
    const size_t n = work->setup->radar.n_samples, oversample = work->oversample;
    double complex *to = (double complex *)work->setup->references + c * oversample * n;
    int code = PNR_OK;

    (void)thread;
    for (size_t i = 0; i < oversample && code == PNR_OK; i++, to += n)
        code = pnr_waveform_shift(of->waveform, (double)i / (double)oversample, to);
    if (code == PNR_OK)
        code = pnr_waveform_correlation(of->waveform, of->waveform, &of->autocorrelation);
    if (code != PNR_OK)
        atomic_store(&work->code, code);
}

/* Makes the references of all codes. Several short codes are processed at the same time. The
 * transforms of a long code use all processors. */
static int make_references(pnr_setup *setup, const pnr_config *config, pnr_error *error)
{
    enum { LONG = 1 << 15 };
    const size_t n = setup->radar.n_samples, oversample = config->detector.oversample;
    reference_work work = {setup, oversample, PNR_OK};
    int code = PNR_ENOMEMORY;

    setup->references =
        pnr_memory_large(setup->n_codes * oversample * n * sizeof *setup->references);
    if (setup->references != NULL) {
        pnr_parallel_run(setup->n_codes, n < LONG ? pnr_parallel_threads(setup->n_codes) : 1,
                         make_reference, &work);
        code = atomic_load(&work.code);
    }
    return code == PNR_OK ? code
                          : pnr_error_set(error, code, "no memory for %zu codes of %zu samples",
                                          setup->n_codes, n);
}

static size_t batch_of(const pnr_config *config, const pnr_plan *plan)
{
    const size_t dwell = plan->n_samples * pnr_plan_windows(plan);
    const size_t power_bytes = pnr_plan_cells(plan) * sizeof(float);
    size_t fitting = samples_a_submit / dwell;

    if (config->engine.batch > 0)
        return config->engine.batch;
    if (fitting > power_a_submit / power_bytes)
        fitting = power_a_submit / power_bytes;
    return fitting < 1 ? 1 : fitting > MAX_BATCH ? MAX_BATCH : fitting;
}

/* Sets the number of submits and of dwells in a submit. Profiles and maps may fill the memory
 * quickly. They therefore limit both numbers, unless engine.batch is set. */
static void plan_submits(const pnr_config *config, pnr_plan *plan)
{
    const size_t bytes = pnr_plan_profile_bytes(plan);

    plan->batch = batch_of(config, plan);
    if (bytes > 0 && config->engine.batch == 0) {
        const size_t maps = pnr_plan_maps(bytes);

        plan->depth = plan->depth < maps ? plan->depth : maps;
        plan->batch = plan->batch < maps / plan->depth ? plan->batch : maps / plan->depth;
    }
}

/* Fills the part of the plan that describes a dwell: looks, periods, rows, taper. */
static int plan_dwell(pnr_setup *setup, const pnr_config *config, pnr_error *error)
{
    pnr_plan *plan = &setup->plan;
    int code = pnr_hypotheses_create(config, &setup->radar, &setup->hypotheses, &plan->n_hypotheses,
                                     error);

    if (code != PNR_OK)
        return code;
    plan->hypotheses = setup->hypotheses;
    plan->n_periods = config->dwell.periods;
    plan->n_looks = config->dwell.looks;
    plan->remove_mean = config->dwell.clutter == PNR_CLUTTER_REMOVE;
    plan->cfar.kind = (pnr_cfar_kind)config->detector.cfar;
    plan->exclusion_cells = config->detector.exclusion_cells;
    plan->exclusion_rows = config->detector.exclusion_rows;
    if (plan->n_looks > MAX_WINDOWS / plan->n_periods)
        return pnr_refuse(
            error, "dwell.looks = %zu of dwell.periods = %zu: at most %d periods make one result",
            plan->n_looks, plan->n_periods, MAX_WINDOWS);
    /* With dwell.combine = incoherent each period is a look. */
    if (config->dwell.combine == PNR_COMBINE_INCOHERENT) {
        plan->n_looks *= plan->n_periods;
        plan->n_periods = 1;
    }
    if (config->dwell.combine == PNR_COMBINE_DOPPLER &&
        config->dwell.taper != PNR_TAPER_RECTANGULAR) {
        setup->taper = calloc(plan->n_periods, sizeof *setup->taper);
        if (setup->taper == NULL ||
            pnr_taper_fill((pnr_taper)config->dwell.taper, config->dwell.taper_sidelobe_db,
                           plan->n_periods, setup->taper) != PNR_OK)
            return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu periods a dwell",
                                 plan->n_periods);
        plan->taper = setup->taper;
    }
    return PNR_OK;
}

/* Returns the least distance, in lags or rows, at which the noise of two cells is not correlated.
 * Along lags it is the length of a chip. Along rows it is the width of the main lobe of the taper,
 * or of the main lobe of one period if each row is a rotation. Returns 0 if there is no memory. */
static size_t cfar_stride(const pnr_setup *setup, const pnr_config *config)
{
    const pnr_plan *plan = &setup->plan;

    if (config->detector.cfar_axis == PNR_CFAR_ALONG_LAGS)
        return (plan->n_samples + setup->radar.n_chips - 1) / setup->radar.n_chips;
    return config->dwell.combine == PNR_COMBINE_DOPPLER
               ? pnr_taper_stride(plan->taper, plan->n_periods)
               : (size_t)1 << config->doppler.step; /* rows in a bin */
}

/* Sets the guard, the number of training cells, and the factors for the false-alarm probability
 * of a cell. The noise of the tested cell and of the nearest training cell is not correlated.
 * Along lags detector.cfar_guard counts chips, so the main lobe of an echo is not in the
 * training cells. */
static int plan_cfar(pnr_setup *setup, const pnr_config *config, pnr_error *error)
{
    pnr_plan *plan = &setup->plan;
    pnr_cfar *cfar = &plan->cfar;
    const bool is_range = config->detector.cfar_axis == PNR_CFAR_ALONG_LAGS;
    const size_t n_cells = is_range ? plan->n_lags : pnr_plan_rows(plan);
    const size_t side = config->detector.cfar_training + 1;

    if (cfar->kind == PNR_CFAR_OFF)
        return PNR_OK;
    cfar->axis = (pnr_cfar_axis)config->detector.cfar_axis;
    cfar->training = config->detector.cfar_training;
    cfar->stride = cfar_stride(setup, config);
    cfar->guard = is_range ? (config->detector.cfar_guard + 1) * cfar->stride - 1
                           : config->detector.cfar_guard;
    if (cfar->guard + 1 < cfar->stride)
        cfar->guard = cfar->stride - 1;
    setup->cfar_factor = calloc(plan->n_looks * side * side, sizeof *setup->cfar_factor);
    if (cfar->stride == 0 || setup->cfar_factor == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for CFAR of %zu cells",
                             cfar->training);

    const size_t reach = cfar->guard + 1 + (cfar->training - 1) * cfar->stride;

    if (is_range && !plan->linear ? 2 * reach >= n_cells : reach >= n_cells)
        return pnr_refuse(error,
                          "detector.cfar_training = %zu, a cell in %zu after detector.cfar_guard "
                          "= %zu, reaches %zu %s to either side; there are %zu",
                          cfar->training, cfar->stride, config->detector.cfar_guard, reach,
                          is_range ? "lags" : "Doppler rows", n_cells);
    pnr_cfar_factors(plan, setup->pfa_cell, setup->cfar_factor);
    cfar->factor = setup->cfar_factor;
    return PNR_OK;
}

/* True if the engine may also return the strongest maximum outside of the gate. */
static bool may_search_outside(const pnr_setup *setup, const pnr_config *config)
{
    return !setup->radar.is_linear && setup->radar.gate_count < setup->radar.n_samples &&
           (pnr_cfar_kind)config->detector.cfar == PNR_CFAR_OFF &&
           config->window.filter == PNR_FILTER_MATCHED;
}

/* True if the Walsh method suits the code. It needs chips of q whole samples: sample n is chip
 * floor(n / q). */
static bool is_for_walsh(const pnr_setup *setup, const pnr_config *config, bool is_complex)
{
    const pnr_code *first = setup->codes[0].code;

    return first->is_m_sequence && is_complex && setup->radar.n_samples % first->n_chips == 0 &&
           setup->codes[0].removed == 0 && config->code.pulse == PNR_PULSE_BAND_LIMITED;
}

/* Fills the parts of the plan that do not depend on the dwell: samples, codes, and the options of
 * the engine. */
static int plan_samples(pnr_setup *setup, const pnr_config *config, pnr_format format,
                        size_t n_channels, pnr_error *error)
{
    static const pnr_want want_of[] = {[PNR_PROFILE_OFF] = PNR_WANT_NONE,
                                       [PNR_PROFILE_POWER] = PNR_WANT_POWER,
                                       [PNR_PROFILE_COMPLEX] = PNR_WANT_COMPLEX};
    /* The direct path is an echo too, and there may be echoes between it and the wanted ranges. */
    const size_t echoes = config->radar.zero == PNR_ZERO_DIRECT_PATH
                              ? 2 * config->detector.max_echoes + 8
                              : config->detector.max_echoes;
    const bool has_outside = may_search_outside(setup, config);
    /* sidelobes are candidates too */
    const size_t candidates = 2 * echoes + 8 + (has_outside ? 1 : 0);
    pnr_rational tune = {0, 1};

    if (config->source.tune_hz.num != 0 &&
        pnr_rational_div(config->source.tune_hz, setup->radar.rate_hz, &tune) != PNR_OK)
        return pnr_refuse(error,
                          "source.tune_hz: its ratio to source.rate_hz does not fit 64 bits");

    const bool is_complex = pnr_format_get(format)->is_complex;
    const double tune_cycles = (double)tune.num / (double)tune.den;

    const pnr_code *first = setup->codes[0].code;
    const bool is_m_sequence = is_for_walsh(setup, config, is_complex);

    setup->devices = config->engine.device;
    setup->max_echoes = echoes < PNR_MAX_CANDIDATES ? echoes : PNR_MAX_CANDIDATES;
    setup->plan = (pnr_plan){
        .n_samples = setup->radar.n_samples,
        .format = format,
        .n_channels = n_channels,
        .first_channel = config->source.channel,
        .n_used_channels = 1,
        .n_codes = setup->n_codes,
        .reference = PNR_REFERENCE_STORED,
        .linear = setup->radar.is_linear,
        .n_lags = setup->radar.n_lags,
        .oversample = config->detector.oversample,
        .references = (const double(*)[2])setup->references,
        .m_degree = is_m_sequence ? first->degree : 0,
        .m_taps = is_m_sequence ? first->taps : 0,
        .m_samples = is_m_sequence ? setup->radar.n_samples / first->n_chips : 0,
        .tune = tune,
        .band = {is_complex ? 0 : -tune_cycles, is_complex ? 0 : 0.5 - tune_cycles},
        .conjugate = config->source.spectrum == PNR_SPECTRUM_INVERTED,
        .gate_first = setup->radar.gate_first,
        .gate_count = setup->radar.gate_count,
        .max_candidates = candidates < PNR_MAX_CANDIDATES ? candidates : PNR_MAX_CANDIDATES,
        .has_outside = has_outside,
        .depth = config->engine.depth,
        .want_profile = want_of[config->publisher.profile],
        .spin = config->engine.wait == PNR_WAIT_SPIN,
        .device = config->engine.device.index[0],
        .threads = config->engine.threads,
        .method = config->engine.method,
        .will_subtract = config->detector.subtract > 0,
    };
    return PNR_OK;
}

static int plan_filter(pnr_setup *setup, const pnr_config *config, pnr_error *error)
{
    pnr_plan *plan = &setup->plan;
    int code;

    if (config->window.filter == PNR_FILTER_MATCHED)
        return PNR_OK;
    if (plan->n_codes > 1)
        return pnr_refuse(error, "window.filter = least-squares is for one code; there are %zu",
                          plan->n_codes);
    code = pnr_least_squares_create(setup->codes[0].autocorrelation, plan->gate_count,
                                    !plan->linear && plan->gate_count == plan->n_lags,
                                    &setup->least_squares, error);
    if (code == PNR_OK)
        plan->filter = (const double(*)[2])setup->least_squares->filter;
    return code;
}

static int plan_thresholds(pnr_setup *setup, const pnr_config *config, pnr_error *error)
{
    const size_t n_windows = pnr_plan_windows(&setup->plan);

    setup->threshold = calloc(n_windows, sizeof *setup->threshold);
    if (setup->threshold == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu periods a dwell", n_windows);
    setup->plan.threshold = setup->threshold;
    fill_thresholds(config, setup);
    return PNR_OK;
}

int pnr_setup_create(const pnr_config *config, pnr_format format, size_t n_channels,
                     pnr_setup **out, pnr_error *error)
{
    pnr_setup *setup;
    int code;

    format = pnr_format_in_memory(format);
    code = pnr_setup_create_codes(
        config, pnr_format_get(format)->is_complex ? PNR_BAND_RECEIVED : PNR_BAND_RECEIVED_REAL,
        &setup, error);

    *out = NULL;
    if (code != PNR_OK)
        return code;
    if ((code = make_references(setup, config, error)) != PNR_OK ||
        (code = plan_samples(setup, config, format, n_channels, error)) != PNR_OK ||
        (code = plan_filter(setup, config, error)) != PNR_OK ||
        (code = plan_dwell(setup, config, error)) != PNR_OK ||
        (code = plan_thresholds(setup, config, error)) != PNR_OK ||
        (code = plan_cfar(setup, config, error)) != PNR_OK)
        goto fail;
    plan_submits(config, &setup->plan);
    *out = setup;
    return PNR_OK;
fail:
    pnr_setup_destroy(setup);
    return code;
}

void pnr_setup_want_power(pnr_setup *setup, const pnr_config *config)
{
    setup->plan.want_profile = PNR_WANT_POWER;
    plan_submits(config, &setup->plan);
}

void pnr_setup_destroy(pnr_setup *setup)
{
    if (setup == NULL)
        return;
    for (size_t c = 0; setup->codes != NULL && c < setup->n_codes; c++) {
        pnr_code_destroy(setup->codes[c].code);
        pnr_waveform_destroy(setup->codes[c].waveform);
        pnr_waveform_destroy(setup->codes[c].autocorrelation);
    }
    free(setup->codes);
    free(setup->references);
    free(setup->threshold);
    free(setup->hypotheses);
    free(setup->taper);
    free(setup->cfar_factor);
    pnr_least_squares_destroy(setup->least_squares);
    free(setup);
}

/* Returns the number of devices. Returns 1 while they are not counted yet. */
static size_t n_devices(const pnr_setup *setup)
{
    return setup->devices.n > 0 ? setup->devices.n : 1;
}

size_t pnr_setup_in_flight(const pnr_setup *setup)
{
    return n_devices(setup) * setup->plan.depth;
}

size_t pnr_setup_ring_samples(const pnr_setup *setup, const pnr_config *config)
{
    const pnr_plan *plan = &setup->plan;

    if (config->ring.bytes > 0)
        return config->ring.bytes / pnr_plan_sample_bytes(plan);
    if (config->ring.seconds > 0)
        return (size_t)(config->ring.seconds * pnr_rational_double(setup->radar.rate_hz));
    /* The ring has space for the submits in flight and one more, which the source fills. Published
     * maps reduce the size of the submits, but not of the ring, because the ring stores the samples
     * that arrive during pauses of the system. */
    return (n_devices(setup) * config->engine.depth + 1) * batch_of(config, plan) *
               pnr_plan_dwell_samples(plan) +
           pnr_plan_view_samples(plan, 0);
}
