/* SPDX-License-Identifier: MIT */
/* The two ways to see results besides the table: the picture at the end, and the terminal. Both use
 * the profiles. */
#include "tools/listen/view.h"

#include "base/clock.h"
#include "base/log.h"
#include "tools/common/gnuplot.h"
#include "tools/listen/live.h"
#include "tools/listen/picture.h"
#include "tools/listen/profiles.h"
#include "tools/listen/screen.h"

#include <stdlib.h>
#include <string.h>

/* Missing profiles are given up after this silence, counted from the last result. */
static const uint64_t patience_ns = 1000 * 1000 * 1000;

struct listen_view {
    const pnr_subscriber_source *source;
    listen_profiles *profiles;
    listen_picture *picture; /* NULL: not wanted */
    bool is_live;
    listen_live *live; /* NULL: the terminal is not taken */
    char *log;         /* text that waits until the terminal is restored */
    size_t log_bytes;
    listen_profile profile; /* the last profile */
    uint64_t last_sample;   /* of the results */
    uint64_t heard_ns;      /* of results and profiles */
};

int listen_view_check(const char *plot, bool is_live, pnr_error *error)
{
    const int code = plot != NULL ? pnr_gnuplot_check(error) : PNR_OK;

    return code == PNR_OK && is_live ? listen_screen_check(error) : code;
}

int listen_view_open(void *context, const pnr_subscriber_source *source, const char *plot,
                     const char *map, bool is_live, listen_view **out, pnr_error *error)
{
    listen_view *v;
    int code = PNR_OK;

    *out = NULL;
    if (plot == NULL && !is_live)
        return PNR_OK;
    if ((v = calloc(1, sizeof *v)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "pictures: out of memory");
    v->source = source;
    v->is_live = is_live;
    if ((plot != NULL && (code = listen_picture_create(plot, map, &v->picture, error)) != PNR_OK) ||
        (code = listen_profiles_open(context, source, &v->profiles, error)) != PNR_OK) {
        listen_view_close(v);
        return code;
    }
    *out = v;
    return PNR_OK;
}

void listen_view_close(listen_view *v)
{
    if (v == NULL)
        return;
    listen_profiles_close(v->profiles);
    listen_picture_destroy(v->picture);
    free(v);
}

int listen_view_enter(listen_view *v, FILE **log, pnr_error *error)
{
    FILE *waiting;
    int code;

    if (v == NULL || !v->is_live)
        return PNR_OK;
    if ((waiting = open_memstream(&v->log, &v->log_bytes)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--live: out of memory");
    if ((code = listen_live_open(v->source->endpoint, &v->live, error)) != PNR_OK) {
        fclose(waiting);
        free(v->log);
        return code;
    }
    *log = waiting;
    return PNR_OK;
}

void listen_view_leave(listen_view *v, const listen_counts *counts, FILE **log)
{
    if (v == NULL || v->live == NULL)
        return;
    listen_live_close(v->live, counts);
    v->live = NULL;
    fclose(*log);
    *log = stderr;
    fwrite(v->log, 1, v->log_bytes, *log);
    free(v->log);
}

bool listen_view_reached(listen_view *v)
{
    return v == NULL || listen_profiles_reached(v->profiles);
}

int listen_view_poll(const listen_view *v, zmq_pollitem_t *items)
{
    int n = 0;

    if (v == NULL)
        return 0;
    items[n++] =
        (zmq_pollitem_t){.socket = listen_profiles_socket(v->profiles), .events = ZMQ_POLLIN};
    if (v->live != NULL && listen_live_keys(v->live) >= 0)
        items[n++] = (zmq_pollitem_t){.fd = listen_live_keys(v->live), .events = ZMQ_POLLIN};
    return n;
}

bool listen_view_result(listen_view *v, const pnr_report *report)
{
    if (v == NULL)
        return false;
    v->heard_ns = pnr_clock_ns();
    v->last_sample = report->sample;
    if (v->picture != NULL)
        listen_picture_result(v->picture, report);
    if (v->live != NULL)
        listen_live_result(v->live, report);
    return v->live != NULL;
}

int listen_view_next(listen_view *v, pnr_error *error)
{
    const int code = v != NULL ? listen_profiles_next(v->profiles, &v->profile, error) : PNR_EAGAIN;

    if (code == PNR_EAGAIN)
        return code;
    v->heard_ns = pnr_clock_ns();
    if (code != PNR_OK)
        return code;
    if (v->live != NULL)
        listen_live_profile(v->live, &v->profile);
    return v->picture != NULL ? listen_picture_profile(v->picture, &v->profile, error) : PNR_OK;
}

bool listen_view_is_done(const listen_view *v, const char *run)
{
    return v == NULL || listen_profiles_ended(v->profiles, run) ||
           (strcmp(v->profile.head.run, run) == 0 && v->profile.head.sample >= v->last_sample) ||
           pnr_clock_ns() - v->heard_ns > patience_ns;
}

bool listen_view_notice(listen_view *v, const char *text)
{
    if (v == NULL || v->live == NULL)
        return false;
    listen_live_notice(v->live, text);
    return true;
}

int listen_view_draw(listen_view *v, const listen_counts *counts)
{
    return v != NULL && v->live != NULL ? listen_live_draw(v->live, counts) : PNR_OK;
}

int listen_view_finish(listen_view *v, const listen_counts *counts, FILE *log, int code,
                       pnr_error *error)
{
    pnr_error own = {0};
    int drawn;

    if (v == NULL)
        return code;
    if (counts->n_streams > 0 && counts->runs[0].has_ended)
        listen_profiles_finish(v->profiles, &counts->runs[0].end);
    listen_profiles_print(v->profiles, log);
    drawn = v->picture != NULL ? listen_picture_draw(v->picture, &own) : PNR_OK;
    if (drawn == PNR_OK)
        return code;
    if (code == PNR_OK) {
        *error = own;
        return drawn;
    }
    if (drawn != PNR_EDATA) /* if there was nothing to draw, the first error is the reason */
        pnr_log(PNR_LOG_WARN, "%s", own.text);
    return code;
}
