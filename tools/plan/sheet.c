/* SPDX-License-Identifier: MIT */
/* Prints the sheet of pnradar-plan. Each result is a line of text, or a member of one JSON
 * object. */
#include "tools/plan/sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void plan_sheet_section(plan_sheet *sheet, const char *key, const char *title)
{
    sheet->section = json_object();
    json_object_set_new(sheet->root, key, sheet->section);
    plan_sheet_line(sheet, "%s%s\n", json_object_size(sheet->root) > 1 ? "\n" : "", title);
}

char *plan_format_si(double value, const char *unit, char out[48])
{
    static const struct {
        double scale;
        const char *prefix;
    } prefixes[] = {{1e12, "T"}, {1e9, "G"},  {1e6, "M"},  {1e3, "k"},
                    {1.0, ""},   {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
    static const char *const scaled[] = {"s", "m", "Hz", "B", "B/s", "m/s"};
    const size_t n_prefixes = sizeof prefixes / sizeof prefixes[0];
    /* Megametres and kiloseconds are unusual. So m and m/s have no prefix greater than kilo, and s
     * has no prefix for multiples. */
    const double most = strcmp(unit, "s") == 0 ? 1.0 : *unit == 'm' ? 1e3 : 1e12;

    for (size_t u = 0; u < sizeof scaled / sizeof scaled[0]; u++) {
        if (strcmp(unit, scaled[u]) != 0 || !isfinite(value) || value == 0)
            continue;
        for (size_t i = 0; i < n_prefixes; i++) {
            if (prefixes[i].scale > most)
                continue;
            if (fabs(value) >= prefixes[i].scale * 0.999995 || i + 1 == n_prefixes) {
                snprintf(out, 48, "%.*g %s%s", fabs(value) >= 1e5 * prefixes[i].scale ? 9 : 5,
                         value / prefixes[i].scale, prefixes[i].prefix, unit);
                return out;
            }
        }
    }
    if (isfinite(value))
        snprintf(out, 48, "%.5g%s%s", value, *unit ? " " : "", unit);
    else
        snprintf(out, 48, "-");
    return out;
}

void plan_sheet_number(plan_sheet *sheet, const char *key, const char *label, double value,
                       const char *unit)
{
    char text[48];

    json_object_set_new(sheet->section, key, isfinite(value) ? json_real(value) : json_null());
    plan_sheet_line(sheet, "  %-36s %s\n", label, plan_format_si(value, unit, text));
}

void plan_sheet_count(plan_sheet *sheet, const char *key, const char *label, uint64_t value)
{
    json_object_set_new(sheet->section, key, json_integer((json_int_t)value));
    plan_sheet_line(sheet, "  %-36s %llu\n", label, (unsigned long long)value);
}

void plan_sheet_text(plan_sheet *sheet, const char *key, const char *label, const char *value)
{
    json_object_set_new(sheet->section, key, json_string(value));
    plan_sheet_line(sheet, "  %-36s %s\n", label, value);
}

void plan_sheet_row(plan_sheet *sheet, const char *key, json_t *row)
{
    json_t *array = json_object_get(sheet->section, key);

    if (array == NULL) {
        array = json_array();
        json_object_set_new(sheet->section, key, array);
    }
    json_array_append_new(array, row);
}

void plan_sheet_line(const plan_sheet *sheet, const char *format, ...)
{
    va_list arguments;

    if (sheet->json)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

int plan_sheet_finish(const plan_sheet *sheet, pnr_error *error)
{
    if (sheet->json && json_object_size(sheet->root) > 0) {
        json_dumpf(sheet->root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
        putchar('\n');
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        return pnr_error_set(error, PNR_EIO, "cannot write to stdout");
    return PNR_OK;
}
