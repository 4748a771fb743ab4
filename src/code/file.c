/* SPDX-License-Identifier: MIT */
/* Reads codes and pulses from files: raw samples, text, numpy arrays. Each value is one chip of a
 * code, or one sample of a pulse. */
#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "code/chip_file.h"
#include "code/family.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

int pnr_code_normalise(double (*samples)[2], size_t n_samples)
{
    double largest = 0;
    double power = 0;
    double scale;

    /* Divides by the largest |I| or |Q| first, so that no square overflows or underflows. */
    for (size_t k = 0; k < n_samples; k++) {
        if (!isfinite(samples[k][0]) || !isfinite(samples[k][1]))
            return PNR_EDATA;
        largest = fmax(largest, fmax(fabs(samples[k][0]), fabs(samples[k][1])));
    }
    if (largest == 0)
        return PNR_EDATA;
    for (size_t k = 0; k < n_samples; k++) {
        samples[k][0] /= largest;
        samples[k][1] /= largest;
        power += samples[k][0] * samples[k][0] + samples[k][1] * samples[k][1];
    }
    scale = 1 / sqrt(power / (double)n_samples);
    for (size_t k = 0; k < n_samples; k++) {
        samples[k][0] *= scale;
        samples[k][1] *= scale;
    }
    return PNR_OK;
}

int pnr_chips_add(pnr_chips *chips, const double chip[2], const pnr_chip_file *file,
                  pnr_error *error)
{
    if (chips->n == PNR_CODE_MAX_CHIPS)
        return pnr_error_set(error, PNR_EDATA, "%s %s: more than %d chips", file->key, file->path,
                             PNR_CODE_MAX_CHIPS);
    if (chips->n == chips->capacity) {
        const size_t capacity = chips->capacity > 0 ? 2 * chips->capacity : 1024;
        double(*more)[2] = realloc(chips->chips, capacity * sizeof *more);

        if (more == NULL)
            return pnr_error_set(error, PNR_ENOMEMORY, "%s %s: no memory for %zu chips", file->key,
                                 file->path, capacity);
        chips->chips = more;
        chips->capacity = capacity;
    }
    memcpy(chips->chips[chips->n++], chip, 2 * sizeof *chip);
    return PNR_OK;
}

static int open_file(pnr_chip_file *file, pnr_error *error)
{
    struct stat about;
    int fd;
    const int code = pnr_file_open(file->key, file->path, &fd, error);

    if (code != PNR_OK)
        return code;
    file->stream = fdopen(fd, "rb");
    if (file->stream == NULL || fstat(fd, &about) != 0) {
        pnr_error_file(error, PNR_EIO, file->key, file->path, errno);
        if (file->stream == NULL)
            close(fd);
        return PNR_EIO;
    }
    file->n_bytes = (uint64_t)about.st_size;
    return PNR_OK;
}

/* Reads raw samples. The extension of the path gives their format. */
static int read_raw(const pnr_chip_file *file, pnr_chips *out, pnr_error *error)
{
    const pnr_format format = pnr_format_of_path(file->path);
    const pnr_format_info *info = pnr_format_get(format);
    const uint64_t n = file->n_bytes / info->bytes;
    unsigned char raw[32];
    int code = PNR_OK;

    if (n < 1 || n > PNR_CODE_MAX_CHIPS || file->n_bytes % info->bytes != 0)
        return pnr_error_set(error, PNR_EDATA,
                             "%s %s: %" PRIu64 " bytes are not 1 to %d whole samples of %s (%u "
                             "bytes each)",
                             file->key, file->path, file->n_bytes, PNR_CODE_MAX_CHIPS, info->name,
                             info->bytes);
    for (uint64_t k = 0; k < n && code == PNR_OK; k++) {
        double chip[2];

        if (fread(raw, info->bytes, 1, file->stream) != 1)
            return pnr_error_set(error, PNR_EIO,
                                 "%s %s: cannot read sample %" PRIu64 " of %" PRIu64, file->key,
                                 file->path, k, n);
        if (pnr_format_read(format, raw, chip) & PNR_SAMPLE_NONFINITE)
            return pnr_error_set(error, PNR_EDATA, "%s %s: sample %" PRIu64 " is not finite",
                                 file->key, file->path, k);
        code = pnr_chips_add(out, chip, file, error);
    }
    return code;
}

/* Returns the reader for the extension of a path. NULL: the extension is unknown. */
static pnr_chip_reader *reader_of(const char *path)
{
    static const struct {
        const char *extension;
        pnr_chip_reader *read;
    } readers[] = {
        {".txt", pnr_chip_read_text}, {".csv", pnr_chip_read_text}, {".npy", pnr_chip_read_npy}};
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot != NULL && i < sizeof readers / sizeof readers[0]; i++)
        if (strcasecmp(dot, readers[i].extension) == 0)
            return readers[i].read;
    return pnr_format_of_path(path) != PNR_FORMAT_NONE ? read_raw : NULL;
}

int pnr_code_read_samples(const char *path, const char *key, double (**samples)[2],
                          size_t *n_samples, pnr_error *error)
{
    pnr_chip_file file = {.path = path, .key = key};
    pnr_chip_reader *read = reader_of(path);
    pnr_chips chips = {0};
    int code;

    *samples = NULL;
    *n_samples = 0;
    if (path[0] == '\0')
        return pnr_refuse(error, "%s: not given", key);
    if (read == NULL)
        return pnr_refuse(error,
                          "%s %s: the extension names no sample format (one of: txt csv npy %s)",
                          key, path, pnr_format_names());
    if ((code = open_file(&file, error)) == PNR_OK)
        code = read(&file, &chips, error);
    if (code == PNR_OK && chips.n == 0)
        code = pnr_error_set(error, PNR_EDATA, "%s %s: no chips", key, path);
    if (code == PNR_OK && pnr_code_normalise(chips.chips, chips.n) != PNR_OK)
        code =
            pnr_error_set(error, PNR_EDATA, "%s %s: all %zu samples are zero", key, path, chips.n);
    if (file.stream != NULL)
        fclose(file.stream);
    if (code != PNR_OK) {
        free(chips.chips);
        return code;
    }
    *samples = chips.chips;
    *n_samples = chips.n;
    return PNR_OK;
}

/* True if at least one chip is 0 and all other chips have the same positive level, as in bits or
 * on-off keying. The level need not be 1, because the chips are already scaled. */
static bool is_on_off(const pnr_code *code)
{
    double level = 0;
    size_t n_off = 0;

    for (size_t k = 0; k < code->n_chips; k++) {
        const double i = code->chips[k][0];

        if (i < 0 || code->chips[k][1] != 0 || (i > 0 && level > 0 && i != level))
            return false;
        if (i > 0)
            level = i;
        else
            n_off++;
    }
    return n_off > 0;
}

int pnr_code_build_file(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const char *path = config->code.path;
    const char *slash = strrchr(path, '/');
    int rc = pnr_code_read_samples(path, "code.path", &code->chips, &code->n_chips, error);

    if (rc != PNR_OK)
        return rc;
    if (is_on_off(code))
        pnr_log(PNR_LOG_WARN,
                "code.path %s: %zu chips of 0 and 1 are taken as off and on; for signs, write "
                "1 and -1",
                path, code->n_chips);
    snprintf(code->name, sizeof code->name, "file length=%zu %.60s", code->n_chips,
             slash ? slash + 1 : path);
    return PNR_OK;
}
