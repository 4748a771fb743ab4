/* SPDX-License-Identifier: MIT */
/* The account counts each sample, window and result once, by what became of it. Its three sums must
 * agree at every exit. */
#ifndef PNR_ACCOUNT_H
#define PNR_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * These three sums agree whenever the program ends:
 *     positions = used + skipped_alignment + skipped_tail + skipped_refused
 *               + lost_source + lost_ring_full
 *     windows   = processed + dropped_engine_error + dropped_shutdown + refused_too_much_lost
 *     results   = sent + unsent_publish_refused + unsent_queue_full
 * A non-finite sample counts as lost_source. A sample of a refused window counts as skipped_refused
 * unless it is lost. The samples of a dropped window count as used unless they are lost.
 */
#define PNR_ACCOUNT_SAMPLES(X)                                                                     \
    X(used) X(skipped_alignment) X(skipped_tail) X(skipped_refused) X(lost_source) X(lost_ring_full)
#define PNR_ACCOUNT_WINDOWS(X)                                                                     \
    X(processed) X(dropped_engine_error) X(dropped_shutdown) X(refused_too_much_lost)
#define PNR_ACCOUNT_RESULTS(X) X(sent) X(unsent_publish_refused) X(unsent_queue_full)

/* All counts, in the order of the messages. */
#define PNR_ACCOUNT_FIELDS(X)                                                                      \
    X(positions)                                                                                   \
    PNR_ACCOUNT_SAMPLES(X)                                                                         \
    X(windows)                                                                                     \
    PNR_ACCOUNT_WINDOWS(X)                                                                         \
    X(results)                                                                                     \
    PNR_ACCOUNT_RESULTS(X)                                                                         \
    X(n_clipped)          /* samples at an end of the range of the ADC: not a loss */              \
    X(n_nonfinite)        /* samples that are NaN or Inf; lost_source includes them */             \
    X(deadline_missed)    /* results after their deadline: not a loss */                           \
    X(unrecorded_samples) /* samples that [recorder] could not record */                           \
    X(unrecorded_results) /* results that [recorder] could not record */                           \
    X(unsent_maps)        /* unsent profiles and maps of sent results */

typedef struct pnr_account {
#define PNR_ACCOUNT_FIELD(name) uint64_t name;
    PNR_ACCOUNT_FIELDS(PNR_ACCOUNT_FIELD)
#undef PNR_ACCOUNT_FIELD
} pnr_account;

/* Adds each count of `more` to *account. */
void pnr_account_add(pnr_account *account, const pnr_account *more);
/* True if the three sums agree. */
bool pnr_account_closes(const pnr_account *account);
/* True if nothing was lost, refused, dropped, unsent or unrecorded. */
bool pnr_account_lossless(const pnr_account *account);
/* Writes the account as one line for people and logs. Returns out. */
char *pnr_account_format(const pnr_account *account, char *out, size_t size);

#endif
