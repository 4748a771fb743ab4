/* SPDX-License-Identifier: MIT */
/* The cpu engine, a module of its own (FFTW is GPL): one dwell a thread, FFTW in single precision. */
#include "engine.h"

#include "clock.h"
#include "engine_cpu_ops.h"
#include "plan.h"
#include "search.h"
#include "transform.h"

#include <fftw3.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

typedef float value[2]; /* re, im */

/* One thread's memory: everything that a dwell passes through. */
typedef struct scratch {
    value *in;       /* [n_transform] a window or a sum of windows, then a product */
    value *spectrum; /* [n_transform] */
    value *window;   /* [n_samples] */
    value *profile;  /* [n_rows][oversample][n_transform] */
    float *power[2]; /* [n_samples] */
} scratch;

typedef struct slot {
    pnr_windows windows;
    uint32_t *lost;         /* [batch][n_periods] */
    uint64_t tag;
    size_t n_taken, n_done; /* dwells */
    pnr_dwell *dwells;
    pnr_candidate *candidates;
    uint32_t *nonfinite;
    float *profile;
    uint64_t stage_ns[PNR_STAGE_COUNT];
} slot;

struct pnr_engine {
    pnr_plan *plan;
    size_t n_transform;
    size_t row;    /* n_transform in whole cache lines: FFTW wants every row aligned alike */
    size_t n_rows; /* profiles kept of a dwell: its windows when they are summed in power, else 1 */
    double energy_of_code;
    value *reference[2]; /* [n_transform] conj(spectrum of the code) / n_transform */
    pnr_rotation rotation;
    fftwf_plan forward, inverse;
    scratch scratch[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    size_t n_threads;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work, done;
    bool quit;
    slot slots[PNR_MAX_DEPTH];
    size_t first, in_flight;
};

static int probe(size_t device, char *text, size_t text_size)
{
    (void)device;
    snprintf(text, text_size, "%s, %ld cores", fftwf_version, sysconf(_SC_NPROCESSORS_ONLN));
    return PNR_OK;
}

static void *alloc_memory(size_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, bytes) != 0)
        return NULL;
    return memset(memory, 0, bytes);
}

/* One thread when stages are measured: their times then add up to the whole. */
static size_t threads_of(const pnr_plan *plan)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t wanted = plan->measure ? 1 : plan->threads > 0 ? plan->threads : (size_t)cores;

    return wanted < 1 ? 1 : wanted > MAX_THREADS ? MAX_THREADS : wanted;
}

static size_t rows_of(const pnr_plan *plan)
{
    return plan->dwell == PNR_DWELL_INCOHERENT ? plan->n_periods : 1;
}

static size_t profile_values(const pnr_plan *plan)
{
    const size_t each = plan->want_profile == PNR_WANT_COMPLEX ? 2 : 1;

    return plan->want_profile == PNR_WANT_NONE ? 0 : each * plan->n_samples * plan->oversample;
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    const int code = pnr_plan_check(plan, "cpu", error);

    if (code != PNR_OK)
        return code;
    if (strcmp(plan->method, "auto") != 0 && strcmp(plan->method, "library") != 0)
        return pnr_error_set(error, PNR_ECONFIG, "engine.method = %s: the cpu engine has only library",
                             plan->method);

    const size_t n = plan->n_samples, length = pnr_plan_transform_length(n);
    const size_t each = sizeof(value) * (2 * length + n + rows_of(plan) * plan->oversample * length) +
                        sizeof(float) * n * plan->oversample;

    memset(choice, 0, sizeof *choice);
    snprintf(choice->method, sizeof choice->method, "library");
    if (length == n)
        snprintf(choice->why, sizeof choice->why, "FFTW at N = %zu itself", n);
    else
        snprintf(choice->why, sizeof choice->why,
                 "FFTW at %zu: N = %zu has a prime factor above 7, so a period is extended", length,
                 n);
    choice->n_transform = length;
    choice->host_bytes = threads_of(plan) * each + sizeof(value) * plan->oversample * length +
                         plan->depth * plan->batch *
                             (sizeof(pnr_dwell) + plan->max_candidates * sizeof(pnr_candidate) +
                              plan->n_periods * 8 + profile_values(plan) * sizeof(float));
    return PNR_OK;
}

/* --- one dwell --- */

/* One window to out[0 .. N-1]. */
static void read_window(const pnr_engine *engine, const pnr_windows *windows, size_t first, value *out,
                        pnr_converted *converted)
{
    const pnr_plan *plan = engine->plan;
    const size_t stride = pnr_plan_sample_bytes(plan);
    const size_t offset = plan->first_channel * pnr_format_get(plan->format)->bytes;

    for (size_t done = 0; done < plan->n_samples;) {
        size_t count = plan->n_samples - done;
        const char *data = pnr_plan_locate(plan, windows, first + done, &count);

        pnr_cpu_convert(plan->format, data + offset, stride, count, plan->conjugate, out + done,
                        converted);
        done += count;
    }
    if (plan->tune.num != 0)
        pnr_cpu_rotate(&engine->rotation,
                       pnr_rational_phase(plan->tune, windows->first_sample + first),
                       pnr_rational_phase(plan->tune, 1), plan->n_samples, out);
}

/* A stopwatch that costs nothing when nobody measures. */
static void lap(const pnr_engine *engine, slot *s, int stage, uint64_t *since)
{
    if (engine->plan->measure) {
        const uint64_t now = pnr_clock_ns();

        s->stage_ns[stage] += now - *since;
        *since = now;
    }
}

/* in[0 .. N-1] -> profile rows for each lag grid. Length trap: an extended transform sees
 * x[n mod N], n < 2N-1, and zeros. */
static void correlate(const pnr_engine *engine, scratch *my, size_t row, slot *s, uint64_t *since)
{
    const size_t n = engine->plan->n_samples, length = engine->n_transform;
    const size_t oversample = engine->plan->oversample;

    if (length != n) {
        memcpy(my->in + n, my->in, (n - 1) * sizeof *my->in);
        memset(my->in + 2 * n - 1, 0, (length - (2 * n - 1)) * sizeof *my->in);
    }
    lap(engine, s, PNR_STAGE_CONVERT, since);
    fftwf_execute_dft(engine->forward, my->in, my->spectrum);
    lap(engine, s, PNR_STAGE_FORWARD, since);
    for (size_t h = 0; h < oversample; h++) {
        pnr_cpu_product(length, (const value *)my->spectrum, (const value *)engine->reference[h],
                        my->in);
        lap(engine, s, PNR_STAGE_PRODUCT, since);
        fftwf_execute_dft(engine->inverse, my->in, my->profile + (row * oversample + h) * engine->row);
        lap(engine, s, PNR_STAGE_INVERSE, since);
    }
}

/* 17 values around a candidate; of an incoherent dwell sum over windows c[k + j] conj(c[k]) / sqrt(P[k]). */
static void gather(const pnr_engine *engine, const scratch *my, size_t rows, pnr_candidate *candidate)
{
    const pnr_plan *plan = engine->plan;
    const bool is_sum = plan->dwell == PNR_DWELL_INCOHERENT;
    const size_t centre = pnr_search_lag(plan, candidate->cell, 0);

    for (int j = -8; j <= 8; j++) {
        const size_t lag = pnr_search_lag(plan, candidate->cell, j);
        double re = 0, im = 0, power = 0;

        for (size_t r = 0; r < rows; r++) {
            const value *c = (const value *)my->profile + r * plan->oversample * engine->row;
            const double cr = is_sum ? (double)c[centre][0] : 1, ci = is_sum ? (double)c[centre][1] : 0;

            re += (double)c[lag][0] * cr + (double)c[lag][1] * ci;
            im += (double)c[lag][1] * cr - (double)c[lag][0] * ci;
            power += cr * cr + ci * ci;
        }

        const double scale = is_sum && power > 0 ? 1 / sqrt(power) : 1;

        candidate->value[j + 8][0] = (float)(re * scale);
        candidate->value[j + 8][1] = (float)(im * scale);
    }
}

static void return_profile(const pnr_engine *engine, const scratch *my, size_t rows, float *out)
{
    const pnr_plan *plan = engine->plan;
    const size_t n = plan->n_samples, oversample = plan->oversample;

    if (rows == 0) {
        memset(out, 0, profile_values(plan) * sizeof *out);
        return;
    }
    for (size_t h = 0; h < oversample; h++) {
        const value *c =
            (const value *)my->profile + ((rows - 1) * oversample + h) * engine->row;

        for (size_t k = 0; k < n; k++) {
            const size_t cell = k * oversample + h;

            if (plan->want_profile == PNR_WANT_POWER) {
                out[cell] = my->power[h][k];
            } else {
                out[2 * cell] = c[k][0];
                out[2 * cell + 1] = c[k][1];
            }
        }
    }
}

static void process_dwell(const pnr_engine *engine, scratch *my, slot *s, size_t d)
{
    const pnr_plan *plan = engine->plan;
    const size_t n = plan->n_samples, oversample = plan->oversample;
    const bool is_sum = plan->dwell == PNR_DWELL_INCOHERENT;
    pnr_dwell *dwell = &s->dwells[d];
    pnr_candidate *candidates = &s->candidates[d * plan->max_candidates];
    uint64_t since = plan->measure ? pnr_clock_ns() : 0;
    size_t rows = 0;

    memset(dwell, 0, sizeof *dwell);
    for (size_t p = 0; p < plan->n_periods; p++) {
        const size_t w = d * plan->n_periods + p;
        const bool into_sum = !is_sum && dwell->n_periods > 0;
        value *target = into_sum ? my->window : my->in;
        pnr_converted converted = {0};

        read_window(engine, &s->windows, w * n, target, &converted);
        dwell->n_clipped += converted.n_clipped;
        dwell->n_nonfinite += converted.n_nonfinite;
        s->nonfinite[w] = (uint32_t)converted.n_nonfinite;
        if (s->windows.lost[w] + converted.n_nonfinite > n / 2)
            continue;
        dwell->n_periods++;
        dwell->n_valid += n - s->windows.lost[w] - converted.n_nonfinite;
        dwell->energy += converted.energy;
        if (into_sum)
            pnr_cpu_add(n, (const value *)my->window, my->in);
        lap(engine, s, PNR_STAGE_CONVERT, &since);
        if (is_sum)
            correlate(engine, my, rows++, s, &since);
    }
    if (!is_sum && dwell->n_periods > 0)
        correlate(engine, my, rows++, s, &since);
    for (size_t h = 0; h < oversample; h++)
        for (size_t r = 0; r < rows; r++)
            pnr_cpu_power(n,
                          (const value *)my->profile + (r * oversample + h) * engine->row,
                          r > 0, my->power[h]);

    const pnr_power power = {{my->power[0], my->power[1]}, n, oversample};

    pnr_search_dwell(plan, engine->energy_of_code, &power, dwell, candidates);
    for (size_t i = 0; i < dwell->n_candidates; i++)
        gather(engine, my, rows, &candidates[i]);
    if (plan->want_profile != PNR_WANT_NONE)
        return_profile(engine, my, rows, s->profile + d * profile_values(plan));
    lap(engine, s, PNR_STAGE_PEAK, &since);
}

/* --- the threads --- */

static slot *slot_with_work(pnr_engine *engine)
{
    for (size_t i = 0; i < engine->in_flight; i++) {
        slot *s = &engine->slots[(engine->first + i) % engine->plan->depth];

        if (s->n_taken < s->windows.n_dwells)
            return s;
    }
    return NULL;
}

typedef struct worker {
    pnr_engine *engine;
    scratch *my;
} worker;

static void *work(void *argument)
{
    const worker me = *(worker *)argument;
    pnr_engine *engine = me.engine;
    slot *s;

    free(argument);
    pthread_mutex_lock(&engine->lock);
    while (true) {
        while ((s = slot_with_work(engine)) == NULL && !engine->quit)
            pthread_cond_wait(&engine->work, &engine->lock);
        if (s == NULL)
            break;

        const size_t d = s->n_taken++;

        pthread_mutex_unlock(&engine->lock);
        process_dwell(engine, me.my, s, d);
        pthread_mutex_lock(&engine->lock);
        if (++s->n_done == s->windows.n_dwells)
            pthread_cond_broadcast(&engine->done);
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    const pnr_plan *plan = engine->plan;

    pthread_mutex_lock(&engine->lock);

    const bool is_full = engine->in_flight == plan->depth;

    if (!is_full) {
        slot *s = &engine->slots[(engine->first + engine->in_flight) % plan->depth];

        s->windows = *job->windows;
        s->windows.lost = memcpy(s->lost, job->windows->lost,
                                 job->windows->n_dwells * plan->n_periods * sizeof *s->lost);
        s->tag = job->tag;
        s->n_taken = s->n_done = 0;
        memset(s->stage_ns, 0, sizeof s->stage_ns);
        engine->in_flight++;
        pthread_cond_broadcast(&engine->work);
    }
    pthread_mutex_unlock(&engine->lock);
    return is_full ? PNR_EAGAIN : PNR_OK;
}

static int collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    int code = PNR_EAGAIN;

    pthread_mutex_lock(&engine->lock);
    if (engine->in_flight > 0) {
        slot *s = &engine->slots[engine->first];

        while (wait && s->n_done < s->windows.n_dwells)
            pthread_cond_wait(&engine->done, &engine->lock);
        if (s->n_done == s->windows.n_dwells) {
            *result = (pnr_result){.tag = s->tag,
                                   .n_dwells = s->windows.n_dwells,
                                   .dwells = s->dwells,
                                   .candidates = s->candidates,
                                   .nonfinite = s->nonfinite,
                                   .profile = s->profile};
            memcpy(result->stage_ns, s->stage_ns, sizeof s->stage_ns);
            engine->first = (engine->first + 1) % engine->plan->depth;
            engine->in_flight--;
            code = PNR_OK;
        }
    }
    pthread_mutex_unlock(&engine->lock);
    return code;
}

/* --- life --- */

static void scratch_destroy(scratch *my)
{
    fftwf_free(my->in);
    fftwf_free(my->spectrum);
    fftwf_free(my->window);
    fftwf_free(my->profile);
    fftwf_free(my->power[0]);
    fftwf_free(my->power[1]);
}

/* Touched here, so that no page fault waits in the first dwell. */
static void *zeroed(size_t bytes)
{
    void *memory = fftwf_malloc(bytes);

    return memory != NULL ? memset(memory, 0, bytes) : NULL;
}

static int scratch_create(const pnr_engine *engine, scratch *my)
{
    const pnr_plan *plan = engine->plan;
    const size_t length = engine->n_transform;

    my->in = zeroed(length * sizeof *my->in);
    my->spectrum = zeroed(length * sizeof *my->spectrum);
    my->window = zeroed(plan->n_samples * sizeof *my->window);
    my->profile = zeroed(engine->n_rows * plan->oversample * engine->row * sizeof *my->profile);
    for (size_t h = 0; h < plan->oversample; h++)
        if ((my->power[h] = zeroed(plan->n_samples * sizeof **my->power)) == NULL)
            return PNR_ENOMEMORY;
    return my->in != NULL && my->spectrum != NULL && my->window != NULL && my->profile != NULL
               ? PNR_OK
               : PNR_ENOMEMORY;
}

static int slot_create(const pnr_plan *plan, slot *s)
{
    s->lost = calloc(plan->batch * plan->n_periods, sizeof *s->lost);
    s->dwells = calloc(plan->batch, sizeof *s->dwells);
    s->candidates = calloc(plan->batch * plan->max_candidates, sizeof *s->candidates);
    s->nonfinite = calloc(plan->batch * plan->n_periods, sizeof *s->nonfinite);
    if (plan->want_profile != PNR_WANT_NONE &&
        (s->profile = zeroed(plan->batch * profile_values(plan) * sizeof *s->profile)) == NULL)
        return PNR_ENOMEMORY;
    return s->lost != NULL && s->dwells != NULL && s->candidates != NULL && s->nonfinite != NULL
               ? PNR_OK
               : PNR_ENOMEMORY;
}

/* conj(DFT of the code, zero beyond N) / length, in double, rounded once. */
static int reference_create(pnr_engine *engine, size_t h)
{
    const size_t n = engine->plan->n_samples, length = engine->n_transform;
    double(*spectrum)[2] = calloc(length, sizeof *spectrum);
    int code = PNR_ENOMEMORY;

    engine->reference[h] = zeroed(length * sizeof **engine->reference);
    if (spectrum != NULL && engine->reference[h] != NULL) {
        memcpy(spectrum, engine->plan->references + h * n, n * sizeof *spectrum);
        code = pnr_transform_forward(spectrum, length);
    }
    for (size_t i = 0; code == PNR_OK && i < length; i++) {
        engine->reference[h][i][0] = (float)(spectrum[i][0] / (double)length);
        engine->reference[h][i][1] = (float)(-spectrum[i][1] / (double)length);
    }
    free(spectrum);
    return code;
}

static void stop_threads(pnr_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->quit = true;
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    for (size_t i = 0; i < engine->n_threads; i++)
        pthread_join(engine->threads[i], NULL);
}

static void destroy(pnr_engine *engine)
{
    if (engine == NULL)
        return;
    stop_threads(engine);
    if (engine->forward != NULL)
        fftwf_destroy_plan(engine->forward);
    if (engine->inverse != NULL)
        fftwf_destroy_plan(engine->inverse);
    for (size_t i = 0; i < MAX_THREADS; i++)
        scratch_destroy(&engine->scratch[i]);
    for (size_t i = 0; i < PNR_MAX_DEPTH; i++) {
        free(engine->slots[i].lost);
        free(engine->slots[i].dwells);
        free(engine->slots[i].candidates);
        free(engine->slots[i].nonfinite);
        fftwf_free(engine->slots[i].profile);
    }
    fftwf_free(engine->reference[0]);
    fftwf_free(engine->reference[1]);
    pthread_cond_destroy(&engine->work);
    pthread_cond_destroy(&engine->done);
    pthread_mutex_destroy(&engine->lock);
    free(engine->plan);
    free(engine);
}

static int start_thread(pnr_engine *engine)
{
    worker *me = malloc(sizeof *me);

    if (me == NULL)
        return PNR_ENOMEMORY;
    *me = (worker){engine, &engine->scratch[engine->n_threads]};
    if (pthread_create(&engine->threads[engine->n_threads], NULL, work, me) != 0) {
        free(me);
        return PNR_ENOMEMORY;
    }
    engine->n_threads++;
    return PNR_OK;
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    pnr_engine_choice choice;
    int code;

    *out = NULL;
    if ((code = describe(plan, &choice, error)) != PNR_OK)
        return code;

    pnr_engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cpu: out of memory");
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->work, NULL);
    pthread_cond_init(&engine->done, NULL);
    code = PNR_ENOMEMORY;
    if ((engine->plan = pnr_plan_copy(plan)) == NULL)
        goto fail;
    engine->n_transform = choice.n_transform;
    engine->row = (choice.n_transform + 7) / 8 * 8;
    engine->n_rows = rows_of(plan);
    engine->energy_of_code = pnr_plan_code_energy(plan);
    pnr_cpu_rotation_tables(&engine->rotation);

    const size_t n_threads = threads_of(plan);

    for (size_t i = 0; i < n_threads; i++)
        if ((code = scratch_create(engine, &engine->scratch[i])) != PNR_OK)
            goto fail;
    for (size_t i = 0; i < plan->depth; i++)
        if ((code = slot_create(plan, &engine->slots[i])) != PNR_OK)
            goto fail;
    for (size_t h = 0; h < plan->oversample; h++)
        if ((code = reference_create(engine, h)) != PNR_OK)
            goto fail;

    /* Estimated plans are the same in every process, so the results are the same bits. */
    scratch *my = &engine->scratch[0];
    const int length = (int)engine->n_transform;

    engine->forward = fftwf_plan_dft_1d(length, my->in, my->spectrum, FFTW_FORWARD,
                                        FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    engine->inverse = fftwf_plan_dft_1d(length, my->in, my->profile, FFTW_BACKWARD,
                                        FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    code = PNR_ENOMEMORY;
    if (engine->forward == NULL || engine->inverse == NULL)
        goto fail;
    for (size_t i = 0; i < n_threads; i++)
        if ((code = start_thread(engine)) != PNR_OK)
            goto fail;
    *out = engine;
    return PNR_OK;
fail:
    destroy(engine);
    return pnr_error_set(error, code, "engine cpu: no memory for %llu bytes (N = %zu, transform %zu)",
                         (unsigned long long)choice.host_bytes, plan->n_samples,
                         choice.n_transform);
}

__attribute__((visibility("default"))) const pnr_engine_ops *pnr_engine_module(void);

const pnr_engine_ops *pnr_engine_module(void)
{
    static const pnr_engine_ops ops = {
        .abi = PNR_ENGINE_ABI,
        .name = "cpu",
        .title = "FFTW, single precision, one dwell a thread",
        .probe = probe,
        .alloc = alloc_memory,
        .free = free,
        .describe = describe,
        .create = create,
        .destroy = destroy,
        .submit = submit,
        .collect = collect,
    };

    return &ops;
}
