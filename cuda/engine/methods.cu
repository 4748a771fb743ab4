/* SPDX-License-Identifier: MIT */
/* The table of methods of the cuda engine, and the choice of a method for a plan. */
#include "cuda/base/method.h"

#include <cstdio>
#include <cstring>

/* The best method is first. "auto" chooses the first method that supports the plan and for which
 * is_passed_over is false. Memory traffic for each ci16 sample: 4 bytes in walsh (28 above 2^13
 * values), 4 in fused (36 above 16384 points), more in library. */
static const pnr_cuda_method *const methods[] = {
    &pnr_cuda_method_walsh,     &pnr_cuda_method_fused,    &pnr_cuda_method_fused_long,
    &pnr_cuda_method_map_fused, &pnr_cuda_method_map_long, &pnr_cuda_method_library,
};

/* Reports an unknown method with the list of names: "auto, a, b, ...". */
static int say_unknown(const pnr_plan *plan, pnr_error *error)
{
    char names[160] = "auto";

    for (const pnr_cuda_method *method : methods) {
        const size_t length = strlen(names);

        if (strstr(names, method->name) == NULL) /* some methods share a name */
            snprintf(names + length, sizeof names - length, ", %s", method->name);
    }
    return pnr_error_set(error, PNR_ECONFIG, "engine.method = %s: the cuda engine has only %s",
                         plan->method, names);
}

/* True if "auto" skips this method for this plan. If a dwell has several looks, fused transforms
 * the windows a second time for the neighbours of an echo. Method library stores the values of all
 * lags instead. For 2^24 samples at N = 1024 fused took 0.74 ms and library 0.45 ms. If a period
 * must be extended, library is slower than fused. */
static bool is_passed_over(const pnr_cuda_method *method, const pnr_plan *plan)
{
    return method == &pnr_cuda_method_fused && plan->n_looks > 1 &&
           pnr_plan_is_direct(plan->n_samples);
}

int pnr_cuda_method_choose(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                           pnr_error *error)
{
    const bool is_auto = strcmp(plan->method, "auto") == 0;
    bool is_known = is_auto, has_passed = false;
    pnr_error reason = {}; /* the error of the last method that gave a reason */

    for (const pnr_cuda_method *method : methods) {
        if (!is_auto && strcmp(plan->method, method->name) != 0)
            continue;
        is_known = true;
        if (pnr_cuda_method_describe(method, plan, common, choice, &reason) != PNR_OK)
            continue;
        if (is_auto && is_passed_over(method, plan)) {
            has_passed = true;
            pnr_cuda_method_close(common);
            continue;
        }
        if (has_passed)
            snprintf(choice->why, sizeof choice->why,
                     "powers are summed: nothing is transformed twice");
        return PNR_OK;
    }
    if (!is_known)
        return say_unknown(plan, error);
    if (reason.code == PNR_OK)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: method %s knows no maps",
                             plan->method);
    return pnr_error_set(error, reason.code, "%s", reason.text);
}
