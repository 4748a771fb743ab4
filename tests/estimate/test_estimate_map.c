/* SPDX-License-Identifier: MIT */
/* The estimates of one echo in a map by statistics, at the detector's input: 17 x 17 values and the
 * energy as an engine would give them, drawn from their exact distribution. */
#include "base/complex.h"
#include "base/transform.h"
#include "tests/fixture/fit_patch_fixture.h"

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    N_SNRS = 5,
    DRAWS = 25 /* of the noise at one place */
};

static const double snrs_db[N_SNRS] = {15, 20, 30, 40, 50};

typedef double complex value;

/* L L^H = R(i - j)/R(0); a lag that depends on others brings no noise. */
static void factor(const pnr_waveform *autocorrelation, value (*l)[J])
{
    memset(l, 0, sizeof(value[J][J]));
    for (int j = 0; j < J; j++)
        for (int i = j; i < J; i++) {
            value sum = pnr_waveform_at(autocorrelation, i - j);

            for (int k = 0; k < j; k++)
                sum -= l[i][k] * conj(l[j][k]);
            if (i == j)
                l[j][j] = creal(sum) > 1e-9 ? sqrt(creal(sum)) : 0;
            else if (creal(l[j][j]) > 0)
                l[i][j] = sum / creal(l[j][j]);
        }
}

/* One echo's signal in white coordinates: signal = L y, row by row; its energy there. */
static double whiten(value (*l)[J], const float (*signal)[J][2], value (*y)[J])
{
    double energy = 0;

    for (int r = 0; r < J; r++)
        for (int i = 0; i < J; i++) {
            y[r][i] = CMPLX(signal[r][i][0], signal[r][i][1]);
            for (int k = 0; k < i; k++)
                y[r][i] -= l[i][k] * y[r][k];
            y[r][i] = creal(l[i][i]) > 0 ? y[r][i] / creal(l[i][i]) : 0;
            energy += pnr_power(y[r][i]);
        }
    return energy;
}

typedef struct tally {
    double n, n_outliers, snr, noise;
    errors delay, doppler, amplitude, phase;
} tally;

/* Is the rms error within 1.06 of `bound`, the bias within 0.3 of it, and the normalised variance 1
 * +- 0.1, each with four sigma of their number? */
static bool is_good(const char *what, const errors *e, double n, double bound)
{
    const double chance = 4 * sqrt(2 / n); /* of a variance from n trials; of its root half */
    const double rms = sqrt(e->square / n) / bound, bias = e->sum / n / bound;

    print_message("  %s: rms %.3f of the bound, bias %+.3f sigma, normalised variance %.3f\n", what,
                  rms, bias, e->normalised / n);
    return rms <= 1.06 + chance / 2 && fabs(bias) <= 0.3 &&
           fabs(e->normalised / n - 1) <= 0.1 + chance;
}

/* Is the middle the greatest of the cells around it, as a search would have it? */
static bool is_maximum(const float (*values)[J][2])
{
    const float *m = values[MIDDLE][MIDDLE];

    for (int r = MIDDLE - 1; r <= MIDDLE + 1; r++)
        for (int j = MIDDLE - 1; j <= MIDDLE + 1; j++)
            if (hypotf(values[r][j][0], values[r][j][1]) > hypotf(m[0], m[1]))
                return false;
    return true;
}

/* The power of an echo of peak 1 in all cells of the map but those of its patch: over the lags of a
 * row, sum |c|^2 = 1/N sum |X|^2 |A|^2. */
static double outside_power(const map_bench *b, const float (*signal)[J][2], double lag,
                            double bins, double peak)
{
    const pnr_plan *plan = &b->setup->plan;
    const pnr_waveform *waveform = b->setup->codes[0].waveform;
    const size_t n = plan->n_samples;
    value *echo = calloc(n, sizeof *echo), *x = calloc(n, sizeof *x), *a = calloc(n, sizeof *a);
    double power = 0, lags = 0, rotation = NAN;

    assert_true(echo && x && a);
    assert_int_equal(pnr_waveform_shift(waveform, lag, echo), PNR_OK);
    assert_int_equal(pnr_waveform_shift(waveform, 0, a), PNR_OK);
    assert_int_equal(pnr_transform_forward((double(*)[2])a, n), PNR_OK);
    for (size_t row = 0; row < pnr_plan_rows(plan); row++) {
        const map_place at = map_row(plan, row);
        value slow = 0;

        for (size_t i = 0; i < n && at.rotation != rotation; i++)
            x[i] = echo[i] * pnr_cis(2 * M_PI * (bins - at.rotation) * (double)i / (double)n);
        if (at.rotation != rotation) {
            assert_int_equal(pnr_transform_forward((double(*)[2])x, n), PNR_OK);
            lags = 0;
            for (size_t f = 0; f < n; f++)
                lags += pnr_power(x[f]) * pnr_power(a[f]) / (double)n;
            rotation = at.rotation;
        }
        for (size_t p = 0; p < plan->n_periods; p++)
            slow += pnr_cis(2 * M_PI * (bins - at.bins) * (double)p);
        power += pnr_power(slow) * lags * peak * peak;
    }
    for (int r = 0; r < J; r++)
        for (int i = 0; i < J; i++)
            power -= pow(signal[r][i][0], 2) + pow(signal[r][i][1], 2);
    free(echo);
    free(x);
    free(a);
    return fmax(power, 0);
}

/* One echo with noise of power 1 a cell; what the detector makes of it. */
static bool one_trial(const map_bench *b, value (*l)[J], const pnr_patch_place *place,
                      const float (*signal)[J][2], double outside, double snr, pnr_echo *echo,
                      double *noise)
{
    const pnr_plan *plan = &b->setup->plan;
    const double n = (double)(plan->n_samples * plan->n_periods);
    const double cells = pnr_waveform_energy(b->setup->codes[0].waveform) *
                         (double)plan->n_periods; /* of a sample's noise to a cell's */
    float values[J][J][2];
    value y[J][J], w[J][J];
    double along = 0, power = 0;
    const double inside = whiten(l, signal, y);

    for (int r = 0; r < J; r++)
        for (int i = 0; i < J; i++) {
            value sum = sqrt(snr) * CMPLX(signal[r][i][0], signal[r][i][1]);

            w[r][i] = complex_gaussian();
            along += creal(conj(y[r][i]) * w[r][i]) / sqrt(inside);
            for (int k = 0; k <= i; k++)
                sum += l[i][k] * w[r][k];
            values[r][i][0] = (float)creal(sum);
            values[r][i][1] = (float)cimag(sum);
            power += pnr_power(sum);
        }
    if (!is_maximum((const float(*)[J][2])values) ||
        hypotf(values[MIDDLE][MIDDLE][0], values[MIDDLE][MIDDLE][1]) < 2)
        return false; /* no search would report this cell */
    /* Along the echo there is what these cells hold, and what they do not. */
    along = sqrt(fmin(inside, 1)) * along + sqrt(fmax(1 - inside, 0)) * creal(complex_gaussian());

    /* P in the other cells of the map: noise of n dimensions, and what the echo puts there. */
    const double others = (double)(pnr_plan_rows(plan) * plan->n_lags - (size_t)(J * J));
    const double variance = others * others / n + 2 * snr * outside;

    power += others + snr * outside + sqrt(2 * variance) * creal(complex_gaussian());

    const double energy = snr + 2 * sqrt(snr) * along + n + sqrt(2 * n) * creal(complex_gaussian());
    pnr_candidate candidate = {.cell = (uint32_t)place->lag, .row = (uint32_t)place->row};
    const pnr_dwell dwell = {.energy = energy / cells,
                             .noise_sum = power,
                             .floor = energy / n,
                             .n_valid = (uint64_t)n,
                             .n_periods = (uint32_t)plan->n_periods,
                             .n_candidates = 1};
    const pnr_observed observed = {
        .dwell = &dwell, .candidates = &candidate, .patches = &values[0][0][0]};
    pnr_detection found;

    memcpy(candidate.value, values[MIDDLE], sizeof candidate.value);
    candidate.power = hypotf(values[MIDDLE][MIDDLE][0], values[MIDDLE][MIDDLE][1]);
    candidate.power *= candidate.power;
    pnr_detector_detect(b->detector, &observed, &found);
    assert_int_equal(found.n_echoes, 1);
    *echo = found.echoes[0];
    *noise = found.noise_power * cells;
    return true;
}

/* step_loss: on the average of what the rotations' distance takes of the amplitude. */
static bool judge(const map_bench *b, double snr_db, double step_loss, const tally *t)
{
    const pnr_plan *plan = &b->setup->plan;
    const double snr = pow(10, snr_db / 10), seen = snr * step_loss * step_loss;
    const double delay = 1 / sqrt(2 * seen * pnr_waveform_bandwidth(b->setup->codes[0].waveform));
    /* A tone of K N samples: sigma = sqrt(6 / S) / (2 pi K) bins of 1/Tr. */
    const double doppler = sqrt(6 / seen) / (2 * M_PI * (double)plan->n_periods);
    const double chance = 5 * sqrt(2 * snr + 1) / snr / sqrt(t->n) * 10 / log(10);
    bool good = t->n_outliers <= (snr_db < 20 ? 3 + 0.002 * t->n : 0);

    print_message("%s, %zu x %zu, %g dB: SNR %+.3f dB, noise %+.3f dB, %.0f outliers\n",
                  b->setup->codes[0].code->name, plan->n_periods, plan->n_samples, snr_db,
                  10 * log10(t->snr / t->n / snr), 10 * log10(t->noise / t->n), t->n_outliers);
    good &= is_good("delay", &t->delay, t->n, delay);
    good &= is_good("Doppler", &t->doppler, t->n, doppler);
    good &= is_good("amplitude", &t->amplitude, t->n, 1 / sqrt(2 * seen));
    good &= is_good("phase", &t->phase, t->n, 1 / sqrt(2 * seen));
    return good && fabs(10 * log10(t->snr / t->n / snr)) <= 0.1 + chance &&
           fabs(10 * log10(t->noise / t->n)) <= 0.05;
}

static void one_map(const char *const *settings, size_t n_trials, double step_loss)
{
    const size_t n_places = n_trials / DRAWS / SHARE;
    tally tallies[N_SNRS] = {{0}};
    pnr_error error;
    value l[J][J];
    map_bench b;
    bool good = true;

    open_map_bench(&b, settings);
    assert_int_equal(pnr_detector_create(&b.config, b.setup, &b.detector, &error), PNR_OK);
    for (size_t w = 0; w < pnr_plan_windows(&b.setup->plan); w++)
        b.setup->threshold[w] = 0; /* every cell is a candidate here */
    factor(b.setup->codes[0].autocorrelation, l);

    const pnr_plan *plan = &b.setup->plan;
    const double full = pnr_waveform_energy(b.setup->codes[0].waveform) * (double)plan->n_periods;
    const double period = b.setup->radar.period_s, rate = 1e6;

    for (size_t p = 0; p < n_places; p++) {
        /* Rows enough on either side: at the ends of the map there is less to know. */
        const size_t row =
            MIDDLE + (size_t)(uniform() * (double)(pnr_plan_rows(plan) - 2 * MIDDLE));
        const pnr_patch_place place = {.row = row,
                                       .lag = (long)(uniform() * (double)plan->n_samples)};
        const double lag = (double)place.lag + 0.9 * (uniform() - 0.5);
        const double bins =
            map_row(plan, row).bins + 0.9 * (uniform() - 0.5) / (double)plan->n_periods;
        const double phase = 2 * M_PI * uniform();
        float signal[J][J][2];

        map_patch(plan, b.setup->codes[0].waveform, &place, lag, bins, 1 / full, phase, signal);
        if (!is_maximum((const float(*)[J][2])signal)) { /* a search would look elsewhere */
            p--;
            continue;
        }

        const double outside = outside_power(&b, (const float(*)[J][2])signal, lag, bins, 1 / full);

        for (int s = 0; s < N_SNRS; s++)
            for (int i = 0; i < DRAWS;) {
                const double snr = pow(10, snrs_db[s] / 10);
                tally *t = &tallies[s];
                pnr_echo echo;
                double noise;

                if (!one_trial(&b, l, &place, (const float(*)[J][2])signal, outside, snr, &echo,
                               &noise))
                    continue;
                i++;
                t->noise += noise;
                if (fabs(echo.lag - lag) >= 1 ||
                    fabs(echo.doppler_hz * period - bins) * (double)plan->n_periods >= 1) {
                    t->n_outliers++;
                    continue;
                }
                const double relative = echo.amplitude * full / sqrt(snr);

                t->n++;
                t->snr += echo.snr;
                note_error(&t->delay, echo.lag - lag, echo.delay_sigma_s * rate);
                note_error(&t->doppler, echo.doppler_hz * period - bins,
                           echo.doppler_sigma_hz * period);
                note_error(&t->amplitude, relative - 1, echo.amplitude_sigma * full / sqrt(snr));
                note_error(&t->phase, remainder(echo.phase_rad - phase, 2 * M_PI),
                           echo.phase_sigma_rad);
            }
    }
    for (int s = 0; s < N_SNRS; s++)
        good &= judge(&b, snrs_db[s], step_loss, &tallies[s]);
    pnr_detector_destroy(b.detector);
    close_map_bench(&b);
    assert_on_average(good);
}

TEST(test_doppler)
{
    static const char *const m_sequence[] = {"dwell.combine=doppler", "dwell.periods=32",
                                             "code.degree=8",         "doppler.min_hz=-8000",
                                             "doppler.max_hz=9000",   NULL};

    one_map(m_sequence, 10000, 1);
}

TEST(test_doppler_of_random_phases)
{
    static const char *const random_phase[] = {"dwell.combine=doppler", "dwell.periods=64",
                                               "code.type=random",      "code.length=150",
                                               "doppler.step=half",     NULL};

    /* sin(pi e) / (pi e), squared, over e = -1/4 .. 1/4, has the mean 0.934. */
    one_map(random_phase, 2500, sqrt(0.934));
}

/* Its delay and Doppler are one to a single period; to K they are apart. */
TEST(test_doppler_of_a_chirp)
{
    static const char *const chu[] = {"dwell.combine=doppler", "dwell.periods=40",
                                      "code.type=zadoff-chu", "code.length=139", NULL};

    one_map(chu, 2500, 1);
}
