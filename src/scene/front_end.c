/* SPDX-License-Identifier: MIT */
/* The receiver between antenna and ADC. A part that is ideal in the configuration changes no bit of
 * the samples. */
#include "scene/front_end.h"

#include "base/complex.h"

#include <math.h>

void pnr_front_end_init(const pnr_config *config, double rate_hz, double centre, pnr_front_end *out)
{
    const double complex q =
        pow(10, config->echo.iq_gain_db / 20) * pnr_cis(config->echo.iq_phase_rad);

    *out = (pnr_front_end){
        .seed = config->echo.seed,
        .noise_rms = config->echo.noise_rms,
        .is_coloured = config->echo.noise_bandwidth_hz > 0,
        .walk_rad = config->echo.phase_noise_rad / sqrt(rate_hz),
        .direct = (1 + q) / 2,
        .image = (1 - conj(q)) / 2,
        .offset = config->echo.dc_amplitude * pnr_cis(config->echo.dc_phase_rad),
    };
    if (out->is_coloured)
        pnr_noise_filter(config->echo.noise_bandwidth_hz / rate_hz, centre, out->taps);
}

void pnr_front_end_turn(const pnr_front_end *end, uint64_t block, size_t from, size_t to,
                        double complex *x)
{
    double walk[PNR_NOISE_WALK];

    if (!(end->walk_rad > 0))
        return;
    pnr_noise_walk(end->seed, block, walk);
    for (size_t j = from; j < to; j++, x++)
        *x *= pnr_cis(end->walk_rad * walk[j]);
}

void pnr_front_end_receive(const pnr_front_end *end, size_t channel, uint64_t first,
                           size_t n_samples, double (*x)[2])
{
    double complex *z = (double complex *)x;

    if (end->noise_rms > 0) {
        double noise[PNR_NOISE_WALK][2];

        if (end->is_coloured)
            pnr_noise_filtered(end->taps, end->seed, (uint32_t)channel, first, n_samples, noise);
        else
            pnr_noise_gaussian(end->seed, (uint32_t)channel, first, n_samples, noise);
        for (size_t i = 0; i < n_samples; i++) {
            x[i][0] += end->noise_rms * noise[i][0];
            x[i][1] += end->noise_rms * noise[i][1];
        }
    }
    if (end->image != 0)
        for (size_t i = 0; i < n_samples; i++)
            z[i] = end->direct * z[i] + end->image * conj(z[i]);
    if (end->offset != 0)
        for (size_t i = 0; i < n_samples; i++)
            z[i] += end->offset;
}
