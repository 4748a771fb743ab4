/* SPDX-License-Identifier: MIT */
/* Draws the profile or map and its echoes on the terminal. Each frame replaces the previous one. */
#include "tools/listen/live.h"

#include "base/clock.h"
#include "tools/listen/graph.h"
#include "tools/listen/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_WIDTH = 60,
    MIN_HEIGHT = 12,
    MARGIN = 7,      /* columns to the left of the graph, for the labels of its axis */
    HEAD = 2,        /* least number of rows above the graph */
    MAX_LISTED = 12, /* greatest number of echoes below the graph */
    MAX_RECENT = 64  /* number of stored reports; a profile may arrive several results after its
                      * report */
};
static const uint64_t frame_ns = 100 * 1000 * 1000;

struct listen_live {
    listen_screen *screen;
    const char *endpoint;
    bool is_changed;
    int head_rows;    /* greatest number of rows above the graph so far; never decreases, so that
                       * the graph rarely moves */
    uint64_t next_ns; /* earliest time of the next frame */

    pnr_report report; /* the newest report */
    bool has_report;
    pnr_report recent[MAX_RECENT]; /* the newest reports; report i is at index i mod MAX_RECENT */
    size_t n_reports;
    listen_graph graph;
    pnr_report graph_head; /* header of the profile in the graph; contains its echoes if
                            * has_echoes */
    bool has_echoes;
    uint64_t next_profile_ns; /* profiles that arrive earlier are ignored */

    uint64_t rate_ns, rate_received; /* time and number of received results at the last measurement
                                      * of the rate */
    double rate_hz;                  /* results a second; NAN: not known yet */
    char notice[256];
    char *log; /* text that waits until the terminal is restored */
    size_t log_bytes;
};

/* Returns the place of the graph on the screen. *listed: number of echoes in the list below the
 * graph. */
static listen_place place_of(const listen_live *l, int *listed)
{
    const listen_size size = listen_screen_size(l->screen);
    listen_place at = {.left = MARGIN, .columns = size.width - MARGIN};

    *listed = (size.height - l->head_rows - 4) / 3;
    *listed = *listed < MAX_LISTED ? *listed : MAX_LISTED;
    at.rows = size.height - l->head_rows - *listed - 4;
    at.bottom = l->head_rows + at.rows - 1;
    at.scale = size.height - 1;
    return at;
}

/* --- received messages --- */

/* Copies the echoes of the report if the report and the graph have the same dwell. */
static void pair_echoes(listen_live *l, const pnr_report *report)
{
    pnr_report *to = &l->graph_head;

    if (l->has_echoes || report->sample != to->sample || strcmp(report->run, to->run) != 0)
        return;
    to->detection = report->detection;
    l->has_echoes = true;
}

void listen_live_result(listen_live *l, const pnr_report *report)
{
    l->report = *report;
    l->has_report = true;
    l->recent[l->n_reports++ % MAX_RECENT] = *report;
    pair_echoes(l, report);
    l->is_changed = true;
}

void listen_live_profile(listen_live *l, const pnr_map *profile)
{
    const uint64_t now_ns = pnr_clock_ns();
    int listed;
    const listen_place at = place_of(l, &listed);

    if (now_ns < l->next_profile_ns || at.columns < 1 || at.rows < 1)
        return;
    l->next_profile_ns = now_ns + frame_ns / 2;
    l->is_changed = true;
    listen_graph_fill(&l->graph, profile, &at);
    l->graph_head = profile->head;
    l->has_echoes = false;
    for (size_t i = 0; i < MAX_RECENT; i++)
        pair_echoes(l, &l->recent[i]);
}

void listen_live_notice(listen_live *l, const char *text)
{
    snprintf(l->notice, sizeof l->notice, "%s", text);
    l->is_changed = true;
}

/* --- units and numbers --- */

static const char *number_text(double value, const char *unit, int decimals, char out[32])
{
    if (!isfinite(value))
        return "-";
    snprintf(out, 32, "%.*f %s", decimals, value, unit);
    return out;
}

/* Writes a range, as "20.0005 km" or "999.50 m"; "-": not known. */
static const char *range_text(double range_m, char out[32])
{
    return fabs(range_m) >= 1e4 ? number_text(range_m * 1e-3, "km", 4, out)
                                : number_text(range_m, "m", 2, out);
}

/* Writes the velocity, or the Doppler if the radar has no carrier. */
static const char *velocity_text(const pnr_echo *e, char out[32])
{
    return isfinite(e->velocity_mps) ? number_text(e->velocity_mps, "m/s", 2, out)
                                     : number_text(e->doppler_hz, "Hz", 1, out);
}

/* Writes the names of the flags that are set, as "  lost late". */
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

/* Writes the delay of the zero range, as "  zero 2.0389 us (held 0.5 s)". Writes nothing if the
 * zero range is not tracked. */
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

/* Writes the fields of the text above the graph. Two spaces separate fields. */
static void make_head(const listen_live *l, const listen_counts *counts, char *out, size_t size)
{
    const pnr_report *r = &l->report;
    const double noise = r->detection.noise_power;
    char when[PNR_TIME_LEN + 8], noise_db[32], rate[32] = "", flags[128], zero[96];
    uint64_t lost = 0;
    size_t i;

    for (i = 0; i < counts->n_streams; i++)
        lost += counts->runs[i].lost;
    if (r->has_time)
        pnr_time_format(r->time_ns, when);
    else
        snprintf(when, sizeof when, "sample %" PRIu64, r->sample);
    if (isfinite(l->rate_hz))
        snprintf(rate, sizeof rate, "  %.1f a second", l->rate_hz);
    snprintf(out, size,
             "%s  seq %" PRIu64 "  %s  %" PRIu64 " received, %" PRIu64
             " lost%s  noise %s  latency %.0f us%s%s",
             r->stream, r->seq, when, counts->received, lost, rate,
             number_text(noise > 0 ? 10 * log10(noise) : (double)NAN, "dB", 1, noise_db),
             r->latency_us, zero_text(&r->zero, zero), flags_text(r->flags, flags));
}

static void draw_head(listen_live *l, const listen_counts *counts)
{
    const int most = listen_screen_size(l->screen).height / 3;
    char text[640];
    int rows;

    if (l->has_report)
        make_head(l, counts, text, sizeof text);
    else
        snprintf(text, sizeof text, "waiting for %s", l->endpoint);
    rows = listen_screen_fields(l->screen, -1, LISTEN_BOLD, text);
    l->head_rows = rows > l->head_rows ? (rows < most ? rows : most) : l->head_rows;
    (void)listen_screen_fields(l->screen, 0, LISTEN_BOLD, text);
}

/* Draws a heading at row y, then a line for each echo, with the strongest echo first. */
static void draw_echoes(listen_live *l, const pnr_detection *d, int y, int rows)
{
    char range[32], sigma[32], snr[32], velocity[32];
    int i;

    listen_screen_text(l->screen, 0, y, LISTEN_FAINT, "%2s %16s %12s %10s %14s", "", "range", "+-",
                       "SNR", "velocity");
    for (i = 0; i + 1 < rows && (size_t)i < d->n_echoes; i++) {
        const pnr_echo *e = &d->echoes[i];

        listen_screen_text(l->screen, 0, y + 1 + i, LISTEN_PLAIN, "%2c %16s %12s %10s %14s",
                           listen_graph_mark((size_t)i, ' '), range_text(e->range_m, range),
                           range_text(e->range_sigma_m, sigma),
                           number_text(e->snr_db, "dB", 1, snr), velocity_text(e, velocity));
    }
    if (l->has_report && d->n_echoes == 0)
        listen_screen_text(l->screen, 3, y + 1, LISTEN_FAINT, "no echo");
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

/* Draws the notice on the last rows. */
static void draw_notice(listen_live *l, const char *text)
{
    const listen_size size = listen_screen_size(l->screen);
    const int rows = listen_screen_fields(l->screen, -1, LISTEN_FAINT, text);
    const int y = rows < size.height ? size.height - rows : 0;

    for (int row = y; rows > 1 && row < size.height; row++)
        listen_screen_text(l->screen, 0, row, LISTEN_PLAIN, "%*s", size.width, "");
    (void)listen_screen_fields(l->screen, y, LISTEN_FAINT, text);
}

static void draw_frame(listen_live *l, const listen_counts *counts)
{
    const listen_size size = listen_screen_size(l->screen);
    const int width = size.width, height = size.height;
    const pnr_detection *detection =
        l->has_echoes ? &l->graph_head.detection : &l->report.detection;
    int listed;
    listen_place at;

    if (width < MIN_WIDTH || height < MIN_HEIGHT) {
        listen_screen_text(l->screen, 0, 0, LISTEN_PLAIN, "%d x %d is too small: want %d x %d",
                           width, height, MIN_WIDTH, MIN_HEIGHT);
        return;
    }
    draw_head(l, counts);
    at = place_of(l, &listed);
    if (l->graph.n_columns > 0) {
        listen_graph_draw(&l->graph, l->screen, &at, detection);
        draw_echoes(l, detection, height - listed - 2, listed + 1);
    } else {
        draw_echoes(l, detection, l->head_rows + 1, height - l->head_rows - 2);
        if (l->has_report)
            listen_screen_text(l->screen, 0, l->head_rows, LISTEN_YELLOW,
                               "no profiles: publisher.profile = power would show them here");
    }
    draw_notice(l, l->notice);
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
        listen_screen_text(l->screen, 0, listen_screen_size(l->screen).height - 1, LISTEN_FAINT,
                           "q: quit");
    return listen_screen_show(l->screen);
}

int listen_live_open(const char *endpoint, listen_live **out, FILE **log, pnr_error *error)
{
    listen_live *l = calloc(1, sizeof *l);
    FILE *waiting = l != NULL ? open_memstream(&l->log, &l->log_bytes) : NULL;
    const int code = waiting != NULL ? listen_screen_open(&l->screen, error)
                                     : pnr_error_set(error, PNR_ENOMEMORY, "--live: out of memory");

    *out = NULL;
    if (code != PNR_OK) {
        if (waiting != NULL) {
            fclose(waiting);
            free(l->log);
        }
        free(l);
        return code;
    }
    listen_screen_begin(l->screen);
    l->endpoint = endpoint;
    l->head_rows = HEAD;
    l->rate_hz = NAN;
    l->is_changed = true;
    *log = waiting;
    *out = l;
    return PNR_OK;
}

void listen_live_close(listen_live *l, const listen_counts *counts, FILE **log)
{
    if (l == NULL)
        return;
    listen_screen_begin(l->screen);
    draw_frame(l, counts);
    listen_screen_close(l->screen);
    fclose(*log);
    *log = stderr;
    fwrite(l->log, 1, l->log_bytes, *log);
    free(l->log);
    free(l);
}
