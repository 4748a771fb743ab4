/* SPDX-License-Identifier: MIT */
/* What an echo looks like in a map: a sum of products of a column of rows and one of lags. */
#ifndef PNR_MAP_MODEL_H
#define PNR_MAP_MODEL_H

#include "estimate/ambiguity.h"
#include "estimate/fit_patch.h"
#include "estimate/slow_time.h"
#include "setup/setup.h"

/* Inside of fit_map: the formulas stand in fit_map.h. */
typedef struct pnr_map_model pnr_map_model;

struct pnr_fit_map {
    const pnr_plan *plan;
    pnr_map_model *model;
    pnr_slow_time *slow;         /* the model's */
    struct pnr_map_noise *noise; /* NULL: that of rows times that of lags will do */
};

enum {
    /* for each rotation among the rows: */
    PNR_MAP_TERMS = 2 * PNR_NEIGHBOURS,  /* of a column */
    PNR_MAP_VECTORS = 3 * PNR_NEIGHBOURS /* of rows, of lags */
};

/* The lags of one code. */
typedef struct pnr_map_lags {
    const pnr_waveform *autocorrelation;         /* R(u)/R(0) */
    double p[PNR_NEIGHBOURS][PNR_NEIGHBOURS][2]; /* R(i - j)/R(0): the noise of two lags */
    double w[PNR_NEIGHBOURS][PNR_NEIGHBOURS][2]; /* its inverse, loaded */
    double cells;                                /* of noise in c^H w c */
    double roughness; /* chi leaves R(k - d)/R(0) sin(pi e)/.. by up to so much times e */
} pnr_map_lags;

/* One row. */
typedef struct pnr_map_row {
    double bins, rotation; /* F, f */
    size_t hypothesis;
} pnr_map_row;

/* The rows of a patch, and what noise they have in common. */
typedef struct pnr_map_rows {
    pnr_map_row row[PNR_NEIGHBOURS];
    int first, end; /* those that the map has */
    double spacing; /* the least of two of them; at most 1/K */
    bool is_white;
    double g[PNR_NEIGHBOURS][PNR_NEIGHBOURS][2]; /* covariance; read when not white */
    double m[PNR_NEIGHBOURS][PNR_NEIGHBOURS][2]; /* weights; read when has_weights, else 1 */
    bool has_weights;
    bool is_rough[PNR_NEIGHBOURS]; /* the exact sums are needed: set by pnr_map_model_is_rough */
} pnr_map_rows;

/* A column, sum of x (over rows) times y (over lags): the products of the vectors with these
 * numbers. */
typedef struct pnr_map_column {
    int n, x[PNR_MAP_TERMS], y[PNR_MAP_TERMS];
} pnr_map_column;

/* An echo of peak 1, and its derivatives by delay and frequency. */
typedef struct pnr_map_columns {
    int n_x, n_y; /* in use */
    double x[PNR_MAP_VECTORS][PNR_NEIGHBOURS][2], y[PNR_MAP_VECTORS][PNR_NEIGHBOURS][2];
    pnr_map_column echo, by_delay, by_bins;
} pnr_map_columns;

int pnr_map_model_create(const pnr_setup *setup, double carrier_hz, pnr_map_model **out);
void pnr_map_model_destroy(pnr_map_model *model);

pnr_slow_time *pnr_map_model_slow(const pnr_map_model *model);
const pnr_map_lags *pnr_map_model_lags(const pnr_map_model *model, size_t code);
pnr_map_row pnr_map_model_row(const pnr_map_model *model, size_t row);
/* Can rows lie closer than 1/K, and their noise be known by the code's samples? */
bool pnr_map_model_is_close(const pnr_map_model *model);
/* Around a row; with_noise: g, m and what they say are filled too. */
void pnr_map_model_rows(const pnr_map_model *model, size_t row, bool with_noise, pnr_map_rows *out);
/* Samples that the delay grows by in a period, beside a row's stretch. */
double pnr_map_model_walk(const pnr_map_model *model, double bins, double stretch);
/* sin(pi e) / (N sin(pi e / N)): a tone off by e bins, summed over a window. */
double pnr_map_model_tone(const pnr_map_model *model, double e);

/* The columns of an echo in a patch; its peak counts only for which rows need the exact sums beside
 * the noise of one cell: asked before they are taken. echo.code is the patch's unless they are. */
bool pnr_map_model_is_rough(const pnr_map_model *model, pnr_map_rows *rows,
                            const pnr_map_echo *echo, size_t code, double cell);
void pnr_map_model_smooth(const pnr_map_model *model, const pnr_map_rows *rows,
                          const pnr_map_echo *echo, long lag, bool with_slopes,
                          pnr_map_columns *out);
void pnr_map_model_exact(const pnr_map_model *model, const pnr_map_rows *rows,
                         const pnr_map_echo *echo, const pnr_patch_place *place, bool with_slopes,
                         pnr_map_columns *out);

/* a^H b */
static inline void pnr_map_product(const double (*a)[2], const double (*b)[2], double out[2])
{
    double re = 0, im = 0;

    for (int j = 0; j < PNR_NEIGHBOURS; j++) {
        re += a[j][0] * b[j][0] + a[j][1] * b[j][1];
        im += a[j][0] * b[j][1] - a[j][1] * b[j][0];
    }
    out[0] = re;
    out[1] = im;
}

static inline void pnr_map_multiply(const double a[2], const double b[2], double out[2])
{
    const double re = a[0] * b[0] - a[1] * b[1];

    out[1] = a[0] * b[1] + a[1] * b[0];
    out[0] = re;
}

#endif
