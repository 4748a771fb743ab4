/* SPDX-License-Identifier: MIT */
/* The plan for which an engine is created. It defines each value of a result. The functions below
 * are common to all engines. */
#ifndef PNR_PLAN_H
#define PNR_PLAN_H

#include "base/error.h"
#include "base/format.h"
#include "base/rational.h"
#include "engine/block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PNR_NEIGHBOURS = 17,     /* number of complex values at the lags -8 .. +8 around a candidate */
    PNR_MAX_CANDIDATES = 64, /* most candidates of a dwell */
    PNR_MAX_DEPTH = 4,       /* most submits in flight */
    PNR_MAX_TRAINING = 256,  /* most training cells of CFAR on one side */
    PNR_MAX_SEARCHES = 3     /* most searches of one dwell, see pnr_plan */
};

typedef enum { PNR_REFERENCE_STORED, PNR_REFERENCE_CHANNEL } pnr_reference;
typedef enum { PNR_CFAR_OFF, PNR_CFAR_CA, PNR_CFAR_GO, PNR_CFAR_SO, PNR_CFAR_OS } pnr_cfar_kind;
typedef enum { PNR_CFAR_ALONG_LAGS, PNR_CFAR_ALONG_ROWS } pnr_cfar_axis;
typedef enum { PNR_WANT_NONE, PNR_WANT_POWER, PNR_WANT_COMPLEX } pnr_want;

/* Neighbouring Doppler rows that share one stretch and one rotation of the samples. The samples are
 * stretched first. Frequencies are in bins of 1/Tr, where Tr is the duration of N samples. K is
 * n_periods. */
typedef struct pnr_hypothesis {
    int32_t quarters;  /* the rotation: f = quarters / 4 bins */
    int32_t first_bin; /* s of the first row; s = first_bin .. first_bin + n_rows - 1 */
    uint32_t n_rows;   /* number of rows; row s is at F = f + s / K bins */
    double stretch; /* b: sample n is read at the time m + (n - m) (1 + b), where m = (K N - 1) / 2
                     * is the middle of the look, see pnr_stretch_at. An echo at a Doppler frequency
                     * of F bins, with a carrier of c Hz, needs b = -F / (Tr c). 0: no change */
} pnr_hypothesis;

/* With CFAR a cell must also exceed this fraction of the floor. */
#define PNR_CFAR_LEAST 1e-6
/* The rest is the mean power of the columns without echoes, see pnr_plan. A rest below this
 * fraction of the floor becomes the floor. If no candidate is kept, a rest between 0.7 and 1 times
 * the floor is mostly due to chance. A lower rest means that the samples contain power that the
 * code suppresses: DC, a carrier, or noise outside of the band of the code. */
#define PNR_LOWER_FLOOR(n_kept) ((n_kept) > 0 ? 0.95 : 0.7)

/*
 * Constant false alarm rate. A cell is above when P > factor Z and P > 1e-6 times the floor before
 * the search; the second condition rejects rounding errors that remain when a mean is removed.
 *
 * Z comes from training cells on both sides of the cell, either along the lags of its row (cyclic
 * if the correlation is circular) or along the rows at its lag (not cyclic). These cells lie at
 * distances
 *     guard + 1 + i stride,   i = 0 .. training - 1,
 * in lags (the training cells of a half lag are half lags) or in rows. Cells beyond an end do not
 * exist.
 *     CA      Z is the mean of all cells
 *     GO, SO  Z is the greater or the lesser of the means of the two sides; a side without
 *             cells does not count
 *     OS      Z is the ceil(3 m / 4)-th smallest of the m cells that exist
 * A cell without a training cell is never above.
 */
typedef struct pnr_cfar {
    pnr_cfar_kind kind;
    pnr_cfar_axis axis;
    size_t guard, training, stride; /* guard and stride in lags or rows; stride: distance at which
                                     * noise is not correlated */
    /* [n_looks][training + 1][training + 1]: factor[looks used - 1][cells before][cells after] */
    const double *factor;
} pnr_cfar;

/*
 * A dwell is n_looks looks of K = n_periods windows; each window begins N samples after the
 * previous one. The samples x are converted to full scale = 1, conjugated when `conjugate`, then
 * mixed down by `tune`; lost and non-finite samples are 0. The simplest dwell has one code, row,
 * look and period.
 *
 * Windows. A circular window has N samples and n_lags = N; the index i = n + k is reduced mod N. A
 * linear window has N + n_lags - 1 samples, and i = n + k. At least 8 of the n_lags lags lie before
 * the gate, and at least 8 after it. A window is used when at most N/2 of its first N samples are
 * lost or non-finite. A look is used when at least one of its windows is used; with remove_mean, at
 * least two.
 *
 * remove_mean: the mean of the samples at the same place in the used windows of the look is
 * subtracted from each sample of a used window. Lost and non-finite samples do not count in the
 * mean and stay 0.
 *
 * Values. The row at F = f + s/K of hypothesis h has for each code a and each look
 *     c[k] = sum_p w_p exp(-2 pi i F p) sum_n x_p[i] exp(-2 pi i f i / N) conj(a[n]),
 * k = 0 .. n_lags - 1, over the used windows p = 0 .. K - 1 with the taper w_p. With oversample 2 a
 * look also has the values at k + 1/2, which are the same sum with a[n - 1/2]. A cell g is lag g /
 * oversample. Rows are numbered through all hypotheses in order, at ascending F. Where h has a
 * stretch, x_p is read from the stretched look. The stretched look contains the samples of all
 * windows, used or not, without the frequencies outside of the band. stretch.h defines the samples
 * beyond both ends of the look. A sample belongs to the window whose first N samples contain it;
 * the samples after the first K N belong to the last window. With remove_mean the mean at the place
 * of a sample in that window is subtracted from the sample.
 * filter: c'[k] = sum_j filter[k][j] c[gate_first + j] replaces c[gate_first + k]; other c are 0.
 * The power P is the sum of |c|^2 over the used looks.
 *
 * Floor: the sum over the used windows of w_p^2 E_p E_a / N. This is the mean of P if all of x is
 * noise. E_p is the sum of |x|^2 over the window's first N samples. With remove_mean E_p is
 * multiplied by U / (U - 1), where U is the number of used windows of the look. E_a = sum |a|^2.
 * dwell.energy is the sum of E_p.
 *
 * Candidates. With CFAR, pnr_cfar says when a cell is above. Without CFAR, a cell is above when P >
 * threshold[used windows - 1] floor and P > 0. The box (exclusion zone) of a cell holds the cells
 * of its code within +-exclusion_cells cells of the lag grid and +-exclusion_rows rows; it
 * continues across the end of a circular grid. A candidate is a cell in the gate that is above,
 * greater than every cell before it in its box, and at least equal to every cell after it. Before
 * means a lower row, or the same row and the side of the lower lags. If a dwell has more than
 * max_candidates candidates, the strongest are kept; of equally strong ones, the first. The kept
 * candidates are in the order of code, row, cell.
 *
 * With has_outside at most max_candidates - 1 candidates in the gate are kept, and one candidate
 * outside of it: the strongest cell that would be a candidate if the gate had all lags; of equally
 * strong ones, the first. So its echo does not raise the floor, and the detector can subtract it.
 * has_outside needs a circular correlation without CFAR and filter.
 *
 * Searches. noise_sum is the sum of P over all codes, rows and integer lags (with a filter those of
 * the gate). A (code, lag) column that lies within +-8 lags of a kept candidate of its code is
 * excluded, with all rows. If at least half of all columns remain, the rest is the mean of P over
 * the remaining columns. The rest is at least the rounding error, 1e-12 dwell.energy E_a (number of
 * used windows). A rest below PNR_LOWER_FLOOR of the floor becomes the floor. Then, if more
 * candidates in the gate may be kept, the search is repeated, up to PNR_MAX_SEARCHES searches in
 * all. So a strong echo does not hide a weak one, and the code's own sidelobes stay in the floor.
 * With CFAR there is one search, and the rest is the floor.
 *
 * Neighbours. The centre lag of a candidate is floor(g / oversample). Its 17 values are at integer
 * lags centre - 8 .. centre + 8 (mod N). A value is c itself when n_looks is 1. Otherwise it is the
 * sum over looks of c[j] conj(c[0]) / sqrt(P[0]), where index 0 is the centre. A plan of more than
 * one row also has patches: the same values for the rows -8 .. +8 around the candidate's row.
 *
 * The pointers are needed only until create returns: the engine copies what it uses.
 */
typedef struct pnr_plan {
    size_t n_samples;  /* N, 1 .. 2^24 */
    pnr_format format; /* format of one sample of one channel */
    size_t n_channels; /* interleaved in memory: [n_samples][n_channels] */

    /* The axes: the features that an engine may lack. If the plan uses an axis that the engine
     * lacks, create fails, and the error names this axis. */
    size_t first_channel, n_used_channels; /* the channels to correlate */
    size_t n_codes;                        /* 1 .. 65535; all codes have the energy of the first
                                            * code */
    size_t n_hypotheses;
    const pnr_hypothesis *hypotheses; /* [n_hypotheses]; NULL: one hypothesis with one row at 0 */
    size_t n_periods;                 /* K: number of windows that a look adds coherently */
    size_t n_looks;                   /* number of looks; their powers are added */
    pnr_reference reference;
    bool linear;
    size_t n_lags; /* number of lags; N in a circular correlation */
    bool remove_mean;
    const double *taper;       /* [n_periods] weights; NULL: all are 1 */
    const double (*filter)[2]; /* [gate_count][gate_count]; NULL: no filter */
    pnr_cfar cfar;
    /* the box of a cell extends by this number of cells and of rows to each side; at least 1 */
    size_t exclusion_cells, exclusion_rows;

    size_t oversample; /* cells for each lag: 1 or 2 */
    /* [n_codes][oversample][n_samples][2]: a[n], and a[n - 1/2] */
    const double (*references)[2];
    /* The degree, if references[0] is an m-sequence with q equal samples a chip and
     * N = q (2^degree - 1); else 0. a[n] = 1 - 2 bit[floor(n / q)]. bit[i + degree] is the xor of
     * bit[i + degree - t] over the taps t. The period of the bits is 2^degree - 1. An engine
     * refuses a plan whose reference is not that sequence. */
    unsigned m_degree;
    uint64_t m_taps;  /* bit t - 1 is set for tap t; the largest tap is the degree */
    size_t m_samples; /* q, samples of a chip: at least 1 if m_degree is not 0 */

    pnr_rational tune; /* the frequency, in cycles per sample, that is mixed down to 0:
                        * x[n] exp(-2 pi i frac(tune n)), where n is the absolute sample index.
                        * {0,0}: the samples are not mixed */
    /* A stretched look keeps those frequencies of the tuned samples that lie between band[0] and
     * band[1], in cycles per sample, modulo 1. Real samples have the code in one half of their band
     * and its image in the other. Without a stretch the image cancels in the correlation; a
     * stretched image would not. {0, 0}: keeps all */
    double band[2];
    bool conjugate; /* the recording is I - jQ: x is conjugated before it is tuned */

    /* The search covers gate_count integer lags from gate_first on (mod N). With oversample 2 it
     * also covers the half lag above each of these lags */
    size_t gate_first, gate_count;
    const double *threshold; /* [n_looks * n_periods] threshold / floor; index:
                                    * used windows - 1 */
    size_t max_candidates;   /* 1..PNR_MAX_CANDIDATES; with has_outside at least 2 */
    bool has_outside; /* the strongest candidate outside of the gate is kept too, see above */

    size_t batch;          /* most dwells in a submit */
    size_t depth;          /* most submits in flight, 1..PNR_MAX_DEPTH */
    pnr_want want_profile; /* the result also has all powers, or all complex values */
    bool measure;          /* fill stage_ns; the engine may be slower */
    bool spin;             /* `collect` polls and never sleeps */
    size_t device;         /* index of the GPU; each GPU has its own engine, see devices.h */
    size_t threads;        /* threads of the cpu engine; 0: one for each core */
    const char *method;    /* "auto" or a method of the engine */
    bool will_subtract;    /* search_without will be called. true: create allocates the memory for
                            * this call. false: the first call allocates it */
} pnr_plan;

/* PNR_OK; PNR_EUNSUPPORTED: `engine` lacks an axis that the plan needs, and the error names the
 * axis; PNR_EINTERNAL: the plan is invalid, and no configuration can cause this. */
int pnr_plan_check(const pnr_plan *plan, const char *engine, pnr_error *error);

/* Returns a copy that outlives create. All its pointers lie in one allocation; free(copy) frees it.
 * The references are copied too. NULL: out of memory. */
pnr_plan *pnr_plan_copy(const pnr_plan *plan);

/* True if a lag is in the gate. */
static inline bool pnr_plan_is_in_gate(const pnr_plan *plan, size_t lag)
{
    return (lag + plan->n_lags - plan->gate_first) % plan->n_lags < plan->gate_count;
}
/* True if a plan has one code, one row at F = 0, no stretch, and no taper, removed mean or filter.
 * For such a plan an engine only adds the windows of a look and correlates the sum. */
bool pnr_plan_is_one_line(const pnr_plan *plan);
/* True for the simplest plans, which an engine may compute by a faster path: pnr_plan_is_one_line
 * is true, the correlation is circular without CFAR, both exclusions are 1, and n_looks or
 * n_periods is 1. */
bool pnr_plan_is_plain(const pnr_plan *plan);
/* Returns the number of Doppler rows of all hypotheses together. */
size_t pnr_plan_rows(const pnr_plan *plan);
/* Returns hypothesis h. If plan->hypotheses is NULL, there is one hypothesis with one row at
 * F = 0. */
pnr_hypothesis pnr_plan_hypothesis(const pnr_plan *plan, size_t h);
/* Returns the hypothesis of a row. *row: a row of the plan, then its number in the hypothesis. */
pnr_hypothesis pnr_plan_find_row(const pnr_plan *plan, size_t *row);
/* Returns the frequency of a row in bins: F = quarters / 4 + s / K. */
double pnr_plan_bins(const pnr_plan *plan, size_t row);
/* Returns the number of windows of a dwell: looks times periods. */
size_t pnr_plan_windows(const pnr_plan *plan);
/* Returns the number of samples of one window: N, or N + n_lags - 1 if the window is linear. */
size_t pnr_plan_window_samples(const pnr_plan *plan);
/* Returns the number of samples from the start of one dwell to the start of the next. */
size_t pnr_plan_dwell_samples(const pnr_plan *plan);
/* Returns the number of samples in a view of n_dwells dwells. If the correlation is linear, the
 * view includes the tail of the last window. */
size_t pnr_plan_view_samples(const pnr_plan *plan, size_t n_dwells);
/* Returns the number of values of one dwell's profile: codes times rows times lags times
 * oversample. */
size_t pnr_plan_cells(const pnr_plan *plan);
/* Returns the bytes of the profile that one dwell returns; 0 unless want_profile. */
size_t pnr_plan_profile_bytes(const pnr_plan *plan);
/* Returns how many profiles or maps of `bytes` > 0 bytes fit into 8 MiB, but at least 2. This
 * number limits the maps of all submits in flight, and also the maps that wait to be sent to
 * subscribers. */
size_t pnr_plan_maps(size_t bytes);

/* Returns the bytes of one sample of all channels. */
size_t pnr_plan_sample_bytes(const pnr_plan *plan);
/* Returns sum |a|^2 of references[0]. All codes have the same energy. */
double pnr_plan_code_energy(const pnr_plan *plan);

/* Returns the address of sample `first`, counted from the first sample of the view. *count before
 * the call: the number of wanted samples from there on. *count after the call: the number of these
 * samples that are contiguous in memory. */
const void *pnr_plan_locate(const pnr_plan *plan, const pnr_windows *windows, size_t first,
                            size_t *count);

/* True when N has no prime factor above 7, so that a circular transform of length N is fast. */
bool pnr_plan_is_direct(size_t n_samples);
/* Returns N if pnr_plan_is_direct(N) is true. Else the period is extended: returns
 * pnr_transform_fast_length(2 N - 1). The cpu engine and the cuda engine follow this rule. */
size_t pnr_plan_transform_length(size_t n_samples);

#endif
