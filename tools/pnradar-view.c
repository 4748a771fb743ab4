/* SPDX-License-Identifier: MIT */
/* pnradar-view: subscribes to the results, and shows them on a page for browsers. */
#include "base/clock.h"
#include "base/log.h"
#include "cli.h"
#include "publisher/endpoint.h"
#include "tools/view/feed.h"
#include "tools/view/web.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

enum { POLL_MS = 100 };

typedef struct viewer {
    void *context;
    view_store *store;
    view_feed *feeds[VIEW_MAX_FEEDS];
    size_t n_feeds;
    view_web *web;
} viewer;

/* Stores the messages of all feeds until a signal arrives. */
static void view_all(viewer *v)
{
    zmq_pollitem_t items[VIEW_MAX_FEEDS * VIEW_FEED_ITEMS];
    for (size_t i = 0; i < v->n_feeds; i++)
        view_feed_poll(v->feeds[i], &items[i * VIEW_FEED_ITEMS]);
    while (!pnr_stop) {
        (void)zmq_poll(items, (int)(v->n_feeds * VIEW_FEED_ITEMS), POLL_MS);
        for (size_t i = 0; i < v->n_feeds; i++)
            view_feed_take(v->feeds[i]);
        view_web_wake(v->web);
    }
}

static int open_all(viewer *v, const pnr_subscriber_source *sources, size_t n_sources,
                    size_t n_streams, const view_web_options *options, pnr_error *error)
{
    char url[512];
    int code = pnr_endpoint_enough_files(PNR_ENDPOINT_FILES, error);

    if (code != PNR_OK)
        return code;
    if ((v->context = zmq_ctx_new()) == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "no ZeroMQ context: %s",
                             zmq_strerror(zmq_errno()));
    if (view_store_create(n_streams, &v->store) != PNR_OK)
        return pnr_error_set(error, PNR_ENOMEMORY, "view: out of memory for %zu streams",
                             n_streams);
    for (; v->n_feeds < n_sources; v->n_feeds++)
        if ((code = view_feed_open(v->context, &sources[v->n_feeds], v->n_feeds, v->store,
                                   &v->feeds[v->n_feeds], error)) != PNR_OK)
            return code;
    if ((code = view_web_open(v->store, options, &v->web, url, error)) != PNR_OK)
        return code;
    printf("%s\n", url);
    fflush(stdout);
    for (size_t i = 0; i < n_sources; i++)
        pnr_log(PNR_LOG_INFO, "waiting at %s; open %s", sources[i].endpoint, url);
    return PNR_OK;
}

static void close_all(viewer *v)
{
    view_web_close(v->web);
    for (size_t i = 0; i < v->n_feeds; i++)
        view_feed_close(v->feeds[i]);
    while (v->context != NULL && zmq_ctx_term(v->context) != 0 && zmq_errno() == EINTR)
        ;
    view_store_destroy(v->store);
}

int main(int argc, char **argv)
{
    view_web_options web = {.listen = "127.0.0.1:8080"};
    size_t n_streams = 4;
    const char *curve_key = NULL, *curve_secret = NULL;
    pnr_config config;
    viewer v = {0};
    const pnr_cli_option options[] = {
        {"listen", "HOST:PORT", "where browsers find the page (127.0.0.1:8080); port 0 is any",
         .value = &web.listen},
        {"token", "TEXT", "what a browser must know (made at random beyond this machine)",
         .value = &web.token},
        {"streams", "N", "streams to keep, some 70 MB of memory each (4)", .count = &n_streams,
         .min = 1, .max = VIEW_MAX_STREAMS},
        {"curve-key", "KEY", "the publishers' CURVE public key", .value = &curve_key},
        {"curve-secret", "FILE", "this subscriber's CURVE secret key, from pnradar-keys",
         .value = &curve_secret},
        {0}};
    pnr_cli cli = {
        .program = "pnradar-view",
        .usage = "[OPTION]... [ENDPOINT]...",
        .summary = "Shows the radar in a browser: ranges over time, Doppler, echoes, health.\n"
                   "ENDPOINT is publisher.endpoint of the configuration when left out. Prints the "
                   "address of the page.",
        .examples = "pnradar-view\n"
                    "pnradar-view --listen 127.0.0.1:9000 tcp://127.0.0.1:5510\n"
                    "pnradar-view --listen 0.0.0.0:8080 -c config/demo.conf",
        .options = options,
        .max_operands = VIEW_MAX_FEEDS,
    };
    pnr_subscriber_source sources[VIEW_MAX_FEEDS];
    pnr_error error = {0};
    int code = pnr_cli_parse(&cli, argc, argv, &config, &error);

    if (code == PNR_OK) {
        const size_t n = cli.n_operands > 0 ? (size_t)cli.n_operands : 1;

        for (size_t i = 0; i < n; i++)
            sources[i] = (pnr_subscriber_source){
                .endpoint = cli.n_operands > 0 ? cli.operands[i] : config.publisher.endpoint,
                .curve_key = curve_key,
                .secret_path = curve_secret};
        pnr_cli_catch_signals();
        code = open_all(&v, sources, n, n_streams, &web, &error);
        if (code == PNR_OK)
            view_all(&v);
    }
    close_all(&v);
    pnr_config_clear(&config);
    return code != PNR_OK ? pnr_cli_fail(&error) : 0;
}
