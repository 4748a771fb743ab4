/* SPDX-License-Identifier: MIT */
/* The model of an echo in a map: a sum of products, each of a vector over rows and a vector over
 * lags. */
#ifndef PNR_ECHO_MODEL_H
#define PNR_ECHO_MODEL_H

#include "estimate/ambiguity.h"
#include "estimate/fit_patch.h"
#include "estimate/slow_time.h"
#include "setup/setup.h"

/* The tables and the memory of the model. They are internal to fit_patch; fit_patch.h has the
 * formulas. */
typedef struct pnr_echo_model {
    bool is_shared; /* the tables belong to another model */
    const pnr_setup *setup;
    double rate_over_carrier; /* sampling rate / carrier frequency; 0: no carrier */
    size_t n_rows;
    struct pnr_echo_row *rows; /* [n_rows] */
    pnr_slow_time *slow;
    pnr_ambiguity *ambiguity;
    double complex *windows;     /* [2][n_periods] scratch */
    struct pnr_echo_lags *codes; /* [n_codes] */
} pnr_echo_model;

struct pnr_fit_patch {
    bool is_shared; /* `noise` belongs to another fit */
    bool has_signs; /* pnr_fit_patch_signs has set signs */
    const pnr_plan *plan;
    pnr_echo_model *model;
    pnr_slow_time *slow;           /* owned by model */
    struct pnr_patch_noise *noise; /* NULL: the noise covariance is a product of a factor over rows
                                    * and a factor over lags */
};

enum {
    /* The rows of a patch have up to PNR_NEIGHBOURS rotations. */
    PNR_ECHO_TERMS = 2 * PNR_NEIGHBOURS,  /* most terms of one column */
    PNR_ECHO_VECTORS = 3 * PNR_NEIGHBOURS /* greatest n_x and greatest n_y of pnr_echo_columns */
};

/* The tables of one code over lags. */
typedef struct pnr_echo_lags {
    const pnr_waveform *autocorrelation; /* R(u)/R(0) */
    pnr_patch p;                         /* R(i - j)/R(0): the noise covariance of two lags */
    pnr_patch w;                         /* the inverse of p with a loaded diagonal */
    double bandwidth;                    /* B, the mean square bandwidth, in (rad/sample)^2 */
    double crowd;                        /* number of lags that count as one because their noise is
                                          * correlated: sum |p|^2 / 17 */
    double roughness; /* the greatest difference of chi and its smooth approximation (fit_patch.h),
                       * divided by e */
    size_t n_spread;
    double *spread; /* [n_spread] spread[g]: the sum over all lags of the power of an echo, divided
                     * by the power of its peak. The frequency of the echo is g bins from the
                     * rotation of its row */
} pnr_echo_lags;

/* One row. It changes the time scale by the factor 1 + stretch: an echo of frequency v has the
 * frequency v (1 + stretch) in this row. */
typedef struct pnr_echo_row {
    double bins, rotation; /* F and f, in bins */
    double stretch;
    size_t hypothesis;
} pnr_echo_row;

/* The rows of a patch and the covariance of their noise. */
typedef struct pnr_echo_rows {
    pnr_echo_row row[PNR_NEIGHBOURS];
    int first, end; /* the rows in use: first .. end - 1 */
    double spacing; /* the least distance between two rows, bins; at most 1/K */
    bool is_white;
    pnr_patch g; /* noise covariance of the rows; used unless is_white */
    pnr_patch m; /* weights of the rows; set if has_weights, else the unit matrix is used */
    bool has_weights;
    bool needs_exact[PNR_NEIGHBOURS]; /* this row needs the exact sums */
    double most_walk; /* if the walk's part of a row exceeds this, these rows also need the exact
                       * derivative with respect to delay */
    bool bends[PNR_NEIGHBOURS]; /* the echo walks too far in this row for a linear model */
} pnr_echo_rows;

/* A column is a sum of n products, each of a vector over rows and a vector over lags. x, y: the
 * indices of these vectors. */
typedef struct pnr_echo_column {
    int n, x[PNR_ECHO_TERMS], y[PNR_ECHO_TERMS];
} pnr_echo_column;

/* An echo of peak 1, and its derivatives with respect to delay and frequency. */
typedef struct pnr_echo_columns {
    int n_x, n_y; /* vectors in use */
    pnr_vector x[PNR_ECHO_VECTORS], y[PNR_ECHO_VECTORS];
    pnr_echo_column echo, by_delay, by_bins;
} pnr_echo_columns;

/* The difference of the exact and the smooth chi. If row i begins a rotation, chi[i] has this
 * difference and its derivatives with respect to delay and e. */
typedef struct pnr_echo_rough {
    bool is_filled;
    pnr_vector chi[PNR_NEIGHBOURS][3];
} pnr_echo_rough;

int pnr_echo_model_create(const pnr_setup *setup, double carrier_hz, pnr_echo_model **out);
int pnr_echo_model_share(const pnr_echo_model *from, pnr_echo_model **out);
void pnr_echo_model_destroy(pnr_echo_model *model);

/* True when rows lie closer than 1/K and no least-squares filter is used. Then patch_noise.h
 * computes the covariance of their noise from the samples of the code. */
bool pnr_echo_model_is_close(const pnr_echo_model *model);
/* Fills the rows around `row`. with_noise: also fills g, m, is_white and has_weights. */
void pnr_echo_model_rows(const pnr_echo_model *model, size_t row, bool with_noise,
                         pnr_echo_rows *out);
/* Returns the growth of an echo's delay in one period, in samples, without the part that the
 * stretch of a row removes. */
double pnr_echo_model_walk(const pnr_echo_model *model, double bins, double stretch);
/* Fills y[j] = R(k - d)/R(0) at the lags k of a patch, where k - d = distance + j - 8 and j = first
 * .. 16 - first. Fills `slope` with the derivative of y with respect to d, unless slope is NULL. */
void pnr_echo_model_lags(const pnr_echo_lags *code, double distance, int first, double complex *y,
                         double complex *slope);
/* True if the linear model of the walk in a row is wrong by more than the fraction `least` of the
 * echo's peak. */
bool pnr_echo_model_bends(const pnr_echo_model *model, const pnr_echo_row *row,
                          const pnr_patch_echo *echo, double least);
/* Models an echo of peak 1 that walks too far in row i for the linear model. Fills the vector x
 * over rows: 1 in row i, 0 in the other rows. Fills the vector `lags` over lags: the sum of the
 * windows, each with its own delay. with_slopes: x and lags have three vectors, with the
 * derivatives with respect to delay and frequency. self: the self-noise of the code; filled unless
 * is_filled is set. */
void pnr_echo_model_bend(const pnr_echo_model *model, const pnr_echo_rows *rows, int i,
                         const pnr_patch_echo *echo, const pnr_patch_place *place, bool with_slopes,
                         bool is_filled, pnr_vector *self, pnr_vector *x, pnr_vector *lags);
/* True if an echo walks so little within a window that its self-noise in a row can be computed by
 * exact sums. */
bool pnr_echo_model_is_summed(const pnr_echo_model *model, const pnr_echo_row *row,
                              const pnr_patch_echo *echo);
/* Returns the mean power of the code's self-noise in one window of a row, relative to the power of
 * the echo's peak. */
double pnr_echo_model_self_noise(const pnr_echo_model *model, const pnr_echo_row *row,
                                 const pnr_patch_echo *echo);
/* Returns an upper bound of the unmodelled power of the echo in one cell of a row, relative to the
 * power of the echo's peak. */
double pnr_echo_model_unknown(const pnr_echo_model *model, const pnr_echo_row *row,
                              const pnr_patch_echo *echo);
/* Returns sin(pi e) / (N sin(pi e / N)), the mean of a tone of e bins over a window. *slope: its
 * derivative with respect to e; NULL: not wanted. */
double pnr_echo_model_tone(const pnr_echo_model *model, double e, double *slope);

/* Marks the rows that need the exact sums, given the peak of the echo and the noise power of one
 * cell. Also sets `bends` of each row. Returns true if it marks any row. code: the code of the
 * patch. may_move: the frequency is not final. Call it before pnr_echo_model_exact. */
bool pnr_echo_model_mark_exact(const pnr_echo_model *model, pnr_echo_rows *rows,
                               const pnr_patch_echo *echo, size_t code, double cell, bool may_move);
/* Fills out, the values and slopes of an echo at the cells of a patch, from the smooth chi, which
 * is R times pnr_echo_model_tone. echo.code must be the code of the patch. The peak of the echo has
 * no influence. */
void pnr_echo_model_smooth(const pnr_echo_model *model, const pnr_echo_rows *rows,
                           const pnr_patch_echo *echo, const pnr_patch_place *place,
                           bool with_slopes, pnr_echo_columns *out);
/* Fills the columns of an echo in a patch, with exact sums in the marked rows. rough: NULL if no
 * slopes are wanted. Otherwise the first call computes the exact sums and fills `rough`. The next
 * calls use `rough` and compute no exact sums. */
void pnr_echo_model_exact(const pnr_echo_model *model, const pnr_echo_rows *rows,
                          const pnr_patch_echo *echo, const pnr_patch_place *place,
                          pnr_echo_rough *rough, pnr_echo_columns *out);
/* True if the echo is so far from its anchor that the error of its exact sums is not negligible
 * beside the noise power `cell`. */
bool pnr_echo_model_is_far(const pnr_echo_model *model, const pnr_patch_echo *echo, double cell);

#endif
