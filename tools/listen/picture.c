/* SPDX-License-Identifier: MIT */
/* The picture of a run: range over time, column by column, or over Doppler (map.h). */
#include "tools/listen/picture.h"

#include "base/clock.h"
#include "base/log.h"
#include "tools/common/gnuplot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_COLUMNS = LISTEN_MAX_COLUMNS,
    MAX_ROWS = LISTEN_MAX_ROWS,
    WIDTH = 1800, /* pixels of the PNG */
    HEIGHT = 1000
};

/* Columns of equal width from a first sample on. They become twice as wide when a sample comes
 * after the last column. */
typedef struct timeline {
    uint64_t first, width; /* samples; width 0: nothing came yet */
    size_t n;              /* columns used */
} timeline;

typedef struct spot {
    uint64_t sample;
    double range_m;
    double snr_db;
    double doppler_hz; /* NAN: not estimated */
} spot;

/* The echoes of one column, by range. */
typedef struct column {
    size_t n;
    spot spots[LISTEN_MAX_COLUMN_ECHOES];
} column;

struct listen_picture {
    const char *path;
    char run[17], run_before[17], stream[PNR_TEXT_LEN];
    bool has_time;
    int64_t time_ns; /* of sample time_sample */
    uint64_t time_sample;
    double rate_hz; /* NAN: not known */

    listen_map *maps; /* Doppler maps: after the first one they are the picture */
    uint64_t n_profiles;
    pnr_profile_info info; /* of the first profile */
    size_t cells_per_row, n_rows;
    timeline map_time;
    float *map; /* [MAX_COLUMNS][n_rows]: the greatest power over the floor; NAN: nothing came */

    uint64_t n_results, n_echoes;
    uint64_t last_sample; /* of the results */
    timeline echo_time;
    column *columns; /* [MAX_COLUMNS] */
};

/* --- columns --- */

typedef void (*fold_columns)(listen_picture *p);

/* The column of a sample; the sample is not before the first one. */
static size_t find_column(listen_picture *p, timeline *t, uint64_t sample, fold_columns fold)
{
    size_t at;

    while ((sample - t->first) / t->width >= MAX_COLUMNS) {
        fold(p);
        t->width *= 2;
        t->n = (t->n + 1) / 2;
    }
    at = (size_t)((sample - t->first) / t->width);
    t->n = at + 1 > t->n ? at + 1 : t->n;
    return at;
}

static float *map_column(const listen_picture *p, size_t c)
{
    return p->map + c * p->n_rows;
}

static void clear_map(listen_picture *p, size_t from)
{
    size_t i;

    for (i = from * p->n_rows; i < MAX_COLUMNS * p->n_rows; i++)
        p->map[i] = NAN;
}

static void fold_map(listen_picture *p)
{
    size_t c, r;

    for (c = 0; c < MAX_COLUMNS / 2; c++)
        for (r = 0; r < p->n_rows; r++)
            map_column(p, c)[r] = fmaxf(map_column(p, 2 * c)[r], map_column(p, 2 * c + 1)[r]);
    clear_map(p, MAX_COLUMNS / 2);
}

/* Replaces the two echoes nearest to each other by the stronger one: so a weak target is kept
 * near a strong one. */
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

    if (c->n == LISTEN_MAX_COLUMN_ECHOES)
        thin_echoes(c);
    for (at = c->n++; at > 0 && c->spots[at - 1].range_m > s->range_m; at--)
        c->spots[at] = c->spots[at - 1];
    c->spots[at] = *s;
}

static void fold_echoes(listen_picture *p)
{
    size_t c, i;

    for (c = 0; c < MAX_COLUMNS / 2; c++) {
        const column *odd = &p->columns[2 * c + 1];

        if (c > 0)
            p->columns[c] = p->columns[2 * c];
        for (i = 0; i < odd->n; i++)
            add_spot(&p->columns[c], &odd->spots[i]);
    }
    for (; c < MAX_COLUMNS; c++)
        p->columns[c].n = 0;
}

/* --- what came --- */

int listen_picture_create(const char *path, listen_map_kind kind, listen_picture **out,
                          pnr_error *error)
{
    listen_picture *p = calloc(1, sizeof *p);
    const char *slash = strrchr(path, '/');
    char folder[4096] = ".";

    *out = NULL;
    if (p == NULL || (p->columns = calloc(MAX_COLUMNS, sizeof *p->columns)) == NULL ||
        listen_map_create(kind, &p->maps, error) != PNR_OK) {
        listen_picture_destroy(p);
        return pnr_error_set(error, PNR_ENOMEMORY, "--plot %s: out of memory", path);
    }
    /* The picture is drawn at the end, perhaps in hours: a wrong path fails now. */
    if (slash != NULL)
        snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path);
    if (access(folder, W_OK) != 0) {
        listen_picture_destroy(p);
        return pnr_error_set(error, PNR_EIO, "--plot %s: %s: %s", path, folder, strerror(errno));
    }
    p->path = path;
    p->rate_hz = NAN;
    *out = p;
    return PNR_OK;
}

void listen_picture_destroy(listen_picture *p)
{
    if (p == NULL)
        return;
    listen_map_destroy(p->maps);
    free(p->map);
    free(p->columns);
    free(p);
}

/* Begins a new picture with a new run. False: the report belongs to the run before. */
static bool is_current(listen_picture *p, const pnr_report *head)
{
    size_t c;

    if (strcmp(p->run, head->run) == 0)
        return true;
    if (strcmp(p->run_before, head->run) == 0)
        return false;
    memcpy(p->run_before, p->run, sizeof p->run_before);
    memcpy(p->run, head->run, sizeof p->run);
    memcpy(p->stream, head->stream, sizeof p->stream);
    p->has_time = head->has_time;
    p->time_ns = head->time_ns;
    p->time_sample = head->sample;
    p->rate_hz = NAN;
    p->map_time = p->echo_time = (timeline){0};
    p->n_profiles = p->n_results = p->n_echoes = 0;
    listen_map_clear(p->maps);
    for (c = 0; c < MAX_COLUMNS; c++)
        p->columns[c].n = 0;
    return true;
}

void listen_picture_result(listen_picture *p, const pnr_report *report)
{
    size_t i;

    if (!is_current(p, report))
        return;
    if (p->echo_time.width == 0)
        p->echo_time = (timeline){.first = report->sample, .width = 1};
    if (report->sample < p->echo_time.first)
        return;
    p->n_results++;
    p->last_sample = report->sample;
    for (i = 0; i < report->detection.n_echoes; i++) {
        const pnr_echo *e = &report->detection.echoes[i];
        const spot s = {report->sample, e->range_m, e->snr_db, e->doppler_hz};

        if (!isfinite(e->range_m) || !isfinite(e->snr_db))
            continue;
        add_spot(&p->columns[find_column(p, &p->echo_time, report->sample, fold_echoes)], &s);
        p->n_echoes++;
        if (isnan(p->rate_hz) && e->delay_samples / e->delay_s > 0)
            p->rate_hz = e->delay_samples / e->delay_s;
    }
}

static int begin_map(listen_picture *p, const listen_profile *profile, pnr_error *error)
{
    p->info = profile->map.row;
    p->cells_per_row = (p->info.n_gate + MAX_ROWS - 1) / MAX_ROWS;
    p->n_rows = (p->info.n_gate + p->cells_per_row - 1) / p->cells_per_row;
    p->map_time = (timeline){.first = profile->head.sample, .width = p->info.dwell_samples};
    p->rate_hz = 1 / (p->info.step_s * (double)p->info.oversample);
    free(p->map);
    p->map = malloc(MAX_COLUMNS * p->n_rows * sizeof *p->map);
    if (p->map == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--plot %s: out of memory", p->path);
    clear_map(p, 0);
    return PNR_OK;
}

int listen_picture_profile(listen_picture *p, const listen_profile *profile, pnr_error *error)
{
    float rows[MAX_ROWS], *to;
    size_t r;
    int code;

    if (!is_current(p, &profile->head))
        return PNR_OK;
    if ((code = listen_map_add(p->maps, profile, error)) != PNR_OK || listen_map_count(p->maps) > 0)
        return code;
    if (p->n_profiles == 0 && (code = begin_map(p, profile, error)) != PNR_OK)
        return code;
    if (profile->head.sample < p->map_time.first || profile->map.row.n_gate != p->info.n_gate)
        return PNR_OK;
    p->n_profiles++;
    listen_profile_reduce(profile, 0, profile->map.n_rows, (double)p->cells_per_row, p->n_rows,
                          rows);
    to = map_column(p, find_column(p, &p->map_time, profile->head.sample, fold_map));
    for (r = 0; r < p->n_rows; r++)
        to[r] = fmaxf(to[r], rows[r]);
    return PNR_OK;
}

/* --- the drawing --- */

/* The scale of a quantity: (value - first) * factor is in `unit`. */
typedef struct axis {
    const char *unit;
    double factor;
    double first;
} axis;

static axis time_axis(const listen_picture *p)
{
    static const struct {
        double below_s;
        const char *unit;
        double unit_s;
    } units[] = {{2e-3, "us", 1e-6},
                 {2, "ms", 1e-3},
                 {200, "s", 1},
                 {7200, "min", 60},
                 {INFINITY, "h", 3600}};
    const timeline *t = p->n_profiles > 0 ? &p->map_time : &p->echo_time;
    const double span_s = (double)(t->n * t->width) / p->rate_hz;
    size_t i = 0;

    if (isnan(p->rate_hz))
        return (axis){"samples", 1, (double)t->first};
    while (!(span_s < units[i].below_s))
        i++;
    return (axis){units[i].unit, 1 / (p->rate_hz * units[i].unit_s), (double)t->first};
}

static axis range_axis(double greatest_m)
{
    return greatest_m >= 1e4 ? (axis){"km", 1e-3, 0} : (axis){"m", 1, 0};
}

static double axis_value(axis a, double value)
{
    return (value - a.first) * a.factor;
}

/* The range of the middle of a cell of the gate; a cell is as wide as the step. */
static double cell_range_m(const listen_picture *p, double cell)
{
    return p->info.metres_per_second * (p->info.delay_s + cell * p->info.step_s);
}

static void print_labels(const listen_picture *p, FILE *to, axis x, axis y)
{
    const uint64_t first = p->n_profiles > 0 ? p->map_time.first : p->echo_time.first;
    const double later_s = (double)(first - p->time_sample) / p->rate_hz;
    char label[128], time[PNR_TIME_LEN];

    if (p->has_time && first >= p->time_sample && isfinite(later_s))
        snprintf(label, sizeof label, "time from %s (sample %" PRIu64 "), %s",
                 pnr_time_format(p->time_ns + llround(later_s * 1e9), time), first, x.unit);
    else
        snprintf(label, sizeof label, "time from sample %" PRIu64 ", %s", first, x.unit);
    fputs("set xlabel ", to);
    pnr_gnuplot_quote(to, label);
    fprintf(to, " noenhanced\nset ylabel 'range, %s'\nset tics out\n", y.unit);
}

/* Writes $echoes: time, range, SNR. Returns how many. */
static size_t print_echoes(const listen_picture *p, FILE *to, axis x, axis y)
{
    /* An echo is drawn in the middle of its dwell. */
    const double half = p->n_profiles > 0 ? (double)p->info.dwell_samples / 2 : 0;
    size_t n = 0, c, i;

    fputs("$echoes << end_of_block\n", to);
    for (c = 0; c < p->echo_time.n; c++) {
        for (i = 0; i < p->columns[c].n; i++, n++) {
            const spot *s = &p->columns[c].spots[i];

            fprintf(to, "%.9g %.9g %.2f\n", axis_value(x, (double)s->sample + half),
                    axis_value(y, s->range_m), s->snr_db);
        }
    }
    fputs("end_of_block\n", to);
    return n;
}

/* Writes $echoes: Doppler, range, SNR. Returns how many. */
static size_t print_map_echoes(const listen_picture *p, FILE *to)
{
    size_t n = 0, c, i;

    fputs("$echoes << end_of_block\n", to);
    for (c = 0; c < p->echo_time.n; c++) {
        for (i = 0; i < p->columns[c].n; i++) {
            const spot *s = &p->columns[c].spots[i];

            if (!isfinite(s->doppler_hz) || !listen_map_shows(p->maps, s->sample))
                continue;
            fprintf(to, "%.9g %.9g %.2f\n", listen_map_x(p->maps, s->doppler_hz),
                    listen_map_y(p->maps, s->range_m), s->snr_db);
            n++;
        }
    }
    fputs("end_of_block\n", to);
    return n;
}

/* Writes $map: one line for each row, its columns in dB over the floor. Returns the greatest. */
static double print_map(const listen_picture *p, FILE *to)
{
    /* gnuplot's images have two rows and columns at least: added ones lie outside the axes. */
    const size_t n_columns = p->map_time.n > 1 ? p->map_time.n : 2;
    const size_t n_rows = p->n_rows > 1 ? p->n_rows : 2;
    double greatest_db = -INFINITY;
    size_t r, c;

    fputs("$map << end_of_block\n", to);
    for (r = 0; r < n_rows; r++) {
        for (c = 0; c < n_columns; c++) {
            listen_image_cell(to, r < p->n_rows ? (double)map_column(p, c)[r] : 0, &greatest_db);
        }
        fputc('\n', to);
    }
    fputs("end_of_block\n", to);
    return greatest_db;
}

static void draw_map(const listen_picture *p, FILE *to, axis x, axis y)
{
    const timeline *t = &p->map_time;
    const double dx = (double)t->width * x.factor;
    const double y0 = axis_value(y, cell_range_m(p, -0.5));
    const double dy = axis_value(y, cell_range_m(p, (double)p->cells_per_row - 0.5)) - y0;
    const double greatest_db = print_map(p, to);
    const size_t n_echoes = print_echoes(p, to, x, y);

    fprintf(to, "set xrange [0:%.9g]\nset yrange [%.9g:%.9g]\n", (double)t->n * dx, y0,
            axis_value(y, cell_range_m(p, (double)p->info.n_gate - 0.5)));
    listen_image_colours(to, greatest_db);
    listen_image_plot(to, 0.5 * dx, dx, y0 + 0.5 * dy, dy);
    listen_image_echoes(to, n_echoes);
}

static double greatest_range(const listen_picture *p)
{
    double greatest = 0;
    size_t c, i;

    if (p->n_profiles > 0)
        return fmax(fabs(cell_range_m(p, 0)), fabs(cell_range_m(p, (double)p->info.n_gate)));
    for (c = 0; c < p->echo_time.n; c++)
        for (i = 0; i < p->columns[c].n; i++)
            greatest = fmax(greatest, fabs(p->columns[c].spots[i].range_m));
    return greatest;
}

static void make_title(const listen_picture *p, char *out, size_t size)
{
    char maps[96];
    const uint64_t dwells = p->n_profiles > 0 ? p->map_time.width / p->info.dwell_samples : 1;
    int n;

    if (listen_map_count(p->maps) > 0) {
        listen_map_title(p->maps, maps, sizeof maps);
        snprintf(out, size, "%s: %s, %" PRIu64 " echoes", p->stream, maps, p->n_echoes);
        return;
    }
    if (p->n_profiles == 0) {
        snprintf(out, size, "%s: %" PRIu64 " echoes of %" PRIu64 " dwells", p->stream, p->n_echoes,
                 p->n_results);
        return;
    }
    n = snprintf(out, size, "%s: %" PRIu64 " profiles, %" PRIu64 " echoes", p->stream,
                 p->n_profiles, p->n_echoes);
    if (dwells > 1 && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, "; a column is the greatest of %" PRIu64 " dwells",
                 dwells);
}

int listen_picture_draw(const listen_picture *p, pnr_error *error)
{
    const axis x = time_axis(p), y = range_axis(greatest_range(p));
    char title[256];
    const bool has_maps = listen_map_count(p->maps) > 0;
    FILE *to;
    int code;

    if (p->n_profiles == 0 && p->n_echoes == 0 && !has_maps)
        return pnr_error_set(error, PNR_EDATA, "--plot %s: nothing came to draw", p->path);
    make_title(p, title, sizeof title);
    if ((code = pnr_gnuplot_open(p->path, title, WIDTH, HEIGHT, &to, error)) != PNR_OK)
        return code;
    if (has_maps) {
        const size_t n = print_map_echoes(p, to);

        listen_map_draw(p->maps, to);
        listen_image_echoes(to, n);
    } else if (p->n_profiles > 0) {
        print_labels(p, to, x, y);
        draw_map(p, to, x, y);
    } else {
        print_labels(p, to, x, y);
        listen_image_palette(to);
        print_echoes(p, to, x, y);
        fputs("set cblabel 'SNR, dB'\nplot $echoes using 1:2:3 with points pt 7 ps 0.8 palette "
              "notitle\n",
              to);
    }
    if ((code = pnr_gnuplot_close(to, p->path, error)) != PNR_OK)
        return code;
    if (p->n_profiles > 0 || has_maps)
        pnr_log(PNR_LOG_INFO, "%s: %s", p->path, title);
    else
        pnr_log(
            PNR_LOG_INFO,
            "%s: %s; the stream carries no profiles (publisher.profile = power would show them)",
            p->path, title);
    return PNR_OK;
}
