/* SPDX-License-Identifier: MIT */
/* Suggests a name for an unknown name: the meaning of a synonym, or the nearest name. */
#include "config/keys.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 63 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

size_t pnr_name_distance(const char *a, const char *b)
{
    size_t rows[3][NAME_MAX_BYTES + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t n_a = strnlen(a, NAME_MAX_BYTES), n_b = strnlen(b, NAME_MAX_BYTES);

    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *oldest = before;

        before = last;
        last = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            row[j] =
                least(least(last[j], row[j - 1]) + 1, last[j - 1] + !is_same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[n_b];
}

bool pnr_name_is_near(const char *wrong, const char *name)
{
    return 3 * pnr_name_distance(wrong, name) <= strnlen(wrong, NAME_MAX_BYTES);
}

/* Words of other programs, and the names that pnradar uses for them. `scope` is a section if the
 * words mean keys, a key if the words mean values of that key, or "" if they mean sections. */
static const struct synonym {
    const char *scope, *words, *ours; /* words: NULL means any */
} synonyms[] = {
    {"", "input receiver", "source"},
    {"", "output results", "publisher"},
    {"source", "fs sample_rate samplerate samp_rate sampling_rate sps", "rate_hz"},
    {"source", "datatype dtype type sample_format encoding", "format"},
    {"source", "file filename path recording", "input"},
    {"source", "offset offset_hz freq frequency if_hz", "tune_hz"},
    {"source", "center_hz center_freq centre_freq fc", "centre_hz"},
    {"source", "gain rf_gain", "gain_db"},
    {"source", "start time utc date datetime", "start_time"},
    {"code", "family name kind", "type"},
    {"code", "rate rate_hz chiprate chipping_rate chipping_rate_hz", "chip_rate_hz"},
    {"code", "order bits nbits stages registers", "degree"},
    {"code", "chips n_chips", "length"},
    {"code", "poly polynomial feedback", "taps"},
    {"code", "init initial register", "state"},
    {"code", "sv satellite svid", "prn"},
    {"code", "file filename", "path"},
    {"radar", "c speed_of_light speed_of_sound", "speed_mps"},
    {"radar", "frequency frequency_hz freq fc center_freq", "carrier_hz"},
    {"radar", "range range_m range_max", "max_range_m"},
    {"radar", "range_min", "min_range_m"},
    {"dwell", "integration integrate averages n count", "periods"},
    {"dwell", "window", "taper"},
    {"detector", "threshold false_alarm false_alarms far", "pfa"},
    {"detector", "max_peaks peaks echoes", "max_echoes"},
    {"engine", "type backend", "name"},
    {"engine", "gpu", "device"},
    {"engine", "cores cpus", "threads"},
    {"publisher", "address port url bind", "endpoint"},
    {"publisher", "map", "profile"},
    {"target", "distance delay", "range_m"},
    {"target", "speed doppler", "velocity_mps"},
    {"source.format", "int16 short", "ci16 (I and Q) or i16 (real samples)"},
    {"source.format", "int8 char", "ci8 (I and Q) or i8 (real samples)"},
    {"source.format", "uint8 byte", "cu8 (I and Q) or u8 (real samples)"},
    {"source.format", "float", "cf32 (I and Q) or f32 (real samples)"},
    {"source.format", "double", "cf64 (I and Q) or f64 (real samples)"},
    {"source.format", "complex", "cf32 or ci16"},
    {"source.format", "wav flac", "auto"},
    {"source.pace", "live realtime real_time", "real-time"},
    {"code.type", "mls m-seq mseq m_sequence msequence lfsr prbs max-length", "m-sequence"},
    {"code.type", "prn ca c/a gps l1 l1ca gps-l1 gps-ca", "gps-l1ca"},
    {"code.type", "l2c", "gps-l2c"},
    {"code.type", "l5", "gps-l5"},
    {"code.type", "beidou b1i", "bds-b1i"},
    {"code.type", "zc chu", "zadoff-chu"},
    {"code.type", "noise", "random"},
    {"code.type", "custom", "file"},
    {"dwell.combine", "noncoherent non-coherent power", "incoherent"},
    {"dwell.combine", "fft", "doppler"},
    {"dwell.taper", "rect none", "rectangular"},
    {"dwell.taper", "hanning", "hann"},
    {"dwell.taper", "blackman", "blackman-harris"},
    {"dwell.taper", "chebyshev chebwin", "dolph-chebyshev"},
    {"engine.device", NULL, "engine.name = cuda"},
    {"engine.name", "gpu nvidia cufft cuda", "cuda"},
    {"engine.name", "fftw host cpu", "cpu"},
    {"engine.name", "reference", "reference"},
    {"engine.name", "auto", "auto"},
};

/* True if the list contains the word. Spaces separate the words of the list. Ignores case. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);

    while (*list) {
        const size_t n = strcspn(list, " ");

        if (n == length && strncasecmp(list, word, n) == 0)
            return true;
        list += n + strspn(list + n, " ");
    }
    return false;
}

const char *pnr_name_synonym(const char *section, const char *key, const char *word)
{
    char scope[PNR_SECTION_LEN + NAME_MAX_BYTES];

    snprintf(scope, sizeof scope, "%.*s%s%s", (int)strcspn(section, "."), section, key ? "." : "",
             key ? key : "");
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
        if (strcmp(synonyms[i].scope, scope) == 0 &&
            (synonyms[i].words == NULL || has_word(synonyms[i].words, word)))
            return synonyms[i].ours;
    return NULL;
}
