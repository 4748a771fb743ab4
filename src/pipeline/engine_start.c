/* SPDX-License-Identifier: MIT */
#include "pipeline/engine_start.h"

#include "correlator/engines.h"
#include "pipeline/start_guard.h"

#include <string.h>

static const char engine[] = "cuda";

static void *find_engine(void *argument)
{
    const pnr_devices *devices = &((pnr_engine_start *)argument)->config->engine.device;
    const pnr_engine_ops *ops;
    pnr_error error;

    (void)pnr_engine_find(engine, devices->n > 0 ? devices->index[0] : 0, &ops, &error);
    return NULL;
}

void pnr_engine_start_begin(pnr_engine_start *start, const pnr_config *config)
{
    const char *name = config->engine.name;

    *start = (pnr_engine_start){.config = config};
    if (strcmp(name, engine) == 0 || strcmp(name, "auto") == 0)
        start->is_started = pthread_create(&start->thread, NULL, find_engine, start) == 0;
}

void pnr_engine_start_end(pnr_engine_start *start, const volatile int *stop)
{
    pnr_start_guard guard;

    if (!start->is_started)
        return;
    pnr_start_guard_begin(&guard, stop);
    pthread_join(start->thread, NULL);
    pnr_start_guard_end(&guard);
    start->is_started = false;
}
