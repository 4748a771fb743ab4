/* SPDX-License-Identifier: MIT */
/* The estimates of one echo by statistics, at the detector's input: 17 values and the energy as an
 * engine would give them, drawn from their exact distribution. */
#include "base/complex.h"
#include "tests/fixture/detection_fixture.h"

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    BELOW = J, /* half a lag below the middle, and above: what oversample 2 searches too */
    ABOVE,
    N_POINTS,
    N_FRACTIONS = 8,
    CENTRE = 100 /* lag of the middle */
};

typedef double complex value;

/* A detector without an engine, and L: noise of covariance R(i - j)/R(0) is L w, w white. */
typedef struct bench {
    pnr_config config;
    pnr_setup *setup;
    pnr_detector *detector;
    double bandwidth, mean_frequency; /* B; rad/sample */
    size_t rank;
    double all_lags;       /* sum over u of |R(u)/R(0)|^2 */
    pnr_waveform *overlap; /* Q, the autocorrelation of R; Q(0) = 1 */
    double mixed_lags;     /* r^H C r, see mix_noise */
    value p[N_POINTS][J];  /* R(i - j)/R(0) of points and lags */
    value l[N_POINTS][N_POINTS];
} bench;

/* Lag of a point, from the middle. */
static double lag_of(int point)
{
    return point == BELOW ? -0.5 : point == ABOVE ? 0.5 : point - MIDDLE;
}

static void open_bench(bench *b, const char *const *settings)
{
    pnr_error error = {0};

    memset(b, 0, sizeof *b);
    b->setup = setup_of(&b->config, settings);
    if (pnr_detector_create(&b->config, b->setup, &b->detector, &error) != PNR_OK)
        fail_msg("%s", error.text);
    b->setup->threshold[0] = 0; /* every cell is a candidate here */
    b->bandwidth = pnr_waveform_bandwidth(b->setup->codes[0].waveform);
    /* R'(0) = i mean(w) R(0) */
    b->mean_frequency = cimag(pnr_waveform_at(b->setup->codes[0].autocorrelation, 1e-4)) / 1e-4;

    const pnr_waveform *lags = b->setup->codes[0].autocorrelation;

    assert_int_equal(pnr_waveform_correlation(lags, lags, &b->overlap), PNR_OK);
    for (size_t u = 0; u < b->setup->plan.n_samples; u++) {
        const value at = pnr_waveform_at(lags, (double)u);

        b->all_lags += pnr_power(at);
        b->mixed_lags += creal(conj(at) * pnr_waveform_at(b->overlap, (double)u));
    }
    b->mixed_lags *= b->all_lags;
    for (int i = 0; i < N_POINTS; i++)
        for (int j = 0; j < J; j++)
            b->p[i][j] = pnr_waveform_at(lags, lag_of(i) - lag_of(j));
    for (int j = 0; j < N_POINTS;
         j++) { /* Cholesky; a lag that depends on others brings no noise */
        for (int i = j; i < N_POINTS; i++) {
            value sum = pnr_waveform_at(b->setup->codes[0].autocorrelation, lag_of(i) - lag_of(j));

            for (int k = 0; k < j; k++)
                sum -= b->l[i][k] * conj(b->l[j][k]);
            if (i == j)
                b->l[j][j] = creal(sum) > 1e-9 ? sqrt(creal(sum)) : 0;
            else if (creal(b->l[j][j]) > 0)
                b->l[i][j] = sum / creal(b->l[j][j]);
        }
        b->rank += creal(b->l[j][j]) > 0;
    }
}

static void close_bench(bench *b)
{
    pnr_waveform_destroy(b->overlap);
    pnr_detector_destroy(b->detector);
    pnr_setup_destroy(b->setup);
    pnr_config_clear(&b->config);
}

/* Would the search take this cell for a candidate: is it a local maximum? */
static bool is_maximum(const value *c, bool is_half, bool has_halves)
{
    const double here = pnr_power(c[is_half ? ABOVE : MIDDLE]);
    const double before = pnr_power(c[is_half ? MIDDLE : has_halves ? BELOW : MIDDLE - 1]);
    const double after = pnr_power(c[has_halves && !is_half ? ABOVE : MIDDLE + 1]);

    return here > before && here > after;
}

/* The sum of conj(r_k) n_k over the lags k that are no points. r is the echo, delayed by `delay`,
 * and n = L w the noise, of covariance C. The sum x has E(n conj(x)) = C r without the points'
 * part, and C r is the overlap. */
static value mix_noise(const bench *b, double delay, const value r[N_POINTS],
                       const value w[N_POINTS])
{
    double power = b->mixed_lags;
    value a[N_POINTS], x = 0, overlap[J];

    pnr_waveform_run(b->overlap, lag_of(0) - delay, J, overlap, NULL);
    for (int i = 0; i < N_POINTS; i++) {
        const double scale = creal(b->l[i][i]);

        a[i] = 0;
        if (scale == 0)
            continue;

        const value through =
            b->all_lags * (i < J ? overlap[i] : pnr_waveform_at(b->overlap, lag_of(i) - delay));

        a[i] = through;
        for (int k = 0; k < J; k++)
            a[i] -= b->p[i][k] * r[k];
        if (i < J)
            power -= creal(conj(r[i]) * (through + a[i]));
        for (int k = 0; k < i; k++)
            a[i] -= b->l[i][k] * a[k];
        a[i] /= scale;
        x += conj(a[i]) * w[i];
    }
    for (int i = 0; i < N_POINTS; i++)
        power -= pnr_power(a[i]);
    return x + sqrt(fmax(power, 0)) * complex_gaussian();
}

/* One dwell in noise of power 1 a cell: an echo of c = sqrt(S) exp(i phase), d lags from the middle
 * or, when is_half, from half a lag above it. The energy is that of the same noise. False: a search
 * would not report this cell. */
static bool draw_dwell(const bench *b, double snr, double d, bool is_half, double phase,
                       pnr_dwell *dwell, pnr_candidate *candidate)
{
    const size_t n = b->setup->plan.n_samples, oversample = b->setup->plan.oversample;
    const double energy_of_code = pnr_waveform_energy(b->setup->codes[0].waveform);
    const value peak = sqrt(snr) * pnr_cis(phase);
    value w[N_POINTS], y[N_POINTS], r[N_POINTS], c[N_POINTS];
    double inside = 0, energy = 0, sum = 0, outside = b->all_lags;

    for (int i = 0; i < N_POINTS; i++) { /* L y = r(d): the echo in the white coordinates */
        const double scale = creal(b->l[i][i]);

        y[i] = pnr_waveform_at(b->setup->codes[0].autocorrelation,
                               lag_of(i) - d - (is_half ? 0.5 : 0));
        r[i] = y[i];
        c[i] = peak * y[i];
        for (int k = 0; k < i; k++)
            y[i] -= b->l[i][k] * y[k];
        y[i] = scale > 0 ? y[i] / scale : 0;
        inside += pnr_power(y[i]);
        w[i] = complex_gaussian();
        for (int k = 0; k <= i; k++)
            c[i] += b->l[i][k] * w[k];
        if (scale > 0)
            energy += pnr_power(peak * y[i] + w[i]);
    }
    for (int i = 0; i < J; i++) {
        sum += pnr_power(c[i]);
        outside -= pnr_power(r[i]);
        candidate->value[i][0] = (float)creal(c[i]);
        candidate->value[i][1] = (float)cimag(c[i]);
    }
    /* The part of the echo outside these points, and the noise of all other dimensions. */
    energy += pnr_power(sqrt(snr * fmax(1 - inside, 0)) + complex_gaussian());

    const double others = (double)(n - b->rank - 1);

    energy += others + sqrt(2 * others) * creal(complex_gaussian()); /* normal for so many */
    /* P at the other lags: noise, whose sum has all_lags times the variance of that of independent
     * cells, and what the echo puts there. The product of both is lost in the noise's own scatter,
     * if the echo's part is below the noise of one cell. */
    outside = snr * fmax(outside, 0);
    sum += (double)(n - J) + outside +
           sqrt((double)(n - J) * b->all_lags * 2) * creal(complex_gaussian());
    if (outside > 1)
        sum += 2 * creal(conj(peak) * mix_noise(b, d + (is_half ? 0.5 : 0), r, w));
    candidate->cell = (uint32_t)(CENTRE * oversample + is_half);
    candidate->code = candidate->channel = 0;
    candidate->row = 0;
    candidate->power = (float)pnr_power(c[is_half ? ABOVE : MIDDLE]);
    *dwell = (pnr_dwell){.energy = energy / energy_of_code,
                         .noise_sum = sum,
                         .floor = energy / (double)n,
                         .n_valid = n,
                         .n_periods = 1,
                         .n_candidates = 1};
    return is_maximum(c, is_half, oversample == 2);
}

/* Is the rms error within 1.06 of `bound` (times `more`), and the normalised variance 1 +- 0.1? */
static bool is_good(const char *what, const errors *e, double n, double bound, double more)
{
    const double rms = sqrt(e->square / n) / bound;

    print_message("  %s: rms %.3f of the bound, mean error %+.3f sigma, normalised variance %.3f\n",
                  what, rms, e->sum / n / bound, e->normalised / n);
    return rms <= 1.06 * more && fabs(e->normalised / n - 1) <= 0.1;
}

/* Delay, amplitude and phase of n_trials echoes whose delay is anywhere between the samples. */
static void one_waveform(const char *const *settings, double snr_db)
{
    /* Near 15 dB the second order is close to the limit, so the number of trials makes five sigma
     * small enough. */
    const size_t n_trials = (snr_db < 20 ? 100000 : 20000) / SHARE;
    const double snr = pow(10, snr_db / 10);
    errors delay = {0}, amplitude = {0}, phase = {0};
    double bias[N_FRACTIONS] = {0}, count[N_FRACTIONS] = {0}, worst = 0, mean_snr = 0, n = 0;
    size_t n_outliers = 0;
    bool good = true;
    bench b;

    open_bench(&b, settings);

    const double bound = 1 / sqrt(2 * snr * b.bandwidth);
    const double turn = b.mean_frequency * b.mean_frequency;
    const double phase_bound = sqrt((b.bandwidth + turn) / (2 * snr * b.bandwidth));
    /* A spectrum that is far from flat (several samples a chip) bends the peak more than the bound
     * counts with; at 15 dB even the mean over the posterior density, the best of all estimators,
     * has 1.06 (4 samples a chip) to 1.09 (10) of the bound. */
    const double kurtosis = pnr_waveform_kurtosis(b.setup->codes[0].waveform);
    const double more = kurtosis < 2 ? 1 : sqrt(1 + (kurtosis + 1) / (2 * snr));
    const double truth = sqrt(snr) / pnr_waveform_energy(b.setup->codes[0].waveform);
    const double rate = pnr_rational_double(b.setup->radar.rate_hz);
    const size_t oversample = b.setup->plan.oversample;

    while (n < (double)n_trials) {
        const bool is_half = oversample == 2 && uniform() < 0.5;
        const double d = (uniform() - 0.5) * 2 / (double)oversample;
        const double angle = 2 * M_PI * uniform();
        pnr_candidate candidate;
        pnr_detection found;
        pnr_dwell dwell;

        if (!draw_dwell(&b, snr, d, is_half, angle, &dwell, &candidate))
            continue;
        pnr_detector_detect(b.detector, &(pnr_observed){.dwell = &dwell, .candidates = &candidate},
                            &found);

        const pnr_echo *echo = &found.echoes[0];
        const double lag = CENTRE + d + 0.5 * is_half, error = echo->lag - lag;
        const int f = (int)(N_FRACTIONS * (lag - floor(lag)));

        assert_int_equal(found.n_echoes, 1);
        if (fabs(error) >= 1) {
            n_outliers++;
            continue;
        }
        n++;
        bias[f] += error;
        count[f]++;
        note_error(&delay, error, echo->delay_sigma_s * rate);
        note_error(&amplitude, (echo->amplitude - truth) / truth, echo->amplitude_sigma / truth);
        note_error(&phase, remainder(echo->phase_rad - angle, 2 * M_PI), echo->phase_sigma_rad);
        mean_snr += echo->snr;
    }
    for (int f = 0; f < N_FRACTIONS; f++)
        worst = fmax(worst, fabs(bias[f] / count[f]) / bound);
    print_message("%s, N = %zu, oversample %zu, %g dB: bias of delay at most %.3f sigma, SNR %+.3f "
                  "dB, %zu outliers\n",
                  b.setup->codes[0].code->name, b.setup->plan.n_samples, oversample, snr_db, worst,
                  10 * log10(mean_snr / n / snr), n_outliers);
    good &= is_good("delay", &delay, n, bound, more);
    good &= is_good("amplitude", &amplitude, n, 1 / sqrt(2 * snr), 1);
    good &= is_good("phase", &phase, n, phase_bound, 1);
    close_bench(&b);
    assert_on_average(good);
    /* 2500 trials at each fraction: five sigma of their mean are 0.1 sigma of one. */
    assert_on_average(worst <= 0.3);
}

static const char *const m_sequence[] = {"code.degree=10", NULL};
static const char *const m_sequence_halves[] = {"code.degree=10", "detector.oversample=2", NULL};
static const char *const short_m_sequence[] = {"code.degree=7", NULL};
static const char *const chips_of_four[] = {"code.degree=8", "code.chip_rate_hz=250000", NULL};
static const char *const chips_of_ten[] = {"code.degree=7", "code.chip_rate_hz=100000", NULL};
static const char *const zadoff_chu[] = {"code.type=zadoff-chu", "code.length=839", NULL};
static const char *const chu_of_three[] = {"code.type=zadoff-chu", "code.length=331",
                                           "code.chip_rate_hz=1e6", "source.rate_hz=3e6", NULL};
static const char *const random_phase[] = {"code.type=random", "code.length=1001", NULL};
static const char *const random_halves[] = {"code.type=random", "code.length=501",
                                            "detector.oversample=2", NULL};
static const char *const gps[] = {"code.type=gps-l1ca", "code.prn=7", "source.rate_hz=4e6",
                                  "code.chip_rate_hz=1.023e6", NULL};
static const char *const *const waveforms[] = {
    m_sequence, m_sequence_halves, short_m_sequence, chips_of_four, chips_of_ten,
    zadoff_chu, chu_of_three,      random_phase,     random_halves, gps};
enum { N_WAVEFORMS = sizeof waveforms / sizeof waveforms[0] };

TEST(test_waveforms)
{
    static const double snrs_db[] = {15, 20, 30, 40, 50};

    for (size_t w = 0; w < N_WAVEFORMS; w++)
        for (size_t s = 0; s < sizeof snrs_db / sizeof *snrs_db; s++)
            one_waveform(waveforms[w], snrs_db[s]);
}

/* The mean of S at a known lag, for noise and for echoes: with this number of trials 4 sigma are
 * 0.08 dB. */
static void one_snr(const char *const *settings, double snr_db)
{
    const double snr = pow(10, snr_db / 10);
    const double variance = (6 + 2 * snr) / (snr * snr); /* of one estimate, relative */
    const double n = fmax(variance * pow(4 / (0.08 * log(10) / 10), 2), 20000) / SHARE;
    double mean = 0, noise = 0;
    bench b;

    open_bench(&b, settings);

    const double scale = pnr_waveform_energy(b.setup->codes[0].waveform); /* noise of a cell is 1 */

    for (double i = 0; i < n; i++) {
        pnr_candidate candidate;
        pnr_detection found;
        pnr_dwell dwell;

        draw_dwell(&b, snr, uniform() - 0.5, false, 7 * uniform(), &dwell, &candidate);
        pnr_detector_detect(b.detector, &(pnr_observed){.dwell = &dwell, .candidates = &candidate},
                            &found);
        mean += found.echoes[0].snr / n;
        assert_true(isfinite(found.echoes[0].cn0_dbhz) == (found.echoes[0].snr > 0));
        noise += found.noise_power * scale / n;
    }
    print_message("%s, N = %zu: S %.0f dB measured %+.3f dB, noise %+.3f dB, %.0f trials\n",
                  b.setup->codes[0].code->name, b.setup->plan.n_samples, snr_db,
                  10 * log10(mean / snr), 10 * log10(noise), n);
    close_bench(&b);

    assert_on_average(fabs(10 * log10(mean / snr)) <= 0.1);
    assert_on_average(fabs(10 * log10(noise)) <= 0.1);
}

TEST(test_snr)
{
    static const char *const *const some[] = {m_sequence, chips_of_four, random_phase};

    for (size_t w = 0; w < sizeof some / sizeof *some; w++)
        for (double snr_db = 0; snr_db <= 60; snr_db += 10)
            one_snr(some[w], snr_db);
}
