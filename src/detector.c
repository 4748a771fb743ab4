/* SPDX-License-Identifier: MIT */
/* Candidates to echoes: a joint fit of delay and complex amplitude to the 17 values around each. */
#include "detector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    STEPS = 64,              /* of the table of delays, a lag */
    N_STEPS = 2 * STEPS + 1, /* from -1 to +1 lag */
    LANES = 4,               /* values that are worked on at once */
    N_LANES = (J + LANES - 1) / LANES
};

typedef double value[2]; /* re, im */

/* J values, planar; those beyond are 0. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8)));
typedef struct planar {
    lanes re[N_LANES], im[N_LANES];
} planar;

/* No candidate comes near the ends of double's range, which is what hypot() would guard. */
static double magnitude(const value v)
{
    return sqrt(v[0] * v[0] + v[1] * v[1]);
}

/*
 * An echo of amplitude A at delay d gives c_j = A g R(j - d) at the lag j; its noise has the
 * covariance sigma^2 g R(i - j), R the code's autocorrelation, g the valid samples over N. With W
 * the inverse of R(i - j)/R(0), the likeliest d maximises J(d) = |r(d)^H W c|^2 / (r(d)^H W r(d)),
 * r_j(d) = R(j - d)/R(0) and then A g R(0) = r^H W c / (r^H W r). The vectors v = W r / sqrt(r^H W
 * r) are tabulated, so that J(d) = |v^H c|^2.
 */
typedef struct fit {
    double d;       /* lags from the centre */
    value z;        /* v^H c at d: |z|^2 = J */
    value a;        /* A g R(0): the peak of c, interpolated */
    double quality; /* r^H W r at d: the share of the echo that the 17 values hold */
} fit;

struct pnr_detector {
    const pnr_config *config;
    const pnr_radar *radar;
    const pnr_waveform *autocorrelation; /* R(u)/R(0) */
    double energy_of_code;               /* R(0) */
    double bandwidth;                    /* B, rad^2/sample^2 */
    bool is_sum;                         /* incoherent dwells */
    double amplitude_scale; /* 2 for a tuned real recording: A cos(wt) is A/2 on either side of 0 */
    const double *threshold; /* [n_periods] as the engine has it */
    planar v[N_STEPS];
    double quality[N_STEPS];
    value rho[2 * J]; /* R(u)/R(0) at u = -J .. J-1 */
};

/* In place: the inverse of a Hermitian positive definite matrix, by Gauss and Jordan without pivots
 * (the diagonal dominates after loading). */
static void invert(value (*m)[J])
{
    for (int k = 0; k < J; k++) {
        const double pivot = 1 / m[k][k][0]; /* real: every Schur complement stays Hermitian */

        for (int j = 0; j < J; j++)
            if (j != k) {
                m[k][j][0] *= pivot;
                m[k][j][1] *= pivot;
            }
        for (int i = 0; i < J; i++) {
            if (i == k)
                continue;
            const double re = m[i][k][0], im = m[i][k][1];

            for (int j = 0; j < J; j++)
                if (j != k) {
                    m[i][j][0] -= re * m[k][j][0] - im * m[k][j][1];
                    m[i][j][1] -= re * m[k][j][1] + im * m[k][j][0];
                }
            m[i][k][0] = -re * pivot;
            m[i][k][1] = -im * pivot;
        }
        m[k][k][0] = pivot;
        m[k][k][1] = 0;
    }
}

static void rho_at(const pnr_detector *detector, double u, value rho)
{
    pnr_waveform_at(detector->autocorrelation, u, rho);
}

static void fill_table(pnr_detector *detector)
{
    value w[J][J];

    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++) {
            rho_at(detector, i - j, w[i][j]);
            if (i == j)
                w[i][j][0] +=
                    1e-4; /* a code narrower than the sampling has nearly dependent lags */
        }
    invert(w);
    for (int s = 0; s < N_STEPS; s++) {
        const double d = (double)(s - STEPS) / STEPS;
        value r[J];
        double q = 0;

        for (int j = 0; j < J; j++)
            rho_at(detector, j - MIDDLE - d, r[j]);
        for (int i = 0; i < J; i++) {
            value wr = {0, 0};

            for (int j = 0; j < J; j++) {
                wr[0] += w[i][j][0] * r[j][0] - w[i][j][1] * r[j][1];
                wr[1] += w[i][j][0] * r[j][1] + w[i][j][1] * r[j][0];
            }
            q += r[i][0] * wr[0] + r[i][1] * wr[1];
            detector->v[s].re[i / LANES][i % LANES] = wr[0];
            detector->v[s].im[i / LANES][i % LANES] = wr[1];
        }
        detector->quality[s] = q;
        for (int i = 0; i < J; i++) {
            detector->v[s].re[i / LANES][i % LANES] /= sqrt(q);
            detector->v[s].im[i / LANES][i % LANES] /= sqrt(q);
        }
    }
}

/* z = v^H c at table step s; returns |z|^2. */
static double project(const pnr_detector *detector, int s, const planar *c, value z)
{
    const planar *v = &detector->v[s];
    lanes re = {0}, im = {0};

    for (int i = 0; i < N_LANES; i++) {
        re += v->re[i] * c->re[i] + v->im[i] * c->im[i];
        im += v->re[i] * c->im[i] - v->im[i] * c->re[i];
    }
    z[0] = (re[0] + re[1]) + (re[2] + re[3]);
    z[1] = (im[0] + im[1]) + (im[2] + im[3]);
    return z[0] * z[0] + z[1] * z[1];
}

/* The vertex of the parabola through (-1, a), (0, b), (1, c), b the greatest: within -1/2..1/2. */
static double vertex(double a, double b, double c)
{
    const double curvature = a - 2 * b + c;

    return curvature < 0 ? 0.5 * (a - c) / curvature : 0;
}

static double parabola(double a, double b, double c, double x)
{
    return b + x * (0.5 * (c - a) + x * 0.5 * (a - 2 * b + c));
}

/* Climbs J(d) on the table from the start, then between its steps. */
static void fit_delay(const pnr_detector *detector, const value *values, double start, fit *out)
{
    int s = (int)lrint((start + 1) * STEPS);
    planar c = {{{0}}, {{0}}};
    value z[3];
    double p[3];

    for (int j = 0; j < J; j++) {
        c.re[j / LANES][j % LANES] = values[j][0];
        c.im[j / LANES][j % LANES] = values[j][1];
    }
    s = s < 1 ? 1 : s > N_STEPS - 2 ? N_STEPS - 2 : s;
    for (int i = 0; i < 3; i++)
        p[i] = project(detector, s - 1 + i, &c, z[i]);
    while (p[2] > p[1] && s < N_STEPS - 2) {
        s++;
        memmove(p, p + 1, 2 * sizeof *p);
        memmove(z, z + 1, 2 * sizeof *z);
        p[2] = project(detector, s + 1, &c, z[2]);
    }
    while (p[0] > p[1] && s > 1) {
        s--;
        memmove(p + 1, p, 2 * sizeof *p);
        memmove(z + 1, z, 2 * sizeof *z);
        p[0] = project(detector, s - 1, &c, z[0]);
    }

    const double *q = detector->quality + s - 1;
    double x = vertex(p[0], p[1], p[2]);

    x = x < -1 ? -1 : x > 1 ? 1 : x;
    out->d = (s - STEPS + x) / STEPS;
    out->quality = parabola(q[0], q[1], q[2], x);
    for (int i = 0; i < 2; i++) {
        out->z[i] = parabola(z[0][i], z[1][i], z[2][i], x);
        out->a[i] = out->z[i] / sqrt(out->quality);
    }
}

/* Where the climb starts: the vertex of |c| over the three lags around the cell, on the grid of the
 * search. */
static double first_guess(const pnr_detector *detector, const pnr_candidate *candidate,
                          const value *c)
{
    const size_t oversample = detector->config->detector.oversample;

    if (candidate->cell % oversample != 0)
        return 0.5;
    double p[3];

    for (int i = 0; i < 3; i++)
        p[i] = magnitude(c[MIDDLE - 1 + i]);
    return p[1] >= p[0] && p[1] >= p[2] ? vertex(p[0], p[1], p[2]) : 0;
}

/* One candidate on its way to an echo. */
typedef struct track {
    const pnr_candidate *candidate;
    size_t centre; /* lag */
    value c[J];    /* as the engine gave it; of an incoherent dwell free of the noise's bias */
    fit fit;
    double amplitude2; /* |A|^2 */
} track;

/* Distance from lag b to lag a on the circle, in (-N/2, N/2]. */
static double apart(const pnr_detector *detector, double a, double b)
{
    const double n = (double)detector->radar->n_samples;
    const double difference = a - b;

    return difference - n * floor(difference / n + 0.5);
}

/* c less what the other echo puts there: A g R(0) rho(lag - its delay). */
static void subtract(const pnr_detector *detector, const track *from, const track *other, value *c)
{
    const double distance =
        apart(detector, (double)from->centre, (double)other->centre + other->fit.d);

    for (int j = 0; j < J; j++) {
        value rho;

        rho_at(detector, distance + j - MIDDLE, rho);
        c[j][0] -= other->fit.a[0] * rho[0] - other->fit.a[1] * rho[1];
        c[j][1] -= other->fit.a[0] * rho[1] + other->fit.a[1] * rho[0];
    }
}

/* Fits one candidate with the other echoes taken out; returns J. */
static double fit_among(const pnr_detector *detector, track *t, const track *others,
                        size_t n_others)
{
    const value *c = (const value *)t->c;
    value rest[J];

    if (n_others > 0) {
        memcpy(rest, t->c, sizeof rest);
        for (size_t i = 0; i < n_others; i++)
            if (&others[i] != t)
                subtract(detector, t, &others[i], rest);
        c = (const value *)rest;
    }
    fit_delay(detector, c, first_guess(detector, t->candidate, c), &t->fit);
    return t->fit.z[0] * t->fit.z[0] + t->fit.z[1] * t->fit.z[1];
}

/* Is this candidate of a dwell summed in power no more than what the stronger echoes' sidelobes put
 * there? Their phases are gone, so it must stand out by 6 dB. */
static bool is_sidelobe(const pnr_detector *detector, const track *t, const track *others, size_t n)
{
    double power = 0;

    for (size_t i = 0; i < n; i++) {
        value rho;

        rho_at(detector,
               apart(detector, (double)t->centre + t->fit.d,
                     (double)others[i].centre + others[i].fit.d),
               rho);
        power += (rho[0] * rho[0] + rho[1] * rho[1]) * (others[i].fit.a[0] * others[i].fit.a[0] +
                                                        others[i].fit.a[1] * others[i].fit.a[1]);
    }
    return t->fit.a[0] * t->fit.a[0] + t->fit.a[1] * t->fit.a[1] < 4 * power;
}

/* Of an incoherent dwell c_j = sum_p c_p[j] conj(c_p[0]) / sqrt(P): the noise's own part of its
 * mean, floor rho(j) / sqrt(P), is taken out. */
static void load(const pnr_detector *detector, const pnr_dwell *dwell,
                 const pnr_candidate *candidate, track *t)
{
    t->candidate = candidate;
    t->centre = candidate->cell / detector->config->detector.oversample;
    for (int j = 0; j < J; j++) {
        t->c[j][0] = (double)candidate->value[j][0];
        t->c[j][1] = (double)candidate->value[j][1];
    }
    if (detector->is_sum && t->c[MIDDLE][0] > 0) {
        const double share = dwell->floor / t->c[MIDDLE][0];

        for (int j = 0; j < J; j++) {
            t->c[j][0] -= share * detector->rho[J + j - MIDDLE][0];
            t->c[j][1] -= share * detector->rho[J + j - MIDDLE][1];
        }
    }
}

/* The echoes among the candidates, strongest first. A candidate that the stronger ones explain is
 * none. */
static size_t sort_out(const pnr_detector *detector, const pnr_dwell *dwell,
                       const pnr_candidate *candidates, track *tracks)
{
    const double least = detector->threshold[dwell->n_periods - 1] * dwell->floor;
    bool taken[PNR_MAX_CANDIDATES] = {false};
    size_t n = 0;

    for (size_t k = 0; k < dwell->n_candidates && n < detector->config->detector.max_echoes; k++) {
        size_t best = 0;
        float power = -1;

        for (size_t i = 0; i < dwell->n_candidates; i++)
            if (!taken[i] && candidates[i].power > power)
                power = candidates[best = i].power;
        taken[best] = true;

        track *t = &tracks[n];

        load(detector, dwell, &candidates[best], t);
        if (detector->is_sum) {
            fit_among(detector, t, NULL, 0);
            n += n == 0 || !is_sidelobe(detector, t, tracks, n);
        } else {
            n += fit_among(detector, t, tracks, n) > least || n == 0;
        }
    }
    if (!detector->is_sum && n > 1) /* each once more, free of the weaker ones too */
        for (size_t i = 0; i < n; i++)
            fit_among(detector, &tracks[i], tracks, n);
    return n;
}

/* |A|^2 of a track, from the peak |a| = |A| g R(0); of an incoherent dwell a = |A|^2 (sum g_p^2)
 * R(0)^2 |rho(d)| / sqrt(P), with sum g_p^2 = g^2 / windows where the windows lost alike. */
static double squared_amplitude(const pnr_detector *detector, const pnr_dwell *dwell,
                                const track *t)
{
    const double g = (double)dwell->n_valid / (double)detector->radar->n_samples;
    const double peak = magnitude(t->fit.a) / detector->energy_of_code;
    value rho;

    if (!detector->is_sum)
        return peak * peak / (g * g);
    rho_at(detector, t->fit.d, rho);
    return peak * (double)t->candidate->value[MIDDLE][0] * dwell->n_periods /
           (g * g * detector->energy_of_code * magnitude(rho));
}

static void describe(const pnr_detector *detector, const pnr_dwell *dwell, const track *t,
                     double noise_power, pnr_echo *echo)
{
    const pnr_radar *radar = detector->radar;
    const double n = (double)radar->n_samples;
    const double rate = pnr_rational_double(radar->rate_hz);
    const double g = (double)dwell->n_valid / n;
    const double noise_cell = noise_power * g * detector->energy_of_code;
    const double amplitude2 = t->amplitude2;
    const double power = t->fit.z[0] * t->fit.z[0] + t->fit.z[1] * t->fit.z[1];
    /* The fit's three real parameters take 3/2 of the noise of one cell along. */
    const double snr = detector->is_sum ? amplitude2 * g * detector->energy_of_code / noise_power
                                        : (power / noise_cell - 1.5) / t->fit.quality;
    const double s = snr > 1e-3 ? snr : 1e-3;

    *echo = (pnr_echo){
        .code = t->candidate->code,
        .channel = t->candidate->channel,
        .lag = (double)t->centre + t->fit.d,
        .snr_db = 10 * log10(s),
        .amplitude = detector->amplitude_scale * sqrt(amplitude2),
        .phase_rad = detector->is_sum ? NAN : atan2(t->fit.a[1], t->fit.a[0]),
        .doppler_hz = NAN,
        .doppler_sigma_hz = NAN,
        .velocity_mps = NAN,
    };
    echo->delay_s = pnr_radar_delay_s(radar, detector->config, echo->lag);
    echo->delay_samples = echo->delay_s * rate;
    echo->delay_sigma_s = 1 / sqrt(2 * s * detector->bandwidth) / rate;
    echo->range_m = pnr_radar_range_m(radar, echo->delay_s);
    echo->range_sigma_m = radar->metres_per_second * echo->delay_sigma_s;
}

void pnr_detector_detect(const pnr_detector *detector, const pnr_dwell *dwell,
                         const pnr_candidate *candidates, pnr_detection *out)
{
    track tracks[PNR_MAX_CANDIDATES];
    const size_t n = dwell->n_periods > 0 ? sort_out(detector, dwell, candidates, tracks) : 0;
    const double power_of_code = detector->energy_of_code / (double)detector->radar->n_samples;
    double echo_power = 0;

    for (size_t i = 0; i < n; i++) {
        tracks[i].amplitude2 = squared_amplitude(detector, dwell, &tracks[i]);
        echo_power += tracks[i].amplitude2 * power_of_code;
    }

    const double n_valid = (double)dwell->n_valid;
    const double total = n_valid > 0 ? dwell->energy / n_valid : 0;
    /* Each fit takes 3/2 of a complex sample's noise along; rounding keeps a noiseless dwell above
     * 0. */
    const double rest = (total - echo_power) * n_valid / fmax(n_valid - 1.5 * (double)n, 1);

    out->noise_power = fmax(rest, total * 1e-12);
    out->n_echoes = n;
    for (size_t i = 0; i < n; i++)
        describe(detector, dwell, &tracks[i], out->noise_power, &out->echoes[i]);
    for (size_t i = 1; i < n; i++) { /* refined fits may have changed places */
        const pnr_echo echo = out->echoes[i];
        size_t at = i;

        for (; at > 0 && out->echoes[at - 1].snr_db < echo.snr_db; at--)
            out->echoes[at] = out->echoes[at - 1];
        out->echoes[at] = echo;
    }
}

int pnr_detector_create(const pnr_config *config, const pnr_setup *setup, pnr_detector **out,
                        pnr_error *error)
{
    pnr_detector *detector = calloc(1, sizeof *detector);

    *out = detector;
    if (detector == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "detector: out of memory");
    detector->config = config;
    detector->radar = &setup->radar;
    detector->autocorrelation = setup->autocorrelation;
    detector->threshold = setup->threshold;
    detector->is_sum = config->dwell.combine == PNR_COMBINE_INCOHERENT;
    detector->amplitude_scale =
        !pnr_format_get(setup->plan.format)->is_complex && setup->plan.tune.num != 0 ? 2 : 1;
    detector->energy_of_code = pnr_waveform_energy(setup->waveform);
    detector->bandwidth = pnr_waveform_bandwidth(setup->waveform);
    for (int u = -J; u < J; u++)
        rho_at(detector, u, detector->rho[J + u]);
    fill_table(detector);
    return PNR_OK;
}

void pnr_detector_destroy(pnr_detector *detector)
{
    free(detector);
}
