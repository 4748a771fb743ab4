/* SPDX-License-Identifier: MIT */
/* A small program that uses libpnradar. It reads samples from standard input, and prints echoes.
 *
 *     cc embed.c $(pkg-config --cflags --libs libpnradar) -o embed
 *     ./embed my.conf <my.ci16
 */
#include <math.h>
#include <pnradar.h>
#include <stdio.h>

static int print_results(pnradar *radar, double patience_s)
{
    pnradar_result result;
    int code;

    while ((code = pnradar_get(radar, patience_s, &result)) == 1)
        for (size_t i = 0; i < result.n_echoes; i++)
            printf("%llu %.3f %.3f %.2f\n", (unsigned long long)result.sample,
                   result.echoes[i].range_m, result.echoes[i].range_sigma_m,
                   result.echoes[i].snr_db);
    return code;
}

int main(int argc, char **argv)
{
    static char configuration[65536];
    static short samples[2 * 4096]; /* [4096][2] I, Q: source.format = ci16 */
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    char why[512] = "usage: embed CONFIGURATION <SAMPLES";
    pnradar *radar = NULL;
    size_t n;
    int code = 0;

    if (file != NULL && fread(configuration, 1, sizeof configuration - 1, file) > 0)
        radar = pnradar_create(configuration, why, sizeof why);
    if (radar == NULL)
        return fprintf(stderr, "%s\n", why), 1;
    while (code == 0 && (n = fread(samples, 2 * sizeof *samples, 4096, stdin)) > 0)
        if ((code = pnradar_push(radar, samples, n)) == 0)
            code = print_results(radar, 0);
    pnradar_finish(radar);
    if ((code = print_results(radar, INFINITY)) < 0)
        fprintf(stderr, "%s\n", pnradar_error(radar));
    pnradar_destroy(radar);
    return code != 0;
}
