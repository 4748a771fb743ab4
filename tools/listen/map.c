/* SPDX-License-Identifier: MIT */
/* The range-Doppler picture: the maps of a run, gathered on a grid of bounded size, and drawn. */
#include "tools/listen/map.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DOPPLER = 1000,
    MAX_RANGE = 1000,
    NOTHING = -999,   /* dB below any power; for a NaN gnuplot would print a warning */
    MANY_ECHOES = 400 /* more echoes are drawn as dots, so that the map stays visible */
};

static const char *const kinds[] = {
    [LISTEN_MAP_MEAN] = "mean", [LISTEN_MAP_LAST] = "last", [LISTEN_MAP_TIME] = "time"};

struct listen_map {
    listen_map_kind kind;
    uint64_t n_maps;
    uint64_t last_sample; /* of the last map */
    pnr_map_info info;    /* of the first map */
    listen_doppler doppler;
    size_t cells_per_bin, n_range;
    double *sums; /* [doppler.n_bins][n_range] of power over the floor */
    uint32_t *counts;
};

int listen_map_find(const char *name, listen_map_kind *out, pnr_error *error)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(name, kinds[i]) == 0) {
            *out = (listen_map_kind)i;
            return PNR_OK;
        }
    }
    return pnr_error_set(error, PNR_EUSAGE, "--map %s: want mean, last or time", name);
}

int listen_map_create(listen_map_kind kind, listen_map **out, pnr_error *error)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--plot: out of memory");
    (*out)->kind = kind;
    return PNR_OK;
}

static void drop_grid(listen_map *m)
{
    free(m->sums);
    free(m->counts);
    m->sums = NULL;
    m->counts = NULL;
}

void listen_map_destroy(listen_map *m)
{
    if (m == NULL)
        return;
    drop_grid(m);
    free(m);
}

void listen_map_clear(listen_map *m)
{
    drop_grid(m);
    m->n_maps = 0;
}

/* --- gather --- */

static int begin(listen_map *m, const listen_profile *profile, pnr_error *error)
{
    size_t n;

    m->info = profile->map;
    m->doppler = listen_doppler_of(&m->info, MAX_DOPPLER);
    m->cells_per_bin = (m->info.row.n_gate + MAX_RANGE - 1) / MAX_RANGE;
    m->n_range = (m->info.row.n_gate + m->cells_per_bin - 1) / m->cells_per_bin;
    n = m->doppler.n_bins * m->n_range;
    m->sums = calloc(n, sizeof *m->sums);
    m->counts = calloc(n, sizeof *m->counts);
    if (m->sums != NULL && m->counts != NULL)
        return PNR_OK;
    drop_grid(m);
    return pnr_error_set(error, PNR_ENOMEMORY, "--plot: out of memory");
}

int listen_map_add(listen_map *m, const listen_profile *profile, pnr_error *error)
{
    float bins[MAX_RANGE];
    size_t d, i, first_row;
    int code;

    if (m->kind == LISTEN_MAP_TIME || profile->map.n_rows < 2)
        return PNR_OK;
    if (m->sums == NULL && (code = begin(m, profile, error)) != PNR_OK)
        return code;
    if (profile->map.n_rows != m->info.n_rows || profile->map.row.n_gate != m->info.row.n_gate)
        return PNR_OK;
    m->n_maps++;
    m->last_sample = profile->head.sample;
    for (d = 0; d < m->doppler.n_bins; d++) {
        const size_t n_rows = listen_doppler_rows(&m->doppler, &profile->map, d, &first_row);

        listen_profile_reduce(profile, first_row, n_rows, (double)m->cells_per_bin, m->n_range,
                              bins);
        for (i = 0; i < m->n_range; i++) {
            const size_t at = d * m->n_range + i;

            if (m->kind == LISTEN_MAP_LAST) {
                m->sums[at] = 0;
                m->counts[at] = 0;
            }
            if (isfinite(bins[i])) {
                m->sums[at] += (double)bins[i];
                m->counts[at]++;
            }
        }
    }
    return PNR_OK;
}

uint64_t listen_map_count(const listen_map *m)
{
    return m->n_maps;
}

bool listen_map_shows(const listen_map *m, uint64_t sample)
{
    return m->kind == LISTEN_MAP_MEAN || sample == m->last_sample;
}

/* --- draw --- */

static bool has_velocity(const listen_map *m)
{
    return isfinite(m->info.mps_per_hz);
}

static double range_of(const listen_map *m, double cell)
{
    return m->info.row.metres_per_second * (m->info.row.delay_s + cell * m->info.row.step_s);
}

static bool is_km(const listen_map *m)
{
    return fmax(fabs(range_of(m, 0)), fabs(range_of(m, (double)m->info.row.n_gate))) >= 1e4;
}

double listen_map_x(const listen_map *m, double doppler_hz)
{
    return has_velocity(m) ? doppler_hz * m->info.mps_per_hz : doppler_hz;
}

double listen_map_y(const listen_map *m, double range_m)
{
    return is_km(m) ? range_m * 1e-3 : range_m;
}

void listen_map_title(const listen_map *m, char *out, size_t size)
{
    const int n = m->kind == LISTEN_MAP_LAST
                      ? snprintf(out, size, "the last of %" PRIu64 " maps", m->n_maps)
                      : snprintf(out, size, "mean of %" PRIu64 " maps", m->n_maps);

    if (m->info.n_codes > 1 && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", the greatest of %zu codes", m->info.n_codes);
}

void listen_image_cell(FILE *to, double power, double *greatest_db)
{
    const double db = power > 0 ? 10 * log10(power) : (double)NAN;

    *greatest_db = fmax(*greatest_db, db);
    if (isnan(db))
        fprintf(to, "%d ", NOTHING);
    else
        fprintf(to, "%.1f ", db);
}

void listen_image_palette(FILE *to)
{
    fputs("set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n",
          to);
}

void listen_image_colours(FILE *to, double greatest_db)
{
    listen_image_palette(to);
    fputs("set cblabel 'power over the noise floor, dB'\n"
          "set object rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb 'gray'\n",
          to);
    fprintf(to, "set cbrange [0:%g]\n", fmax(20, 5 * ceil(greatest_db / 5)));
}

void listen_image_plot(FILE *to, double x0, double dx, double y0, double dy)
{
    fprintf(to,
            "plot $map matrix using (%.9g+%.9g*$1):(%.9g+%.9g*$2):($3>%d?$3:NaN) with image "
            "notitle",
            x0, dx, y0, dy, NOTHING);
}

void listen_image_echoes(FILE *to, size_t n)
{
    if (n > 0)
        fprintf(to, ", $echoes using 1:2 with points %s lc rgb 'red' notitle",
                n > MANY_ECHOES ? "pt 7 ps 0.15" : "pt 6 ps 1");
    fputc('\n', to);
}

/* Writes $map: one line for each range, its columns in dB over the floor. Returns the greatest. */
static double print_cells(const listen_map *m, FILE *to)
{
    const size_t n_least = 2; /* added lines lie outside the axes */
    const size_t n_lines = m->n_range > n_least ? m->n_range : n_least;
    double greatest_db = -INFINITY;

    fputs("$map << end_of_block\n", to);
    for (size_t r = 0; r < n_lines; r++) {
        for (size_t d = 0; d < m->doppler.n_bins; d++) {
            const size_t at = d * m->n_range + r;
            const double power =
                r < m->n_range && m->counts[at] > 0 ? m->sums[at] / m->counts[at] : 0;

            listen_image_cell(to, power, &greatest_db);
        }
        fputc('\n', to);
    }
    fputs("end_of_block\n", to);
    return greatest_db;
}

void listen_map_draw(const listen_map *m, FILE *to)
{
    const double dx = listen_map_x(m, m->doppler.step_hz);
    const double x0 = listen_map_x(m, m->doppler.first_hz) - dx / 2;
    const double y0 = listen_map_y(m, range_of(m, -0.5));
    const double dy = listen_map_y(m, range_of(m, (double)m->cells_per_bin - 0.5)) - y0;
    const double greatest_db = print_cells(m, to);

    fprintf(to, "set xlabel '%s'\nset ylabel 'range, %s'\nset tics out\n",
            has_velocity(m) ? "velocity towards the radar, m/s" : "Doppler, Hz",
            is_km(m) ? "km" : "m");
    fprintf(to, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", x0,
            x0 + (double)m->doppler.n_bins * dx, y0,
            listen_map_y(m, range_of(m, (double)m->info.row.n_gate - 0.5)));
    if (has_velocity(m))
        fprintf(to,
                "set xtics nomirror\nset x2range [%.9g:%.9g]\nset x2tics\nset x2label 'Doppler, "
                "Hz'\n",
                x0 / m->info.mps_per_hz,
                (x0 + (double)m->doppler.n_bins * dx) / m->info.mps_per_hz);
    listen_image_colours(to, greatest_db);
    listen_image_plot(to, x0 + dx / 2, dx, y0 + dy / 2, dy);
}
