/* SPDX-License-Identifier: MIT */
/* The reader of profiles and maps: the header must describe the bytes that came with it. */
#include "publisher/message_reader.h"

#include <math.h>
#include <string.h>

/* Reads a finite number; null is an error too. */
static double get_finite(pnr_reader *r, const char *name, bool is_positive)
{
    const double value = pnr_reader_double(r, r->root, name);

    if (!isfinite(value) || (is_positive && value <= 0))
        pnr_reader_wrong(r, name, is_positive ? "is no number above 0" : "is no number");
    return value;
}

/* name: "profile" or "map". Returns the size of a cell in bytes. */
static size_t read_kind(pnr_reader *r, const char *name, pnr_profile_info *out)
{
    char kind[8];

    pnr_reader_string(r, r->root, name, kind, sizeof kind);
    out->is_complex = strcmp(kind, "complex") == 0;
    if (!out->is_complex && strcmp(kind, "power") != 0)
        pnr_reader_wrong(r, name, "is neither power nor complex");
    pnr_reader_string(r, r->root, "dtype", kind, sizeof kind);
    if (strcmp(kind, out->is_complex ? "<c8" : "<f4") != 0)
        pnr_reader_wrong(r, "dtype", "is not that of the cells");
    return out->is_complex ? 2 * sizeof(float) : sizeof(float);
}

/* Reads the last members of profiles and maps; n_cells is known. */
static void read_cells(pnr_reader *r, pnr_profile_info *out)
{
    out->oversample = (size_t)pnr_reader_u64(r, r->root, "oversample", UINT32_MAX);
    if (out->oversample == 0)
        pnr_reader_wrong(r, "oversample", "is 0");
    out->first_cell = (size_t)pnr_reader_u64(r, r->root, "first_cell", UINT32_MAX);
    out->n_gate = (size_t)pnr_reader_u64(r, r->root, "n_gate", UINT32_MAX);
    if (out->first_cell >= out->n_cells || out->n_gate < 1 || out->n_gate > out->n_cells)
        pnr_reader_wrong(r, "n_gate", "or first_cell is beyond n_cells");
    out->delay_s = get_finite(r, "delay_s", false);
    out->step_s = get_finite(r, "step_s", true);
    out->metres_per_second = get_finite(r, "metres_per_second", true);
    out->dwell_samples = pnr_reader_u64(r, r->root, "dwell_samples", INT64_MAX);
    if (out->dwell_samples == 0)
        pnr_reader_wrong(r, "dwell_samples", "is 0");
    out->floor = pnr_reader_double(r, r->root, "floor");
    out->threshold = pnr_reader_double(r, r->root, "threshold");
}

/* Reads the first members of profiles and maps. */
static void open_cells(pnr_reader *r, const char *text, size_t length, pnr_report *report)
{
    memset(report, 0, sizeof *report);
    pnr_reader_open(r, text, length, report->run, report->stream, &report->seq);
    pnr_reader_moment(r, report);
    pnr_reader_string(r, r->root, "engine", report->engine, sizeof report->engine);
}

int pnr_message_read_profile(const char *text, size_t length, size_t bytes, pnr_report *report,
                             pnr_profile_info *info, pnr_error *error)
{
    pnr_reader r = {.error = error};
    size_t each;

    memset(info, 0, sizeof *info);
    open_cells(&r, text, length, report);
    each = read_kind(&r, "profile", info);
    info->n_cells = (size_t)pnr_reader_u64(&r, r.root, "n_cells", UINT32_MAX);
    if (info->n_cells == 0 || bytes % each != 0 || bytes / each != info->n_cells)
        pnr_reader_wrong(&r, "n_cells", "does not fit the bytes that came");
    read_cells(&r, info);
    return pnr_reader_close(&r);
}

/* The shape must have as many cells as arrived. It divides their number, so no product
 * overflows. */
static void read_shape(pnr_reader *r, size_t bytes, size_t each, pnr_map_info *out)
{
    const json_t *shape = pnr_reader_get(r, r->root, "shape"),
                 *codes = pnr_reader_get(r, r->root, "codes");
    size_t *const sizes[] = {&out->n_codes, &out->n_rows, &out->row.n_cells};
    uint64_t left = bytes % each == 0 ? bytes / each : 0;

    if (!json_is_array(shape) || json_array_size(shape) != 3)
        pnr_reader_wrong(r, "shape", "is no list of three");
    for (size_t i = 0; i < 3; i++) {
        const json_int_t n = json_integer_value(json_array_get(shape, i));

        *sizes[i] = n > 0 ? (size_t)n : 0;
        if (n < 1 || left % (uint64_t)n != 0)
            left = 0;
        else
            left /= (uint64_t)n;
    }
    if (left != 1)
        pnr_reader_wrong(r, "shape", "does not fit the bytes that came");
    if (!json_is_array(codes) || json_array_size(codes) != out->n_codes)
        pnr_reader_wrong(r, "codes", "is no list of as many names");
    for (size_t i = 0; i < json_array_size(codes); i++)
        if (!json_is_string(json_array_get(codes, i)))
            pnr_reader_wrong(r, "codes", "has an element that is no name");
}

static void read_doppler(pnr_reader *r, pnr_map_info *out)
{
    const json_t *runs = pnr_reader_get(r, r->root, "doppler");
    const size_t n = json_array_size(runs);
    double last_hz = -INFINITY;
    uint64_t n_rows = 0;

    if (n < 1 || n > PNR_MAX_DOPPLER_RUNS)
        pnr_reader_wrong(r, "doppler", "is no list of 1 to 512");
    for (size_t i = 0; i < n && r->code == PNR_OK; i++) {
        const json_t *object = json_array_get(runs, i);
        pnr_doppler_run *run = &out->runs[i];

        if (!json_is_object(object))
            pnr_reader_wrong(r, "doppler", "has an element that is no object");
        run->first_hz = pnr_reader_double(r, object, "first_hz");
        run->step_hz = pnr_reader_double(r, object, "step_hz");
        run->n_rows = (size_t)pnr_reader_u64(r, object, "n_rows", UINT32_MAX);
        if (!(run->first_hz > last_hz) || !isfinite(run->first_hz) || run->n_rows < 1 ||
            !(run->step_hz > 0 || (run->step_hz == 0 && run->n_rows == 1)))
            pnr_reader_wrong(r, "doppler", "does not ascend");
        last_hz = run->first_hz + run->step_hz * (double)(run->n_rows - 1);
        n_rows += run->n_rows;
    }
    if (n_rows != out->n_rows || !isfinite(last_hz))
        pnr_reader_wrong(r, "doppler", "has not as many rows");
    out->n_runs = n;
}

int pnr_message_read_map(const char *text, size_t length, size_t bytes, pnr_report *report,
                         pnr_map_info *info, pnr_error *error)
{
    pnr_reader r = {.error = error};

    memset(info, 0, sizeof *info);
    open_cells(&r, text, length, report);
    read_shape(&r, bytes, read_kind(&r, "map", &info->row), info);
    read_doppler(&r, info);
    info->mps_per_hz = pnr_reader_double(&r, r.root, "mps_per_hz");
    read_cells(&r, &info->row);
    return pnr_reader_close(&r);
}
