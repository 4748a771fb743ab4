/* SPDX-License-Identifier: MIT */
/* Slow time: computes sums over the used windows. A table contains the sum over all windows. The
 * terms of missing windows are subtracted. */
#include "estimate/slow_time.h"

#include "base/complex.h"
#include "base/transform.h"
#include "code/waveform.h"

#include <math.h>
#include <stdlib.h>

/* A window p that lacks the share 1 - u_p of its samples. */
typedef struct lack {
    double place; /* p - (K - 1)/2 */
    double share; /* 1 - u_p */
    double weight;
} lack;

/* A window whose sign s_p is not 1. */
typedef struct sign {
    double place;         /* p - (K - 1)/2 */
    double complex share; /* u_p (1 - s_p) */
    double weight;
} sign;

struct pnr_slow_time {
    bool is_shared; /* the tables belong to another pnr_slow_time */
    size_t n, n_periods, n_looks;
    bool is_without_mean;
    double complex step;                  /* exp(-pi i / K): the turn of a phase from row to row */
    const double *taper;                  /* owned by the plan */
    pnr_waveform *once, *twice, *not_any; /* tables of tabulate(): power 1, 2 and 0 */
    lack *lacks;                          /* [n_lacks], capacity K */
    size_t n_lacks;
    sign *signs; /* [n_signs], capacity K: the windows whose sign is not 1 */
    size_t n_signs;
    double sum_w, sum_w2, sum_u, looks; /* sums over p of w_p u_p, w_p^2 u_p and u_p, where u_p is
                                         * the mean over the used looks; number of used looks */
};

static double weight_of(const pnr_slow_time *slow, size_t p)
{
    return slow->taper != NULL ? slow->taper[p] : 1;
}

/* Tabulates sum_p w_p^power exp(2 pi i x (p - floor(K/2))) as a periodic waveform over x = 0 .. 1.
 * The table has K points, or K + 1 if K is even; these determine the K harmonics of the sum. */
static int tabulate(const pnr_slow_time *slow, int power, pnr_waveform **out)
{
    const size_t n_periods = slow->n_periods, n = n_periods | 1, middle = n_periods / 2;
    double complex *points = calloc(n, sizeof *points);
    int code = PNR_ENOMEMORY;

    if (points == NULL)
        return code;
    for (size_t p = 0; p < n_periods; p++)
        points[(p + n - middle) % n] = pow(weight_of(slow, p), power);
    if ((code = pnr_transform_inverse((double(*)[2])points, n)) == PNR_OK &&
        (code = pnr_waveform_create(points, n, out)) == PNR_OK)
        code = pnr_waveform_prepare(*out);
    free(points);
    return code;
}

int pnr_slow_time_create(const pnr_plan *plan, pnr_slow_time **out)
{
    pnr_slow_time *slow = calloc(1, sizeof *slow);

    *out = NULL;
    if (slow == NULL)
        return PNR_ENOMEMORY;
    slow->n = plan->n_samples;
    slow->n_periods = plan->n_periods;
    slow->n_looks = plan->n_looks;
    slow->is_without_mean = plan->remove_mean;
    slow->step = pnr_cis(-M_PI / (double)plan->n_periods);
    slow->taper = plan->taper;
    slow->lacks = malloc(plan->n_periods * sizeof *slow->lacks);
    slow->signs = malloc(plan->n_periods * sizeof *slow->signs);
    if (slow->lacks == NULL || slow->signs == NULL || tabulate(slow, 1, &slow->once) != PNR_OK ||
        tabulate(slow, 2, &slow->twice) != PNR_OK || tabulate(slow, 0, &slow->not_any) != PNR_OK) {
        pnr_slow_time_destroy(slow);
        return PNR_ENOMEMORY;
    }
    pnr_slow_time_begin(slow, NULL, NULL);
    *out = slow;
    return PNR_OK;
}

int pnr_slow_time_share(const pnr_slow_time *from, pnr_slow_time **out)
{
    pnr_slow_time *slow = malloc(sizeof *slow);

    *out = NULL;
    if (slow == NULL)
        return PNR_ENOMEMORY;
    *slow = *from;
    slow->is_shared = true;
    slow->lacks = malloc(slow->n_periods * sizeof *slow->lacks);
    slow->signs = malloc(slow->n_periods * sizeof *slow->signs);
    if (slow->lacks == NULL || slow->signs == NULL) {
        pnr_slow_time_destroy(slow);
        return PNR_ENOMEMORY;
    }
    pnr_slow_time_begin(slow, NULL, NULL);
    *out = slow;
    return PNR_OK;
}

void pnr_slow_time_destroy(pnr_slow_time *slow)
{
    if (slow == NULL)
        return;
    if (!slow->is_shared) {
        pnr_waveform_destroy(slow->once);
        pnr_waveform_destroy(slow->twice);
        pnr_waveform_destroy(slow->not_any);
    }
    free(slow->lacks);
    free(slow->signs);
    free(slow);
}

/* Returns the share of valid samples of a window; 0 if the engines do not use the window. */
static double share_of(const pnr_slow_time *slow, uint64_t missing)
{
    return missing > slow->n / 2 ? 0 : 1 - (double)missing / (double)slow->n;
}

void pnr_slow_time_begin(pnr_slow_time *slow, const uint32_t *lost, const uint32_t *nonfinite)
{
    slow->n_lacks = slow->n_signs = 0;
    slow->sum_w = slow->sum_w2 = slow->sum_u = slow->looks = 0;
    for (size_t look = 0; look < slow->n_looks; look++) {
        bool is_there = false;

        for (size_t p = 0; p < slow->n_periods && !is_there; p++) {
            const size_t w = look * slow->n_periods + p;

            is_there =
                share_of(slow, (uint64_t)(lost ? lost[w] : 0) + (nonfinite ? nonfinite[w] : 0)) > 0;
        }
        slow->looks += is_there;
    }
    for (size_t p = 0; p < slow->n_periods; p++) {
        const double weight = weight_of(slow, p);
        double share = 0;

        for (size_t w = p; w < slow->n_looks * slow->n_periods; w += slow->n_periods)
            share +=
                share_of(slow, (uint64_t)(lost ? lost[w] : 0) + (nonfinite ? nonfinite[w] : 0));
        share /= fmax(slow->looks, 1);
        slow->sum_w += weight * share;
        slow->sum_w2 += weight * weight * share;
        slow->sum_u += share;
        if (share < 1)
            slow->lacks[slow->n_lacks++] =
                (lack){(double)p - ((double)slow->n_periods - 1) / 2, 1 - share, weight};
    }
}

void pnr_slow_time_signs(pnr_slow_time *slow, const double complex *signs)
{
    const double middle = ((double)slow->n_periods - 1) / 2;

    slow->n_signs = 0;
    for (size_t p = 0; signs != NULL && p < slow->n_periods; p++) {
        sign change = {(double)p - middle, 1 - signs[p], weight_of(slow, p)};

        for (size_t i = 0; i < slow->n_lacks; i++)
            if (slow->lacks[i].place == change.place)
                change.share *= 1 - slow->lacks[i].share;
        if (change.share != 0)
            slow->signs[slow->n_signs++] = change;
    }
}

bool pnr_slow_time_is_whole(const pnr_slow_time *slow)
{
    return slow->n_lacks == 0;
}

double pnr_slow_time_gain(const pnr_slow_time *slow)
{
    return slow->looks * slow->sum_w;
}

double pnr_slow_time_noise_gain(const pnr_slow_time *slow)
{
    return slow->looks * slow->sum_w2;
}

double pnr_slow_time_looks(const pnr_slow_time *slow)
{
    return slow->looks;
}

/* Returns remainder(x, of) exactly, in a tenth of the time of that function. `of` is 1 or 2. */
static double wrap(double x, double of)
{
    return x - of * rint(x / of);
}

/* exp(pi i x) and exp(pi i K x). */
typedef struct phases {
    double complex one, all;
} phases;

static phases phases_at(double k, double x)
{
    return (phases){pnr_cis(M_PI * wrap(x, 2)), pnr_cis(M_PI * wrap(k * x, 2))};
}

/* Returns sum_p exp(2 pi i x (p - (K - 1)/2)) = sin(pi K x) / sin(pi x). *slope: its derivative. */
static double dirichlet(double k, const phases *at, double *slope)
{
    const double below = cimag(at->one);

    if (fabs(below) > 1e-9) {
        const double sum = cimag(at->all) / below;

        *slope = M_PI * (k * creal(at->all) - sum * creal(at->one)) / below;
        return sum;
    }
    *slope = 0;
    return k * creal(at->all) * creal(at->one);
}

/* Returns 2 pi i place cis. This is the derivative of cis = exp(2 pi i x place). */
static double complex turned(double place, double complex cis)
{
    return 2 * M_PI * place * CMPLX(-cimag(cis), creal(cis));
}

/* Returns sum_p w_p^power u_p exp(2 pi i x (p - (K - 1)/2)). *slope: its derivative with respect to
 * x; NULL: not wanted. at: the phases at x; NULL: not known. */
static double complex sum_at(const pnr_slow_time *slow, int power, double x, const phases *at,
                             double complex *slope)
{
    const pnr_waveform *table = power == 0 ? slow->not_any : power == 1 ? slow->once : slow->twice;
    const double n = (double)(slow->n_periods | 1);
    double complex sum, rise = 0;

    if (slow->taper == NULL || power == 0) {
        const phases here = at != NULL ? *at : phases_at((double)slow->n_periods, x);
        double real;

        sum = dirichlet((double)slow->n_periods, &here, &real);
        rise = real;
    } else {
        pnr_waveform_run(table, (x - floor(x)) * n, 1, &sum, slope != NULL ? &rise : NULL);
        rise *= n;
        if (slow->n_periods % 2 == 0) { /* the middle lies between two windows */
            const double complex half = pnr_cis(M_PI * wrap(x, 2));

            rise = rise * half + sum * turned(0.5, half);
            sum *= half;
        }
    }
    for (size_t i = 0; i < slow->n_lacks; i++) {
        const lack *l = &slow->lacks[i];
        const double complex cis = pnr_cis(2 * M_PI * wrap(x * l->place, 1));
        const double share = l->share * pow(l->weight, power);

        sum -= share * cis;
        rise -= share * turned(l->place, cis);
    }
    if (slope != NULL)
        *slope = rise;
    return sum;
}

/* Returns the response of one row. at: the phases at v - f_row. */
static double complex row_echo(const pnr_slow_time *slow, double v, double f_row, const phases *at,
                               double complex *slope)
{
    double complex rise, sum = sum_at(slow, 1, v - f_row, at, slope != NULL ? &rise : NULL);

    for (size_t i = 0; i < slow->n_signs; i++) {
        const sign *s = &slow->signs[i];
        const double complex cis = pnr_cis(2 * M_PI * wrap((v - f_row) * s->place, 1));

        sum -= s->share * s->weight * cis;
        if (slope != NULL)
            rise -= s->share * s->weight * turned(s->place, cis);
    }
    if (slow->is_without_mean) {
        const double complex still = sum_at(slow, 1, -f_row, NULL, NULL) / slow->sum_u;
        double complex of_mean;

        sum -= sum_at(slow, 0, v, NULL, &of_mean) * still;
        if (slope != NULL)
            rise -= of_mean * still;
    }
    if (slope != NULL)
        *slope = rise / slow->sum_w;
    return sum / slow->sum_w;
}

/* From row to row the phases turn by the same angles. Where exp(pi i x) is near 1 or -1, its small
 * imaginary part is computed anew. */
void pnr_slow_time_echo(const pnr_slow_time *slow, double v, double f_row, int n,
                        double complex *value, double complex *slope)
{
    const double k = (double)slow->n_periods, near = 0.02;
    phases at = {0};

    for (int i = 0; i < n; i++) {
        const double f = f_row + i / k;

        if (fabs(cimag(at.one)) < near)
            at = phases_at(k, v - f);
        value[i] = row_echo(slow, v, f, &at, slope != NULL ? &slope[i] : NULL);
        at.one *= slow->step;
        at.all = -at.all;
    }
}

void pnr_slow_time_windows(const pnr_slow_time *slow, int power, double x, double complex *out)
{
    const double middle = ((double)slow->n_periods - 1) / 2;
    const double all = power == 1 ? slow->sum_w : slow->sum_u;

    for (size_t p = 0; p < slow->n_periods; p++)
        out[p] = (power == 1 ? weight_of(slow, p) : 1) / all *
                 pnr_cis(2 * M_PI * wrap(x * ((double)p - middle), 1));
    for (size_t i = 0; i < slow->n_lacks; i++)
        out[(size_t)(slow->lacks[i].place + middle)] *= 1 - slow->lacks[i].share;
    for (size_t i = 0; power == 1 && i < slow->n_signs; i++) {
        const sign *s = &slow->signs[i];

        out[(size_t)(s->place + middle)] -=
            s->share * s->weight / all * pnr_cis(2 * M_PI * wrap(x * s->place, 1));
    }
}

/* If window p has the white noise n_p, the row at F has the noise n = sum_p w_p u_p (n_p - mean)
 * exp(-2 pi i F (p - middle)). `mean` is the mean of n_p, or 0 if no mean is removed. */
double complex pnr_slow_time_noise(const pnr_slow_time *slow, double f_row, double f_other)
{
    double complex sum = sum_at(slow, 2, f_other - f_row, NULL, NULL);

    if (slow->is_without_mean)
        sum -= sum_at(slow, 1, -f_row, NULL, NULL) * conj(sum_at(slow, 1, -f_other, NULL, NULL)) /
               slow->sum_u;
    return sum / slow->sum_w2;
}
