/* SPDX-License-Identifier: MIT */
/* Converts samples from and to the formats of sound cards. */
#ifndef PNR_ALSA_VALUES_H
#define PNR_ALSA_VALUES_H

#include <alsa/asoundlib.h>
#include <stddef.h>

/* A sample format. Full scale is 1. A 24-bit sample in a 32-bit word is in the three low bytes. The
 * high byte is ignored. */
typedef struct pnr_alsa_values {
    snd_pcm_format_t format;
    const char *name; /* name of the format in arecord */
    size_t bytes;     /* bytes of one value */
    /* Converts to floats. The conversion is exact, except that 32-bit integers are rounded to 24
     * bits. */
    void (*read)(const unsigned char *from, size_t n_values, float *to);
    /* Rounds each value to the nearest number of the format. Integer formats limit values beyond
     * full scale. */
    void (*write)(const double *from, size_t n_values, unsigned char *to);
} pnr_alsa_values;

enum { PNR_ALSA_FORMATS = 5 };
/* The best format is the first. S16 is the last. */
extern const pnr_alsa_values pnr_alsa_formats[PNR_ALSA_FORMATS];

#endif
