/* SPDX-License-Identifier: MIT */
/* The profile or map and its echoes on the terminal, redrawn in place. */
#include "tools/listen/live.h"

#include "base/clock.h"
#include "tools/listen/heat.h"
#include "tools/listen/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_WIDTH = 40,
    MIN_HEIGHT = 12,
    MARGIN = 7, /* columns left of the profile: its scale */
    HEAD = 2,   /* rows above it */
    MAX_BINS = 400,
    MAX_LISTED = 12, /* echoes below the profile */
    BOTTOM_DB = -5   /* of the profile's scale; 0 is the noise floor */
};
static const uint64_t frame_ns = 100 * 1000 * 1000;
static const char marks[] = "123456789abcdefghijklmnopqrstuvwxyz";

struct listen_live {
    listen_screen *screen;
    const char *endpoint;
    bool is_changed;
    uint64_t next_ns; /* the next frame, not before */

    pnr_report report;
    bool has_report;
    pnr_profile_info info;
    size_t n_bins; /* 0: no profile came */
    float bins[MAX_BINS];
    listen_heat heat;         /* of a map; it replaces the bins */
    uint64_t next_profile_ns; /* earlier profiles are ignored */
    int top_db;               /* of the scale */

    uint64_t rate_ns, rate_received; /* time and count at the last measurement of the rate */
    double rate_hz;                  /* results a second; NAN: not known yet */
    char notice[256];
};

/* The place of the profile on the screen. */
typedef struct frame {
    int columns, rows; /* of the profile */
    int bottom;        /* its last row */
    int listed;        /* echoes below it */
} frame;

static frame place_of(const listen_live *l)
{
    const int width = listen_screen_width(l->screen), height = listen_screen_height(l->screen);
    const int listed = (height - HEAD - 4) / 3;
    frame f = {.columns = width - MARGIN, .listed = listed < MAX_LISTED ? listed : MAX_LISTED};

    f.rows = height - HEAD - f.listed - 4;
    f.bottom = HEAD + f.rows - 1;
    return f;
}

static listen_place heat_place(const frame *f)
{
    return (listen_place){
        .left = MARGIN, .columns = f->columns, .bottom = f->bottom, .rows = f->rows};
}

/* --- what came --- */

void listen_live_result(listen_live *l, const pnr_report *report)
{
    l->report = *report;
    l->has_report = true;
    l->is_changed = true;
}

void listen_live_profile(listen_live *l, const listen_profile *profile)
{
    const uint64_t now_ns = pnr_clock_ns();
    const frame f = place_of(l);

    if (now_ns < l->next_profile_ns || f.columns < 1 || f.rows < 1)
        return;
    l->next_profile_ns = now_ns + frame_ns / 2;
    l->info = profile->map.row;
    l->is_changed = true;
    listen_heat_fill(&l->heat, profile, (size_t)f.columns, (size_t)f.rows);
    l->n_bins = f.columns < MAX_BINS ? (size_t)f.columns : MAX_BINS;
    if (l->heat.doppler.n_bins > 0)
        return;
    listen_profile_reduce(profile, 0, profile->map.n_rows,
                          (double)l->info.n_gate / (double)l->n_bins, l->n_bins, l->bins);
}

void listen_live_notice(listen_live *l, const char *text)
{
    snprintf(l->notice, sizeof l->notice, "%s", text);
    l->is_changed = true;
}

/* --- words and numbers --- */

/* Writes "20.0005 km", "999.50 m" or "-". */
static const char *range_text(double range_m, char out[32])
{
    if (!isfinite(range_m))
        return "-";
    if (fabs(range_m) >= 1e4)
        snprintf(out, 32, "%.4f km", range_m * 1e-3);
    else
        snprintf(out, 32, "%.2f m", range_m);
    return out;
}

static const char *number_text(double value, const char *format_of_unit, int decimals, char out[32])
{
    if (!isfinite(value))
        return "-";
    snprintf(out, 32, "%.*f %s", decimals, value, format_of_unit);
    return out;
}

/* Without a carrier of the radar a Doppler gives no velocity. */
static const char *velocity_text(const pnr_echo *e, char out[32])
{
    return isfinite(e->velocity_mps) ? number_text(e->velocity_mps, "m/s", 2, out)
                                     : number_text(e->doppler_hz, "Hz", 1, out);
}

/* Writes "  lost late". */
static const char *flags_text(unsigned flags, char out[128])
{
    char *at = out;
    size_t i;

    *at = '\0';
    for (i = 0; i < PNR_N_FLAGS; i++)
        if (flags & 1u << i)
            at = stpcpy(stpcpy(at, at == out ? "  " : " "), pnr_flag_words[i]);
    return out;
}

/* Writes "  zero 2.0389 us (held 0.5 s)". */
static const char *zero_text(const pnr_zero *zero, char out[96])
{
    const double delay_us = zero->delay_s * 1e6;

    out[0] = '\0';
    if (zero->is_tracked && isnan(zero->held_s))
        snprintf(out, 96, "  zero %.4f us (not seen)", delay_us);
    else if (zero->is_tracked && zero->held_s > 0)
        snprintf(out, 96, "  zero %.4f us (held %.1f s)", delay_us, zero->held_s);
    else if (zero->is_tracked)
        snprintf(out, 96, "  zero %.4f us", delay_us);
    return out;
}

static void draw_head(listen_live *l, const listen_counts *counts)
{
    const pnr_report *r = &l->report;
    const double noise = r->detection.noise_power;
    char when[PNR_TIME_LEN], noise_db[32], rate[32], flags[128], zero[96];
    uint64_t lost = 0;
    size_t i;

    if (!l->has_report) {
        listen_screen_text(l->screen, 0, 0, LISTEN_BOLD, "waiting for %s", l->endpoint);
        return;
    }
    for (i = 0; i < counts->n_streams; i++)
        lost += counts->runs[i].lost;
    if (r->has_time)
        pnr_time_format(r->time_ns, when);
    else
        snprintf(when, sizeof when, "sample %" PRIu64, r->sample);
    listen_screen_text(l->screen, 0, 0, LISTEN_BOLD, "%s  seq %" PRIu64 "  %s", r->stream, r->seq,
                       when);
    listen_screen_text(l->screen, 0, 1, LISTEN_PLAIN,
                       "%" PRIu64 " received, %" PRIu64 " lost, %s  noise %s  latency %.0f us%s%s",
                       counts->received, lost, number_text(l->rate_hz, "a second", 1, rate),
                       number_text(noise > 0 ? 10 * log10(noise) : (double)NAN, "dB", 1, noise_db),
                       r->latency_us, zero_text(&r->zero, zero), flags_text(r->flags, flags));
}

/* Draws a line for each echo, the strongest first, from row y on. */
static void draw_echoes(listen_live *l, int y, int rows)
{
    const pnr_detection *d = &l->report.detection;
    char range[32], sigma[32], snr[32], velocity[32];
    int i;

    listen_screen_text(l->screen, 0, y, LISTEN_FAINT, "%2s %16s %12s %10s %14s", "", "range", "+-",
                       "SNR", "velocity");
    for (i = 0; i + 1 < rows && (size_t)i < d->n_echoes; i++) {
        const pnr_echo *e = &d->echoes[i];

        listen_screen_text(l->screen, 0, y + 1 + i, LISTEN_PLAIN, "%2c %16s %12s %10s %14s",
                           (size_t)i < sizeof marks - 1 ? marks[i] : ' ',
                           range_text(e->range_m, range), range_text(e->range_sigma_m, sigma),
                           number_text(e->snr_db, "dB", 1, snr), velocity_text(e, velocity));
    }
    if (l->has_report && d->n_echoes == 0)
        listen_screen_text(l->screen, 3, y + 1, LISTEN_FAINT, "no echo");
}

/* --- the profile --- */

static double power_db(float power)
{
    return power > 0 ? 10 * log10((double)power) : -INFINITY;
}

/* The height of a power in eighths of a row from the bottom. */
static int height_of(const listen_live *l, const frame *f, double db)
{
    const double share = (db - BOTTOM_DB) / (l->top_db - BOTTOM_DB);

    return (int)lrint(fmin(fmax(share, 0), 1) * 8 * f->rows);
}

static int row_of(const listen_live *l, const frame *f, double db)
{
    const int up = height_of(l, f, db) / 8;

    return f->bottom - (up < f->rows ? up : f->rows - 1);
}

static float bin_at(const listen_live *l, const frame *f, int x)
{
    return l->bins[(size_t)x * l->n_bins / (size_t)f->columns];
}

/* The scale grows at once, and shrinks when much of it is empty. */
static void choose_scale(listen_live *l)
{
    double greatest_db = 0;
    size_t i;
    int top;

    if (l->heat.doppler.n_bins > 0)
        greatest_db = power_db(listen_heat_greatest(&l->heat));
    for (i = 0; i < l->n_bins && l->heat.doppler.n_bins == 0; i++)
        greatest_db = fmax(greatest_db, power_db(l->bins[i]));
    top = 10 * (int)ceil((greatest_db + 2) / 10);
    top = top > 20 ? top : 20;
    if (top > l->top_db || top < l->top_db - 10)
        l->top_db = top;
}

static void draw_line(listen_live *l, const frame *f, double db, const char *glyph, char ascii,
                      listen_style style, const char *name)
{
    const int y = row_of(l, f, db);
    int x;

    if (!isfinite(db) || db < BOTTOM_DB || db > l->top_db)
        return;
    for (x = 0; x < f->columns; x++)
        listen_screen_put(l->screen, MARGIN + x, y, style, glyph, ascii);
    listen_screen_text(l->screen, MARGIN + f->columns - (int)strlen(name) - 2, y, style, " %s ",
                       name);
}

static void draw_power_axis(listen_live *l, const frame *f)
{
    const int step = f->rows * 10 >= 2 * (l->top_db - BOTTOM_DB) ? 10 : 20;
    int db;

    for (db = 0; db <= l->top_db; db += step) {
        const int y = row_of(l, f, db);

        listen_screen_text(l->screen, 0, y, LISTEN_PLAIN, "%3d dB", db);
        listen_screen_put(l->screen, MARGIN - 1, y, LISTEN_PLAIN, "┤", '+');
    }
}

static double range_at(const listen_live *l, double cell)
{
    return l->info.metres_per_second * (l->info.delay_s + cell * l->info.step_s);
}

/* The column of a range, -1: outside the profile. A cell is as wide as the step, and its range
 * is its middle. */
static int column_of(const listen_live *l, const frame *f, double range_m)
{
    const double first_m = range_at(l, -0.5);
    const double span_m = range_at(l, (double)l->info.n_gate - 0.5) - first_m;
    const double at = floor((range_m - first_m) / span_m * f->columns);

    return at >= 0 && at < f->columns ? (int)at : -1;
}

/* 1, 2 or 5 times a power of ten, at least `least`. */
static double nice_step(double least)
{
    const double power = pow(10, floor(log10(least)));
    const double times = least / power;

    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void draw_range_axis(listen_live *l, const frame *f)
{
    const double first_m = range_at(l, 0), last_m = range_at(l, (double)l->info.n_gate - 1);
    const bool is_km = fmax(fabs(first_m), fabs(last_m)) >= 1e4;
    const double unit_m = is_km ? 1e3 : 1;
    const double step =
        nice_step(fmax(last_m - first_m, l->info.step_s * l->info.metres_per_second) / unit_m /
                  f->columns * 12);
    const double first_tick = ceil(first_m / unit_m / step) * step;
    char label[32];
    int x, i;

    for (x = 0; x < f->columns; x++)
        listen_screen_put(l->screen, MARGIN + x, f->bottom + 1, LISTEN_PLAIN, "─", '-');
    for (i = 0; i < f->columns; i++) {
        const double tick = first_tick + i * step;

        x = column_of(l, f, tick * unit_m);
        if (x < 0)
            break;
        listen_screen_put(l->screen, MARGIN + x, f->bottom + 1, LISTEN_PLAIN, "┴", '+');
        snprintf(label, sizeof label, "%.10g", fabs(tick) < step / 2 ? 0 : tick);
        x += MARGIN - (int)strlen(label) / 2;
        listen_screen_text(l->screen, x, f->bottom + 2, LISTEN_PLAIN, "%s", label);
    }
    listen_screen_text(l->screen, 0, f->bottom + 2, LISTEN_PLAIN, "%s", is_km ? "km" : "m");
}

/* The row of the mark of an echo at column x: on the map its Doppler, else above its peak. */
static int mark_row(const listen_live *l, const frame *f, int x, const pnr_echo *e)
{
    const listen_place at = heat_place(f);
    int above;

    if (l->heat.doppler.n_bins > 0)
        return isfinite(e->doppler_hz) ? listen_heat_row(&l->heat, &at, e->doppler_hz) : -1;
    above = row_of(l, f, power_db(bin_at(l, f, x))) - 1;
    return above > HEAD ? above : HEAD;
}

static void draw_marks(listen_live *l, const frame *f)
{
    const pnr_detection *d = &l->report.detection;

    for (size_t i = d->n_echoes; i-- > 0;) { /* the strongest last: it stays visible */
        const pnr_echo *e = &d->echoes[i];
        const int x = isfinite(e->range_m) ? column_of(l, f, e->range_m) : -1;
        const char mark = i < sizeof marks - 1 ? marks[i] : 'v';

        if (x >= 0)
            listen_screen_put(l->screen, MARGIN + x, mark_row(l, f, x, e), LISTEN_RED,
                              (char[2]){mark, '\0'}, mark);
    }
}

static void draw_map(listen_live *l, const frame *f)
{
    const listen_place at = heat_place(f);

    choose_scale(l);
    listen_heat_draw(&l->heat, l->screen, &at, l->top_db);
    draw_range_axis(l, f);
    draw_marks(l, f);
}

static void draw_profile(listen_live *l, const frame *f)
{
    const double threshold_db = 10 * log10(l->info.threshold / l->info.floor);
    char name[32];
    int x;

    choose_scale(l);
    for (x = 0; x < f->columns; x++)
        listen_screen_bar(l->screen, MARGIN + x, f->bottom,
                          height_of(l, f, power_db(bin_at(l, f, x))), LISTEN_GREEN);
    snprintf(name, sizeof name, "threshold %.1f dB", threshold_db);
    draw_line(l, f, 0, "─", '-', LISTEN_CYAN, "noise floor");
    draw_line(l, f, threshold_db, "╌", '=', LISTEN_YELLOW, name);
    draw_power_axis(l, f);
    draw_range_axis(l, f);
    draw_marks(l, f);
}

/* --- a frame --- */

static void take_rate(listen_live *l, const listen_counts *counts, uint64_t now_ns)
{
    const double seconds = (double)(now_ns - l->rate_ns) * 1e-9;

    if (counts->received == 0 || l->rate_ns == 0) {
        l->rate_ns = now_ns;
        l->rate_received = counts->received;
    } else if (seconds >= 1) {
        l->rate_hz = (double)(counts->received - l->rate_received) / seconds;
        l->rate_ns = now_ns;
        l->rate_received = counts->received;
    }
}

static void draw_frame(listen_live *l, const listen_counts *counts)
{
    const int width = listen_screen_width(l->screen), height = listen_screen_height(l->screen);
    const frame f = place_of(l);

    if (width < MIN_WIDTH || height < MIN_HEIGHT) {
        listen_screen_text(l->screen, 0, 0, LISTEN_PLAIN, "%d x %d is too small: want %d x %d",
                           width, height, MIN_WIDTH, MIN_HEIGHT);
        return;
    }
    draw_head(l, counts);
    if (l->n_bins > 0) {
        (l->heat.doppler.n_bins > 0 ? draw_map : draw_profile)(l, &f);
        draw_echoes(l, height - f.listed - 2, f.listed + 1);
    } else {
        draw_echoes(l, HEAD + 1, height - HEAD - 2);
        if (l->has_report)
            listen_screen_text(l->screen, 0, HEAD, LISTEN_YELLOW,
                               "no profiles: publisher.profile = power would show them here");
    }
    listen_screen_text(l->screen, 0, height - 1, LISTEN_FAINT, "%s", l->notice);
}

int listen_live_draw(listen_live *l, const listen_counts *counts)
{
    const uint64_t now_ns = pnr_clock_ns();

    if (now_ns < l->next_ns)
        return PNR_OK;
    l->next_ns = now_ns + frame_ns;
    if (listen_screen_quits(l->screen))
        return PNR_EEND;
    take_rate(l, counts, now_ns);
    if (!l->is_changed && !listen_screen_resized(l->screen))
        return PNR_OK;
    l->is_changed = false;
    listen_screen_begin(l->screen);
    draw_frame(l, counts);
    if (l->notice[0] == '\0')
        listen_screen_text(l->screen, 0, listen_screen_height(l->screen) - 1, LISTEN_FAINT,
                           "q: quit");
    return listen_screen_show(l->screen);
}

int listen_live_keys(const listen_live *l)
{
    return listen_screen_keys(l->screen);
}

int listen_live_open(const char *endpoint, listen_live **out, pnr_error *error)
{
    listen_live *l = calloc(1, sizeof *l);
    int code;

    *out = NULL;
    if (l == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--live: out of memory");
    if ((code = listen_screen_open(&l->screen, error)) != PNR_OK) {
        free(l);
        return code;
    }
    listen_screen_begin(l->screen);
    l->endpoint = endpoint;
    l->rate_hz = NAN;
    l->is_changed = true;
    *out = l;
    return PNR_OK;
}

void listen_live_close(listen_live *l, const listen_counts *counts)
{
    if (l == NULL)
        return;
    listen_screen_begin(l->screen);
    draw_frame(l, counts);
    listen_screen_close(l->screen);
    free(l);
}
