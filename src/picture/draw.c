/* SPDX-License-Identifier: MIT */
/* Draws a picture: its axes, its title, the power and the marks. */
#include "base/clock.h"
#include "base/log.h"
#include "picture/gnuplot.h"
#include "picture/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MANY_MARKS = 200, /* with more marks than this, all marks are small */
    /* dB, below any power. Cells without power have this value, because gnuplot warns about NaN. */
    NOTHING = -999,
    TICK_EM = 5 /* least distance of two ticks along x, in heights of the text */
};

/* The scale of a quantity. (value - first) * factor is the value in `unit`. */
typedef struct axis {
    const char *unit;
    double factor;
    double first;
} axis;

/* The state of a drawing. low and high: the ends of the axes, in their units. */
typedef struct drawing {
    const pnr_picture *picture;
    const picture_run *run;
    const pnr_radar_summary *radar; /* NULL: not known */
    bool has_power;                 /* false: the run has only echoes */
    axis x, y;
    double low_x, high_x, low_y, high_y;
    size_t n_marks;
    pnr_gnuplot gnuplot;
} drawing;

/* --- axes --- */

static axis time_axis(const drawing *d)
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
    const timeline *t = d->has_power ? &d->run->profile_time : &d->run->echo_time;
    const double rate_hz = d->run->head.rate_hz, span_s = (double)(t->n * t->width) / rate_hz;
    size_t i = 0;

    if (!(rate_hz > 0))
        return (axis){"samples", 1, (double)t->first};
    while (!(span_s < units[i].below_s))
        i++;
    return (axis){units[i].unit, 1 / (rate_hz * units[i].unit_s), (double)t->first};
}

static axis range_axis(const drawing *d)
{
    const bool is_km = d->has_power ? pnr_map_is_km(&d->run->info.row) : d->run->greatest_m >= 1e4;

    return is_km ? (axis){"km", 1e-3, 0} : (axis){"m", 1, 0};
}

static double axis_value(axis a, double value)
{
    return (value - a.first) * a.factor;
}

static double echo_x(const drawing *d, const spot *s)
{
    /* An echo is drawn in the middle of its dwell. */
    const double half = d->has_power ? (double)d->run->info.row.dwell_samples / 2 : 0;

    return axis_value(d->x, d->run->is_doppler ? s->doppler_hz : (double)s->sample + half);
}

/* Chooses the axes of a picture of power. They end at the edges of the outer cells. */
static void choose_power_axes(drawing *d)
{
    const picture_run *run = d->run;
    const pnr_profile_info *row = &run->info.row;
    const timeline *t = &run->profile_time;
    const double half_hz = run->doppler.step_hz / 2;

    if (!run->is_doppler) {
        d->low_x = 0;
        d->high_x = (double)(t->n * t->width) * d->x.factor;
    } else {
        d->low_x = axis_value(d->x, run->doppler.first_hz - half_hz);
        d->high_x = axis_value(d->x, run->doppler.first_hz +
                                         (2 * (double)run->doppler.n_bins - 1) * half_hz);
    }
    d->low_y = axis_value(d->y, pnr_map_range_m(row, -0.5));
    d->high_y = axis_value(d->y, pnr_map_range_m(row, (double)row->n_gate - 0.5));
}

/* Widens an interval on both sides, so that no point is cut. */
static void widen(double *low, double *high)
{
    const double margin = *high > *low ? 0.03 * (*high - *low) : fmax(0.01 * fabs(*high), 0.5);

    *low -= margin;
    *high += margin;
}

/* Chooses the axes of a picture that shows only echoes. */
static void choose_echo_axes(drawing *d)
{
    d->low_x = d->low_y = INFINITY;
    d->high_x = d->high_y = -INFINITY;
    for (size_t c = 0; c < d->run->echo_time.n; c++) {
        for (size_t i = 0; i < d->picture->columns[c].n; i++) {
            const spot *s = &d->picture->columns[c].spots[i];
            const double x = echo_x(d, s), y = axis_value(d->y, s->range_m);

            d->low_x = fmin(d->low_x, x);
            d->high_x = fmax(d->high_x, x);
            d->low_y = fmin(d->low_y, y);
            d->high_y = fmax(d->high_y, y);
        }
    }
    widen(&d->low_x, &d->high_x);
    widen(&d->low_y, &d->high_y);
}

static void choose_axes(drawing *d)
{
    const double mps_per_hz = d->run->info.mps_per_hz;

    d->y = range_axis(d);
    d->x = !d->run->is_doppler    ? time_axis(d)
           : isfinite(mps_per_hz) ? (axis){"velocity towards the radar, m/s", mps_per_hz, 0}
                                  : (axis){"Doppler, Hz", 1, 0};
    (d->has_power ? choose_power_axes : choose_echo_axes)(d);
}

/* Writes the limits and the ticks of the horizontal axis `name`. */
static void print_ticks(const drawing *d, const char *name, double low, double high)
{
    const double least_px = TICK_EM * d->gnuplot.font_px;
    const double step =
        pnr_round_step((high - low) * least_px / (PNR_PLOT_WIDTH * d->picture->width));

    fprintf(d->gnuplot.to, "set %srange [%.9g:%.9g]\nset %stics %.9g\n", name, low, high, name,
            step);
}

static void print_axes(const drawing *d)
{
    FILE *to = d->gnuplot.to;
    char label[64];

    snprintf(label, sizeof label, "%s%s", d->run->is_doppler ? "" : "time, ", d->x.unit);
    fputs("set xlabel ", to);
    pnr_gnuplot_quote(to, label);
    fprintf(to,
            " noenhanced\nset ylabel 'range, %s'\n"
            "set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', "
            "4 '#fde725')\n",
            d->y.unit);
    print_ticks(d, "x", d->low_x, d->high_x);
    fprintf(to, "set yrange [%.9g:%.9g]\n", d->low_y, d->high_y);
    if (d->run->is_doppler && isfinite(d->run->info.mps_per_hz)) {
        fputs("set x2label 'Doppler, Hz'\n", to);
        print_ticks(d, "x2", d->low_x / d->run->info.mps_per_hz,
                    d->high_x / d->run->info.mps_per_hz);
    }
}

/* --- the title --- */

/* Writes a value with a prefix and its unit, such as "2.4 Msps". */
static const char *scaled_text(double value, const char *unit, char out[48])
{
    static const struct {
        double least;
        const char *prefix;
    } prefixes[] = {{1e9, "G"},  {1e6, "M"},  {1e3, "k"}, {1, ""},
                    {1e-3, "m"}, {1e-6, "u"}, {0, "n"}};
    size_t i = 0;

    while (value < prefixes[i].least * (1 - 1e-9))
        i++;
    snprintf(out, 48, "%.6g\u00a0%s%s", value / (prefixes[i].least > 0 ? prefixes[i].least : 1e-9),
             prefixes[i].prefix, unit);
    return out;
}

/* Writes the time of the first sample of the picture, or its sample index if the run has no
 * time. */
static const char *start_text(const drawing *d, char out[48])
{
    const picture_run *run = d->run;
    const uint64_t sample = d->picture->kind == MAP_LAST && run->is_doppler ? run->last_sample
                            : d->has_power ? run->profile_time.first
                                           : run->echo_time.first;
    const double later_s = (double)(int64_t)(sample - run->head.sample) / run->head.rate_hz;
    char time[PNR_TIME_LEN];

    if (run->head.has_time && isfinite(later_s))
        snprintf(out, 48, "%s", pnr_time_format(run->head.time_ns + llround(later_s * 1e9), time));
    else
        snprintf(out, 48, "from sample %" PRIu64, sample);
    return out;
}

/* Writes the code that is drawn, with "; " before it; "" if it is not known. */
static const char *code_text(const drawing *d, char out[128])
{
    const picture_run *run = d->run;
    const char *label = run->code_label.text;

    out[0] = '\0';
    if (d->picture->options.code > 0)
        snprintf(out, 128, "; code %zu%s%s%s", d->picture->options.code, *label ? " (" : "", label,
                 *label ? ")" : "");
    else if (d->has_power && run->info.n_codes > 1)
        snprintf(out, 128, "; the greatest of %zu codes", run->info.n_codes);
    else if (run->info.row.code[0] != '\0')
        snprintf(out, 128, "; %s", run->info.row.code);
    else if (d->radar != NULL)
        snprintf(out, 128, "; %s, %" PRIu64 " chips", d->radar->code_type, d->radar->n_chips);
    return out;
}

/* Returns the duration of a dwell. NAN: not known. */
static double dwell_s(const drawing *d)
{
    if (d->has_power)
        return (double)d->run->info.row.dwell_samples / d->run->head.rate_hz;
    return d->radar != NULL ? d->radar->period_s * d->run->most_periods : (double)NAN;
}

/* Writes the second line of the title: the start time, the code and the duration of a dwell if they
 * are known, and the sample rate. */
static void make_facts(const drawing *d, char *out, size_t size)
{
    const double duration_s = dwell_s(d);
    char start[48], code[128], dwell[64] = "", number[48];

    if (isfinite(duration_s))
        snprintf(dwell, sizeof dwell, "; dwell %s", scaled_text(duration_s, "s", number));
    snprintf(out, size, "%s%s%s; %s", start_text(d, start), code_text(d, code), dwell,
             scaled_text(d->run->head.rate_hz, "sps", number));
}

/* Writes a number and its noun, such as "2 echoes". plural: the end of the noun if n is not 1. */
static const char *count_text(uint64_t n, const char *noun, const char *plural, char out[48])
{
    snprintf(out, 48, "%" PRIu64 " %s%s", n, noun, n != 1 ? plural : "");
    return out;
}

/* Returns what the picture shows of the profiles or maps whose number follows. */
static const char *shown_text(const drawing *d)
{
    static const char *const texts[N_MAPS] = {[MAP_MEAN] = "mean of ",
                                              [MAP_LAST] = "the last of ",
                                              [MAP_TIME] = "the greatest of all rows of "};

    return d->run->info.n_rows > 1 ? texts[d->picture->kind] : "";
}

static void make_title(const drawing *d, char *out, size_t size)
{
    const picture_run *run = d->run;
    const uint64_t dwells =
        d->has_power ? run->profile_time.width / run->info.row.dwell_samples : 0;
    char marks[80] = "", more[64] = "", shown[48], echoes[48];

    if (d->n_marks > 0)
        snprintf(marks, sizeof marks, "; %zu %s marked at its strongest echo", d->n_marks,
                 d->n_marks > 1 ? "tracks, each" : "track,");
    if (!run->is_doppler && dwells > 1)
        snprintf(more, sizeof more, "; a column is the greatest of %" PRIu64 " dwells", dwells);
    count_text(run->n_echoes, "echo", "es", echoes);
    if (!d->has_power)
        snprintf(out, size, "%s: %s of %s", run->head.stream, echoes,
                 count_text(run->n_results, "dwell", "s", shown));
    else
        snprintf(out, size, "%s: %s%s, %s%s%s", run->head.stream, shown_text(d),
                 count_text(run->n_profiles, run->info.n_rows > 1 ? "map" : "profile", "s", shown),
                 echoes, marks, more);
}

/* --- power and marks --- */

/* Writes the data block $map. It has one line for each range. A line has the power of each column
 * in dB over the floor. Returns the greatest power in dB. */
static double print_power(const drawing *d, size_t n_columns)
{
    /* An image of gnuplot needs at least two rows and columns. Added rows and columns are outside
     * the axes. */
    const size_t n_rows = d->run->n_rows, n_lines = n_rows > 1 ? n_rows : 2;
    double greatest_db = NOTHING;

    fputs("$map << end_of_block\n", d->gnuplot.to);
    for (size_t r = 0; r < n_lines; r++) {
        for (size_t c = 0; c < n_columns || c < 2; c++) {
            const cell *from = &d->picture->cells[c * n_rows + r];
            const double power =
                r < n_rows && c < n_columns ? from->power / (from->n_sum > 0 ? from->n_sum : 1) : 0;
            const double db = power > 0 ? 10 * log10(power) : NOTHING;

            greatest_db = fmax(greatest_db, db);
            fprintf(d->gnuplot.to, power > 0 ? "%.1f " : "%.0f ", db);
        }
        fputc('\n', d->gnuplot.to);
    }
    fputs("end_of_block\n", d->gnuplot.to);
    return greatest_db;
}

/* Writes the limits of the colour scale. They are multiples of 5 dB, at least least_top_db at the
 * top. If range_db is set, the scale ends at the greatest power, so that the colours begin range_db
 * below it. */
static void print_colours(const drawing *d, double least_db, double greatest_db,
                          double least_top_db)
{
    const double range_db = d->picture->options.range_db;
    const double top = 5 * ceil(fmax(greatest_db, least_top_db) / 5);
    const bool is_free = range_db > 0 && greatest_db > NOTHING;

    fprintf(d->gnuplot.to, "set cbrange [%g:%g]\n",
            is_free ? greatest_db - range_db : fmin(5 * floor(least_db / 5), top - 5),
            is_free ? greatest_db : top);
}

/* Draws the power, and the marks over it. Cells without power are grey. A mark is a ring of two
 * circles, a light line over a dark line. The echo stays visible inside the ring. */
static void draw_power(const drawing *d)
{
    const picture_run *run = d->run;
    const pnr_profile_info *row = &run->info.row;
    const size_t n = run->is_doppler ? run->n_columns : run->profile_time.n;
    const double dx = (d->high_x - d->low_x) / (double)n;
    const double dy =
        axis_value(d->y, pnr_map_range_m(row, (double)run->cells_per_row - 0.5)) - d->low_y;
    const double greatest_db = print_power(d, n);
    const double radius_px = (d->n_marks > MANY_MARKS ? 2 : 6) * d->gnuplot.scale;
    const double radius = radius_px * (d->high_x - d->low_x) / (PNR_PLOT_WIDTH * d->picture->width);
    FILE *to = d->gnuplot.to;

    print_colours(d, 0, greatest_db, 20);
    fprintf(to,
            "set style circle noclip\n"
            "set cblabel 'power over the noise floor, dB' offset 1.5,0\n"
            "set object rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb 'gray'\n"
            "plot $map matrix using (%.9g+%.9g*$1):(%.9g+%.9g*$2):($3>%d?$3:NaN) with image "
            "notitle",
            d->low_x + dx / 2, dx, d->low_y + dy / 2, dy, NOTHING);
    if (d->n_marks > 0)
        fprintf(
            to,
            ", $marks using 1:2:(%.9g) with circles fs empty border lc rgb 'black' lw 4.5 notitle"
            ", $marks using 1:2:(%.9g) with circles fs empty border lc rgb 'white' lw 1.5 notitle",
            radius, radius);
    fputc('\n', to);
}

/* Draws the echoes of a run without profiles, coloured by their SNR. */
static void draw_echoes(const drawing *d)
{
    double least_db = INFINITY, greatest_db = -INFINITY;
    FILE *to = d->gnuplot.to;

    fputs("$echoes << end_of_block\n", to);
    for (size_t c = 0; c < d->run->echo_time.n; c++) {
        for (size_t i = 0; i < d->picture->columns[c].n; i++) {
            const spot *s = &d->picture->columns[c].spots[i];

            fprintf(to, "%.9g %.9g %.2f\n", echo_x(d, s), axis_value(d->y, s->range_m), s->snr_db);
            least_db = fmin(least_db, s->snr_db);
            greatest_db = fmax(greatest_db, s->snr_db);
        }
    }
    fputs("end_of_block\n", to);
    print_colours(d, least_db, greatest_db, NOTHING);
    fprintf(to,
            "set cblabel 'SNR, dB' offset 1.5,0\n"
            "plot $echoes using 1:2 with points pt 7 ps %.3g lc rgb 'black' notitle"
            ", $echoes using 1:2:3 with points pt 7 ps %.3g palette notitle\n",
            0.8 * d->gnuplot.point, 0.6 * d->gnuplot.point);
}

/* Returns the gate of all tracks. Range and Doppler: a few pixels or the width of an echo,
 * whichever is greater. Time: a twentieth of the run or a few dwells, whichever is greater. */
static track_gate choose_gate(const drawing *d)
{
    enum { PIXELS = 4, DWELLS = 4, PART = 20 };
    const picture_run *run = d->run;
    const double metres = pnr_map_range_m(&run->info.row, (double)run->info.row.n_gate) -
                          pnr_map_range_m(&run->info.row, 0);
    const double cells = 2 * (double)run->info.row.oversample;
    const double cell_m = metres / (double)run->info.row.n_gate;
    const uint64_t part = (run->last_sample - run->profile_time.first) / PART;
    const uint64_t dwells = DWELLS * run->info.row.dwell_samples;

    return (track_gate){
        .range_m = fmax(cells * cell_m, PIXELS * metres / d->picture->height),
        .doppler_hz = run->is_doppler
                          ? run->doppler.step_hz *
                                fmax(1.5, PIXELS * (double)run->doppler.n_bins / d->picture->width)
                          : INFINITY,
        .samples = part > dwells ? part : dwells};
}

/* Finds the tracks of the picture. The caller frees *out. */
static int find_marks(drawing *d, track **out, pnr_error *error)
{
    const picture_run *run = d->run;
    const track_gate gate = choose_gate(d);
    track *tracks = calloc(PNR_MAX_TRACKS, sizeof *tracks);
    size_t n, kept = 0;

    *out = tracks;
    if (tracks == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--plot: out of memory");
    n = pnr_tracks_find(d->picture, &gate,
                        d->picture->kind == MAP_LAST && run->is_doppler ? run->last_sample : 0,
                        tracks);
    for (size_t i = 0; i < n; i++)
        if (!run->is_doppler || isfinite(tracks[i].strongest.doppler_hz))
            tracks[kept++] = tracks[i];
    d->n_marks = kept;
    return PNR_OK;
}

/* Writes the data block $marks with one line for each track: time or Doppler, range, SNR. */
static void print_marks(const drawing *d, const track *tracks)
{
    fputs("$marks << end_of_block\n", d->gnuplot.to);
    for (size_t i = 0; i < d->n_marks; i++) {
        const spot *s = &tracks[i].strongest;

        fprintf(d->gnuplot.to, "%.9g %.9g %.2f\n", echo_x(d, s), axis_value(d->y, s->range_m),
                s->snr_db);
    }
    fputs("end_of_block\n", d->gnuplot.to);
}

static int draw(drawing *d, pnr_error *error)
{
    char title[256], facts[256];
    const pnr_sheet sheet = {.path = d->picture->options.path,
                             .title = {title, facts},
                             .width = d->picture->width,
                             .height = d->picture->height};
    track *tracks = NULL;
    int code = d->has_power ? find_marks(d, &tracks, error) : PNR_OK;

    choose_axes(d);
    make_title(d, title, sizeof title);
    make_facts(d, facts, sizeof facts);
    if (code == PNR_OK && (code = pnr_gnuplot_open(&sheet, &d->gnuplot, error)) == PNR_OK) {
        print_axes(d);
        if (d->has_power)
            print_marks(d, tracks);
        (d->has_power ? draw_power : draw_echoes)(d);
        code = pnr_gnuplot_close(&d->gnuplot, error);
    }
    free(tracks);
    if (code == PNR_OK)
        pnr_log(PNR_LOG_INFO, "%s: %s%s", sheet.path, title,
                d->has_power ? ""
                             : "; the stream carries no profiles (publisher.profile = power would "
                               "show them)");
    return code;
}

int pnr_picture_finish(const pnr_picture *p, int code, pnr_error *error)
{
    pnr_error own = {0};
    pnr_error *to = code == PNR_OK ? error : &own;
    drawing d = {.picture = p, .run = &p->run, .has_power = p->run.n_profiles > 0};
    int drawn;

    if (p->radar.code_type[0] != '\0' && strcmp(p->radar_run, p->run.head.run) == 0)
        d.radar = &p->radar;
    if (d.has_power && p->options.code > p->run.info.n_codes)
        drawn = pnr_picture_check_code(p, p->run.info.n_codes, to);
    else if (!d.has_power && p->run.n_echoes == 0)
        drawn = pnr_error_set(to, PNR_EDATA, "--plot %s: there is no echo and no profile to draw",
                              p->options.path);
    else
        drawn = draw(&d, to);
    if (code == PNR_OK)
        return drawn;
    /* PNR_EDATA is not logged: the failed run had nothing to draw */
    if (drawn != PNR_OK && drawn != PNR_EDATA)
        pnr_log(PNR_LOG_WARN, "%s", own.text);
    return code;
}
