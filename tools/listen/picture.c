/* SPDX-License-Identifier: MIT */
/* Draws the picture of a run: range over time or range over Doppler. */
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
    MAX_COLUMNS = 2000,     /* columns over time: when all are used, pairs are joined */
    MAX_DOPPLER = 1000,     /* columns over Doppler */
    MAX_ROWS = 1000,        /* rows of range */
    MAX_COLUMN_ECHOES = 64, /* echoes that one column keeps */
    MANY_ECHOES = 400,      /* more echoes are drawn as dots, so that the map stays visible */
    NOTHING = -999,         /* in dB, below any power; for a NaN gnuplot would print a warning */
    WIDTH = 1800,           /* pixels of the PNG */
    HEIGHT = 1000
};

/* How maps are drawn: the mean of all maps, the last map, or range over time with the greatest
 * power of all rows. Only the first two are range-Doppler pictures. */
typedef enum { MAP_MEAN, MAP_LAST, MAP_TIME, N_MAPS } map_kind;
static const char *const map_names[N_MAPS] = {"mean", "last", "time"};

/* Columns of equal width from a first sample on. They become twice as wide when a sample arrives
 * after the last column. */
typedef struct timeline {
    uint64_t first, width; /* samples; width 0: no sample yet */
    size_t n;              /* columns used */
} timeline;

typedef struct spot {
    uint64_t sample;
    double range_m;
    double snr_db;
    double doppler_hz; /* NAN: not estimated */
} spot;

/* The echoes of one column, sorted by range. */
typedef struct column {
    size_t n;
    spot spots[MAX_COLUMN_ECHOES];
} column;

/* A place of the picture. */
typedef struct cell {
    double power;   /* power over the noise floor, or a sum of powers; 0: no power yet */
    uint32_t n_sum; /* number of powers in the sum; 0: no sum, but the greatest power */
} cell;

struct listen_picture {
    const char *path;
    map_kind kind;
    char run_before[17];
    pnr_report head; /* the first report of the run */
    double rate_hz;  /* NAN: not known */

    uint64_t n_profiles;
    uint64_t last_sample; /* first sample of the last profile */
    pnr_map_info info;    /* of the first profile */
    bool is_doppler;      /* columns of Doppler, else of time */
    listen_doppler doppler;
    timeline profile_time;
    size_t n_columns, cells_per_row, n_rows;
    cell *cells; /* [n_columns][n_rows] */

    uint64_t n_results, n_echoes;
    double greatest_m; /* greatest distance of an echo from range 0 */
    timeline echo_time;
    column *columns; /* [MAX_COLUMNS] */
};

/* --- columns --- */

/* Returns the column of a sample, which is not before t->first. When the sample is after the last
 * possible column, calls `fold`, which joins pairs of columns. */
static size_t find_column(listen_picture *p, timeline *t, uint64_t sample,
                          void (*fold)(listen_picture *p))
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

static void fold_power(listen_picture *p)
{
    const size_t n = p->n_rows, n_half = MAX_COLUMNS / 2 * n;

    for (size_t c = 0; c < MAX_COLUMNS / 2; c++)
        for (size_t r = 0; r < n; r++)
            p->cells[c * n + r].power =
                fmax(p->cells[2 * c * n + r].power, p->cells[(2 * c + 1) * n + r].power);
    memset(p->cells + n_half, 0, n_half * sizeof *p->cells);
}

/* Replaces the two echoes nearest to each other by the stronger one, so that a weak target away
 * from the others is kept. */
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

    if (c->n == MAX_COLUMN_ECHOES)
        thin_echoes(c);
    for (at = c->n++; at > 0 && c->spots[at - 1].range_m > s->range_m; at--)
        c->spots[at] = c->spots[at - 1];
    c->spots[at] = *s;
}

static void fold_echoes(listen_picture *p)
{
    for (size_t c = 0; c < MAX_COLUMNS / 2; c++) {
        const column *odd = &p->columns[2 * c + 1];

        if (c > 0)
            p->columns[c] = p->columns[2 * c];
        for (size_t i = 0; i < odd->n; i++)
            add_spot(&p->columns[c], &odd->spots[i]);
    }
    memset(p->columns + MAX_COLUMNS / 2, 0, MAX_COLUMNS / 2 * sizeof *p->columns);
}

/* --- received messages --- */

int listen_picture_create(const char *path, const char *map, listen_picture **out, pnr_error *error)
{
    listen_picture *p = calloc(1, sizeof *p);
    const char *slash = strrchr(path, '/');
    char folder[4096] = ".";
    int code = PNR_OK;

    *out = NULL;
    /* The picture is drawn at the end, perhaps after hours, so a wrong path must fail now. */
    if (slash != NULL)
        snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path);
    while (p != NULL && map != NULL && p->kind < N_MAPS && strcmp(map, map_names[p->kind]) != 0)
        p->kind++;
    if (p == NULL || (p->columns = calloc(MAX_COLUMNS, sizeof *p->columns)) == NULL)
        code = pnr_error_set(error, PNR_ENOMEMORY, "--plot %s: out of memory", path);
    else if (p->kind == N_MAPS)
        code = pnr_error_set(error, PNR_EUSAGE, "--map %s: want mean, last or time", map);
    else if (access(folder, W_OK) != 0)
        code = pnr_error_file(error, PNR_EIO, "--plot", path, errno);
    if (code != PNR_OK) {
        listen_picture_destroy(p);
        return code;
    }
    p->path = path;
    *out = p;
    return PNR_OK;
}

void listen_picture_destroy(listen_picture *p)
{
    if (p == NULL)
        return;
    free(p->cells);
    free(p->columns);
    free(p);
}

/* Begins a new picture if `head` begins a new run. False: `head` belongs to the previous run. */
static bool is_current(listen_picture *p, const pnr_report *head)
{
    listen_picture next;

    if (strcmp(p->head.run, head->run) == 0)
        return true;
    if (strcmp(p->run_before, head->run) == 0)
        return false;
    memset(p->columns, 0, MAX_COLUMNS * sizeof *p->columns);
    next = (listen_picture){.path = p->path,
                            .kind = p->kind,
                            .cells = p->cells,
                            .columns = p->columns,
                            .head = *head,
                            .rate_hz = NAN};
    memcpy(next.run_before, p->head.run, sizeof next.run_before);
    *p = next;
    return true;
}

void listen_picture_result(listen_picture *p, const pnr_report *report)
{
    if (!is_current(p, report))
        return;
    if (p->echo_time.width == 0)
        p->echo_time = (timeline){.first = report->sample, .width = 1};
    if (report->sample < p->echo_time.first)
        return;
    p->n_results++;
    for (size_t i = 0; i < report->detection.n_echoes; i++) {
        const pnr_echo *e = &report->detection.echoes[i];
        const spot s = {report->sample, e->range_m, e->snr_db, e->doppler_hz};

        if (!isfinite(e->range_m) || !isfinite(e->snr_db))
            continue;
        add_spot(&p->columns[find_column(p, &p->echo_time, report->sample, fold_echoes)], &s);
        p->n_echoes++;
        p->greatest_m = fmax(p->greatest_m, fabs(e->range_m));
        if (isnan(p->rate_hz) && e->delay_samples / e->delay_s > 0)
            p->rate_hz = e->delay_samples / e->delay_s;
    }
}

static int begin_power(listen_picture *p, const listen_profile *profile, pnr_error *error)
{
    const pnr_profile_info *row = &profile->map.row;

    p->info = profile->map;
    p->is_doppler = p->kind != MAP_TIME && profile->map.n_rows > 1;
    p->doppler = listen_doppler_of(&profile->map, p->is_doppler ? MAX_DOPPLER : 1);
    p->profile_time = (timeline){.first = profile->head.sample, .width = row->dwell_samples};
    p->rate_hz = 1 / (row->step_s * (double)row->oversample);
    p->cells_per_row = (row->n_gate + MAX_ROWS - 1) / MAX_ROWS;
    p->n_rows = (row->n_gate + p->cells_per_row - 1) / p->cells_per_row;
    p->n_columns = p->is_doppler ? p->doppler.n_bins : MAX_COLUMNS;
    free(p->cells);
    p->cells = calloc(p->n_columns * p->n_rows, sizeof *p->cells);
    return p->cells != NULL
               ? PNR_OK
               : pnr_error_set(error, PNR_ENOMEMORY, "--plot %s: out of memory", p->path);
}

/* Finds for each range the greatest power of the rows of a Doppler bin. The picture of the mean
 * adds it to the cell of column c. Other pictures keep the greater of it and the cell. */
static void add_power(listen_picture *p, size_t c, const listen_profile *profile, size_t bin)
{
    const bool is_mean = p->is_doppler && p->kind == MAP_MEAN;
    float powers[MAX_ROWS];
    size_t first_row;
    const size_t n_rows = listen_doppler_rows(&p->doppler, &profile->map, bin, &first_row);

    listen_profile_reduce(profile, first_row, n_rows, (double)p->cells_per_row, p->n_rows, powers);
    for (size_t r = 0; r < p->n_rows; r++) {
        cell *to = &p->cells[c * p->n_rows + r];

        if (!is_mean) {
            to->power = fmax(to->power, (double)powers[r]);
        } else if (isfinite(powers[r])) {
            to->power += (double)powers[r];
            to->n_sum++;
        }
    }
}

int listen_picture_profile(listen_picture *p, const listen_profile *profile, pnr_error *error)
{
    const uint64_t sample = profile->head.sample;
    size_t first = 0;
    int code;

    if (!is_current(p, &profile->head))
        return PNR_OK;
    if (p->n_profiles == 0 && (code = begin_power(p, profile, error)) != PNR_OK)
        return code;
    if (sample < p->profile_time.first || profile->map.row.n_gate != p->info.row.n_gate ||
        profile->map.n_rows != p->info.n_rows)
        return PNR_OK;
    p->n_profiles++;
    p->last_sample = sample;
    if (!p->is_doppler)
        first = find_column(p, &p->profile_time, sample, fold_power);
    else if (p->kind == MAP_LAST)
        memset(p->cells, 0, p->n_columns * p->n_rows * sizeof *p->cells);
    for (size_t b = 0; b < p->doppler.n_bins; b++)
        add_power(p, first + b, profile, b);
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
    const timeline *t = p->n_profiles > 0 ? &p->profile_time : &p->echo_time;
    const double span_s = (double)(t->n * t->width) / p->rate_hz;
    size_t i = 0;

    if (isnan(p->rate_hz))
        return (axis){"samples", 1, (double)t->first};
    while (!(span_s < units[i].below_s))
        i++;
    return (axis){units[i].unit, 1 / (p->rate_hz * units[i].unit_s), (double)t->first};
}

static axis range_axis(const listen_picture *p)
{
    const bool is_km = p->n_profiles > 0 ? listen_is_km(&p->info.row) : p->greatest_m >= 1e4;

    return is_km ? (axis){"km", 1e-3, 0} : (axis){"m", 1, 0};
}

static double axis_value(axis a, double value)
{
    return (value - a.first) * a.factor;
}

static void print_labels(const listen_picture *p, FILE *to, axis x, axis y)
{
    const uint64_t first = (uint64_t)x.first;
    const double later_s = (double)(first - p->head.sample) / p->rate_hz;
    char label[128], time[PNR_TIME_LEN];

    if (p->is_doppler)
        snprintf(label, sizeof label, "%s", x.unit);
    else if (p->head.has_time && first >= p->head.sample && isfinite(later_s))
        snprintf(label, sizeof label, "time from %s (sample %" PRIu64 "), %s",
                 pnr_time_format(p->head.time_ns + llround(later_s * 1e9), time), first, x.unit);
    else
        snprintf(label, sizeof label, "time from sample %" PRIu64 ", %s", first, x.unit);
    fputs("set xlabel ", to);
    pnr_gnuplot_quote(to, label);
    fprintf(to, " noenhanced\nset ylabel 'range, %s'\nset tics out\n", y.unit);
    fputs("set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n",
          to);
}

/* Writes the data block $echoes with one line for each echo: time or Doppler, range, SNR. Returns
 * the number of echoes. */
static size_t print_echoes(const listen_picture *p, FILE *to, axis x, axis y)
{
    /* An echo is drawn in the middle of its dwell. */
    const double half = p->n_profiles > 0 ? (double)p->info.row.dwell_samples / 2 : 0;
    size_t n = 0, c, i;

    fputs("$echoes << end_of_block\n", to);
    for (c = 0; c < p->echo_time.n; c++) {
        for (i = 0; i < p->columns[c].n; i++) {
            const spot *s = &p->columns[c].spots[i];

            if (p->is_doppler &&
                (!isfinite(s->doppler_hz) || (p->kind == MAP_LAST && s->sample != p->last_sample)))
                continue;
            fprintf(to, "%.9g %.9g %.2f\n",
                    axis_value(x, p->is_doppler ? s->doppler_hz : (double)s->sample + half),
                    axis_value(y, s->range_m), s->snr_db);
            n++;
        }
    }
    fputs("end_of_block\n", to);
    return n;
}

/* Writes the data block $map with one line for each range. A line has the power of each column in
 * dB over the floor. Returns the greatest power in dB. */
static double print_power(const listen_picture *p, FILE *to, size_t n_columns)
{
    /* gnuplot's images need at least two rows and columns; the added ones are outside the axes. */
    const size_t n_lines = p->n_rows > 1 ? p->n_rows : 2;
    double greatest_db = NOTHING;

    fputs("$map << end_of_block\n", to);
    for (size_t r = 0; r < n_lines; r++) {
        for (size_t c = 0; c < n_columns || c < 2; c++) {
            const cell *from = &p->cells[c * p->n_rows + r];
            const double power =
                r < p->n_rows ? from->power / (from->n_sum > 0 ? from->n_sum : 1) : 0;
            const double db = power > 0 ? 10 * log10(power) : NOTHING;

            greatest_db = fmax(greatest_db, db);
            fprintf(to, power > 0 ? "%.1f " : "%.0f ", db);
        }
        fputc('\n', to);
    }
    fputs("end_of_block\n", to);
    return greatest_db;
}

/* Draws the power on a scale from 0 dB to the greatest power, and the echoes over it. Places
 * without power are grey. */
static void draw_power(const listen_picture *p, FILE *to, axis x, axis y)
{
    const timeline *t = &p->profile_time;
    const size_t n = p->is_doppler ? p->n_columns : t->n;
    const double dx = (p->is_doppler ? p->doppler.step_hz : (double)t->width) * x.factor;
    const double x0 = p->is_doppler ? axis_value(x, p->doppler.first_hz) - dx / 2 : 0;
    const double x1 = x0 + (double)n * dx;
    const double y0 = axis_value(y, listen_range_m(&p->info.row, -0.5));
    const double y1 = axis_value(y, listen_range_m(&p->info.row, (double)p->info.row.n_gate - 0.5));
    const double dy =
        axis_value(y, listen_range_m(&p->info.row, (double)p->cells_per_row - 0.5)) - y0;
    const double greatest_db = print_power(p, to, n);
    const size_t n_echoes = print_echoes(p, to, x, y);

    fprintf(to, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", x0, x1, y0, y1);
    if (p->is_doppler && isfinite(p->info.mps_per_hz))
        fprintf(to,
                "set xtics nomirror\nset x2range [%.9g:%.9g]\n"
                "set x2tics\nset x2label 'Doppler, Hz'\n",
                x0 / p->info.mps_per_hz, x1 / p->info.mps_per_hz);
    fprintf(to,
            "set cblabel 'power over the noise floor, dB'\n"
            "set object rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb 'gray'\n"
            "set cbrange [0:%g]\n"
            "plot $map matrix using (%.9g+%.9g*$1):(%.9g+%.9g*$2):($3>%d?$3:NaN) with image "
            "notitle",
            fmax(20, 5 * ceil(greatest_db / 5)), x0 + dx / 2, dx, y0 + dy / 2, dy, NOTHING);
    if (n_echoes > 0)
        fprintf(to, ", $echoes using 1:2 with points %s lc rgb 'red' notitle",
                n_echoes > MANY_ECHOES ? "pt 7 ps 0.15" : "pt 6 ps 1");
    fputc('\n', to);
}

static void make_title(const listen_picture *p, char *out, size_t size)
{
    char more[96] = "";

    if (p->n_profiles == 0) {
        snprintf(out, size, "%s: %" PRIu64 " echoes of %" PRIu64 " dwells", p->head.stream,
                 p->n_echoes, p->n_results);
    } else if (p->is_doppler) {
        if (p->info.n_codes > 1)
            snprintf(more, sizeof more, ", the greatest of %zu codes", p->info.n_codes);
        snprintf(out, size, "%s: %s of %" PRIu64 " maps%s, %" PRIu64 " echoes", p->head.stream,
                 p->kind == MAP_LAST ? "the last" : "mean", p->n_profiles, more, p->n_echoes);
    } else {
        const uint64_t dwells = p->profile_time.width / p->info.row.dwell_samples;

        if (dwells > 1)
            snprintf(more, sizeof more, "; a column is the greatest of %" PRIu64 " dwells", dwells);
        snprintf(out, size, "%s: %" PRIu64 " profiles, %" PRIu64 " echoes%s", p->head.stream,
                 p->n_profiles, p->n_echoes, more);
    }
}

int listen_picture_draw(const listen_picture *p, pnr_error *error)
{
    const axis doppler = {"Doppler, Hz", 1, 0};
    const axis velocity = {"velocity towards the radar, m/s", p->info.mps_per_hz, 0};
    const axis x = !p->is_doppler                 ? time_axis(p)
                   : isfinite(p->info.mps_per_hz) ? velocity
                                                  : doppler;
    const axis y = range_axis(p);
    char title[256];
    FILE *to;
    int code;

    if (p->n_profiles == 0 && p->n_echoes == 0)
        return pnr_error_set(error, PNR_EDATA, "--plot %s: nothing came to draw", p->path);
    make_title(p, title, sizeof title);
    if ((code = pnr_gnuplot_open(p->path, title, WIDTH, HEIGHT, &to, error)) != PNR_OK)
        return code;
    print_labels(p, to, x, y);
    if (p->n_profiles > 0) {
        draw_power(p, to, x, y);
    } else {
        print_echoes(p, to, x, y);
        fputs("set cblabel 'SNR, dB'\n"
              "plot $echoes using 1:2:3 with points pt 7 ps 0.8 palette notitle\n",
              to);
    }
    if ((code = pnr_gnuplot_close(to, p->path, error)) != PNR_OK)
        return code;
    pnr_log(PNR_LOG_INFO, "%s: %s%s", p->path, title,
            p->n_profiles > 0
                ? ""
                : "; the stream carries no profiles (publisher.profile = power would show them)");
    return PNR_OK;
}
