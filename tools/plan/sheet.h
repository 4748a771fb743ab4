/* SPDX-License-Identifier: MIT */
/* The parts of pnradar-plan: a sheet of results, and who fills which section of it. */
#ifndef PNR_TOOLS_PLAN_SHEET_H
#define PNR_TOOLS_PLAN_SHEET_H

#include "base/error.h"
#include "config/config.h"
#include "engine/engine.h"
#include "setup/setup.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Results as they come: lines for people at once, or one JSON object at the end. One call makes
 * both. */
typedef struct plan_sheet {
    bool json;
    json_t *root;    /* owner: the sheet */
    json_t *section; /* borrowed from root */
} plan_sheet;

int plan_sheet_create(bool json, plan_sheet **out, pnr_error *error);
void plan_sheet_destroy(plan_sheet *sheet);
/* What follows belongs to this section. */
void plan_sheet_section(plan_sheet *sheet, const char *key, const char *title);
/* unit: "s", "m", "Hz", "B", "B/s", "m/s" are printed with an SI prefix; anything else as it is.
 * NaN gives null. */
void plan_sheet_number(plan_sheet *sheet, const char *key, const char *label, double value,
                       const char *unit);
void plan_sheet_count(plan_sheet *sheet, const char *key, const char *label, uint64_t value);
void plan_sheet_text(plan_sheet *sheet, const char *key, const char *label, const char *value);
/* A new object at the end of the section's array `key`; the caller fills it. Borrowed. */
json_t *plan_sheet_row(plan_sheet *sheet, const char *key);
/* A line for people only. */
void plan_sheet_line(const plan_sheet *sheet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the JSON object when it is wanted. PNR_OK or PNR_EIO. */
int plan_sheet_finish(const plan_sheet *sheet, pnr_error *error);
/* "62 ms": five significant digits and an SI prefix; returns out. */
char *plan_format_si(double value, const char *unit, char out[48]);

/* Doppler: its rows, losses, velocities, and where a code is stretched too much. */
void plan_doppler(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup);
/* Code, range, Doppler, accuracy, detection. */
void plan_radar(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup);
/* The link and the memory. choice: of the engine that would run; NULL: none. */
void plan_load(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
               const pnr_engine_choice *choice);
/* Bytes of the ring that the pipeline would make. */
size_t plan_ring_bytes(const pnr_config *config, const pnr_setup *setup);
/* Which engine and method, why, and why not the others. *ops: the one that would run, else NULL
 * with the reason. */
int plan_engine(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
                const pnr_engine_ops **ops, pnr_engine_choice *choice, pnr_error *error);
/* The longest code that ops sustains within budget_s a period, measured; and the configured one. */
int plan_budget(plan_sheet *sheet, const pnr_config *config, pnr_setup *setup,
                const pnr_engine_ops *ops, double budget_s, pnr_error *error);
/* "62ms" in seconds; the unit is needed. PNR_OK or PNR_EUSAGE. */
int plan_budget_parse(const char *text, double *budget_s, pnr_error *error);

#endif
