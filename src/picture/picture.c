/* SPDX-License-Identifier: MIT */
/* Collects the profiles and echoes of a picture. */
#include "picture/picture.h"

#include "picture/gnuplot.h"
#include "picture/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const map_names[N_MAPS] = {"mean", "last", "time"};
static const char default_size[] = "1800x1000";

/* --- columns --- */

/* Returns the column of a sample. The sample is not before t->first. If it is after column n_most -
 * 1, calls `fold`, which joins pairs of columns. n_most is even. */
static size_t find_column(pnr_picture *p, timeline *t, size_t n_most, uint64_t sample,
                          void (*fold)(pnr_picture *p))
{
    size_t at;

    while ((sample - t->first) / t->width >= n_most) {
        fold(p);
        t->width *= 2;
        t->n = (t->n + 1) / 2;
    }
    at = (size_t)((sample - t->first) / t->width);
    t->n = at + 1 > t->n ? at + 1 : t->n;
    return at;
}

static void fold_power(pnr_picture *p)
{
    const size_t n = p->run.n_rows, n_half = p->run.n_columns / 2 * n;

    for (size_t c = 0; c < p->run.n_columns / 2; c++)
        for (size_t r = 0; r < n; r++)
            p->cells[c * n + r].power =
                fmax(p->cells[2 * c * n + r].power, p->cells[(2 * c + 1) * n + r].power);
    memset(p->cells + n_half, 0, n_half * sizeof *p->cells);
}

/* Removes the weaker of the two echoes with the least difference in range. So a weak target at
 * another range is kept. */
static void thin_echoes(column *c)
{
    size_t nearest = 0, i;

    for (i = 1; i + 1 < c->n; i++)
        if (c->spots[i + 1].range_m - c->spots[i].range_m <
            c->spots[nearest + 1].range_m - c->spots[nearest].range_m)
            nearest = i;
    if (c->spots[nearest].snr_db >= c->spots[nearest + 1].snr_db)
        nearest++;
    memmove(&c->spots[nearest], &c->spots[nearest + 1], (c->n - nearest - 1) * sizeof c->spots[0]);
    c->n--;
}

static void add_spot(column *c, const spot *s)
{
    size_t at;

    if (c->n == PNR_MAX_COLUMN_ECHOES)
        thin_echoes(c);
    for (at = c->n++; at > 0 && c->spots[at - 1].range_m > s->range_m; at--)
        c->spots[at] = c->spots[at - 1];
    c->spots[at] = *s;
}

static void fold_echoes(pnr_picture *p)
{
    for (size_t c = 0; c < PNR_MAX_COLUMNS / 2; c++) {
        const column *odd = &p->columns[2 * c + 1];

        if (c > 0)
            p->columns[c] = p->columns[2 * c];
        for (size_t i = 0; i < odd->n; i++)
            add_spot(&p->columns[c], &odd->spots[i]);
    }
    memset(p->columns + PNR_MAX_COLUMNS / 2, 0, PNR_MAX_COLUMNS / 2 * sizeof *p->columns);
}

/* --- create --- */

int pnr_picture_check_code(const pnr_picture *p, size_t n_codes, pnr_error *error)
{
    return p->options.code <= n_codes
               ? PNR_OK
               : pnr_error_set(error, PNR_EUSAGE,
                               "--code %zu: want at most %zu, the number of codes", p->options.code,
                               n_codes);
}

static int read_options(pnr_picture *p, pnr_error *error)
{
    const pnr_picture_options *o = &p->options;

    while (o->map != NULL && p->kind < N_MAPS && strcmp(o->map, map_names[p->kind]) != 0)
        p->kind++;
    if (p->kind == N_MAPS)
        return pnr_error_set(error, PNR_EUSAGE, "--map %.60s: want mean, last or time", o->map);
    if (o->n_codes > 0 && pnr_picture_check_code(p, o->n_codes, error) != PNR_OK)
        return PNR_EUSAGE;
    return pnr_gnuplot_read_size(o->size != NULL ? o->size : default_size, &p->width, &p->height,
                                 error);
}

int pnr_picture_create(const pnr_picture_options *o, pnr_picture **out, pnr_error *error)
{
    pnr_picture *p;
    int code;

    *out = NULL;
    if (o->path == NULL && (o->map != NULL || o->size != NULL || o->code > 0 || o->range_db > 0))
        return pnr_error_set(error, PNR_EUSAGE,
                             "--map, --size, --code and --range-db say how --plot draws: they need "
                             "--plot FILE");
    if (o->path == NULL)
        return PNR_OK;
    if ((p = calloc(1, sizeof *p)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--plot: out of memory");
    p->options = *o;
    if ((code = read_options(p, error)) == PNR_OK)
        code = pnr_gnuplot_check(o->path, error);
    p->columns = calloc(PNR_MAX_COLUMNS, sizeof *p->columns);
    p->cells = calloc((size_t)PNR_MAX_COLUMNS * PNR_MAX_RANGES, sizeof *p->cells);
    if (code == PNR_OK && (p->columns == NULL || p->cells == NULL))
        code = pnr_error_set(error, PNR_ENOMEMORY, "--plot: out of memory");
    if (code == PNR_OK)
        *out = p;
    else
        pnr_picture_destroy(p);
    return code;
}

void pnr_picture_destroy(pnr_picture *p)
{
    if (p == NULL)
        return;
    free(p->cells);
    free(p->columns);
    free(p);
}

/* --- results and profiles --- */

/* Begins a new picture if `head` begins a new run. Returns false if `head` belongs to the previous
 * run. */
static bool is_current(pnr_picture *p, const pnr_report *head)
{
    picture_run next = {.head = *head};

    if (strcmp(p->run.head.run, head->run) == 0)
        return true;
    if (strcmp(p->run.before, head->run) == 0)
        return false;
    memcpy(next.before, p->run.head.run, sizeof next.before);
    memset(p->columns, 0, PNR_MAX_COLUMNS * sizeof *p->columns);
    memset(p->cells, 0, p->run.n_columns * p->run.n_rows * sizeof *p->cells);
    p->run = next;
    return true;
}

void pnr_picture_result(pnr_picture *p, const pnr_report *report)
{
    picture_run *run = &p->run;

    if (!is_current(p, report))
        return;
    if (run->echo_time.width == 0)
        run->echo_time = (timeline){.first = report->sample, .width = 1};
    if (report->sample < run->echo_time.first)
        return;
    run->n_results++;
    run->most_periods = report->periods > run->most_periods ? report->periods : run->most_periods;
    for (size_t i = 0; i < report->detection.n_echoes; i++) {
        const pnr_echo *e = &report->detection.echoes[i];
        const spot s = {report->sample, e->range_m, e->snr_db, e->doppler_hz};

        if (!isfinite(e->range_m) || !isfinite(e->snr_db) ||
            (p->options.code > 0 && e->code + 1 != p->options.code))
            continue;
        add_spot(&p->columns[find_column(p, &run->echo_time, PNR_MAX_COLUMNS, report->sample,
                                         fold_echoes)],
                 &s);
        run->n_echoes++;
        if (p->options.code > 0 && run->code_label.text[0] == '\0')
            run->code_label = e->code_name;
        run->greatest_m = fmax(run->greatest_m, fabs(e->range_m));
    }
}

void pnr_picture_status(pnr_picture *p, const pnr_end_summary *status)
{
    memcpy(p->radar_run, status->run, sizeof p->radar_run);
    p->radar = status->radar;
}

/* Returns an even number of columns or rows, at most n_most, for a length on the sheet. A column or
 * row is at least 1.5 pixels wide, so that an echo of one cell is a visible line. */
static size_t count_places(double length_px, size_t n_most)
{
    static const double least_px = 1.5;
    const size_t n = 2 * (size_t)(length_px / least_px / 2);

    return n < n_most ? n : n_most;
}

static void begin_power(pnr_picture *p, const pnr_map *map)
{
    const pnr_profile_info *row = &map->info.row;
    picture_run *run = &p->run;

    run->info = map->info;
    run->is_doppler = p->kind != MAP_TIME && map->info.n_rows > 1;

    const double height_share = run->is_doppler ? PNR_PLOT_HEIGHT_DOPPLER : PNR_PLOT_HEIGHT;
    const size_t n_columns = count_places(PNR_PLOT_WIDTH * p->width, PNR_MAX_COLUMNS);
    const size_t n_ranges = count_places(height_share * p->height, PNR_MAX_RANGES);

    run->doppler = pnr_doppler_bins_of(&map->info, run->is_doppler ? n_columns : 1);
    run->profile_time = (timeline){.first = map->head.sample, .width = row->dwell_samples};
    run->cells_per_row = (row->n_gate + n_ranges - 1) / n_ranges;
    run->n_rows = (row->n_gate + run->cells_per_row - 1) / run->cells_per_row;
    run->n_columns = run->is_doppler ? run->doppler.n_bins : n_columns;
}

/* Finds the greatest power of the rows of a Doppler bin, for each range. In a picture of the mean,
 * adds this power to the cell of column c. In other pictures, replaces the power of the cell if
 * this power is greater. */
static void add_power(pnr_picture *p, size_t c, const pnr_map *map, size_t bin)
{
    const picture_run *run = &p->run;
    const bool is_mean = run->is_doppler && p->kind == MAP_MEAN;
    float powers[PNR_MAX_RANGES];
    size_t first_row;
    const size_t n_rows = pnr_doppler_bins_rows(&run->doppler, &map->info, bin, &first_row);

    pnr_map_reduce(map, p->options.code, first_row, n_rows, (double)run->cells_per_row, run->n_rows,
                   powers);
    for (size_t r = 0; r < run->n_rows; r++) {
        cell *to = &p->cells[c * run->n_rows + r];

        if (!is_mean) {
            to->power = fmax(to->power, (double)powers[r]);
        } else if (isfinite(powers[r])) {
            to->power += (double)powers[r];
            to->n_sum++;
        }
    }
}

void pnr_picture_map(pnr_picture *p, const pnr_map *map)
{
    const uint64_t sample = map->head.sample;
    picture_run *run = &p->run;
    size_t first = 0;

    if (!is_current(p, &map->head))
        return;
    if (run->n_profiles == 0)
        begin_power(p, map);
    if (sample < run->profile_time.first || map->info.row.n_gate != run->info.row.n_gate ||
        map->info.n_rows != run->info.n_rows || map->info.n_codes != run->info.n_codes)
        return;
    run->n_profiles++;
    run->last_sample = sample;
    if (p->options.code > run->info.n_codes)
        return;
    if (!run->is_doppler)
        first = find_column(p, &run->profile_time, run->n_columns, sample, fold_power);
    else if (p->kind == MAP_LAST)
        memset(p->cells, 0, run->n_columns * run->n_rows * sizeof *p->cells);
    for (size_t b = 0; b < run->doppler.n_bins; b++)
        add_power(p, first + b, map, b);
}
