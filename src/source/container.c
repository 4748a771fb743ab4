/* SPDX-License-Identifier: MIT */
/* Identifies the container of an input from its first bytes. */
#include "source/container.h"

#include "source/sound_header.h"

#include <string.h>

#define CONVERT_IT "convert it, as with: sox FILE FILE.wav"

/* A container is identified by one or two signatures in its first bytes. A signature may contain
 * the byte 0. */
typedef struct magic {
    size_t at, n;
    const char *bytes;
    size_t also_at; /* offset of the second signature, which has four bytes; 0: there is no second
                     * signature */
    const char *also;
    pnr_container container;
} magic;

#define MARK(at, bytes) at, sizeof(bytes) - 1, bytes, 0, NULL
#define MARKS(bytes, at, also) 0, sizeof(bytes) - 1, bytes, at, also

/* All containers except the sound files that pnr_sound_header_kind knows. */
static const magic magics[] = {
    /* other sound files */
    {MARK(0, "RIFX"), {"big-endian WAV", CONVERT_IT}},
    {MARK(0, "BW64"), {"BW64", CONVERT_IT}},
    {MARK(0, "OggS"), {"OGG", CONVERT_IT}},
    {MARKS("caff\0\1", 8, "desc"), {"CAF", CONVERT_IT}},
    {MARK(0, "wvpk"), {"WavPack", CONVERT_IT}},
    {MARK(0, "ID3\3"), {"MP3", CONVERT_IT}},
    {MARK(0, "ID3\4"), {"MP3", CONVERT_IT}},
    /* archives and compressed files */
    {MARK(257, "ustar"),
     {"tar, as SigMF archives are",
      "unpack its samples, as with: tar -xOf FILE NAME.sigmf-data | pnradar ... -"}},
    {MARK(0, "\x1f\x8b\x08"), {"gzip", "unpack it: gzip -dc FILE | pnradar ... -"}},
    {MARK(0, "\x28\xb5\x2f\xfd"), {"zstd", "unpack it: zstd -dc FILE | pnradar ... -"}},
    {MARK(0, "\xfd"
             "7zXZ\0"),
     {"xz", "unpack it: xz -dc FILE | pnradar ... -"}},
    {MARKS("BZh", 4, "1AY&"), {"bzip2", "unpack it: bzip2 -dc FILE | pnradar ... -"}},
    {MARK(0, "PK\3\4"), {"zip", "unpack it: unzip -p FILE NAME | pnradar ... -"}},
    /* data with a header */
    {MARK(0, "\x89HDF\r\n\x1a\n"),
     {"HDF5", "write its samples to a raw file, as with: h5dump -d NAME -b LE -o FILE.raw"}},
    {MARK(0, "\x93NUMPY"), {"NumPy", "write its array with tofile() instead of save()"}},
    {MARK(0, "MATLAB 5.0"), {"MATLAB", "write its samples with fwrite() to a raw file"}},
    {MARKS("BLUE", 8, "EEEI"), {"BLUE", "skip its header: tail -c +513 FILE | pnradar ... -"}},
};

static const char name_it[] =
    "name the file instead, or pipe raw samples without a header and set source.format";

static bool has_mark(const unsigned char *head, size_t n, const magic *m)
{
    return m->at + m->n <= n && memcmp(head + m->at, m->bytes, m->n) == 0 &&
           (m->also == NULL || (m->also_at + 4 <= n && memcmp(head + m->also_at, m->also, 4) == 0));
}

bool pnr_container_find(const void *bytes, size_t n, pnr_container *out)
{
    const char *sound = pnr_sound_header_kind(bytes, n);

    *out = (pnr_container){sound, name_it};
    for (size_t i = 0; out->name == NULL && i < sizeof magics / sizeof *magics; i++)
        if (has_mark(bytes, n, &magics[i]))
            *out = magics[i].container;
    return out->name != NULL;
}
