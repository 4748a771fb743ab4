/* SPDX-License-Identifier: MIT */
/* Sums over all rows of a map: the noise of its cells, and the power of an echo. */
#include "base/complex.h"
#include "engine/plan.h"
#include "estimate/echo_model.h"

#include <math.h>

void pnr_fit_patch_cells(const pnr_fit_patch *map, double *weight, double *crowd)
{
    enum { REACH = 64 }; /* rows to each side; the noise of farther rows is not correlated */
    const size_t n_rows = pnr_plan_rows(map->plan), middle = n_rows / 2;
    const size_t first = middle > REACH ? middle - REACH : 0;
    const pnr_echo_row here = map->model->rows[middle];
    const double own = creal(pnr_slow_time_noise(map->slow, here.bins, here.bins));

    *weight = *crowd = 0;
    for (size_t row = 0; row < n_rows; row++) {
        const double bins = map->model->rows[row].bins;

        *weight += creal(pnr_slow_time_noise(map->slow, bins, bins)) / (double)n_rows;
    }
    for (size_t row = first; row < n_rows && row <= middle + REACH; row++) {
        const pnr_echo_row other = map->model->rows[row];
        const double tone = pnr_echo_model_tone(map->model, other.rotation - here.rotation, NULL);

        *crowd += tone * tone * pnr_power(pnr_slow_time_noise(map->slow, here.bins, other.bins)) /
                  fmax(own * own, 1e-6);
    }
    *crowd = fmax(*crowd, 1);
}

/* Returns the sum of (sin(pi u) / (K sin(pi u / K)))^2, u = x - row, over the rows 0 .. n - 1 of a
 * cycle of K rows. Over the whole cycle the sum is 1. More than a few rows away from x, the
 * integral of 1 / sin(pi u / K)^2, which is -K/pi cot(pi u / K), replaces the sum. */
static double share_of_rows(double n, double k, double x)
{
    enum { REACH = 4 };
    const double reach = fmin(REACH, floor((k - 1) / 2)), turn = M_PI / k;
    const double above = fmax(floor(x + reach) + 1, 0), below = fmin(ceil(x - reach), n) - 1;
    const double last = fmin(n, ceil(x + k - reach)) - 1, first = fmax(floor(x - k + reach) + 1, 0);
    double near = 0, far = 0;

    if (n >= k)
        return 1;
    for (double at = x - k; at <= x + k; at += k) /* x lies in -1/2 .. k - 1/2 */
        for (double s = fmax(ceil(at - reach), 0); s <= fmin(at + reach, n - 1); s++) {
            const double u = fabs(x - s) < 1e-6 ? 1e-6 : x - s;

            near += pow(sin(M_PI * u) / (k * sin(turn * u)), 2);
        }
    if (last >= above)
        far += 1 / tan(turn * (above - 0.5 - x)) - 1 / tan(turn * (last + 0.5 - x));
    if (below >= first)
        far += 1 / tan(turn * (x - below - 0.5)) - 1 / tan(turn * (x - first + 0.5));
    return fmin(near + pow(sin(M_PI * x), 2) / (M_PI * k) * far, 1);
}

/* Returns the power of an echo in all lags of a row, without the part tone(e)^2 that has the shape
 * of R. e: the frequency of the echo minus the rotation of the row, in bins. A tone of e bins is a
 * sum of tones of whole bins g, each of the power tone(e - g)^2. code->spread[g] is the power of a
 * tone of g bins in all lags. The function takes the mean of this power over the tones g near e,
 * except g = 0, with the weights tone(e - g)^2. It multiplies the mean by 1 - tone(e)^2, the sum of
 * all weights except that of g = 0. */
static double rough_of(const pnr_echo_model *model, const pnr_echo_lags *code, double e)
{
    enum { REACH = 4 };
    const double smooth = pnr_echo_model_tone(model, e, NULL);
    double power = 0, share = 0;

    for (double g = ceil(fabs(e) - REACH); g <= fabs(e) + REACH; g++) {
        const double tone = pnr_echo_model_tone(model, fabs(e) - g, NULL);

        if (g == 0 || fabs(g) >= (double)code->n_spread)
            continue;
        power += tone * tone * code->spread[(size_t)fabs(g)];
        share += tone * tone;
    }
    return share > 0 ? power / share * (1 - smooth * smooth) : 0;
}

/* Returns share_of_rows for an echo that walks in the rows of a hypothesis. The sidelobes of the
 * echo spread over as many rows as it walks chips in a look. So the function takes the mean of
 * share_of_rows over all x in this interval of rows. */
static double share_of_walk(const pnr_fit_patch *map, const pnr_hypothesis *at, double bins,
                            double x)
{
    enum { MOST = 16 };
    const pnr_radar *radar = &map->model->setup->radar;
    const double k = (double)map->plan->n_periods;
    const double chip = (double)radar->n_samples / (double)radar->n_chips;
    const double walk = k * fabs(pnr_echo_model_walk(map->model, bins, at->stretch)) / chip;
    const double n = fmin(1 + floor(2 * walk), MOST);
    double sum = 0;

    for (double i = 0; i < n; i++) {
        const double at_row = x + walk * ((i + 0.5) / n - 0.5);

        sum += share_of_rows(at->n_rows, k, at_row - k * floor((at_row + 0.5) / k));
    }
    return sum / n;
}

/* Let g be the response of a row to the echo, 1 at the frequency of the echo. Over the rows of a
 * whole cycle, 1/K apart, sum |g|^2 = K sum w^2 / (sum w)^2 (Parseval). */
pnr_patch_spread pnr_fit_patch_spread(const pnr_fit_patch *map, size_t code, double bins)
{
    const pnr_plan *plan = map->plan;
    const double k = (double)plan->n_periods, looks = pnr_slow_time_looks(map->slow);
    const double gain = pnr_slow_time_gain(map->slow) / looks;
    const double cycle = k * pnr_slow_time_noise_gain(map->slow) / looks / (gain * gain);
    pnr_patch_spread out = {0};

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis *at = &plan->hypotheses[h];
        const double e = bins * (1 + at->stretch) - at->quarters / 4.0,
                     tone = pnr_echo_model_tone(map->model, e, NULL);
        const double x = k * e - at->first_bin;
        const double share = cycle * share_of_walk(map, at, bins, x);

        out.rows += share;
        out.smooth += share * tone * tone;
        out.rough += share * rough_of(map->model, &map->model->codes[code], e);
    }
    return out;
}
