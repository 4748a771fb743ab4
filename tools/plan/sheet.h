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

/* A list of results. The same calls print lines at once, or collect one JSON object that is printed
 * at the end. */
typedef struct plan_sheet {
    bool json;
    json_t *root;    /* a JSON object that the caller owns */
    json_t *section; /* present section, a member of root */
} plan_sheet;

/* Begins a section for the next results. */
void plan_sheet_section(plan_sheet *sheet, const char *key, const char *title);
/* Adds a number. The units "s", "m", "Hz", "B", "B/s" and "m/s" get an SI prefix, other units get
 * no prefix. NaN is printed as "-", or null in JSON. */
void plan_sheet_number(plan_sheet *sheet, const char *key, const char *label, double value,
                       const char *unit);
void plan_sheet_count(plan_sheet *sheet, const char *key, const char *label, uint64_t value);
void plan_sheet_text(plan_sheet *sheet, const char *key, const char *label, const char *value);
/* Adds row, a new object, to the array `key` of the section. The section then owns row. */
void plan_sheet_row(plan_sheet *sheet, const char *key, json_t *row);
/* Prints a line of text. A JSON sheet prints nothing. */
void plan_sheet_line(const plan_sheet *sheet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the object of a JSON sheet. The lines of a text sheet are already printed. PNR_OK or
 * PNR_EIO. */
int plan_sheet_finish(const plan_sheet *sheet, pnr_error *error);
/* Writes a value with five significant digits and an SI prefix, as "62 ms". Returns `out`. */
char *plan_format_si(double value, const char *unit, char out[48]);

/* Adds the section on Doppler: rows, losses, velocities, and the stretch of the code. */
void plan_doppler(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup);
/* Adds the sections on code, range, Doppler and detection, and on the losses of CFAR and filter. */
void plan_radar(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup);
/* Adds the section on the link and the memory. choice: the engine that would run; NULL: no
 * engine. */
void plan_load(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
               const pnr_engine_choice *choice);
/* Adds for each engine the method that it would use, or the reason why it cannot run. *ops: the
 * engine that would run; NULL: no engine would run, and the returned error states why. */
int plan_engine(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
                const pnr_engine_ops **ops, pnr_engine_choice *choice, pnr_error *error);
/* Finds the longest code that the engine `ops` correlates in at most budget_s a period. Also
 * measures the time of the configured dwell. */
int plan_budget(plan_sheet *sheet, const pnr_config *config, pnr_setup *setup,
                const pnr_engine_ops *ops, double budget_s, pnr_error *error);
/* Measures the pulse of a chip from the strongest echo in source.input, and writes it to
 * code.pulse_path. PNR_EDATA: no echo is strong enough; or an error of pnr_source_open,
 * pnr_setup_create or pnr_new_file_create. */
int plan_pulse(plan_sheet *sheet, const pnr_config *config, pnr_error *error);

#endif
