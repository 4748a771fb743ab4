/* SPDX-License-Identifier: MIT */
/* Computes the engine and load sections of pnradar-plan: the engine that would run, the reason for
 * this choice, the rate on the link, and the memory. */
#include "tools/plan/sheet.h"

#include "base/format.h"
#include "correlator/engines.h"
#include "engine/plan.h"

#include <stdio.h>
#include <string.h>

/* Adds a row for one engine: the method that it would use, or the reason why it cannot run. */
static void ask_engine(plan_sheet *sheet, const char *name, const pnr_setup *setup, bool chosen)
{
    const pnr_engine_ops *ops = NULL;
    pnr_engine_choice choice = {0};
    pnr_error reason = {0};
    char text[256] = "";
    int rc = pnr_engine_find(name, setup->plan.device, &ops, &reason);

    if (rc == PNR_OK)
        rc = ops->probe(setup->plan.device, text, sizeof text);
    if (rc == PNR_OK)
        rc = ops->describe(&setup->plan, &choice, &reason);
    if (rc != PNR_OK) {
        if (reason.text[0] == '\0')
            pnr_error_set(&reason, rc, "%s", text[0] ? text : pnr_error_text(rc));
        plan_sheet_row(sheet, "engines",
                       json_pack("{s:s, s:b, s:b, s:s}", "name", name, "works", 0, "chosen", chosen,
                                 "reason", reason.text));
        plan_sheet_line(sheet, "  %-10s no: %s\n", name, reason.text);
        return;
    }
    plan_sheet_row(sheet, "engines",
                   json_pack("{s:s, s:b, s:b, s:s, s:s, s:s, s:I, s:I, s:I}", "name", name, "works",
                             1, "chosen", chosen, "found", text, "method", choice.method, "why",
                             choice.why, "n_transform", (json_int_t)choice.n_transform,
                             "host_bytes", (json_int_t)choice.host_bytes, "device_bytes",
                             (json_int_t)choice.device_bytes));
    plan_sheet_line(sheet, "  %-10s %s: %s, method %s: %s\n", name, chosen ? "RUNS" : "would work",
                    text, choice.method, choice.why);
}

int plan_engine(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
                const pnr_engine_ops **ops, pnr_engine_choice *choice, pnr_error *error)
{
    const bool is_auto = strcmp(config->engine.name, "auto") == 0;
    char why[512];
    int rc;

    *ops = NULL;
    plan_sheet_section(sheet, "engine", "engine");
    rc = pnr_engine_choose(config->engine.name, &setup->plan, ops, choice, error);
    if (rc != PNR_OK)
        *ops = NULL;
    for (const char *const *name = pnr_engine_names(); *name != NULL; name++)
        ask_engine(sheet, *name, setup, *ops != NULL && strcmp(*name, (*ops)->name) == 0);
    if (*ops == NULL) {
        plan_sheet_text(sheet, "reason", "none runs", error->text);
        return rc;
    }
    snprintf(why, sizeof why, "%s/%s, %s", (*ops)->name, choice->method,
             is_auto ? "the best that works (engine.name = auto)" : "named by engine.name");
    plan_sheet_text(sheet, "choice", "what runs", why);
    plan_sheet_count(sheet, "n_transform", "length of the transforms", choice->n_transform);
    plan_sheet_count(sheet, "batch", "dwells a submit, at most", setup->plan.batch);
    plan_sheet_count(sheet, "depth", "submits in flight, at most", pnr_setup_in_flight(setup));
    return PNR_OK;
}

void plan_load(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
               const pnr_engine_choice *choice)
{
    const pnr_plan *plan = &setup->plan;
    const size_t sample_bytes = pnr_plan_sample_bytes(plan);
    const double rate_hz = pnr_rational_double(setup->radar.rate_hz);
    const double ring = (double)(pnr_setup_ring_samples(setup, config) * sample_bytes);
    const double n_devices = (double)(pnr_setup_in_flight(setup) / plan->depth);
    const double host = choice != NULL ? n_devices * (double)choice->host_bytes : 0;
    const double device = choice != NULL ? (double)choice->device_bytes : 0;

    plan_sheet_section(sheet, "load", "load");
    plan_sheet_text(sheet, "format", "sample format", pnr_format_get(plan->format)->name);
    plan_sheet_count(sheet, "n_channels", "channels", plan->n_channels);
    plan_sheet_number(sheet, "link_bytes_per_s", "on the link", rate_hz * (double)sample_bytes,
                      "B/s");
    plan_sheet_number(sheet, "dwells_per_s", "results a second",
                      1.0 / (setup->radar.period_s * (double)pnr_plan_windows(plan)), "");
    plan_sheet_number(sheet, "ring_bytes", "memory of the ring", ring, "B");
    plan_sheet_number(sheet, "ring_s", "samples in the ring last",
                      ring / (rate_hz * (double)sample_bytes), "s");
    if (!pnr_plan_is_plain(plan))
        plan_sheet_number(sheet, "map_bytes", "memory of a result's map",
                          (double)(pnr_plan_cells(plan) * sizeof(float)), "B");
    plan_sheet_number(sheet, "host_bytes", "memory of the engine on the host", host, "B");
    plan_sheet_number(sheet, "device_bytes", "memory of the engine on each device", device, "B");
    plan_sheet_number(sheet, "total_host_bytes", "ring and engine on the host", ring + host, "B");
}
