/* SPDX-License-Identifier: MIT */
/* Measures the pulse of a chip from a recording with one strong echo. */
#include "tools/plan/sheet.h"

#include "base/complex.h"
#include "base/file.h"
#include "base/format.h"
#include "base/transform.h"
#include "engine/plan.h"
#include "source/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_WINDOWS = 4096,
    MAX_SAMPLES = 1 << 25,
    REACH = 12, /* length of the pulse on each side of its middle, in chips */
    STEPS = 200 /* greatest number of iterations of solve_pulse */
};

/* The least ratio of the power of the pulse to the power of its noise (about 15 dB). */
static const double least_snr = 30;

typedef struct measurement {
    const pnr_config *config;
    const pnr_setup *setup;
    size_t n, n_windows;       /* samples of a window; number of whole windows in x */
    double complex *x;         /* [n_windows][n] samples; align_windows replaces them by their
                                * spectra */
    double complex *code;      /* [n] spectrum of the code with a unit impulse for each chip */
    double complex *replica;   /* [n] spectrum of the code with the band-limited pulse */
    double complex *mean;      /* [n] mean spectrum of the aligned windows; find_pulse replaces it
                                * by the samples of the pulse */
    double complex *work[4];   /* [n] */
    double *delay, *phase;     /* [n_windows] delay (in samples) and phase (in rad) of the echo */
    double bins, drift, error; /* bins: Doppler in units of 1 / period; drift: change of the delay
                                * in samples a window; error: power of the pulse's noise / power of
                                * the pulse */
    double width;              /* rms bandwidth, Hz */
} measurement;

static int allocate(measurement *m)
{
    double complex **const all[] = {&m->code,    &m->replica, &m->mean,   &m->work[0],
                                    &m->work[1], &m->work[2], &m->work[3]};
    const size_t most = MAX_SAMPLES / m->n < 1             ? 1
                        : MAX_SAMPLES / m->n > MAX_WINDOWS ? MAX_WINDOWS
                                                           : MAX_SAMPLES / m->n;

    m->n_windows = most;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((*all[i] = calloc(m->n, sizeof **all[i])) == NULL)
            return PNR_ENOMEMORY;
    m->x = malloc(most * m->n * sizeof *m->x);
    m->delay = malloc(most * sizeof *m->delay);
    m->phase = malloc(most * sizeof *m->phase);
    return m->x == NULL || m->delay == NULL || m->phase == NULL ? PNR_ENOMEMORY : PNR_OK;
}

static void release(measurement *m)
{
    free(m->x);
    free(m->delay);
    free(m->phase);
    free(m->code);
    free(m->replica);
    free(m->mean);
    for (int i = 0; i < 4; i++)
        free(m->work[i]);
}

/* --- the recording --- */

/* Converts samples to complex values, and mixes the carrier to frequency zero. first: sample index
 * of the first sample. */
static void convert(const measurement *m, const char *bytes, size_t first, size_t count)
{
    const pnr_plan *plan = &m->setup->plan;
    const size_t offset = plan->first_channel * pnr_format_get(plan->format)->bytes;

    for (size_t i = 0; i < count; i++) {
        double iq[2];

        pnr_format_read(plan->format, bytes + i * pnr_plan_sample_bytes(plan) + offset, iq);
        m->x[first + i] = CMPLX(iq[0], plan->conjugate ? -iq[1] : iq[1]);
        if (plan->tune.num != 0) {
            const uint64_t phase = pnr_rational_phase(plan->tune, first + i);

            m->x[first + i] *= pnr_cis(-2 * M_PI * ldexp((double)(int64_t)phase, -64));
        }
    }
}

/* Reads samples up to the first lost sample. Omits the samples after the last whole window. */
static int read_windows(measurement *m, pnr_source *source, pnr_error *error)
{
    enum { BLOCK = 4096 };
    const size_t wanted = m->n_windows * m->n;
    char *bytes = malloc(BLOCK * pnr_plan_sample_bytes(&m->setup->plan));
    pnr_source_block block = {0};
    size_t done = 0;
    int rc = bytes == NULL ? pnr_error_set(error, PNR_ENOMEMORY, "no memory for samples") : PNR_OK;

    while (rc == PNR_OK && done < wanted && block.gap == 0) {
        rc = pnr_source_read(source, bytes, wanted - done < BLOCK ? wanted - done : BLOCK, &block,
                             error);
        if (rc == PNR_OK) {
            convert(m, bytes, done, block.n_samples);
            done += block.n_samples;
        }
        rc = rc == PNR_EAGAIN ? PNR_OK : rc;
    }
    free(bytes);
    if (rc != PNR_OK && rc != PNR_EEND)
        return rc;
    m->n_windows = done / m->n;
    if (m->n_windows == 0)
        return pnr_error_set(error, PNR_EDATA,
                             "%s: %zu samples before the first lost one; a period has %zu",
                             m->config->source.input, done, m->n);
    return PNR_OK;
}

/* --- the echo in each window --- */

static int forward(double complex *x, size_t n)
{
    return pnr_transform_forward((double(*)[2])x, n);
}

static int inverse(double complex *x, size_t n)
{
    return pnr_transform_inverse((double(*)[2])x, n);
}

/* Returns the harmonic number of bin k, from -N/2 to N/2. */
static double harmonic(const measurement *m, size_t k)
{
    return 2 * k < m->n ? (double)k : (double)k - (double)m->n;
}

/* Fills m->code with the spectrum of the chips as impulses, and m->replica with the spectrum of the
 * code with the band-limited pulse. */
static int fill_codes(measurement *m)
{
    const pnr_code *code = m->setup->codes[0].code;
    double complex *chips = malloc(code->n_chips * sizeof *chips);
    int rc = chips == NULL ? PNR_ENOMEMORY : PNR_OK;

    for (size_t i = 0; rc == PNR_OK && i < code->n_chips; i++)
        chips[i] = CMPLX(code->chips[i][0], code->chips[i][1]);
    if (rc == PNR_OK)
        rc = forward(chips, code->n_chips);
    for (size_t k = 0; rc == PNR_OK && k < m->n; k++) {
        const size_t below = (m->n - k) % code->n_chips; /* N - k, the harmonic number without its
                                                          * minus sign, modulo n_chips */

        m->code[k] = 2 * k < m->n ? chips[k % code->n_chips]
                                  : chips[(code->n_chips - below) % code->n_chips];
    }
    free(chips);
    if (rc == PNR_OK)
        rc = pnr_waveform_shift(m->setup->codes[0].waveform, 0, m->replica);
    return rc == PNR_OK ? forward(m->replica, m->n) : rc;
}

/* Correlates a window with the replica. Sets the delay of the peak, in samples, and its complex
 * value. */
static int find_peak(const measurement *m, size_t window, double *delay, double complex *peak)
{
    double complex *c = m->work[0];
    size_t best = 0;
    double p[3];
    int rc;

    for (size_t k = 0; k < m->n; k++)
        c[k] = m->x[window * m->n + k];
    if ((rc = forward(c, m->n)) != PNR_OK)
        return rc;
    for (size_t k = 0; k < m->n; k++)
        c[k] *= conj(m->replica[k]);
    if ((rc = inverse(c, m->n)) != PNR_OK)
        return rc;
    for (size_t k = 1; k < m->n; k++)
        best = pnr_power(c[k]) > pnr_power(c[best]) ? k : best;
    for (size_t i = 0; i < 3; i++)
        p[i] = sqrt(pnr_power(c[(best + m->n + i - 1) % m->n]));

    const double bend = p[0] - 2 * p[1] + p[2];

    *delay = (double)best + (bend < 0 ? 0.5 * (p[0] - p[2]) / bend : 0);
    *peak = c[best];
    return PNR_OK;
}

/* Computes the Doppler from the phases of neighbouring windows, and removes it from the samples. */
static int remove_doppler(measurement *m)
{
    double complex before = 0, sum = 0, peak;
    double delay;
    int rc = PNR_OK;

    for (size_t w = 0; w < m->n_windows && rc == PNR_OK; w++, before = peak)
        if ((rc = find_peak(m, w, &delay, &peak)) == PNR_OK)
            sum += peak * conj(before);
    m->bins = m->n_windows > 1 ? carg(sum) / (2 * M_PI) : 0;
    for (size_t i = 0; i < m->n_windows * m->n; i++)
        m->x[i] *= pnr_cis(-2 * M_PI * m->bins * (double)i / (double)m->n);
    return rc;
}

/* Fits a line to the delays of all windows. Returns the delay in the middle of the line. *slope:
 * samples a window. */
static double fit_line(const measurement *m, double *slope)
{
    const double n = (double)m->n_windows, middle = (n - 1) / 2;
    double sum = 0, along = 0;

    for (size_t w = 0; w < m->n_windows; w++) {
        sum += m->delay[w];
        along += ((double)w - middle) * m->delay[w];
    }
    *slope = m->n_windows > 1 ? 12 * along / (n * (n * n - 1)) : 0;
    return sum / n;
}

/* Removes the drift of the delay and the phase of the peak from the spectrum of each window.
 * Computes the mean of these spectra. */
static int align_windows(measurement *m)
{
    const double middle = ((double)m->n_windows - 1) / 2;
    int rc = PNR_OK;

    for (size_t w = 0; w < m->n_windows && rc == PNR_OK; w++) {
        double complex peak = 0;

        rc = find_peak(m, w, &m->delay[w], &peak);
        m->phase[w] = carg(peak);
        if (w > 0) /* removes steps of whole periods */
            m->delay[w] -= (double)m->n * round((m->delay[w] - m->delay[w - 1]) / (double)m->n);
    }
    fit_line(m, &m->drift);
    for (size_t w = 0; w < m->n_windows && rc == PNR_OK; w++) {
        const double late = m->drift * ((double)w - middle);
        double complex *x = &m->x[w * m->n];

        rc = forward(x, m->n);
        for (size_t k = 0; k < m->n; k++)
            m->mean[k] += x[k] / (double)m->n_windows *
                          pnr_cis(2 * M_PI * harmonic(m, k) * late / (double)m->n - m->phase[w]);
    }
    return rc;
}

/* --- the pulse --- */

/* True if the samples contain the signal at this harmonic. If real samples have a carrier, the
 * other harmonics contain only the image of the signal. */
static bool is_shown(const measurement *m, size_t k)
{
    const pnr_plan *plan = &m->setup->plan;
    const double tune = (double)plan->tune.num / (double)plan->tune.den;
    const double at = harmonic(m, k) / (double)m->n + tune;

    if (pnr_format_get(plan->format)->is_complex || plan->tune.num == 0)
        return true;
    return at - floor(at) > 0 && at - floor(at) < 0.5;
}

/* Limits a signal in time. x: the spectrum of the signal. out: the spectrum of its `length` samples
 * from sample `first` on; the other samples are set to 0. x and out may be equal. */
static int confine(const measurement *m, size_t first, size_t length, const double complex *x,
                   double complex *out)
{
    int rc;

    memmove(out, x, m->n * sizeof *out);
    if ((rc = inverse(out, m->n)) != PNR_OK)
        return rc;
    for (size_t i = 0; i < m->n; i++)
        out[(first + i) % m->n] *= i < length ? 1 / (double)m->n : 0;
    return forward(out, m->n);
}

static double energy_of(const measurement *m, const double complex *x)
{
    double sum = 0;

    for (size_t k = 0; k < m->n; k++)
        sum += pnr_power(x[k]);
    return sum;
}

/* Finds the pulse of limited length, with spectrum P, that minimises sum |mean - P code|^2 over the
 * harmonics. Uses the method of conjugate gradients (M. Hestenes, E. Stiefel, 1952). Replaces
 * m->mean by P. Sets m->error from the residual. */
static int solve_pulse(measurement *m, size_t first, size_t length)
{
    double complex *pulse = m->work[0], *rest = m->work[1], *way = m->work[2], *image = m->work[3];
    double seen = 0, left = 0, before;
    int rc;

    for (size_t k = 0; k < m->n; k++)
        rest[k] = is_shown(m, k) ? conj(m->code[k]) * m->mean[k] : 0;
    memset(pulse, 0, m->n * sizeof *pulse);
    if ((rc = confine(m, first, length, rest, rest)) != PNR_OK)
        return rc;
    memcpy(way, rest, m->n * sizeof *way);
    before = energy_of(m, rest);
    for (double now = before, goal = 1e-20 * before; now > goal && left++ < STEPS;) {
        double along = 0;

        for (size_t k = 0; k < m->n; k++)
            image[k] = is_shown(m, k) ? pnr_power(m->code[k]) * way[k] : 0;
        if ((rc = confine(m, first, length, image, image)) != PNR_OK)
            return rc;
        for (size_t k = 0; k < m->n; k++)
            along += creal(conj(way[k]) * image[k]);
        for (size_t k = 0; k < m->n; k++) {
            pulse[k] += now / along * way[k];
            rest[k] -= now / along * image[k];
        }
        before = now;
        now = energy_of(m, rest);
        for (size_t k = 0; k < m->n; k++)
            way[k] = rest[k] + now / before * way[k];
    }
    left = 0;
    for (size_t k = 0; k < m->n; k++)
        if (is_shown(m, k)) {
            seen += pnr_power(pulse[k] * m->code[k]);
            left += pnr_power(m->mean[k] - pulse[k] * m->code[k]);
        }
    m->error = left / seen * (double)length / (double)(m->n - length);
    memcpy(m->mean, pulse, m->n * sizeof *pulse);
    return PNR_OK;
}

/* Finds the delay of the pulse, computes the pulse, and shifts its centre to time 0. */
static int find_pulse(measurement *m)
{
    const double chip = (double)m->n / (double)m->setup->radar.n_chips;
    const size_t reach = (size_t)fmin(ceil(REACH * chip), (double)m->n / 5);
    const double at = fmod(fit_line(m, &m->drift) + 2 * (double)m->n, (double)m->n);
    double centre = 0, energy = 0, bandwidth = 0;
    int rc;

    /* the middle of the band-limited pulse is the middle of its chip */
    const size_t middle = (size_t)(at + chip / 2) % m->n, first = (middle + m->n - reach) % m->n;

    if ((rc = solve_pulse(m, first, 2 * reach + 1)) != PNR_OK)
        return rc;
    memcpy(m->work[0], m->mean, m->n * sizeof *m->mean);
    if ((rc = inverse(m->work[0], m->n)) != PNR_OK)
        return rc;
    for (size_t i = 0; i < m->n; i++) {
        /* the weight is the squared power, so that noise far from the middle does not move the
         * centre */
        const double weight = pow(pnr_power(m->work[0][(first + i) % m->n]), 2);

        centre += weight * (double)i;
        energy += weight;
    }
    centre = centre / energy + (double)first;
    for (size_t k = 0; k < m->n; k++) {
        const double f = harmonic(m, k) / (double)m->n;

        bandwidth += f * f * pnr_power(m->mean[k]);
        m->mean[k] *= pnr_cis(2 * M_PI * f * centre);
    }
    m->width =
        sqrt(bandwidth / energy_of(m, m->mean)) * pnr_rational_double(m->setup->radar.rate_hz);
    return inverse(m->mean, m->n);
}

/* Writes the pulse. The first sample is the middle of the pulse, and is scaled to 1. */
static int write_pulse(const measurement *m, pnr_error *error)
{
    const char *path = m->config->code.pulse_path;
    const bool is_double = pnr_format_of_path(path) == PNR_FORMAT_CF64;
    const double complex turn = conj(m->mean[0]) / pnr_power(m->mean[0]);
    pnr_new_file file = PNR_NEW_FILE_NONE;
    int rc = pnr_new_file_create("code.pulse_path", path, PNR_FILE_SAMPLES, &file, error);

    for (size_t i = 0; i < m->n && rc == PNR_OK; i++) {
        const double complex x = m->mean[i] * turn;
        const double wide[2] = {creal(x), cimag(x)};
        const float narrow[2] = {(float)creal(x), (float)cimag(x)};

        rc = is_double ? pnr_new_file_write(&file, wide, sizeof wide, error)
                       : pnr_new_file_write(&file, narrow, sizeof narrow, error);
    }
    if (rc == PNR_OK)
        return pnr_new_file_finish(&file, false, error);
    pnr_new_file_discard(&file);
    return rc;
}

static void print_pulse(plan_sheet *sheet, const measurement *m)
{
    plan_sheet_section(sheet, "pulse", "pulse");
    plan_sheet_text(sheet, "file", "written to", m->config->code.pulse_path);
    plan_sheet_count(sheet, "periods", "periods", m->n_windows);
    plan_sheet_number(sheet, "doppler_hz", "Doppler of the echo",
                      m->bins / m->setup->radar.period_s, "Hz");
    plan_sheet_number(sheet, "drift", "its delay grows by", m->drift, "samples a period");
    plan_sheet_number(sheet, "bandwidth_hz", "rms bandwidth", m->width, "Hz");
    plan_sheet_number(sheet, "error_db", "error of the pulse", 10 * log10(m->error), "dB");
}

static int measure(plan_sheet *sheet, measurement *m, pnr_source *source, pnr_error *error)
{
    int rc = allocate(m);

    if (rc != PNR_OK)
        return pnr_error_set(error, rc, "no memory for %d samples", MAX_SAMPLES);
    if ((rc = read_windows(m, source, error)) != PNR_OK)
        return rc;
    if ((rc = fill_codes(m)) != PNR_OK || (rc = remove_doppler(m)) != PNR_OK ||
        (rc = align_windows(m)) != PNR_OK || (rc = find_pulse(m)) != PNR_OK)
        return pnr_error_set(error, rc, "no memory for a transform of %zu samples", m->n);
    if (!(m->error * least_snr < 1))
        return pnr_error_set(error, PNR_EDATA,
                             "%s: the error of the pulse would be %.1f dB, at most %.1f dB is "
                             "allowed: the recording needs a stronger echo, or more periods",
                             m->config->source.input, 10 * log10(m->error), -10 * log10(least_snr));
    if ((rc = write_pulse(m, error)) == PNR_OK)
        print_pulse(sheet, m);
    return rc;
}

int plan_pulse(plan_sheet *sheet, const pnr_config *config, pnr_error *error)
{
    const pnr_format written = pnr_format_of_path(config->code.pulse_path);
    pnr_config interpolated = *config;
    pnr_source *source = NULL;
    pnr_setup *setup = NULL;
    int rc;

    if (written != PNR_FORMAT_CF32 && written != PNR_FORMAT_CF64)
        return pnr_refuse(error,
                          "--measure-pulse writes code.pulse_path, \"%s\": it must end in .cf64 "
                          "or .cf32",
                          config->code.pulse_path);
    interpolated.code.pulse = PNR_PULSE_BAND_LIMITED;
    if ((rc = pnr_source_open(config, &source, error)) == PNR_OK) {
        const pnr_source_info *info = pnr_source_get_info(source);

        rc = pnr_setup_create(&interpolated, info->format, info->n_channels, &setup, error);
    }
    if (rc == PNR_OK) {
        measurement m = {.config = config, .setup = setup, .n = setup->radar.n_samples};

        rc = measure(sheet, &m, source, error);
        release(&m);
    }
    pnr_setup_destroy(setup);
    pnr_source_close(source);
    return rc;
}
