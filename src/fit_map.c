/* SPDX-License-Identifier: MIT */
/* The fit in a map: Gauss and Newton on sums of products of a column of rows and one of lags. */
#include "fit_map.h"

#include "ambiguity.h"
#include "matrix.h"
#include "plan.h"
#include "slow_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    MAX_TERMS = 2 * J, /* of a column: two for each rotation among the rows */
    MAX_STEPS = 20
};

static const double loading = 1e-4; /* rows closer than 1/K depend on each other */

typedef double value[2]; /* re, im */

/* The lags of one code. */
typedef struct lags_of_code {
    const pnr_waveform *autocorrelation; /* R(u)/R(0) */
    value p[J][J], w[J][J];              /* R(i - j)/R(0), and its loaded inverse */
    double cells;                        /* of noise in c^H w c */
    double roughness; /* chi leaves R(k - d)/R(0) sin(pi e)/.. by up to so much times e */
} lags_of_code;

struct pnr_fit_map {
    const pnr_setup *setup;
    size_t n_rows;
    size_t *first_row; /* [n_hypotheses] */
    double spacing;    /* of rows, the least */
    bool is_fine;      /* rows are closer than 1/K */
    pnr_slow_time *slow;
    pnr_ambiguity *ambiguity;
    lags_of_code *codes;
};

/* --- rows --- */

typedef struct row_info {
    double bins, rotation; /* F, f */
    size_t hypothesis;
} row_info;

static row_info row_at(const pnr_fit_map *map, size_t row)
{
    const pnr_plan *plan = &map->setup->plan;
    size_t low = 0, high = plan->n_hypotheses;

    while (high - low > 1) { /* first_row[low] <= row < first_row[high] */
        const size_t middle = (low + high) / 2;

        *(map->first_row[middle] <= row ? &low : &high) = middle;
    }

    const pnr_hypothesis h = pnr_plan_hypothesis(plan, low);
    const double f = h.quarters / 4.0;
    const double s = h.first_bin + (double)(row - map->first_row[low]);

    return (row_info){f + s / (double)plan->n_periods, f, low};
}

double pnr_fit_map_stretch(const pnr_fit_map *map, size_t row)
{
    return pnr_plan_hypothesis(&map->setup->plan, row_at(map, row).hypothesis).stretch;
}

/* The rows of a patch, and what noise they have in common. */
typedef struct patch_rows {
    row_info row[J];
    int first, end; /* those that the map has */
    bool is_white;
    value g[J][J]; /* covariance of their noise; read when not white */
    value m[J][J]; /* weights; read when has_weights, else 1 */
    bool has_weights;
} patch_rows;

/* sin(pi e) / (N sin(pi e / N)): a tone off by e bins, summed over a window. */
static double tone(const pnr_fit_map *map, double e)
{
    const double n = (double)map->setup->plan.n_samples;
    const double below = n * sin(M_PI * e / n);

    return fabs(below) > 1e-9 ? sin(M_PI * e) / below : fabs(e) < 0.5 ? 1 : 0;
}

static void fill_noise(const pnr_fit_map *map, patch_rows *rows)
{
    for (int i = rows->first; i < rows->end; i++)
        for (int j = rows->first; j <= i; j++) {
            const double share = tone(map, rows->row[i].rotation - rows->row[j].rotation);

            pnr_slow_time_noise(map->slow, rows->row[i].bins, rows->row[j].bins, rows->g[i][j]);
            rows->g[i][j][0] *= share;
            rows->g[i][j][1] *= share;
            rows->g[j][i][0] = rows->g[i][j][0];
            rows->g[j][i][1] = -rows->g[i][j][1];
        }
}

/* The noise of whole windows with equal weights does not reach from one multiple of 1/K to another.
 */
static bool is_white(const pnr_fit_map *map, const patch_rows *rows)
{
    const pnr_plan *plan = &map->setup->plan;

    if (plan->taper != NULL || plan->remove_mean || !pnr_slow_time_is_whole(map->slow) ||
        map->is_fine)
        return false;
    for (int i = rows->first + 1; i < rows->end; i++) {
        const double bins = (rows->row[i].bins - rows->row[i - 1].bins) * (double)plan->n_periods;

        if (fabs(bins - round(bins)) > 1e-6)
            return false;
    }
    return true;
}

static void find_rows(const pnr_fit_map *map, size_t row, bool with_noise, patch_rows *out)
{
    out->first = row < MIDDLE ? MIDDLE - (int)row : 0;
    out->end = row + MIDDLE < map->n_rows ? J : (int)(map->n_rows - row) + MIDDLE;
    for (int i = out->first; i < out->end; i++)
        out->row[i] = row_at(map, row + (size_t)i - MIDDLE);
    if (!with_noise)
        return;
    out->is_white = is_white(map, out);
    out->has_weights = false;
    if (out->is_white)
        return;
    memset(out->g, 0, sizeof out->g);
    fill_noise(map, out);
    out->has_weights = map->is_fine;
    if (!out->has_weights)
        return; /* with a taper least squares as they are: weights would undo it */
    memcpy(out->m, out->g, sizeof out->m);
    for (int i = 0; i < J; i++)
        out->m[i][i][0] += i >= out->first && i < out->end ? loading : 1;
    pnr_matrix_invert(out->m);
}

/* --- the model --- */

/* A column, sum of x (over rows) times y (over lags): the products of the vectors with these
 * numbers. */
typedef struct column {
    int n, x[MAX_TERMS], y[MAX_TERMS];
} column;

/* An echo of peak 1, and its derivatives by delay and frequency. */
typedef struct model {
    int n_x, n_y;
    value x[2 * J][J], y[3 * J][J];
    column echo, by_delay, by_bins;
} model;

static void add_term(column *c, int x, int y)
{
    c->x[c->n] = x;
    c->y[c->n] = y;
    c->n++;
}

/* g(v - F) of each row, and its derivative by v. */
static void fill_rows(const pnr_fit_map *map, const patch_rows *rows, double bins, bool with_tone,
                      value *x, value *slope)
{
    const double h = 1e-3 / (double)map->setup->plan.n_periods;

    for (int i = rows->first; i < rows->end; i++) {
        const row_info *row = &rows->row[i];

        for (int side = -1; side <= 1; side++) {
            const double v = bins + side * h;
            const double share = with_tone ? tone(map, v - row->rotation) : 1;
            value z;

            if (slope == NULL && side != 0)
                continue;
            pnr_slow_time_echo(map->slow, v, row->bins, z);
            for (int c = 0; c < 2; c++)
                if (side == 0)
                    x[i][c] = z[c] * share;
                else
                    slope[i][c] += side * z[c] * share / (2 * h);
        }
    }
}

/* R(k - d)/R(0) at the patch's lags, k - d = distance + j - MIDDLE, and its derivative by d. */
static void fill_lags(const lags_of_code *code, double distance, value *y, value *slope)
{
    const double h = 1e-3;

    for (int j = 0; j < J; j++) {
        const double u = distance + j - MIDDLE;
        value before, after;

        pnr_waveform_at(code->autocorrelation, u, y[j]);
        if (slope == NULL)
            continue;
        pnr_waveform_at(code->autocorrelation, u - h, before);
        pnr_waveform_at(code->autocorrelation, u + h, after);
        for (int c = 0; c < 2; c++)
            slope[j][c] = -(after[c] - before[c]) / (2 * h);
    }
}

/* One product: R and the tone take the place of chi. */
static void fill_smooth(const pnr_fit_map *map, const patch_rows *rows, const pnr_map_echo *echo,
                        long lag, bool with_slopes, model *out)
{
    memset(out->x, 0, 2 * sizeof *out->x);
    fill_rows(map, rows, echo->bins, true, out->x[0], with_slopes ? out->x[1] : NULL);
    fill_lags(&map->codes[echo->code], (double)lag - echo->lag, out->y[0],
              with_slopes ? out->y[1] : NULL);
    out->n_x = out->n_y = with_slopes ? 2 : 1;
    out->echo.n = out->by_delay.n = out->by_bins.n = 0;
    add_term(&out->echo, 0, 0);
    if (with_slopes) {
        add_term(&out->by_delay, 0, 1);
        add_term(&out->by_bins, 1, 0);
    }
}

/* A product for each rotation among the rows, with its own chi. */
static void fill_exact(const pnr_fit_map *map, const patch_rows *rows, const pnr_map_echo *echo,
                       const pnr_patch_place *place, bool with_slopes, model *out)
{
    value x[J] = {{0}}, slope[J] = {{0}};

    pnr_ambiguity_set(map->ambiguity, echo->code, echo->lag);
    fill_rows(map, rows, echo->bins, false, x, with_slopes ? slope : NULL);
    out->n_x = out->n_y = out->echo.n = out->by_delay.n = out->by_bins.n = 0;
    for (int i = rows->first; i < rows->end;) {
        const row_info *row = &rows->row[i];
        value *here = out->x[out->n_x], *there = out->x[out->n_x + 1];
        const int n_x = out->n_x, n_y = out->n_y;

        memset(here, 0, 2 * sizeof out->x[0]);
        for (; i < rows->end && rows->row[i].hypothesis == row->hypothesis; i++) {
            memcpy(here[i], x[i], sizeof *here);
            memcpy(there[i], slope[i], sizeof *there);
        }
        pnr_ambiguity_at(map->ambiguity, place->code, echo->bins - row->rotation,
                         place->lag - MIDDLE, J, out->y[n_y], with_slopes ? out->y[n_y + 1] : NULL,
                         with_slopes ? out->y[n_y + 2] : NULL);
        add_term(&out->echo, n_x, n_y);
        out->n_x += with_slopes ? 2 : 1;
        out->n_y += with_slopes ? 3 : 1;
        if (with_slopes) {
            add_term(&out->by_delay, n_x, n_y + 1);
            add_term(&out->by_bins, n_x + 1, n_y);
            add_term(&out->by_bins, n_x, n_y + 2);
        }
    }
}

/* Does chi's own shape matter beside the noise of one cell, times `share`? Its self-noise grows
 * with e up to about that of two unlike codes. */
static bool needs_exact(const pnr_fit_map *map, const patch_rows *rows, const pnr_map_echo *echo,
                        size_t code, double cell)
{
    const double power = echo->peak[0] * echo->peak[0] + echo->peak[1] * echo->peak[1];
    const double rough = pow(map->codes[echo->code].roughness, 2);
    const double unlike = fmax(rough, 8 / (double)map->setup->plan.n_samples);

    if (code != echo->code)
        return power * unlike > 0.002 * cell;
    for (int i = rows->first; i < rows->end; i++) {
        const double e = echo->bins - rows->row[i].rotation;
        value g;

        pnr_slow_time_echo(map->slow, echo->bins, rows->row[i].bins, g);
        if (power * fmin(rough * e * e, unlike) * (g[0] * g[0] + g[1] * g[1]) > 0.002 * cell)
            return true;
    }
    return false;
}

/* --- products --- */

static void product(const value *a, const value *b, value out) /* a^H b */
{
    double re = 0, im = 0;

    for (int j = 0; j < J; j++) {
        re += a[j][0] * b[j][0] + a[j][1] * b[j][1];
        im += a[j][0] * b[j][1] - a[j][1] * b[j][0];
    }
    out[0] = re;
    out[1] = im;
}

/* What is the same for all columns of a model. */
typedef struct products {
    value mx[2 * J][J], wy[3 * J][J];       /* weights times x, y */
    value x[2 * J][2 * J], y[3 * J][3 * J]; /* x^H m x, y^H w y */
} products;

static void weigh(const pnr_fit_map *map, const patch_rows *rows, size_t code, const model *m,
                  products *out)
{
    for (int i = 0; i < m->n_x; i++)
        if (rows->has_weights)
            pnr_matrix_apply((const value(*)[J])rows->m, m->x[i], out->mx[i]);
        else
            memcpy(out->mx[i], m->x[i], sizeof m->x[i]);
    for (int i = 0; i < m->n_y; i++)
        pnr_matrix_apply((const value(*)[J])map->codes[code].w, m->y[i], out->wy[i]);
    for (int i = 0; i < m->n_x; i++)
        for (int j = 0; j < m->n_x; j++)
            product(m->x[i], out->mx[j], out->x[i][j]);
    for (int i = 0; i < m->n_y; i++)
        for (int j = 0; j < m->n_y; j++)
            product(m->y[i], out->wy[j], out->y[i][j]);
}

/* In the place of x and y: what noise makes of the weighted ones, (m x)^H g (m x). */
static void weigh_noise(const pnr_fit_map *map, const patch_rows *rows, size_t code, const model *m,
                        products *p)
{
    value z[3 * J][J];

    for (int i = 0; i < m->n_x; i++)
        if (rows->is_white)
            memcpy(z[i], p->mx[i], sizeof z[i]);
        else
            pnr_matrix_apply((const value(*)[J])rows->g, (const value *)p->mx[i], z[i]);
    for (int i = 0; i < m->n_x; i++)
        for (int j = 0; j < m->n_x; j++)
            product((const value *)p->mx[i], (const value *)z[j], p->x[i][j]);
    for (int i = 0; i < m->n_y; i++)
        pnr_matrix_apply((const value(*)[J])map->codes[code].p, (const value *)p->wy[i], z[i]);
    for (int i = 0; i < m->n_y; i++)
        for (int j = 0; j < m->n_y; j++)
            product((const value *)p->wy[i], (const value *)z[j], p->y[i][j]);
}

/* <a, b> */
static void inner(const products *p, const column *a, const column *b, value out)
{
    out[0] = out[1] = 0;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            const double *x = p->x[a->x[i]][b->x[j]], *y = p->y[a->y[i]][b->y[j]];

            out[0] += x[0] * y[0] - x[1] * y[1];
            out[1] += x[0] * y[1] + x[1] * y[0];
        }
}

/* <a, patch> */
static void onto(const products *p, const column *a, const patch_rows *rows,
                 const double (*patch)[J][2], value out)
{
    out[0] = out[1] = 0;
    for (int t = 0; t < a->n; t++)
        for (int i = rows->first; i < rows->end; i++) {
            const double *x = p->mx[a->x[t]][i];
            value z;

            product((const value *)p->wy[a->y[t]], patch[i], z);
            out[0] += x[0] * z[0] + x[1] * z[1];
            out[1] += x[0] * z[1] - x[1] * z[0];
        }
}

/* --- one echo --- */

/* A model where the climb stands, and what follows from it. Columns: echo, by delay, by bins. */
typedef struct stand {
    model model;
    products products;
    value gram[3][3], on[3]; /* <c_i, c_j>, <c_i, patch> */
    value alpha[3];          /* <echo, c_i> / <echo, echo>, i = 1, 2 */
    double n[2][2];          /* the inverse of Re <q_i, q_j>, q_i = c_i - alpha_i echo */
    double gain;             /* |<echo, patch>|^2 / <echo, echo> */
} stand;

static const column *column_of(const model *m, int i)
{
    return i == 0 ? &m->echo : i == 1 ? &m->by_delay : &m->by_bins;
}

static void multiply(const value a, const value b, value out)
{
    const double re = a[0] * b[0] - a[1] * b[1];

    out[1] = a[0] * b[1] + a[1] * b[0];
    out[0] = re;
}

static void judge(const pnr_fit_map *map, const patch_rows *rows, size_t code,
                  const double (*patch)[J][2], stand *s)
{
    double n[2][2];

    weigh(map, rows, code, &s->model, &s->products);
    for (int i = 0; i < 3; i++) {
        onto(&s->products, column_of(&s->model, i), rows, patch, s->on[i]);
        for (int j = 0; j < 3; j++)
            inner(&s->products, column_of(&s->model, i), column_of(&s->model, j), s->gram[i][j]);
    }
    for (int i = 1; i < 3; i++)
        for (int c = 0; c < 2; c++)
            s->alpha[i][c] = s->gram[0][i][c] / s->gram[0][0][0];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const double *a = s->alpha[i + 1], *b = s->gram[0][j + 1];

            n[i][j] = s->gram[i + 1][j + 1][0] - (a[0] * b[0] + a[1] * b[1]);
        }

    const double det = n[0][0] * n[1][1] - n[0][1] * n[1][0];

    s->n[0][0] = n[1][1] / det;
    s->n[1][1] = n[0][0] / det;
    s->n[0][1] = s->n[1][0] = -n[0][1] / det;
    s->gain = (s->on[0][0] * s->on[0][0] + s->on[0][1] * s->on[0][1]) / s->gram[0][0][0];
}

/* The step of Gauss and Newton: n Re conj(A) <q_i, patch> / |A|^2. */
static void step_from(const stand *s, const value peak, double step[2])
{
    const double power = peak[0] * peak[0] + peak[1] * peak[1];
    double along[2];

    for (int i = 0; i < 2; i++) {
        const double *a = s->alpha[i + 1];
        const value q = {s->on[i + 1][0] - (a[0] * s->on[0][0] + a[1] * s->on[0][1]),
                         s->on[i + 1][1] - (a[0] * s->on[0][1] - a[1] * s->on[0][0])};

        along[i] = (peak[0] * q[0] + peak[1] * q[1]) / power;
    }
    for (int i = 0; i < 2; i++)
        step[i] = s->n[i][0] * along[0] + s->n[i][1] * along[1];
}

/* Re h^H noise h / 2, h = sum_i weight_i c_i: the variance of Re <h, noise>. */
static double variance_of(value (*noise)[3], const value *weight)
{
    double sum = 0;

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            value z;

            multiply(weight[j], noise[i][j], z);
            sum += weight[i][0] * z[0] + weight[i][1] * z[1];
        }
    return sum / 2;
}

/* Variances times S. The errors of delay and frequency are n Re <q, noise/A>; that of the peak is
 * <echo, noise/A> / <echo, echo> - sum_i alpha_i times them. */
static void find_variances(const pnr_fit_map *map, const patch_rows *rows, size_t code, stand *s,
                           pnr_map_fitted *out)
{
    value noise[3][3], error[2][3] = {{{0}}}, re[3] = {{1 / s->gram[0][0][0], 0}};
    value im[3] = {{0, 1 / s->gram[0][0][0]}};

    weigh_noise(map, rows, code, &s->model, &s->products);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            inner(&s->products, column_of(&s->model, i), column_of(&s->model, j), noise[i][j]);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            error[i][j + 1][0] = s->n[i][j];
            error[i][0][0] -= s->n[i][j] * s->alpha[j + 1][0];
            error[i][0][1] -= s->n[i][j] * s->alpha[j + 1][1];
        }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int c = 0; c < 2; c++) {
                re[j][c] -= s->alpha[i + 1][0] * error[i][j][c];
                im[j][c] -= s->alpha[i + 1][1] * error[i][j][c];
            }
    out->at.delay_variance = variance_of(noise, (const value *)error[0]);
    out->bins_variance = variance_of(noise, (const value *)error[1]);
    out->at.amplitude_variance = variance_of(noise, (const value *)re);
    out->at.phase_variance = variance_of(noise, (const value *)im);
    /* A peak that was sought has half a cell more for each of delay and frequency. */
    out->at.cells = 2 * noise[0][0][0] / (s->gram[0][0][0] * s->gram[0][0][0]);
}

/* The vertex of the parabola through (-1, a), (0, b), (1, c), b the greatest: within -1/2..1/2. */
static double vertex(double a, double b, double c)
{
    const double curvature = a - 2 * b + c;

    return curvature < 0 && b >= a && b >= c ? 0.5 * (a - c) / curvature : 0;
}

/* Where the climb starts in frequency: the vertex over the middle row and those beside it. */
static double first_bins(const patch_rows *rows, const double (*patch)[J][2], int lag)
{
    double p[3] = {0};

    if (rows->first > MIDDLE - 1 || rows->end < MIDDLE + 2)
        return rows->row[MIDDLE].bins;
    for (int i = 0; i < 3; i++)
        p[i] = hypot(patch[MIDDLE - 1 + i][lag][0], patch[MIDDLE - 1 + i][lag][1]);

    const double x = vertex(p[0], p[1], p[2]);

    return rows->row[MIDDLE].bins + x * (x > 0
                                             ? rows->row[MIDDLE + 1].bins - rows->row[MIDDLE].bins
                                             : rows->row[MIDDLE].bins - rows->row[MIDDLE - 1].bins);
}

static double clamp(double x, double limit)
{
    return x < -limit ? -limit : x > limit ? limit : x;
}

/* Climbs from *echo; s: where it stopped. */
static void climb(pnr_fit_map *map, const pnr_patch_place *place, const patch_rows *rows,
                  const double (*patch)[J][2], bool is_exact, double cell, pnr_map_echo *echo,
                  stand *s)
{
    const double middle = rows->row[MIDDLE].bins, lag = (double)place->lag;
    double step[2] = {0}, best = -1;
    pnr_map_echo at = *echo;

    for (int i = 0; i < MAX_STEPS; i++) {
        if (is_exact)
            fill_exact(map, rows, &at, place, true, &s->model);
        else
            fill_smooth(map, rows, &at, place->lag, true, &s->model);
        judge(map, rows, place->code, patch, s);
        for (int c = 0; c < 2; c++)
            at.peak[c] = s->on[0][c] / s->gram[0][0][0];
        if (s->gain < best * (1 - 1e-12)) { /* too far */
            step[0] /= 2;
            step[1] /= 2;
        } else {
            best = s->gain;
            *echo = at;
            step_from(s, at.peak, step);
            step[0] = clamp(step[0], 0.3);
            step[1] = clamp(step[1], 0.3 * map->spacing);
            step[0] = clamp(at.lag + step[0] - lag, 1) + lag - at.lag;
            step[1] = clamp(at.bins + step[1] - middle, map->spacing) + middle - at.bins;
        }

        /* In units of both sigmas: what is left is a thousandth. */
        const double power = at.peak[0] * at.peak[0] + at.peak[1] * at.peak[1];
        const double size = step[0] * step[0] / s->n[0][0] + step[1] * step[1] / s->n[1][1];

        if (size * power < 1e-6 * cell || (fabs(step[0]) < 1e-9 && fabs(step[1]) < 1e-9))
            return;
        at.lag = echo->lag + step[0];
        at.bins = echo->bins + step[1];
    }
}

void pnr_fit_map_find(pnr_fit_map *map, const pnr_patch_place *place, const pnr_patch patch,
                      double start, double cell, pnr_map_fitted *out)
{
    pnr_map_echo echo = {.code = place->code, .lag = (double)place->lag + start};
    patch_rows rows;
    stand s;

    find_rows(map, place->row, true, &rows);
    echo.bins = first_bins(&rows, patch, MIDDLE + (start > 0.25));
    climb(map, place, &rows, patch, false, cell, &echo, &s);
    if (needs_exact(map, &rows, &echo, place->code, cell))
        climb(map, place, &rows, patch, true, cell, &echo, &s);

    value centre = {0, 0};

    for (int t = 0; t < s.model.echo.n; t++) {
        value z;

        multiply(s.model.x[s.model.echo.x[t]][MIDDLE], s.model.y[s.model.echo.y[t]][MIDDLE], z);
        centre[0] += z[0];
        centre[1] += z[1];
    }
    out->at.delay = echo.lag - (double)place->lag;
    out->bins = echo.bins;
    memcpy(out->at.peak, echo.peak, sizeof echo.peak);
    out->at.gain = out->at.power = echo.peak[0] * echo.peak[0] + echo.peak[1] * echo.peak[1];
    out->centre = hypot(centre[0], centre[1]);
    find_variances(map, &rows, place->code, &s, out);
}

/* --- echoes among others --- */

/* out += factor model */
static void add_model(const model *m, const patch_rows *rows, const value factor,
                      double (*patch)[J][2])
{
    for (int t = 0; t < m->echo.n; t++)
        for (int i = rows->first; i < rows->end; i++) {
            value x;

            multiply(m->x[m->echo.x[t]][i], factor, x);
            for (int j = 0; j < J; j++) {
                const double *y = m->y[m->echo.y[t]][j];

                patch[i][j][0] += x[0] * y[0] - x[1] * y[1];
                patch[i][j][1] += x[0] * y[1] + x[1] * y[0];
            }
        }
}

void pnr_fit_map_subtract(pnr_fit_map *map, const pnr_patch_place *place, const pnr_map_echo *echo,
                          double cell, pnr_patch patch)
{
    const value factor = {-echo->peak[0], -echo->peak[1]};
    patch_rows rows;
    model m;

    find_rows(map, place->row, false, &rows);
    if (needs_exact(map, &rows, echo, place->code, cell))
        fill_exact(map, &rows, echo, place, false, &m);
    else if (place->code == echo->code)
        fill_smooth(map, &rows, echo, place->lag, false, &m);
    else
        return;
    add_model(&m, &rows, factor, patch);
}

double pnr_fit_map_power(pnr_fit_map *map, const pnr_patch_place *place, const pnr_map_echo *echo,
                         double cell)
{
    pnr_patch patch = {{{0}}};

    pnr_fit_map_subtract(map, place, echo, cell, patch);
    return patch[MIDDLE][MIDDLE][0] * patch[MIDDLE][MIDDLE][0] +
           patch[MIDDLE][MIDDLE][1] * patch[MIDDLE][MIDDLE][1];
}

void pnr_fit_map_overlap(const pnr_fit_map *map, const pnr_map_echo *x, const pnr_map_echo *y,
                         double out[2])
{
    /* sum_n a(n - x) conj(a(n - y)) exp(2 pi i (v_x - v_y) (n - m) / N) */
    const double n = (double)map->setup->plan.n_samples, k = (double)map->setup->plan.n_periods;
    const double e = x->bins - y->bins, below = k * sin(M_PI * e);
    const double slow = fabs(below) > 1e-9 ? sin(M_PI * e * k) / below : 1;
    const double share = slow * tone(map, e);
    double apart = y->lag - x->lag;

    out[0] = out[1] = 0;
    if (x->code != y->code)
        return;
    apart -= n * floor(apart / n + 0.5);
    pnr_waveform_at(map->codes[x->code].autocorrelation, apart, out);
    out[0] *= share;
    out[1] *= share;
}

double pnr_fit_map_noise(pnr_fit_map *map, const pnr_patch_place *place, const pnr_patch patch,
                         const pnr_map_fitted *fitted, double *cells)
{
    const pnr_map_echo echo = {place->code,
                               (double)place->lag + fitted->at.delay,
                               fitted->bins,
                               {fitted->at.peak[0], fitted->at.peak[1]}};
    const lags_of_code *code = &map->codes[place->code];
    pnr_patch rest;
    patch_rows rows;
    double energy = 0;

    memcpy(rest, patch, sizeof rest);
    pnr_fit_map_subtract(map, place, &echo, 0, rest);
    find_rows(map, place->row, false, &rows);
    for (int i = rows.first; i < rows.end; i++) {
        value weighted[J], z, g;

        pnr_matrix_apply((const value(*)[J])code->w, (const value *)rest[i], weighted);
        product((const value *)rest[i], (const value *)weighted, z);
        pnr_slow_time_noise(map->slow, rows.row[i].bins, rows.row[i].bins, g);
        energy += z[0] / fmax(g[0], 1e-3);
    }
    /* Two complex numbers of them are the echo's: peak, delay and frequency. */
    *cells = fmax(code->cells * (rows.end - rows.first) - 2, 0.5);
    return energy / *cells;
}

void pnr_fit_map_load(const pnr_fit_map *map, const pnr_patch_place *place, const float *values,
                      double floor, pnr_patch out)
{
    const pnr_plan *plan = &map->setup->plan;
    const double n = (double)plan->n_samples;
    const double periods = ((double)plan->n_periods - 1) / 2, samples = (n - 1) / (2 * n);
    const bool is_sum = plan->n_looks > 1;
    patch_rows rows;

    find_rows(map, place->row, false, &rows);
    memset(out, 0, sizeof(pnr_patch));

    const row_info middle = rows.row[MIDDLE];
    const float *centre = values + 2 * (MIDDLE * J + MIDDLE);
    const double share = is_sum && centre[0] > 0 ? floor / (double)centre[0] : 0;

    for (int i = rows.first; i < rows.end; i++) {
        const row_info *row = &rows.row[i];
        /* Of several looks the middle's own turn is gone. */
        const double bins = row->bins - (is_sum ? middle.bins : 0);
        const double rotation = row->rotation - (is_sum ? middle.rotation : 0);
        const double angle =
            2 * M_PI * (remainder(bins * periods, 1) + remainder(rotation * samples, 1));
        const value turn = {cos(angle), sin(angle)};
        value g = {0, 0};

        if (is_sum)
            pnr_slow_time_noise(map->slow, row->bins, middle.bins, g);
        for (int j = 0; j < J; j++) {
            const float *c = values + 2 * (i * J + j);
            value noise, rho;

            multiply((const value){(double)c[0], (double)c[1]}, turn, out[i][j]);
            if (!is_sum)
                continue;
            pnr_waveform_at(map->codes[place->code].autocorrelation, j - MIDDLE, rho);
            multiply(g, rho, noise);
            for (int a = 0; a < 2; a++)
                out[i][j][a] -= share * tone(map, rotation) * noise[a];
        }
    }
}

/* --- the whole --- */

void pnr_fit_map_begin(pnr_fit_map *map, const uint32_t *lost, const uint32_t *nonfinite)
{
    pnr_slow_time_begin(map->slow, lost, nonfinite);
}

double pnr_fit_map_gain(const pnr_fit_map *map)
{
    return pnr_slow_time_gain(map->slow);
}

double pnr_fit_map_noise_gain(const pnr_fit_map *map)
{
    return pnr_slow_time_noise_gain(map->slow);
}

/* How far chi is from the smooth product at an eighth of a bin, over lags and places of the seam,
 * by the bin. */
static double roughness_of(pnr_fit_map *map, size_t code)
{
    enum { SEAMS = 4 };
    const double e = 0.125;
    const size_t n = map->setup->plan.n_samples;
    double worst = 0;

    for (size_t s = 0; s < SEAMS; s++) {
        const long lag = (long)(s * n / SEAMS + n / 7);
        value smooth[J], chi[J];

        fill_lags(&map->codes[code], 0, smooth, NULL);
        pnr_ambiguity_set(map->ambiguity, code, (double)lag);
        pnr_ambiguity_at(map->ambiguity, code, e, lag - MIDDLE, J, chi, NULL, NULL);
        for (int j = 0; j < J; j++) {
            const double t = tone(map, e);

            worst = fmax(worst, hypot(chi[j][0] - t * smooth[j][0], chi[j][1] - t * smooth[j][1]));
        }
    }
    return worst / e;
}

static void fill_code(pnr_fit_map *map, size_t c)
{
    lags_of_code *code = &map->codes[c];

    code->autocorrelation = map->setup->codes[c].autocorrelation;
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            pnr_waveform_at(code->autocorrelation, i - j, code->p[i][j]);
    memcpy(code->w, code->p, sizeof code->w);
    for (int i = 0; i < J; i++)
        code->w[i][i][0] += loading;
    pnr_matrix_invert(code->w);
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            code->cells +=
                code->w[i][j][0] * code->p[j][i][0] - code->w[i][j][1] * code->p[j][i][1];
    code->roughness = roughness_of(map, c);
}

/* The rows' places, and the least distance of two. */
static void number_rows(pnr_fit_map *map)
{
    const pnr_plan *plan = &map->setup->plan;
    const double natural = 1 / (double)plan->n_periods;
    double last = -INFINITY;

    map->spacing = natural;
    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);

        map->first_row[h] = map->n_rows;
        map->n_rows += hypothesis.n_rows;

        const double first = row_at(map, map->first_row[h]).bins;

        map->spacing = fmin(map->spacing, first - last);
        last = first + (hypothesis.n_rows - 1) * natural;
    }
    map->is_fine = map->spacing < 0.99 * natural;
}

int pnr_fit_map_create(const pnr_setup *setup, pnr_fit_map **out)
{
    pnr_fit_map *map = calloc(1, sizeof *map);

    *out = NULL;
    if (map == NULL)
        return PNR_ENOMEMORY;
    map->setup = setup;
    map->first_row = calloc(setup->plan.n_hypotheses, sizeof *map->first_row);
    map->codes = calloc(setup->n_codes, sizeof *map->codes);
    if (map->first_row == NULL || map->codes == NULL ||
        pnr_slow_time_create(&setup->plan, &map->slow) != PNR_OK ||
        pnr_ambiguity_create(setup, &map->ambiguity) != PNR_OK) {
        pnr_fit_map_destroy(map);
        return PNR_ENOMEMORY;
    }
    number_rows(map);
    for (size_t c = 0; c < setup->n_codes; c++)
        fill_code(map, c);
    *out = map;
    return PNR_OK;
}

void pnr_fit_map_destroy(pnr_fit_map *map)
{
    if (map == NULL)
        return;
    pnr_slow_time_destroy(map->slow);
    pnr_ambiguity_destroy(map->ambiguity);
    free(map->first_row);
    free(map->codes);
    free(map);
}
