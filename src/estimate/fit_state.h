/* SPDX-License-Identifier: MIT */
/* The model of an echo at one point of a fit in a map, and its projections onto the patch. Internal
 * to fit_patch.c. */
#ifndef PNR_FIT_STATE_H
#define PNR_FIT_STATE_H

#include "estimate/echo_model.h"
#include "estimate/fit_patch.h"
#include "estimate/matrix.h"

#include <complex.h>
#include <stdbool.h>

/* The products that all columns of a model share. pnr_fit_state explains model and probes. */
typedef struct pnr_fit_products {
    pnr_vector mx[PNR_ECHO_VECTORS], wy[PNR_ECHO_VECTORS]; /* weights times x and y of the probes */
    double complex x[PNR_ECHO_VECTORS][PNR_ECHO_VECTORS];  /* x^H m x of probe and model */
    double complex y[PNR_ECHO_VECTORS][PNR_ECHO_VECTORS];  /* y^H w y */
} pnr_fit_products;

/*
 * The model at the present point of the climb. The columns c are the echo and its derivatives with
 * respect to delay and bins. The probes h are the vectors onto which the patch is projected. The
 * probes are the columns of the model, except when rows lie closer than 1/K. Then the probes are
 * the columns of the smooth chi, because the weights are a product over rows and lags: they would
 * amplify the small values at the ends of the exact chi.
 */
typedef struct pnr_fit_state {
    pnr_patch by_lag; /* the patch as [lag][row] */
    pnr_echo_columns model, smooth;
    pnr_echo_rough rough;
    const pnr_echo_columns *probes; /* points to model or to smooth */
    pnr_fit_products products;
    double complex gram[3][3], on[3]; /* <h_i, c_j>, <h_i, patch> */
    double complex alpha[3];          /* <h_0, c_i> / <h_0, c_0>, i = 1, 2 */
    double complex beta[3];           /* <q_i, c_0> = 0 for q_i = h_i - beta_i h_0 */
    double n[2][2];                   /* the inverse of Re <q_i, c_j> */
    double gain;                      /* |<h_0, patch>|^2 / <h_0, c_0> */
} pnr_fit_state;

/* Begins a fit of a patch. Returns the least energy that the fit allows for a model echo in the
 * patch: a tenth of the energy of an echo in the middle cell. The patch contains little of an echo
 * whose frequency is beyond the first or the last row, or is removed with the mean. At such a
 * frequency an echo of any strength would fit the noise. */
double pnr_fit_state_begin(const pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_echo_rows *rows, const pnr_vector *patch, pnr_fit_state *s);
/* Fills the state at an echo. s->probes must be set. is_exact: with exact sums in the marked rows.
 */
void pnr_fit_state_evaluate(const pnr_fit_patch *map, const pnr_patch_place *place,
                            const pnr_echo_rows *rows, bool is_exact, const pnr_patch_echo *at,
                            pnr_fit_state *s);
/* Fills the variances of *out multiplied by S, its gain and its cells. Changes s->products. */
void pnr_fit_state_variances(const pnr_fit_patch *map, const pnr_echo_rows *rows,
                             const pnr_patch_place *place, pnr_fit_state *s, pnr_patch_fitted *out);

#endif
