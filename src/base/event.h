/* SPDX-License-Identifier: MIT */
/* Events: incidents of a run, reported in addition to its results. Any thread posts events. One
 * thread takes, logs and publishes them. */
#ifndef PNR_EVENT_H
#define PNR_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * All kinds of events. Each row is X(name, word on the wire, level of the log line, name of the
 * first number, name of the second number). The name "" means that there is no such number. A new
 * kind needs a new row here and an entry in pnradar-wire.5.
 */
#define PNR_EVENTS(X)                                                                              \
    X(LOSS_BEGINS, "loss-begins", WARN, "source", "ring_full")                                     \
    X(LOSS_ENDS, "loss-ends", INFO, "source", "ring_full")                                         \
    X(OVERLOAD, "overload", WARN, "late", "worst_us")                                              \
    X(SUBSCRIBER_REFUSED, "subscriber-refused", WARN, "bytes", "subscriptions")                    \
    X(CLIPPING, "clipping", WARN, "clipped", "share")                                              \
    X(SLIP, "slip", WARN, "vanished", "period")                                                    \
    X(ZERO_ALARM, "zero-alarm", WARN, "moved_m", "limit_m")                                        \
    X(ZERO_ALARM_ENDS, "zero-alarm-ends", INFO, "moved_m", "limit_m")                              \
    X(ZERO_STATE_DROPPED, "zero-state-dropped", WARN, "delay_s", "")                               \
    X(ENGINE_FAILED, "engine-failed", WARN, "windows", "")                                         \
    X(DEVICE_LOST, "device-lost", WARN, "device", "left")                                          \
    X(ENGINE_HANGS, "engine-hangs", WARN, "seconds", "")                                           \
    X(RESULTS_UNSENT, "results-unsent", WARN, "results", "")                                       \
    X(MAPS_UNSENT, "maps-unsent", WARN, "maps", "")                                                \
    X(OVERRUN, "overrun", WARN, "", "")                                                            \
    X(UNDERRUN, "underrun", WARN, "", "")                                                          \
    X(RECORDING_STOPS, "recording-stops", WARN, "", "")                                            \
    X(RECORDING_RESUMES, "recording-resumes", INFO, "unrecorded", "")                              \
    X(RECORDING_LATE, "recording-late", WARN, "unrecorded", "")                                    \
    X(TIME_MOVED, "time-moved", INFO, "seconds", "")                                               \
    X(SOURCE_ERROR, "source-error", WARN, "", "")                                                  \
    X(WORKER_LOST, "worker-lost", WARN, "deaths", "views")                                         \
    X(WORKER_STARTED, "worker-started", INFO, "seconds", "")                                       \
    X(DEGRADED, "degraded", WARN, "deaths", "")                                                    \
    X(RESTORED, "restored", INFO, "", "")                                                          \
    X(RELOADED, "reloaded", INFO, "skipped", "")                                                   \
    X(RELOAD_REFUSED, "reload-refused", WARN, "", "")
typedef enum pnr_event_kind {
#define PNR_EVENT_VALUE(name, word, level, first, second) PNR_EVENT_##name,
    PNR_EVENTS(PNR_EVENT_VALUE)
#undef PNR_EVENT_VALUE
        PNR_EVENT_COUNT
} pnr_event_kind;

extern const char *const pnr_event_words[PNR_EVENT_COUNT];
/* Names of the two numbers of each kind. */
extern const char *const pnr_event_numbers[PNR_EVENT_COUNT][2];

#define PNR_EVENT_NO_SAMPLE UINT64_MAX
enum { PNR_EVENT_TEXT_LEN = 256, PNR_EVENT_QUEUE = 64, PNR_EVENT_BURST = 8 };

typedef struct pnr_event {
    pnr_event_kind kind;
    int64_t utc_ns;  /* UTC of the call of pnr_event_post, by the clock of this machine */
    uint64_t sample; /* sample index; PNR_EVENT_NO_SAMPLE: none */
    /* number of events of this kind so far, including this event and events that were not queued */
    uint64_t count;
    double numbers[2];             /* pnr_event_numbers has their names */
    char text[PNR_EVENT_TEXT_LEN]; /* a sentence without control characters: the log line */
} pnr_event;

/* A bounded queue of events, and their counts. It contains no pointers and uses no locks, so two
 * processes may share its memory. A process that may die has a queue of its own, because a process
 * that dies while it posts an event blocks the queue. Of each kind, the queue accepts at most
 * PNR_EVENT_BURST events at once, and then one per second. All other events are counted but not
 * queued, and so are all events while the queue is full. */
typedef struct pnr_events {
    _Atomic uint64_t counts[PNR_EVENT_COUNT]; /* events of each kind so far */
    /* earliest time of the next event at the regular rate, see is_allowed in event.c */
    _Atomic uint64_t due_ns[PNR_EVENT_COUNT];
    _Atomic uint64_t head;            /* number of the next place that a writer reserves */
    _Atomic uint64_t tail;            /* number of the next event to take */
    uint64_t logged[PNR_EVENT_COUNT]; /* count of each kind at its last log line */
    struct {
        _Atomic uint64_t turn; /* i: the place is free for event i; i + 1: it has event i */
        pnr_event event;
    } places[PNR_EVENT_QUEUE];
} pnr_events;

void pnr_events_begin(pnr_events *events);
/* Counts an event. Queues it if the rate of its kind permits this and the queue has a free place.
 * Never waits and never allocates. Any thread may call it. Cuts the text to PNR_EVENT_TEXT_LEN - 1
 * bytes, and replaces its control characters. Does nothing if events is NULL. */
void pnr_event_post(pnr_events *events, pnr_event_kind kind, uint64_t sample, double first,
                    double second, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Returns the number of events of a kind so far; 0 if events is NULL. Any thread may call it. */
uint64_t pnr_event_count(const pnr_events *events, pnr_event_kind kind);

/* --- functions of the one thread that takes events --- */

/* Takes the oldest event. Returns false if the queue is empty. */
bool pnr_event_take(pnr_events *events, pnr_event *out);
/* Logs an event if standard error accepts a line without waiting. */
void pnr_event_log(pnr_events *events, const pnr_event *event);
/* Logs for each kind the number of events that have no log line yet. Skips a kind if standard error
 * does not accept a line without waiting. Call it about once a second, when the queue is empty. */
void pnr_event_log_rest(pnr_events *events);

#endif
