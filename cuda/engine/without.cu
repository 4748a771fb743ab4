/* SPDX-License-Identifier: MIT */
/* Searches a dwell again without its echoes. */
#include "cuda/engine/without.h"

#include "cuda/base/memory.h"
#include "cuda/base/method.h"
#include "cuda/base/mix.h"
#include "cuda/engine/engine.h"

#include <cassert>
#include <cstring>

enum { N_BUFFERS = 6 };

/* --- kernels --- */

/* Converts samples to the input of the correlation. The real part of a non-finite sample is set to
 * NaN. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    restore_samples(pnr_cuda_samples raw, uint32_t n_total, uint32_t n_own, uint64_t phase,
                    uint64_t step, bool is_conjugated, float2 *out, uint32_t *n_clipped)
{
    for (uint32_t n = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x; n < n_total;
         n += gridDim.x * PNR_CUDA_THREADS) {
        const pnr_cuda_sample sample = pnr_cuda_read(raw, n);
        float2 x = sample.value;

        if (is_conjugated)
            x.y = -x.y;
        if (step != 0)
            x = pnr_cuda_rotate_back(x, phase + n * step);
        if (!sample.is_finite)
            x.x = NAN;
        if (sample.is_clipped && n < n_own)
            atomicAdd(n_clipped, 1u);
        out[n] = x;
    }
}

/* Subtracts (re + i im) replica[n mod N] exp(2 pi i bins n / N) from every sample n that is not
 * lost. N is n_samples. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    remove_echo(uint32_t n_total, uint32_t n_samples, const float2 *replica, double re, double im,
                double bins, const uint32_t *lost, float2 *x)
{
    for (uint32_t n = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x; n < n_total;
         n += gridDim.x * PNR_CUDA_THREADS) {
        const double turns = bins * (double)n / (double)n_samples;
        const float2 a = replica[n % n_samples];
        double s, c;

        if (lost[n / 32] >> n % 32 & 1)
            continue;
        sincospi(2 * (turns - rint(turns)), &s, &c);

        const float wr = (float)(re * c - im * s), wi = (float)(re * s + im * c);

        x[n].x -= fmaf(wr, a.x, -wi * a.y);
        x[n].y -= fmaf(wr, a.y, wi * a.x);
    }
}

/* --- create and destroy --- */

pnr_plan pnr_cuda_without_plan(const pnr_plan *plan)
{
    pnr_plan second = *plan;

    second.format = PNR_FORMAT_CF32;
    second.n_channels = 1;
    second.first_channel = 0;
    second.tune = {0, 1};
    second.conjugate = false;
    second.batch = second.depth = 1;
    second.measure = false;
    second.will_subtract = false;
    second.method = "auto";
    return second;
}

static size_t list_buffers(const pnr_plan *plan, const pnr_cuda_shape *s, pnr_cuda_without *r,
                           pnr_cuda_buffer list[N_BUFFERS])
{
    const size_t total = s->n_windows * s->n_samples + s->n_tail, words = (total + 31) / 32;
    size_t n = 0;

    list[n++] = {&r->raw, total * pnr_plan_sample_bytes(plan), false};
    list[n++] = {(void **)&r->replica, s->n_samples * sizeof *r->replica, false};
    list[n++] = {(void **)&r->marks, words * sizeof *r->marks, false};
    list[n++] = {(void **)&r->count, sizeof *r->count, false};
    list[n++] = {(void **)&r->host_marks, words * sizeof *r->host_marks, true};
    list[n++] = {(void **)&r->host_count, sizeof *r->host_count, true};
    return n;
}

int pnr_cuda_without_create(const pnr_plan *plan, pnr_engine *engine, pnr_cuda_without *r,
                            pnr_error *error)
{
    pnr_cuda_buffer list[N_BUFFERS];

    r->engine = engine;
    r->slot = pnr_cuda_engine_slot(engine, &r->common);
    return pnr_cuda_buffers_allocate(list, list_buffers(plan, &r->common->shape, r, list),
                                     r->slot->stream, error);
}

void pnr_cuda_without_destroy(pnr_cuda_without *r)
{
    pnr_cuda_buffer list[N_BUFFERS];
    const pnr_plan plan = {};
    const pnr_cuda_shape shape = {};

    pnr_cuda_buffers_free(list, list_buffers(&plan, &shape, r, list));
    memset(r, 0, sizeof *r);
}

/* --- one dwell --- */

/* Uploads samples [first, first + n) of a view. On the device the two spans of the view are
 * adjacent. */
static int upload_samples(const pnr_cuda_common *of, pnr_cuda_without *r,
                          const pnr_windows *windows, size_t first, size_t n, pnr_error *error)
{
    const size_t bytes = of->shape.sample_bytes;
    int code = PNR_OK;

    for (size_t done = 0, count; code == PNR_OK && done < n; done += count) {
        const void *from;

        count = n - done;
        from = pnr_plan_locate(&of->plan, windows, first + done, &count);
        code = pnr_cuda_check(cudaMemcpyAsync((char *)r->raw + done * bytes, from, count * bytes,
                                              cudaMemcpyHostToDevice, r->slot->stream),
                              "upload of the samples", error);
    }
    return code;
}

static int restore_samples_of(const pnr_cuda_common *of, pnr_cuda_without *r, uint64_t first_sample,
                              uint32_t n_total, uint32_t n_own, unsigned n_blocks, pnr_error *error)
{
    const pnr_plan *plan = &of->plan;
    const uint64_t phase = of->tune_step != 0 ? pnr_rational_phase(plan->tune, first_sample) : 0;
    pnr_cuda_samples raw = pnr_cuda_samples_of(of, r->slot);
    int code = pnr_cuda_check(cudaMemsetAsync(r->count, 0, sizeof *r->count, r->slot->stream),
                              "clearing a count", error);

    if (code != PNR_OK)
        return code;
    raw.raw = r->raw;
    restore_samples<<<n_blocks, PNR_CUDA_THREADS, 0, r->slot->stream>>>(
        raw, n_total, n_own, phase, of->tune_step, plan->conjugate, (float2 *)r->slot->raw,
        r->count);
    if ((code = pnr_cuda_check_launch("restore_samples", error)) != PNR_OK)
        return code;
    return pnr_cuda_check(cudaMemcpyAsync(r->host_count, r->count, sizeof *r->count,
                                          cudaMemcpyDeviceToHost, r->slot->stream),
                          "return of a count", error);
}

int pnr_cuda_without_prepare(const pnr_cuda_common *of, pnr_cuda_without *r,
                             const pnr_windows *windows, size_t dwell, const pnr_removal *removals,
                             size_t n_removals, pnr_windows *view, pnr_error *error)
{
    const pnr_cuda_shape *s = &r->common->shape;
    const size_t n_own = s->n_windows * s->n_samples, n_total = n_own + s->n_tail;
    const size_t first = dwell * n_own,
                 needed = (n_total + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS;
    const unsigned n_blocks = needed < 4096 ? (unsigned)needed : 4096;
    cudaStream_t stream = r->slot->stream;
    int code;

    assert(n_total <= UINT32_MAX);
    pnr_cuda_slot_mark_lost(windows, first, n_total, r->host_marks);
    if ((code = upload_samples(of, r, windows, first, n_total, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaMemcpyAsync(r->marks, r->host_marks,
                                               (n_total + 31) / 32 * sizeof *r->marks,
                                               cudaMemcpyHostToDevice, stream),
                               "upload of the lost samples", error)) != PNR_OK ||
        (code = restore_samples_of(of, r, windows->first_sample + first, (uint32_t)n_total,
                                   (uint32_t)n_own, n_blocks, error)) != PNR_OK)
        return code;
    for (size_t i = 0; i < n_removals; i++) {
        const pnr_removal *echo = &removals[i];

        if ((code = pnr_cuda_check(cudaMemcpyAsync(r->replica, echo->replica,
                                                   s->n_samples * sizeof *r->replica,
                                                   cudaMemcpyHostToDevice, stream),
                                   "upload of a replica", error)) != PNR_OK)
            return code;
        remove_echo<<<n_blocks, PNR_CUDA_THREADS, 0, stream>>>(
            (uint32_t)n_total, (uint32_t)s->n_samples, r->replica, echo->peak[0], echo->peak[1],
            echo->bins, r->marks, (float2 *)r->slot->raw);
        if ((code = pnr_cuda_check_launch("remove_echo", error)) != PNR_OK)
            return code;
    }

    /* All samples of the slot are on the device, as if they had been uploaded ahead. */
    *view = *windows;
    view->first_sample += first;
    view->n_dwells = 1;
    view->lost += dwell * s->n_windows;
    r->slot->advanced_first = view->first_sample;
    r->slot->n_advanced = n_total;
    r->slot->skipped = first;
    return PNR_OK;
}
