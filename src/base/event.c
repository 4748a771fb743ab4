/* SPDX-License-Identifier: MIT */
/* Events: a bounded queue for many writers and one reader. The rate of each kind is limited. */
#include "base/event.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* least time between two events of a kind, after a burst */
static const uint64_t interval_ns = PNR_NS_PER_S;

#define WORD(name, word, level, first, second) [PNR_EVENT_##name] = word,
const char *const pnr_event_words[PNR_EVENT_COUNT] = {PNR_EVENTS(WORD)};
#define NUMBERS(name, word, level, first, second) [PNR_EVENT_##name] = {first, second},
const char *const pnr_event_numbers[PNR_EVENT_COUNT][2] = {PNR_EVENTS(NUMBERS)};
#define LEVEL(name, word, level, first, second) [PNR_EVENT_##name] = PNR_LOG_##level,
static const pnr_log_level levels[PNR_EVENT_COUNT] = {PNR_EVENTS(LEVEL)};

void pnr_events_begin(pnr_events *events)
{
    memset(events, 0, sizeof *events);
    for (uint64_t i = 0; i < PNR_EVENT_QUEUE; i++)
        atomic_store(&events->places[i].turn, i);
}

/* True if the rate of the kind allows one more event (the generic cell rate algorithm). */
static bool is_allowed(_Atomic uint64_t *due_ns, uint64_t now)
{
    uint64_t due = atomic_load(due_ns), begin;

    do {
        begin = due > now ? due : now;
        if (begin - now > (PNR_EVENT_BURST - 1) * interval_ns)
            return false;
    } while (!atomic_compare_exchange_weak(due_ns, &due, begin + interval_ns));
    return true;
}

/* Reserves a place in the queue for the calling thread. Returns the number of the place, or
 * UINT64_MAX if the queue is full. */
static uint64_t reserve_place(pnr_events *events)
{
    uint64_t at = atomic_load(&events->head);

    for (;;) {
        const uint64_t turn = atomic_load(&events->places[at % PNR_EVENT_QUEUE].turn);

        if (turn < at)
            return UINT64_MAX; /* the queue is full: this place still has an older event */
        if (turn > at)
            at = atomic_load(&events->head);
        else if (atomic_compare_exchange_weak(&events->head, &at, at + 1))
            return at;
    }
}

void pnr_event_post(pnr_events *events, pnr_event_kind kind, uint64_t sample, double first,
                    double second, const char *format, ...)
{
    va_list arguments;
    pnr_event *event;
    uint64_t count, at;

    if (events == NULL)
        return;
    count = atomic_fetch_add(&events->counts[kind], 1) + 1;
    if (!is_allowed(&events->due_ns[kind], pnr_clock_ns()) ||
        (at = reserve_place(events)) == UINT64_MAX)
        return;
    event = &events->places[at % PNR_EVENT_QUEUE].event;
    *event = (pnr_event){.kind = kind,
                         .utc_ns = pnr_clock_utc_ns(),
                         .sample = sample,
                         .count = count,
                         .numbers = {first, second}};
    va_start(arguments, format);
    vsnprintf(event->text, sizeof event->text, format, arguments);
    va_end(arguments);
    pnr_text_hide_controls(event->text);
    atomic_store(&events->places[at % PNR_EVENT_QUEUE].turn, at + 1);
}

uint64_t pnr_event_count(const pnr_events *events, pnr_event_kind kind)
{
    return events != NULL ? atomic_load(&events->counts[kind]) : 0;
}

bool pnr_event_take(pnr_events *events, pnr_event *out)
{
    const uint64_t at = atomic_load_explicit(&events->tail, memory_order_relaxed);

    if (atomic_load(&events->places[at % PNR_EVENT_QUEUE].turn) != at + 1)
        return false;
    *out = events->places[at % PNR_EVENT_QUEUE].event;
    atomic_store(&events->places[at % PNR_EVENT_QUEUE].turn, at + PNR_EVENT_QUEUE);
    atomic_store(&events->tail, at + 1);
    return true;
}

void pnr_event_log(pnr_events *events, const pnr_event *event)
{
    if (!pnr_log_is_ready())
        return;
    pnr_log(levels[event->kind], "%s", event->text);
    events->logged[event->kind] = event->count;
}

void pnr_event_log_rest(pnr_events *events)
{
    for (int kind = 0; kind < PNR_EVENT_COUNT; kind++) {
        const uint64_t count = atomic_load(&events->counts[kind]);

        if (count <= events->logged[kind] || !pnr_log_is_ready())
            continue;
        pnr_log(levels[kind], "%" PRIu64 " more events %s, %" PRIu64 " so far",
                count - events->logged[kind], pnr_event_words[kind], count);
        events->logged[kind] = count;
    }
}
