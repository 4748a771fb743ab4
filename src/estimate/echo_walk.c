/* SPDX-License-Identifier: MIT */
/* The walk of an echo in the rows of a map: its delay grows from window to window. */
#include "estimate/echo_model.h"

#include "base/complex.h"
#include "engine/plan.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

double pnr_echo_model_walk(const pnr_echo_model *model, double bins, double stretch)
{
    if (model->rate_over_carrier == 0)
        return 0;
    return -bins * (1 + stretch) * model->rate_over_carrier -
           stretch * (double)model->setup->plan.n_samples;
}

/* If an echo walks by w samples in a look, its delay at the ends of the look differs by w / 2 from
 * its delay in the middle. The part of R that the linear term does not describe has the mean
 * B w^2 / 24, where B is the mean square bandwidth. */
bool pnr_echo_model_bends(const pnr_echo_model *model, const pnr_echo_row *row,
                          const pnr_patch_echo *echo, double least)
{
    const double look = (double)model->setup->plan.n_periods;
    const double walk = look * pnr_echo_model_walk(model, echo->bins, row->stretch);

    return look > 1 && model->codes[echo->code].bandwidth * walk * walk / 24 > least;
}

/* The self-noise of an echo is computed by exact sums only if the echo walks by at most this
 * fraction of a chip within a window. */
static const double most_in_window = 0.125;

/* Returns the length, in samples, of a chip with a flat spectrum and the bandwidth of the code. */
static double shape_of(const pnr_echo_lags *code)
{
    return M_PI / sqrt(3 * code->bandwidth);
}

static double chip_of(const pnr_echo_model *model)
{
    return (double)model->setup->radar.n_samples / (double)model->setup->radar.n_chips;
}

bool pnr_echo_model_is_summed(const pnr_echo_model *model, const pnr_echo_row *row,
                              const pnr_patch_echo *echo)
{
    return fabs(pnr_echo_model_walk(model, echo->bins, row->stretch)) <=
           most_in_window * chip_of(model);
}

/* A window has N / chip independent chips, where `chip` is the length of a chip in samples. A phase
 * that turns by e cycles over the window causes self-noise in cells far from the peak. The power of
 * this self-noise is chip / N times (pi e)^2 / 3, at most chip / N. A walk by e chips within the
 * window has the same effect. */
double pnr_echo_model_self_noise(const pnr_echo_model *model, const pnr_echo_row *row,
                                 const pnr_patch_echo *echo)
{
    const double chip = chip_of(model);
    const double walk = fabs(pnr_echo_model_walk(model, echo->bins, row->stretch)) / chip;
    const double e = fabs(echo->bins * (1 + row->stretch) - row->rotation) + walk;

    return chip / (double)model->setup->plan.n_samples * fmin(M_PI * M_PI * e * e / 3, 1);
}

/* x is the walk of the echo in a window, in chips. The code's self-noise is spread over as many
 * rows as the echo walks chips in a look. Its greatest power in two million cells of an m-sequence
 * of 127 chips was 20 times the mean. The bound is 32 times the mean. If the self-noise is summed
 * with a constant delay in each window, the delay is wrong by up to x / 2 chips. Then only the part
 * pi^2 x^2 / 36 of the self-noise is not modelled. */
double pnr_echo_model_unknown(const pnr_echo_model *model, const pnr_echo_row *row,
                              const pnr_patch_echo *echo)
{
    const double walk = fabs(pnr_echo_model_walk(model, echo->bins, row->stretch)) / chip_of(model);
    const double look = walk * (double)model->setup->plan.n_periods;
    const double left =
        pnr_echo_model_is_summed(model, row, echo) ? M_PI * M_PI / 36 * walk * walk : 1;

    return look < 0.5 ? 0 : 32 * pnr_echo_model_self_noise(model, row, echo) * left / fmax(look, 1);
}

/* A look is cut into pieces: windows, or parts of windows. Within a piece the delay is taken as
 * constant. */
typedef struct pieces {
    size_t n, in_window; /* pieces of the look; pieces of one window */
    size_t group;        /* pieces in a group; R is nearly linear over the delays of a group */
    double e;            /* frequency of the echo minus the rotation of the row, in bins */
    double share;        /* mean of the tone of e bins over a piece, divided by in_window */
} pieces;

enum { MOST_IN_WINDOW = 64 };

/* Cuts a look into pieces. Successive pieces form a group if their delays differ by less than
 * `step` times `shape`, the length of a chip. most: the greatest number of pieces of a window. */
static pieces cut_look(const pnr_echo_model *model, double shape, double walk, double e,
                       double step, double most)
{
    const size_t n_periods = model->setup->plan.n_periods;
    const double in_window = fmin(1 + floor(4 * fabs(walk) / shape), most);
    const double group = fmin(step * shape / fmax(fabs(walk) / in_window, 1e-9), (double)n_periods);

    return (pieces){.n = n_periods * (size_t)in_window,
                    .in_window = (size_t)in_window,
                    .group = group > 1 ? (size_t)group : 1,
                    .e = e,
                    .share = pnr_echo_model_tone(model, e / in_window, NULL) / in_window};
}

/* A group of pieces. sum: the sum of the contributions of these pieces. by_time: the same sum, with
 * each contribution multiplied by the time from `middle` to the piece, in windows. */
typedef struct piece_group {
    size_t end;
    double middle; /* in windows from the middle of the look */
    double complex sum, by_time;
} piece_group;

static double time_of(const pieces *of, double piece)
{
    return (piece - ((double)of->n - 1) / 2) / (double)of->in_window;
}

/* Sums the group that begins at piece `first`. windows: the contribution of each window. */
static piece_group sum_group(const pieces *of, const double complex *windows, size_t first)
{
    const double n = (double)of->in_window;
    piece_group g = {.end = first + of->group < of->n ? first + of->group : of->n};

    g.middle = time_of(of, (double)(first + g.end - 1) / 2);
    for (size_t piece = first; piece < g.end; piece++) {
        const double place = (double)(piece % of->in_window) - (n - 1) / 2;
        const double complex weight =
            windows[piece / of->in_window] * of->share * pnr_cis(2 * M_PI * of->e * place / n);

        g.sum += weight;
        g.by_time += weight * (time_of(of, (double)piece) - g.middle);
    }
    return g;
}

/* Returns 2 pi i x. */
static double complex turned(double complex x)
{
    return CMPLX(-cimag(x), creal(x)) * 2 * M_PI;
}

/* Subtracts from a row what the mean over the windows contributes to it; the engine removes this
 * mean. The delay of the echo in the samples grows by w from window to window, so the mean contains
 * the echo at all these delays. The same mean is subtracted from each window. In the row, its delay
 * changes only by the stretch b. With w_p and u_p as in slow_time.h the contribution at lag k is
 * sum_p w_p u_p exp(-2 pi i F p) sum_q u_q exp(2 pi i v q) R(k - d - w q + N b p) / sum_q u_q. */
static void subtract_mean(const pnr_echo_model *model, const pnr_echo_row *row,
                          const pnr_patch_echo *echo, long lag, pnr_vector *out)
{
    const double bins = echo->bins * (1 + row->stretch), e = bins - row->rotation;
    const double stretch = -row->stretch * (double)model->setup->plan.n_samples;
    const double walk = pnr_echo_model_walk(model, echo->bins, row->stretch) - stretch;
    const double shape = shape_of(&model->codes[echo->code]), step = 0.125;
    const double faster = -(1 + row->stretch) * model->rate_over_carrier;
    const pieces in_row = cut_look(model, shape, stretch, 0, step, MOST_IN_WINDOW);
    const pieces in_mean = cut_look(model, shape, walk, e, step, MOST_IN_WINDOW);
    double complex *of_row = model->windows, *of_mean = of_row + model->setup->plan.n_periods;

    pnr_slow_time_windows(model->slow, 1, -row->bins, of_row);
    pnr_slow_time_windows(model->slow, 0, bins, of_mean);
    for (size_t p = 0; p < in_row.n;) {
        const piece_group a = sum_group(&in_row, of_row, p);

        for (size_t q = 0; q < in_mean.n;) {
            const piece_group b = sum_group(&in_mean, of_mean, q);
            const double complex both = a.sum * b.sum,
                                 moment = a.sum * (b.by_time + b.sum * b.middle);
            const double complex late = a.by_time * b.sum * stretch + a.sum * b.by_time * walk;
            const double shift = stretch * a.middle + walk * b.middle;
            pnr_vector r, slope;

            pnr_echo_model_lags(&model->codes[echo->code], (double)lag - echo->lag - shift, 0, r,
                                slope);
            for (int j = 0; j < J; j++) {
                out[0][j] -= both * r[j] + late * slope[j];
                out[1][j] -= both * slope[j];
                out[2][j] -=
                    (1 + row->stretch) * turned(moment) * r[j] + moment * faster * slope[j];
            }
            q = b.end;
        }
        p = a.end;
    }
}

/* Fills out[3]: the values of an echo of peak 1 at the lags of a row, and their derivatives with
 * respect to delay and frequency. The delay is constant within a piece, in which the echo walks by
 * at most a quarter of a chip. The mean over the windows is not yet subtracted. */
static void fill_windows(const pnr_echo_model *model, const pnr_echo_row *row,
                         const pnr_patch_echo *echo, long lag, pnr_vector *out)
{
    const pnr_echo_lags *code = &model->codes[echo->code];
    const double bins = echo->bins * (1 + row->stretch);
    const double walk = pnr_echo_model_walk(model, echo->bins, row->stretch);
    const double faster = -(1 + row->stretch) * model->rate_over_carrier; /* d walk / d bins */
    const double shape = shape_of(code), step = 1.0 / 32;
    const pieces all = cut_look(model, shape, walk, bins - row->rotation, step, MOST_IN_WINDOW);

    pnr_slow_time_windows(model->slow, 1, bins - row->bins, model->windows);
    memset(out, 0, 3 * sizeof *out);
    for (size_t first = 0; first < all.n;) {
        const piece_group g = sum_group(&all, model->windows, first);
        const double complex moment = g.by_time + g.sum * g.middle;
        pnr_vector r, slope;

        pnr_echo_model_lags(code, (double)lag - echo->lag - walk * g.middle, 0, r, slope);
        for (int j = 0; j < J; j++) {
            out[0][j] += g.sum * r[j] + g.by_time * walk * slope[j];
            out[1][j] += g.sum * slope[j];
            out[2][j] += (1 + row->stretch) * turned(moment) * r[j] + moment * faster * slope[j];
        }
        first = g.end;
    }
}

/* Sets the echo of model->ambiguity to the sum of the windows of an echo in a row. row_index:
 * number of the row in the map. In circular windows the ambiguity includes the walk within a
 * window. The mean over the windows is not subtracted here. */
static void sum_windows(const pnr_echo_model *model, size_t row_index, const pnr_echo_row *row,
                        const pnr_patch_echo *echo)
{
    const double bins = echo->bins * (1 + row->stretch), step = 1.0 / 32;
    const double walk = pnr_echo_model_walk(model, echo->bins, row->stretch);
    const bool is_linear = model->setup->plan.linear;
    const pieces all = cut_look(model, shape_of(&model->codes[echo->code]), walk, 0, step,
                                is_linear ? MOST_IN_WINDOW : 1);

    if (!pnr_ambiguity_set_sum(model->ambiguity, echo->code, echo->lag, row_index, echo->bins))
        return;
    pnr_slow_time_windows(model->slow, 1, bins - row->bins, model->windows);
    for (size_t first = 0; first < all.n;) {
        const piece_group g = sum_group(&all, model->windows, first);

        pnr_ambiguity_add(model->ambiguity, echo->lag + walk * g.middle, g.sum, g.by_time * walk,
                          walk);
        first = g.end;
    }
}

void pnr_echo_model_bend(const pnr_echo_model *model, const pnr_echo_rows *rows, int i,
                         const pnr_patch_echo *echo, const pnr_patch_place *place, bool with_slopes,
                         bool is_filled, pnr_vector *self, pnr_vector *x, pnr_vector *lags)
{
    const pnr_echo_row *row = &rows->row[i];
    const double e = echo->bins * (1 + row->stretch) - row->rotation;
    const int skip = place->reach > 0 ? MIDDLE - place->reach : 0, n = with_slopes ? 3 : 1;
    pnr_vector bent[3];

    memset(x, 0, (size_t)n * sizeof *x);
    x[0][i] = 1;
    fill_windows(model, row, echo, place->lag, bent);
    if (rows->needs_exact[i] && !is_filled) {
        memset(*self, 0, sizeof *self);
        sum_windows(model, place->row + (size_t)i - MIDDLE, row, echo);
        pnr_ambiguity_at(model->ambiguity, place->code, e, place->lag - MIDDLE + skip,
                         (size_t)(J - 2 * skip), *self + skip, NULL, NULL);
        for (int j = skip; j < J - skip; j++)
            (*self)[j] -= bent[0][j];
    }
    for (int j = 0; j < J && rows->needs_exact[i]; j++)
        bent[0][j] += (*self)[j];
    if (model->setup->plan.remove_mean)
        subtract_mean(model, row, echo, place->lag, bent);
    memcpy(lags, bent, (size_t)n * sizeof *lags);
}
