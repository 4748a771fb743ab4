/* SPDX-License-Identifier: MIT */
#include "transmit/wave.h"

#include "base/complex.h"
#include "setup/setup.h"

#include <math.h>
#include <stdlib.h>

static const double turn = 6.283185307179586476925;

struct pnr_wave {
    pnr_setup *setup;        /* contains only the codes and the radar */
    double complex *samples; /* [N] one period of the code */
    double peak;
    pnr_rational tune; /* frequency of the carrier, in cycles per sample; {0, 0}: no carrier */
    bool is_inverted;
};

int pnr_wave_create(const pnr_config *config, bool is_real, pnr_wave **out, pnr_error *error)
{
    const bool is_tuned = config->source.tune_hz.num != 0;
    pnr_wave *wave = calloc(1, sizeof *wave);
    int code;

    *out = NULL;
    if (wave == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a waveform");
    wave->is_inverted = config->source.spectrum == PNR_SPECTRUM_INVERTED;
    code = pnr_setup_create_codes(config, is_real && is_tuned ? PNR_BAND_SHOWN : PNR_BAND_WHOLE,
                                  &wave->setup, error);
    if (code != PNR_OK)
        goto fail;
    if (is_tuned && pnr_rational_div(config->source.tune_hz, wave->setup->radar.rate_hz,
                                     &wave->tune) != PNR_OK) {
        code = pnr_refuse(error, "source.tune_hz over source.rate_hz does not fit 64 bits");
        goto fail;
    }

    const size_t n = wave->setup->radar.n_samples;

    wave->samples = malloc(n * sizeof *wave->samples);
    if (wave->samples == NULL ||
        pnr_waveform_shift(wave->setup->codes[0].waveform, 0, wave->samples) != PNR_OK) {
        code = pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu samples", n);
        goto fail;
    }
    for (size_t i = 0; i < n; i++)
        wave->peak = fmax(wave->peak, cabs(wave->samples[i]));
    *out = wave;
    return PNR_OK;
fail:
    pnr_wave_destroy(wave);
    return code;
}

void pnr_wave_destroy(pnr_wave *wave)
{
    if (wave == NULL)
        return;
    pnr_setup_destroy(wave->setup);
    free(wave->samples);
    free(wave);
}

void pnr_wave_generate(const pnr_wave *wave, uint64_t first, size_t n_samples, double (*out)[2])
{
    const size_t n = wave->setup->radar.n_samples;
    size_t m = (size_t)(first % n);

    for (size_t i = 0; i < n_samples; i++) {
        double complex x = wave->samples[m];

        if (wave->tune.den != 0)
            x *= pnr_cis(turn * 0x1p-64 *
                         (double)(int64_t)pnr_rational_phase(wave->tune, first + i));
        out[i][0] = creal(x);
        out[i][1] = wave->is_inverted ? -cimag(x) : cimag(x);
        m = m + 1 < n ? m + 1 : 0;
    }
}

const pnr_radar *pnr_wave_radar(const pnr_wave *wave)
{
    return &wave->setup->radar;
}

double pnr_wave_peak(const pnr_wave *wave)
{
    return wave->peak;
}
