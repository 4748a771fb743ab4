/* SPDX-License-Identifier: MIT */
/* Events: what happens to a run besides its results. Any thread posts; one thread takes, logs and
 * publishes. */
#ifndef PNR_EVENT_H
#define PNR_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * All kinds: X(name, word on the wire, level of the log line, names of its two numbers; "": no such
 * number). A new kind is a new row, and an entry in pnradar-wire.5.
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
    int64_t utc_ns;  /* when it was posted, by the clock of this machine */
    uint64_t sample; /* position in the stream; PNR_EVENT_NO_SAMPLE: none */
    /* events of this kind so far: includes this event, and events that were not queued */
    uint64_t count;
    double numbers[2];             /* as pnr_event_numbers names them */
    char text[PNR_EVENT_TEXT_LEN]; /* a sentence without control characters, the log line */
} pnr_event;

/*
 * A bounded queue of events, and their counts. It holds no pointer and takes no lock, so it may lie
 * in memory that two processes share. A process that may die gets a queue of its own, because a
 * process that dies while it posts an event blocks the queue.
 *
 * Of each kind, the queue takes at most PNR_EVENT_BURST events at once, and then one a second. All
 * other events are only counted, and so are events that find the queue full.
 */
typedef struct pnr_events {
    _Atomic uint64_t counts[PNR_EVENT_COUNT]; /* events of each kind so far */
    /* earliest regular time of the next event, see is_allowed in event.c */
    _Atomic uint64_t due_ns[PNR_EVENT_COUNT];
    _Atomic uint64_t head;            /* next place of the queue that a writer reserves */
    _Atomic uint64_t tail;            /* the next event to take */
    uint64_t logged[PNR_EVENT_COUNT]; /* count of each kind at its last log line */
    struct {
        _Atomic uint64_t turn; /* i: free for event i; i + 1: holds event i */
        pnr_event event;
    } places[PNR_EVENT_QUEUE];
} pnr_events;

void pnr_events_begin(pnr_events *events);
/* Counts an event. Queues it if the rate of its kind allows this and the queue has a place. Never
 * waits and never allocates; any thread may call it. The text is cut to PNR_EVENT_TEXT_LEN - 1
 * bytes, and its control characters are replaced. events: NULL does nothing. */
void pnr_event_post(pnr_events *events, pnr_event_kind kind, uint64_t sample, double first,
                    double second, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Number of events of a kind so far; 0 if events is NULL. Any thread may call it. */
uint64_t pnr_event_count(const pnr_events *events, pnr_event_kind kind);

/* --- functions of the one thread that takes events --- */

/* Takes the oldest event. Returns false if the queue is empty. */
bool pnr_event_take(pnr_events *events, pnr_event *out);
/* Logs an event if standard error accepts a line without waiting. */
void pnr_event_log(pnr_events *events, const pnr_event *event);
/* Logs for each kind the number of events that have no log line yet. Skips a kind if standard error
 * does not accept a line without waiting. Call it when no event waits, about once a second. */
void pnr_event_log_rest(pnr_events *events);

#endif
