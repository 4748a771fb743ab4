/* SPDX-License-Identifier: MIT */
/* Records the samples as they arrive, in a thread of its own that never delays a live stream. */
#ifndef PNR_SAMPLE_RECORDER_H
#define PNR_SAMPLE_RECORDER_H

#include "base/event.h"
#include "config/config.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnr_sample_recorder pnr_sample_recorder;

/* The events around which samples are recorded if recorder.pre_trigger_s is above 0, with their
 * words in the metadata. */
#define PNR_TRIGGERS(X) X(ECHO, "echo") X(SIGNAL, "signal") X(LOSS, "loss")
typedef enum {
#define PNR_TRIGGER_VALUE(name, word) PNR_TRIGGER_##name,
    PNR_TRIGGERS(PNR_TRIGGER_VALUE)
#undef PNR_TRIGGER_VALUE
} pnr_trigger;

/* Starts the thread, which records to recorder.samples (not empty). With SigMF recorder.samples is
 * a folder of recordings, or the path of one recording. The names of the recordings in a folder
 * have the stream and the time. With Digital RF recorder.samples is the folder of the channel.
 * format, n_channels: of the samples in memory. can_wait: the source waits for a slow disk. If the
 * source cannot wait, samples are not recorded while the queue is full. Posts an event when the
 * recording fails and when it works again; events may be NULL. Keeps the pointers config and
 * events. Returns PNR_OK; PNR_ECONFIG: the recording exists, several recordings need a folder, or
 * the channel has other properties; PNR_EPERMISSION or PNR_EIO: a recording cannot be created;
 * PNR_EUNAVAILABLE: the module of Digital RF is missing; PNR_ENOMEMORY: no memory for
 * recorder.buffer_s. */
int pnr_sample_recorder_create(const pnr_config *config, const pnr_setup *setup, pnr_format format,
                               size_t n_channels, bool can_wait, pnr_events *events,
                               pnr_sample_recorder **out, pnr_error *error);
/* Records all samples that were added, renames the last recording, and ends the thread. Logs the
 * totals. No other thread may use the recorder during this call. */
void pnr_sample_recorder_finish(pnr_sample_recorder *recorder);
void pnr_sample_recorder_destroy(pnr_sample_recorder *recorder);

/* Adds samples, the first at `position`. The position rises from call to call. A jump of the
 * position is a gap of the recording. start_utc_ns: time of position 0, or PNR_RECORDING_NO_TIME.
 * The acquisition thread calls this function. */
void pnr_sample_recorder_add(pnr_sample_recorder *recorder, uint64_t position, int64_t start_utc_ns,
                             const void *samples, size_t n_samples);
/* Reports an event at `position`. PNR_TRIGGER_SIGNAL ignores `position` and uses the position after
 * the newest sample. The acquisition thread reports losses, and the publishing thread reports other
 * events. */
void pnr_sample_recorder_trigger(pnr_sample_recorder *recorder, pnr_trigger trigger,
                                 uint64_t position);
/* Sets the position before which all events have been reported. The publishing thread calls it
 * after each result. */
void pnr_sample_recorder_search(pnr_sample_recorder *recorder, uint64_t position);
/* Returns the number of samples so far that should have been recorded but could not be. Any thread
 * may call it. */
uint64_t pnr_sample_recorder_lost(const pnr_sample_recorder *recorder);

#endif
