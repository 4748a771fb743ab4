/* SPDX-License-Identifier: MIT */
/* The parts of pnradar-plan: a sheet of results, and the functions that fill its sections. */
#ifndef PNR_TOOLS_PLAN_SHEET_H
#define PNR_TOOLS_PLAN_SHEET_H

#include "base/error.h"
#include "config/config.h"
#include "engine/engine.h"
#include "setup/setup.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A list of results. The same calls print the results at once as lines, or at the end as one JSON
 * object. */
typedef struct plan_sheet {
    bool json;
    json_t *root;    /* a JSON object that the caller owns */
    json_t *section; /* borrowed from root */
} plan_sheet;

/* Begins a section, to which the next results belong. */
void plan_sheet_section(plan_sheet *sheet, const char *key, const char *title);
/* Adds a number. The units "s", "m", "Hz", "B", "B/s" and "m/s" get an SI prefix, other units get
 * none. NaN gives "-", or null in JSON. */
void plan_sheet_number(plan_sheet *sheet, const char *key, const char *label, double value,
                       const char *unit);
void plan_sheet_count(plan_sheet *sheet, const char *key, const char *label, uint64_t value);
void plan_sheet_text(plan_sheet *sheet, const char *key, const char *label, const char *value);
/* Adds row, a new object, to the array `key` of the section. The section then owns row. */
void plan_sheet_row(plan_sheet *sheet, const char *key, json_t *row);
/* Prints a line. For JSON it prints nothing. */
void plan_sheet_line(const plan_sheet *sheet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the JSON object of a JSON sheet; a text sheet is printed already. PNR_OK or PNR_EIO. */
int plan_sheet_finish(const plan_sheet *sheet, pnr_error *error);
/* Writes a value with five significant digits and an SI prefix, as "62 ms". Returns `out`. */
char *plan_format_si(double value, const char *unit, char out[48]);

/* Adds Doppler: rows, losses, velocities, and the limits of stretched codes. */
void plan_doppler(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup);
/* Adds code, range, Doppler, accuracy and detection. */
void plan_radar(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup);
/* Adds the link and the memory. choice: the engine that would run; NULL: no engine. */
void plan_load(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
               const pnr_engine_choice *choice);
/* Adds for each engine the method that it would use, or why it cannot run. *ops: the engine that
 * would run; NULL: no engine would run, and the returned error states why. */
int plan_engine(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
                const pnr_engine_ops **ops, pnr_engine_choice *choice, pnr_error *error);
/* Measures the longest code that ops correlates within budget_s a period, and the configured
 * code. */
int plan_budget(plan_sheet *sheet, const pnr_config *config, pnr_setup *setup,
                const pnr_engine_ops *ops, double budget_s, pnr_error *error);
/* Measures the pulse of a chip from the strongest echo in source.input, and writes it to
 * code.pulse_path. PNR_EDATA: no echo is strong enough; other codes as pnr_source_open,
 * pnr_setup_create and pnr_new_file_create. */
int plan_pulse(plan_sheet *sheet, const pnr_config *config, pnr_error *error);

#endif
