/* SPDX-License-Identifier: MIT */
/* Slips: samples that vanish without being counted. A slip is seen as one jump of all echoes. */
#ifndef PNR_SLIP_H
#define PNR_SLIP_H

#include "base/event.h"
#include "detector/detector.h"
#include "setup/radar.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * When a recorder drops n samples and does not report that, the index of all later samples is too
 * low by n, and every delay falls by n samples. The tracker stores the echoes of eight dwells: four
 * dwells before the slip, one dwell that may contain the slip, and three dwells after the slip. An
 * echo that moves along a straight line in the first four dwells is steady. A slip is found when
 * - the strongest steady echo continues in the last three dwells, displaced by a whole number of
 *   samples, with the same speed,
 * - no echo is seen where its line would continue without a slip,
 * - no echo was at the new lag before,
 * - and a second steady echo has the same displacement, or the strongest has kept its amplitude.
 * At a dwell with lost samples, or after lost samples, the search begins anew. Delays are cyclic,
 * so the number of vanished samples is known only modulo the period.
 */
enum { PNR_SLIP_DWELLS = 8, PNR_SLIP_ECHOES = 8 };

typedef struct pnr_slip_echo {
    uint32_t code, channel;
    double lag, sigma; /* samples */
    double amplitude, amplitude_sigma;
} pnr_slip_echo;

typedef struct pnr_slip_dwell {
    uint64_t sample; /* the first sample of the dwell */
    size_t n;
    pnr_slip_echo echoes[PNR_SLIP_ECHOES]; /* the strongest echoes of the dwell, strongest first */
} pnr_slip_dwell;

typedef struct pnr_slip_tracker {
    double rate_hz;
    uint32_t period;     /* of the code, samples */
    size_t n_kept, next; /* dwells since the search began; index of the next dwell in `dwells` */
    size_t n_quiet;      /* consecutive dwells in which the strongest echo has hardly moved */
    pnr_slip_dwell dwells[PNR_SLIP_DWELLS];
    uint64_t n_slips;
    uint32_t vanished;  /* samples that vanished in the last slip */
    uint64_t at_sample; /* the first sample of the dwell that contains the last slip */
    pnr_events *events; /* NULL, or set after pnr_slip_begin; each slip is posted here */
} pnr_slip_tracker;

void pnr_slip_begin(pnr_slip_tracker *slip, const pnr_radar *radar);
/*
 * Processes one dwell, before the direct path is removed from its echoes. sample: the first sample
 * of the dwell. has_loss: samples were lost in this dwell, or between the previous dwell and this
 * dwell. Returns 0, or the number of samples that vanished, 1 .. period - 1. They vanished in the
 * third dwell before this dwell, or at the edges of that third dwell. Allocates nothing.
 */
uint32_t pnr_slip_track(pnr_slip_tracker *slip, uint64_t sample, bool has_loss,
                        const pnr_detection *detection);

#endif
