/* SPDX-License-Identifier: MIT */
/* Methods of the cuda engine: the table, and which of them a plan gets. */
#include "cuda/base/method.h"

#include <cstdio>
#include <cstring>

/*
 * Best first: auto takes the first that suits. The last one suits every plan that fits.
 * By the bytes that a sample of 16 bits moves: walsh 4, above 2^13 values 20; fused 4, above 16384
 * points 36; walsh at several samples a chip about 64, above 2^13 values 120, for its profiles go
 * through memory; library more than that wherever fused does not suit. Measured at several samples
 * a chip: walsh takes 1.3 to 2.6 times as long as fused, half as long as library.
 */
static const pnr_cuda_method *const methods[] = {
    &pnr_cuda_method_walsh,       &pnr_cuda_method_fused,   &pnr_cuda_method_fused_long,
    &pnr_cuda_method_walsh_parts, &pnr_cuda_method_library, &pnr_cuda_method_map_fused,
    &pnr_cuda_method_map,
};
static const size_t N_METHODS = sizeof methods / sizeof *methods;

/* Of two forms of the same name, is this the plan's? */
static bool is_form(const pnr_cuda_method *method, const pnr_plan *plan)
{
    const bool is_long = pnr_cuda_fused_is_long(plan->n_samples);
    const bool has_parts = plan->m_degree != 0 && plan->m_samples > 1;

    return method == &pnr_cuda_method_fused         ? !is_long
           : method == &pnr_cuda_method_fused_long  ? is_long
           : method == &pnr_cuda_method_walsh       ? !has_parts
           : method == &pnr_cuda_method_walsh_parts ? has_parts
                                                    : true;
}

static int ask(const pnr_cuda_method *method, const pnr_plan *plan, pnr_engine_choice *choice,
               pnr_error *error)
{
    const pnr_cuda_shape shape = pnr_cuda_shape_of(plan);
    uint64_t shared_bytes = 0;

    memset(choice, 0, sizeof *choice);
    snprintf(choice->method, sizeof choice->method, "%s", method->name);

    const int code = method->suits(plan, choice, &shared_bytes, error);

    if (code != PNR_OK)
        return code;
    pnr_cuda_slot_count(plan, &shape, &choice->device_bytes, &choice->host_bytes);
    choice->host_bytes *= plan->depth;
    choice->device_bytes = choice->device_bytes * plan->depth + shared_bytes +
                           pnr_plan_windows(plan) * sizeof(double); /* the thresholds */
    return PNR_OK;
}

/* "auto, a, b, ..." */
static int say_unknown(const pnr_plan *plan, pnr_error *error)
{
    char names[160] = "auto";

    for (size_t i = 0; i < N_METHODS; i++) {
        const size_t length = strlen(names);

        if (strstr(names, methods[i]->name) != NULL)
            continue; /* its other form */
        snprintf(names + length, sizeof names - length, ", %s", methods[i]->name);
    }
    return pnr_error_set(error, PNR_ECONFIG, "engine.method = %s: the cuda engine has only %s",
                         plan->method, names);
}

/* What auto leaves to the next method though it would do. Dwells that add powers: of those with an
 * echo fused transforms the windows again for its neighbours, where library has kept them: measured
 * 0.74 ms against 0.43 for 2^24 samples at N = 1024. Where library must extend a period it is the
 * slower one. */
static bool is_passed_over(const pnr_cuda_method *method, const pnr_plan *plan)
{
    return method == &pnr_cuda_method_fused && plan->n_looks > 1 &&
           pnr_plan_is_direct(plan->n_samples);
}

/* And for nothing else? */
static bool is_for_maps(const pnr_cuda_method *method)
{
    return method == &pnr_cuda_method_map || method == &pnr_cuda_method_map_fused;
}

/* Does it take whatever the others do not? */
static bool is_last(const pnr_cuda_method *method)
{
    return method == &pnr_cuda_method_library || method == &pnr_cuda_method_map;
}

int pnr_cuda_method_choose(const pnr_plan *plan, const pnr_cuda_method **method,
                           pnr_engine_choice *choice, pnr_error *error)
{
    const bool is_auto = strcmp(plan->method, "auto") == 0, is_map = !pnr_plan_is_plain(plan);
    bool is_known = false;
    int code = PNR_ECONFIG;

    for (size_t i = 0; i < N_METHODS && code != PNR_OK; i++) {
        if (!is_auto && strcmp(plan->method, methods[i]->name) != 0)
            continue;
        is_known = true;
        if (is_for_maps(methods[i]) != is_map || (!is_map && !is_form(methods[i], plan)))
            continue;
        /* Of auto only the last method's refusal is the engine's. */
        *method = methods[i];
        if (is_auto && is_passed_over(*method, plan))
            continue;
        code = ask(*method, plan, choice, is_auto && !is_last(*method) ? NULL : error);
        if (!is_auto)
            return code;
    }
    if (code == PNR_OK && is_auto && *method == &pnr_cuda_method_library &&
        !pnr_cuda_fused_is_long(plan->n_samples) && is_passed_over(&pnr_cuda_method_fused, plan))
        snprintf(choice->why, sizeof choice->why,
                 "powers are summed: nothing is transformed twice");
    if (code == PNR_ECONFIG && is_known)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: method %s knows no maps",
                             plan->method);
    return code == PNR_ECONFIG ? say_unknown(plan, error) : code;
}

pnr_cuda_samples pnr_cuda_samples_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot)
{
    const pnr_format_info *format = pnr_format_get(common->plan.format);
    pnr_cuda_samples samples = {};

    samples.raw = slot->raw;
    samples.format = common->plan.format;
    samples.n_samples = (uint32_t)common->shape.n_samples;
    samples.n_channels = (uint32_t)common->plan.n_channels;
    samples.channel = (uint32_t)common->plan.first_channel;
    samples.scale = (float)format->scale;
    samples.offset = (float)format->offset;
    return samples;
}

size_t pnr_cuda_block_bytes(size_t device)
{
    int bytes;

    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, (int)device) ==
        cudaSuccess)
        return (size_t)bytes;
    (void)cudaGetLastError();
    return 227 << 10;
}
