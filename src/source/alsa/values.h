/* SPDX-License-Identifier: MIT */
/* The sample formats of sound cards, and the values of their samples. */
#ifndef PNR_ALSA_VALUES_H
#define PNR_ALSA_VALUES_H

#include <alsa/asoundlib.h>
#include <stddef.h>

/* Full scale is 1. A sample of 24 bits in a word of 32 has its bits in the three low bytes; the
 * high byte is ignored. */
typedef struct pnr_alsa_values {
    snd_pcm_format_t format;
    const char *name; /* as arecord has it */
    size_t bytes;     /* of one value */
    /* Exact, except for samples of 32 bits, whose last 8 bits are rounded. */
    void (*read)(const unsigned char *from, size_t n_values, float *to);
    /* Rounds to nearest. Values beyond the range become its ends. */
    void (*write)(const double *from, size_t n_values, unsigned char *to);
} pnr_alsa_values;

enum { PNR_ALSA_FORMATS = 5 };
/* The best first. S16 is the last. */
extern const pnr_alsa_values pnr_alsa_formats[PNR_ALSA_FORMATS];

#endif
