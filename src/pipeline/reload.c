/* SPDX-License-Identifier: MIT */
/* The reload thread: compares the new configuration with the old one, and opens the new parts while
 * the run continues. */
#include "pipeline/reload.h"

#include "base/clock.h"
#include "config/keys.h"
#include "engine/plan.h"
#include "pipeline/state.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t nap_ns = 2 * 1000 * 1000;

struct pnr_reload {
    pnr_pipeline *run;
    pthread_t thread;
    sem_t asked;
    pthread_mutex_t turn; /* held during a reload */
    atomic_bool is_over;
    pnr_pipeline *_Atomic next; /* the parts that are ready */
    atomic_bool is_taken;       /* the processing thread has exchanged the parts */
};

/* Keys that a run cannot change: they belong to parts that stay open or that all configurations
 * share. */
static const pnr_config_part fixed[] = {
    {"stream", NULL},   {"source", NULL},      {"transmit", NULL}, {"ring", NULL},
    {"realtime", NULL}, {"publisher", NULL},   {"recorder", NULL}, {"engine", "device"},
    {"engine", "wait"}, {"engine", "isolate"},
};

/* --- the reload thread --- */

static int check_key(const pnr_key *key, const pnr_config *old, const pnr_config *new,
                     pnr_error *error)
{
    char is[PNR_VALUE_MAX + 1], was[PNR_VALUE_MAX + 1];

    pnr_value_format(key, new, is);
    if (strcmp(pnr_value_format(key, old, was), is) == 0)
        return PNR_OK;
    return pnr_refuse(error, "%s.%s = \"%.60s\", and it was \"%.60s\": this key needs a new start",
                      key->section, key->name, is, was);
}

static int check_fixed(const pnr_config *old, const pnr_config *new, pnr_error *error)
{
    static const pnr_config_part codes[] = {{"code", NULL}, {"code.n", NULL}};
    int code = PNR_OK;

    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const pnr_key *key = NULL;

        while (code == PNR_OK && (key = pnr_key_next(fixed[i].section, key)) != NULL)
            if (fixed[i].key == NULL || strcmp(fixed[i].key, key->name) == 0)
                code = check_key(key, old, new, error);
    }
    if (code == PNR_OK && new->transmit.output[0] != '\0' &&
        pnr_config_hash(old, codes, 2) != pnr_config_hash(new, codes, 2))
        code = pnr_refuse(error,
                          "[code] has changed, and transmit.output = %.100s plays the old code: "
                          "this needs a new start",
                          new->transmit.output);
    return code;
}

static int open_next(pnr_pipeline *next, pnr_error *error)
{
    const pnr_pipeline_options *options = next->before->options;
    int code;

    if ((next->own_config = calloc(1, sizeof *next->own_config)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "out of memory");
    pnr_config_init(next->own_config);
    next->config = next->own_config;
    if ((code = options->configure(options->configure_context, next->own_config, error)) !=
            PNR_OK ||
        (code = check_fixed(next->before->config, next->config, error)) != PNR_OK)
        return code;
    return pnr_pipeline_open_next(next, error);
}

/* Waits until the run no longer uses the parts in *next. After an exchange these are the old parts;
 * after a refusal these are the new parts. The processing thread sets is_taken before it clears
 * r->next, so r->next must be read first. */
static void wait_for_exchange(pnr_reload *r, const pnr_pipeline *next)
{
    while (!atomic_load(&r->is_over) &&
           (atomic_load(&r->next) != NULL ||
            (atomic_load(&r->is_taken) && !pnr_publishing_has_taken(next->publishing))))
        (void)pnr_clock_sleep_until(pnr_clock_ns() + nap_ns, NULL);
}

static void post_refusal(pnr_reload *r, const char *reason)
{
    pnr_event_post(&r->run->events, PNR_EVENT_RELOAD_REFUSED, PNR_EVENT_NO_SAMPLE, 0, 0,
                   "the configuration stays as it was: %s", reason);
}

static void reload_once(pnr_reload *r)
{
    pnr_pipeline *next = calloc(1, sizeof *next);
    const pnr_notify *service = r->run->options->service;
    pnr_error error = {0};
    char message[80];
    int code = PNR_ENOMEMORY;

    snprintf(message, sizeof message, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             pnr_clock_ns() / 1000);
    pnr_notify_send(service, message);
    if (next != NULL) {
        next->before = r->run;
        code = open_next(next, &error);
    }
    if (code == PNR_OK) {
        atomic_store(&r->is_taken, false);
        atomic_store(&r->next, next);
        wait_for_exchange(r, next);
    } else if (code != PNR_EEND) {
        post_refusal(r, error.text[0] != '\0' ? error.text : pnr_error_text(code));
    }
    if (next != NULL)
        pnr_pipeline_close(next);
    pnr_notify_send(service, "READY=1");
}

static void *reload_thread(void *argument)
{
    pnr_reload *r = argument;
    bool is_over;

    for (;;) {
        while (sem_wait(&r->asked) != 0)
            ; /* a signal interrupts sem_wait (EINTR) */
        pthread_mutex_lock(&r->turn);
        is_over = atomic_load(&r->is_over);
        if (!is_over)
            reload_once(r);
        pthread_mutex_unlock(&r->turn);
        if (is_over)
            return NULL;
    }
}

int pnr_reload_create(pnr_pipeline *run, pnr_reload **out, pnr_error *error)
{
    pnr_reload *r = calloc(1, sizeof *r);

    *out = NULL;
    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "reload: out of memory");
    r->run = run;
    (void)sem_init(&r->asked, 0, 0);
    (void)pthread_mutex_init(&r->turn, NULL);
    if (pthread_create(&r->thread, NULL, reload_thread, r) != 0) {
        (void)pthread_mutex_destroy(&r->turn);
        (void)sem_destroy(&r->asked);
        free(r);
        return pnr_error_set(error, PNR_ENOMEMORY, "no reload thread could be started");
    }
    *out = r;
    return PNR_OK;
}

void pnr_reload_finish(pnr_reload *r)
{
    if (r == NULL)
        return;
    atomic_store(&r->is_over, true);
    pthread_mutex_lock(&r->turn);
    pthread_mutex_unlock(&r->turn);
}

void pnr_reload_destroy(pnr_reload *r)
{
    if (r == NULL)
        return;
    (void)sem_post(&r->asked);
    pthread_join(r->thread, NULL);
    (void)pthread_mutex_destroy(&r->turn);
    (void)sem_destroy(&r->asked);
    free(r);
}

void pnr_reload_ask(pnr_reload *r)
{
    int n_asked;

    if (sem_getvalue(&r->asked, &n_asked) == 0 && n_asked == 0)
        (void)sem_post(&r->asked);
}

/* --- the processing thread --- */

bool pnr_reload_is_ready(const pnr_reload *r)
{
    return r != NULL && atomic_load(&r->next) != NULL;
}

void pnr_reload_take(pnr_reload *r)
{
    pnr_pipeline *p = r->run, *next = atomic_load(&r->next);
    uint64_t skipped;
    const uint64_t first = pnr_ring_divide(p->ring, next->division, &skipped);

    p->carried +=
        p->isolation != NULL ? pnr_isolation_unreported(p->isolation) : p->processing.unreported;
    if (p->isolation != NULL)
        pnr_isolation_hand_over(p->isolation, next->isolation);
    PNR_EXCHANGE(pnr_config *, own_config);
    PNR_EXCHANGE(const pnr_config *, config);
    PNR_EXCHANGE(pnr_setup *, setup);
    PNR_EXCHANGE(size_t, max_dwells);
    PNR_EXCHANGE(pnr_processing, processing);
    PNR_EXCHANGE(pnr_isolation *, isolation);
    p->processing.exchange = &p->exchange;
    atomic_store(&p->acquisition.first_window, first + pnr_plan_view_samples(&p->setup->plan, 0));
    atomic_store(&p->acquisition.dwell, pnr_plan_dwell_samples(&p->setup->plan));
    pnr_publishing_change(p->publishing, next->publishing, first, skipped);
    atomic_store(&r->is_taken, true);
    atomic_store(&r->next, NULL);
}

void pnr_reload_refuse(pnr_reload *r, const char *reason)
{
    post_refusal(r, reason);
    atomic_store(&r->next, NULL);
}
