/* SPDX-License-Identifier: MIT */
/* Tables for the noise of a cell: the lobe of an echo, the cells of a plan, parts of the band. */
#include "detector/noise.h"

#include "detector/state.h"
#include "engine/plan.h"
#include "setup/threshold.h"

#include <math.h>

enum { MIDDLE = PNR_NEIGHBOURS / 2 };

/* Returns the sum of |R(j - d)/R(0)|^2 over |j| <= reach. */
static double lobe_at(const pnr_waveform *autocorrelation, size_t reach, double d)
{
    double sum = 0;

    for (double j = -(double)reach; j <= (double)reach; j++)
        sum += pnr_power(pnr_waveform_at(autocorrelation, j - d));
    return sum;
}

void pnr_lobe_fill(const pnr_waveform *autocorrelation, size_t n_lags, double chip, pnr_lobe *out)
{
    enum { MAX_SIDELOBES = 4096 };
    const size_t wanted = (size_t)fmin(ceil(chip) + 2, MIDDLE);
    double complex mean = 0;
    double power = 0, n = 0;

    out->reach = wanted < n_lags / 8 ? wanted : n_lags / 8;
    out->total = pnr_waveform_energy(autocorrelation);
    out->nyquist = pnr_waveform_nyquist(autocorrelation);
    for (int s = 0; s < PNR_LOBE_TABLE; s++)
        out->inside[s] = lobe_at(autocorrelation, out->reach, (double)s / PNR_LOBE_STEPS - 1);
    for (size_t u = out->reach + 1; u + out->reach < n_lags; u += n_lags / MAX_SIDELOBES + 1, n++) {
        const double complex r = pnr_waveform_at(autocorrelation, (double)u);

        mean += r;
        power += pnr_power(r);
        out->greatest = fmax(out->greatest, 1.5 * sqrt(pnr_power(r)));
    }
    out->alike = power > 0 ? pnr_power(mean) / (n * power) : 0;
}

/* Returns l^H C l - 2 Re(l^H C r). r is the echo R(i - d)/R(0), l its part in the lobe, and C the
 * covariance R(i - j)/R(0) of white noise after the correlation. C r is the overlap. */
static double mixed_at(const pnr_cross *cross, const pnr_waveform *autocorrelation, size_t reach,
                       double d)
{
    double complex r[PNR_NEIGHBOURS], sum = 0;
    const size_t n = 2 * reach + 1;

    for (size_t i = 0; i < n; i++)
        r[i] = pnr_waveform_at(autocorrelation, (double)i - (double)reach - d);
    for (size_t i = 0; i < n; i++) {
        double complex value, through = 0;

        pnr_cross_overlap(cross, (double)i - (double)reach - d, &value, &through);
        through *= -2;
        for (size_t j = 0; j < n; j++)
            through += pnr_waveform_at(autocorrelation, (double)i - (double)j) * r[j];
        sum += conj(r[i]) * through;
    }
    return creal(sum);
}

/* The sidelobes are s = r - l, and s^H C s = r^H C r - 2 Re(l^H C r) + l^H C l. */
void pnr_lobe_mix(const pnr_cross *cross, const pnr_waveform *autocorrelation, size_t n_lags,
                  pnr_lobe *lobe)
{
    double complex value, overlap, all = 0;

    lobe->is_mixed = pnr_cross_has_overlap(cross);
    for (size_t u = 0; u < n_lags && lobe->is_mixed; u++) {
        pnr_cross_overlap(cross, (double)u, &value, &overlap);
        all += conj(pnr_waveform_at(autocorrelation, (double)u)) * overlap;
    }
    for (int s = 0; s < PNR_LOBE_TABLE && lobe->is_mixed; s++)
        lobe->mixed[s] = fmax(creal(all) + mixed_at(cross, autocorrelation, lobe->reach,
                                                    (double)s / PNR_LOBE_STEPS - 1),
                              0);
}

/* Returns a table's value at the delay d. */
static double read_table(const double table[PNR_LOBE_TABLE], double d)
{
    const double at = fmin(fmax((d + 1) * PNR_LOBE_STEPS, 0), PNR_LOBE_TABLE - 1);
    const int s = (int)fmin(fmax(at - 1, 0), PNR_LOBE_TABLE - 4);
    const double *f = table + s, x = at - s;

    return f[0] * (1 - x) * (2 - x) * (3 - x) / 6 + f[1] * x * (2 - x) * (3 - x) / 2 -
           f[2] * x * (1 - x) * (3 - x) / 2 + f[3] * x * (1 - x) * (2 - x) / 6;
}

double pnr_lobe_inside(const pnr_lobe *lobe, double d)
{
    return read_table(lobe->inside, d);
}

double pnr_lobe_mixed(const pnr_lobe *lobe, double d)
{
    return read_table(lobe->mixed, d);
}

/* Returns the number of range gates that count as one, because their noise is correlated. The
 * outputs k and j of the filter F have the noise covariance F[k][j] / sqrt(loss[j]), see
 * setup/least_squares.h. */
static double filter_crowd(const pnr_least_squares *filter)
{
    double sum = 0;

    for (size_t k = 0; k < filter->n_gates; k++)
        for (size_t j = 0; j < filter->n_gates; j++)
            sum += pnr_power(filter->filter[k * filter->n_gates + j]) / filter->loss[j];
    return sum / (double)filter->n_gates;
}

void pnr_cells_fill(const pnr_detector *detector, double pfa_cell, pnr_cells *out)
{
    const pnr_plan *plan = detector->plan;
    const size_t n_lags = plan->filter != NULL ? plan->gate_count : plan->n_lags;
    const double samples = (pnr_format_get(plan->format)->is_complex ? 1 : 0.5) *
                           (double)(plan->n_samples * plan->n_periods);
    const double looks = (double)plan->n_looks;

    out->n = (double)(plan->n_codes * n_lags) * (double)pnr_plan_rows(plan);
    out->crowd = detector->least_squares != NULL ? filter_crowd(detector->least_squares)
                                                 : detector->codes[0].lobe.total;
    if (detector->map != NULL) {
        double weight, crowd;

        pnr_fit_patch_cells(detector->map, &weight, &crowd);
        out->n *= weight;
        out->crowd *= crowd;
    }

    const double independent = fmin(out->n / out->crowd, samples);
    const double threshold = plan->threshold[pnr_plan_windows(plan) - 1];

    out->crowd = out->n / (independent * looks);
    out->ratio = fmax(pnr_threshold_ratio(pfa_cell, plan->n_looks, independent) / threshold, 1e-3);
}

void pnr_noise_bands_fill(const pnr_waveform *waveform, bool is_half, pnr_noise_bands *out)
{
    enum { STEPS = 2 * PNR_BAND_STEPS };
    double share[STEPS + 1], bandwidth[STEPS + 1];
    const size_t step = is_half ? 1 : 2;

    pnr_waveform_bands(waveform, STEPS, share, bandwidth);
    for (size_t s = 0; s <= PNR_BAND_STEPS; s++) {
        out->ratio[s] = share[s * step] * PNR_BAND_STEPS / fmax((double)s, 1e-3);
        out->shape[s] = bandwidth[s * step] / fmax(bandwidth[STEPS], 1e-30);
    }
}

double pnr_noise_shape(const pnr_noise_bands *bands, double ratio)
{
    enum { LEAST = PNR_BAND_STEPS / 16 };
    size_t s = PNR_BAND_STEPS;

    while (s > LEAST && bands->ratio[s - 1] < ratio)
        s--;
    if (s == LEAST)
        return 1;

    const double rise = bands->ratio[s - 1] - bands->ratio[s];
    const double at = rise > 0 ? fmin(fmax((ratio - bands->ratio[s]) / rise, 0), 1) : 0;

    return bands->shape[s] + at * (bands->shape[s - 1] - bands->shape[s]);
}
