/* SPDX-License-Identifier: MIT */
/* The rows of a patch: their frequencies, the covariance of their noise, and their weights. */
#include "estimate/echo_model.h"

#include "base/complex.h"
#include "engine/plan.h"
#include "estimate/matrix.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

static const double loading = 1e-4; /* diagonal loading: rows closer than 1/K are nearly
                                     * dependent */
/* A row is used if its time scale and that of the middle row differ by at most this number of
 * samples over a look. The two rows beside the middle row are always used, because the fit of the
 * frequency needs them. */
static const double same_scale_samples = 0.5;

double pnr_echo_model_tone(const pnr_echo_model *model, double e, double *slope)
{
    const double n = (double)model->setup->plan.n_samples;
    const double complex one = pnr_cis(M_PI * e / n), all = pnr_cis(M_PI * e);
    const double below = n * cimag(one);
    double tone = fabs(e) < 0.5 ? 1 : 0, rise = 0;

    if (fabs(below) > 1e-9) {
        tone = cimag(all) / below;
        rise = M_PI * (creal(all) - tone * creal(one)) / below;
    }
    if (slope != NULL)
        *slope = rise;
    return tone;
}

static void fill_noise(const pnr_echo_model *model, pnr_echo_rows *rows)
{
    for (int i = rows->first; i < rows->end; i++)
        for (int j = rows->first; j <= i; j++) {
            const double share =
                pnr_echo_model_tone(model, rows->row[i].rotation - rows->row[j].rotation, NULL);

            rows->g[i][j] =
                share * pnr_slow_time_noise(model->slow, rows->row[i].bins, rows->row[j].bins);
            rows->g[j][i] = conj(rows->g[i][j]);
        }
}

/* True if the noise of the rows is independent: the rows are at different multiples of 1/K, and all
 * windows are complete and have equal weights. */
static bool is_white(const pnr_echo_model *model, const pnr_echo_rows *rows)
{
    const pnr_plan *plan = &model->setup->plan;

    if (plan->taper != NULL || plan->remove_mean || !pnr_slow_time_is_whole(model->slow))
        return false;
    for (int i = rows->first + 1; i < rows->end; i++) {
        const double bins = (rows->row[i].bins - rows->row[i - 1].bins) * (double)plan->n_periods;

        if (fabs(bins - round(bins)) > 1e-6)
            return false;
    }
    return true;
}

/* True if row i and the middle row have nearly the same time scale. */
static bool has_same_time_scale(const pnr_echo_model *model, const pnr_echo_rows *rows, int i)
{
    const pnr_plan *plan = &model->setup->plan;
    const double look = (double)(plan->n_periods * plan->n_samples);

    return fabs(rows->row[i].stretch - rows->row[MIDDLE].stretch) * look <= same_scale_samples;
}

bool pnr_echo_model_is_close(const pnr_echo_model *model)
{
    const pnr_plan *plan = &model->setup->plan;
    const double least = 0.99 / (double)plan->n_periods;

    if (plan->filter != NULL)
        return false;
    for (size_t row = 1; row < model->n_rows; row++)
        if (model->rows[row].bins - model->rows[row - 1].bins < least)
            return true;
    return false;
}

/* Keeps only the rows within 2/K of the middle row. Distant rows contain little of the echo and
 * much self-noise of chi. */
static void drop_distant_rows(const pnr_echo_model *model, pnr_echo_rows *rows)
{
    const double middle = rows->row[MIDDLE].bins;
    const double most = 2.01 / (double)model->setup->plan.n_periods;

    while (middle - rows->row[rows->first].bins > most)
        rows->first++;
    while (rows->row[rows->end - 1].bins - middle > most)
        rows->end--;
}

/* Fills covariance and weights. Rows that are 1/K apart have no weights: with a taper, weights
 * would undo the taper. */
static void weigh_rows(const pnr_echo_model *model, pnr_echo_rows *out)
{
    out->has_weights = out->spacing < 0.99 / (double)model->setup->plan.n_periods;
    if (out->has_weights)
        drop_distant_rows(model, out);
    out->is_white = is_white(model, out);
    if (out->is_white)
        return;
    memset(out->g, 0, sizeof out->g);
    fill_noise(model, out);
    if (!out->has_weights)
        return;
    memcpy(out->m, out->g, sizeof out->m);
    for (int i = 0; i < J; i++)
        out->m[i][i] += i >= out->first && i < out->end ? loading : 1;
    pnr_matrix_invert(out->m);
}

void pnr_echo_model_rows(const pnr_echo_model *model, size_t row, bool with_noise,
                         pnr_echo_rows *out)
{
    out->first = row < MIDDLE ? MIDDLE - (int)row : 0;
    out->end = row + MIDDLE < model->n_rows ? J : (int)(model->n_rows - row) + MIDDLE;
    for (int i = out->first; i < out->end; i++)
        out->row[i] = model->rows[row + (size_t)i - MIDDLE];
    while (out->first < MIDDLE - 1 && !has_same_time_scale(model, out, out->first))
        out->first++;
    while (out->end > MIDDLE + 2 && !has_same_time_scale(model, out, out->end - 1))
        out->end--;
    memset(out->needs_exact, 0, sizeof out->needs_exact);
    memset(out->bends, 0, sizeof out->bends);
    out->spacing = 1 / (double)model->setup->plan.n_periods;
    for (int i = out->first + 1; i < out->end; i++)
        out->spacing = fmin(out->spacing, out->row[i].bins - out->row[i - 1].bins);
    if (with_noise)
        weigh_rows(model, out);
}
