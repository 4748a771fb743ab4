/* SPDX-License-Identifier: MIT */
/* The cpu engine's bench table: one correlation in the four manners of `pnradar-bench seed`. */
#include "engine/bench.h"

#include "base/clock.h"
#include "base/stats.h"

#include <fftw3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * c[k] = sum_n x[(n + k) mod N] conj(a[n]) = IFFT(FFT(x) conj(FFT(a)) / N), then the lag of max
 * |c|^2. x is the code delayed, a a seeded +-1 code. One core, plans by FFTW_ESTIMATE (the same
 * bits on every run).
 *     anew      double; memory, plans and the code's spectrum made and freed in every call
 *     reused    double; memory, plans and spectrum kept, samples copied in
 *     pinned    single; from int16 samples, converted in the call
 *     resident  single; the samples are already converted and in place
 */
typedef struct work {
    size_t n;
    double (*code)[2];                          /* [n] a */
    double (*samples)[2];                       /* [n] x */
    int16_t (*raw)[2];                          /* [n] x as a receiver delivers it */
    fftw_complex *d_time, *d_freq, *d_spectrum; /* double manners */
    fftw_plan d_forward, d_inverse;
    fftwf_complex *s_input, *s_time, *s_freq, *s_spectrum; /* single manners */
    fftwf_plan s_forward, s_inverse;
} work;

enum { RAW_AMPLITUDE = 8192 };

static void double_close(work *w)
{
    if (w->d_forward != NULL)
        fftw_destroy_plan(w->d_forward);
    if (w->d_inverse != NULL)
        fftw_destroy_plan(w->d_inverse);
    fftw_free(w->d_time);
    fftw_free(w->d_freq);
    fftw_free(w->d_spectrum);
    w->d_forward = w->d_inverse = NULL;
    w->d_time = w->d_freq = w->d_spectrum = NULL;
}

/* Memory, plans, and the stored spectrum conj(FFT(a)) / N. */
static int double_open(work *w)
{
    const size_t bytes = w->n * sizeof(fftw_complex);
    const int n = (int)w->n;

    w->d_time = fftw_malloc(bytes);
    w->d_freq = fftw_malloc(bytes);
    w->d_spectrum = fftw_malloc(bytes);
    if (w->d_time == NULL || w->d_freq == NULL || w->d_spectrum == NULL)
        return PNR_ENOMEMORY;
    w->d_forward = fftw_plan_dft_1d(n, w->d_time, w->d_freq, FFTW_FORWARD, FFTW_ESTIMATE);
    w->d_inverse = fftw_plan_dft_1d(n, w->d_freq, w->d_time, FFTW_BACKWARD, FFTW_ESTIMATE);
    if (w->d_forward == NULL || w->d_inverse == NULL)
        return PNR_ENOMEMORY;
    memcpy(w->d_time, w->code, bytes);
    fftw_execute_dft(w->d_forward, w->d_time, w->d_spectrum);
    for (size_t m = 0; m < w->n; m++) {
        w->d_spectrum[m][0] /= (double)w->n;
        w->d_spectrum[m][1] /= -(double)w->n;
    }
    return PNR_OK;
}

static size_t double_correlate(work *w)
{
    double best = -1.0;
    size_t lag = 0;

    memcpy(w->d_time, w->samples, w->n * sizeof(fftw_complex));
    fftw_execute(w->d_forward);
    for (size_t m = 0; m < w->n; m++) {
        const double re = w->d_freq[m][0], im = w->d_freq[m][1];
        const double *h = w->d_spectrum[m];

        w->d_freq[m][0] = re * h[0] - im * h[1];
        w->d_freq[m][1] = re * h[1] + im * h[0];
    }
    fftw_execute(w->d_inverse);
    for (size_t k = 0; k < w->n; k++) {
        const double power = w->d_time[k][0] * w->d_time[k][0] + w->d_time[k][1] * w->d_time[k][1];

        if (power > best) {
            best = power;
            lag = k;
        }
    }
    return lag;
}

static void single_close(work *w)
{
    if (w->s_forward != NULL)
        fftwf_destroy_plan(w->s_forward);
    if (w->s_inverse != NULL)
        fftwf_destroy_plan(w->s_inverse);
    fftwf_free(w->s_input);
    fftwf_free(w->s_time);
    fftwf_free(w->s_freq);
    fftwf_free(w->s_spectrum);
    w->s_forward = w->s_inverse = NULL;
    w->s_input = w->s_time = w->s_freq = w->s_spectrum = NULL;
}

static void single_convert(work *w)
{
    for (size_t i = 0; i < w->n; i++) {
        w->s_input[i][0] = (float)w->raw[i][0] * (1.0f / 32768.0f);
        w->s_input[i][1] = (float)w->raw[i][1] * (1.0f / 32768.0f);
    }
}

static int single_open(work *w)
{
    const size_t bytes = w->n * sizeof(fftwf_complex);
    const int n = (int)w->n;

    w->s_input = fftwf_malloc(bytes);
    w->s_time = fftwf_malloc(bytes);
    w->s_freq = fftwf_malloc(bytes);
    w->s_spectrum = fftwf_malloc(bytes);
    if (w->s_input == NULL || w->s_time == NULL || w->s_freq == NULL || w->s_spectrum == NULL)
        return PNR_ENOMEMORY;
    w->s_forward = fftwf_plan_dft_1d(n, w->s_input, w->s_freq, FFTW_FORWARD, FFTW_ESTIMATE);
    w->s_inverse = fftwf_plan_dft_1d(n, w->s_freq, w->s_time, FFTW_BACKWARD, FFTW_ESTIMATE);
    if (w->s_forward == NULL || w->s_inverse == NULL)
        return PNR_ENOMEMORY;
    for (size_t i = 0; i < w->n; i++) {
        w->s_input[i][0] = (float)w->code[i][0];
        w->s_input[i][1] = (float)w->code[i][1];
    }
    fftwf_execute_dft(w->s_forward, w->s_input, w->s_spectrum);
    for (size_t m = 0; m < w->n; m++) {
        w->s_spectrum[m][0] /= (float)w->n;
        w->s_spectrum[m][1] /= -(float)w->n;
    }
    single_convert(w);
    return PNR_OK;
}

static size_t single_correlate(work *w)
{
    float best = -1.0f;
    size_t lag = 0;

    fftwf_execute(w->s_forward);
    for (size_t m = 0; m < w->n; m++) {
        const float re = w->s_freq[m][0], im = w->s_freq[m][1];
        const float *h = w->s_spectrum[m];

        w->s_freq[m][0] = re * h[0] - im * h[1];
        w->s_freq[m][1] = re * h[1] + im * h[0];
    }
    fftwf_execute(w->s_inverse);
    for (size_t k = 0; k < w->n; k++) {
        const float power = w->s_time[k][0] * w->s_time[k][0] + w->s_time[k][1] * w->s_time[k][1];

        if (power > best) {
            best = power;
            lag = k;
        }
    }
    return lag;
}

/* --- the manners: one whole call each --- */

static int call_anew(work *w, size_t *lag)
{
    const int rc = double_open(w);

    if (rc == PNR_OK)
        *lag = double_correlate(w);
    double_close(w);
    return rc;
}

static int call_reused(work *w, size_t *lag)
{
    *lag = double_correlate(w);
    return PNR_OK;
}

static int call_pinned(work *w, size_t *lag)
{
    single_convert(w);
    *lag = single_correlate(w);
    return PNR_OK;
}

static int call_resident(work *w, size_t *lag)
{
    *lag = single_correlate(w);
    return PNR_OK;
}

static const struct {
    int (*open)(work *w); /* before the first call; NULL: nothing is kept */
    int (*call)(work *w, size_t *lag);
} manners[PNR_MANNER_COUNT] = {
    [PNR_MANNER_ANEW] = {NULL, call_anew},
    [PNR_MANNER_REUSED] = {double_open, call_reused},
    [PNR_MANNER_PINNED] = {single_open, call_pinned},
    [PNR_MANNER_RESIDENT] = {single_open, call_resident},
};

static void work_destroy(work *w)
{
    double_close(w);
    single_close(w);
    free(w->code);
    free(w->samples);
    free(w->raw);
}

static int work_create(size_t n, size_t delay, work *w)
{
    uint64_t state = 1;

    memset(w, 0, sizeof *w);
    w->n = n;
    w->code = calloc(n, sizeof *w->code);
    w->samples = calloc(n, sizeof *w->samples);
    w->raw = calloc(n, sizeof *w->raw);
    if (w->code == NULL || w->samples == NULL || w->raw == NULL)
        return PNR_ENOMEMORY;
    for (size_t i = 0; i < n; i++) {
        const size_t to = (i + delay) % n;

        /* 64-bit linear congruence (D. Knuth's MMIX); its top bit is the chip. */
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        w->code[i][0] = state >> 63 ? -1.0 : 1.0;
        w->raw[to][0] = (int16_t)(w->code[i][0] * RAW_AMPLITUDE);
        w->samples[to][0] = w->raw[to][0] / 32768.0;
    }
    return PNR_OK;
}

/* Runs all calls; times: [runs] ns, the first call is discarded. */
static int time_calls(work *w, pnr_manner manner, size_t delay, int runs, double *times,
                      pnr_error *error)
{
    for (int run = -1; run < runs; run++) {
        const uint64_t start_ns = pnr_clock_ns();
        size_t lag = w->n;
        const int rc = manners[manner].call(w, &lag);

        if (run >= 0)
            times[run] = (double)(pnr_clock_ns() - start_ns);
        if (rc != PNR_OK)
            return pnr_error_set(error, rc, "no memory to correlate %zu samples", w->n);
        if (lag != delay)
            return pnr_error_set(error, PNR_EENGINE, "%zu samples: lag %zu came out, not %zu", w->n,
                                 lag, delay);
    }
    return PNR_OK;
}

static int seed(size_t device, size_t n, pnr_manner manner, int runs, double *median_ns,
                double *p99_ns, pnr_error *error)
{
    const size_t delay = n / 3;
    double *times = NULL;
    work w = {0};
    int rc;

    (void)device;
    if (n < 1 || n > (size_t)1 << 24 || runs < 1 || (int)manner < 0 || manner >= PNR_MANNER_COUNT)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "%zu samples, %d runs, manner %d", n, runs,
                             (int)manner);
    rc = work_create(n, delay, &w);
    if (rc == PNR_OK && manners[manner].open != NULL)
        rc = manners[manner].open(&w);
    times = calloc((size_t)runs, sizeof *times);
    if (rc == PNR_OK && times == NULL)
        rc = PNR_ENOMEMORY;
    if (rc != PNR_OK) {
        pnr_error_set(error, rc, "no memory to correlate %zu samples", n);
        goto done;
    }
    rc = time_calls(&w, manner, delay, runs, times, error);
    if (rc == PNR_OK) {
        *median_ns = pnr_median(times, (size_t)runs);
        *p99_ns = pnr_quantile(times, (size_t)runs, 0.99);
    }
done:
    work_destroy(&w);
    free(times);
    return rc;
}

/* A CPU has no link to a device. */
static double link_rate(size_t device, size_t bytes)
{
    (void)device;
    (void)bytes;
    return 0.0;
}

/* The type has the symbol's name already, so the object gets it by its label. */
extern const pnr_engine_bench cpu_bench __asm__(PNR_ENGINE_BENCH_SYMBOL)
    __attribute__((visibility("default")));
const pnr_engine_bench cpu_bench = {
    .abi = PNR_ENGINE_ABI,
    .link_rate = link_rate,
    .seed = seed,
};
