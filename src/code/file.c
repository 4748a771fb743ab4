/* SPDX-License-Identifier: MIT */
/* Codes and pulses from files of samples. Each sample is one chip. */
#include "base/format.h"
#include "code/family.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int pnr_code_normalise(double (*samples)[2], size_t n_samples)
{
    double largest = 0;
    double power = 0;
    double scale;

    /* Divides by the largest part first, so that no square overflows or underflows. */
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

/* Opens a regular file and counts its samples. Refuses a file that ends within a sample. */
static int open_samples(const char *path, const char *key, const pnr_format_info *format,
                        FILE **file, size_t *n_samples, pnr_error *error)
{
    struct stat about;
    size_t size;

    *file = fopen(path, "rb");
    if (!*file)
        return pnr_error_file(error, PNR_ENOINPUT, key, path, errno);
    if (fstat(fileno(*file), &about) != 0 || !S_ISREG(about.st_mode))
        return pnr_error_set(error, PNR_ENOINPUT, "%s %s: not a regular file: name one", key, path);
    size = (size_t)about.st_size;
    *n_samples = size / format->bytes;
    if (*n_samples < 1 || *n_samples > PNR_CODE_MAX_CHIPS || size % format->bytes != 0)
        return pnr_error_set(error, PNR_EDATA,
                             "%s %s: %zu bytes are not 1 to %d whole samples of %s (%u bytes each)",
                             key, path, size, PNR_CODE_MAX_CHIPS, format->name, format->bytes);
    return PNR_OK;
}

static int read_all(FILE *file, const char *path, const char *key, pnr_format format,
                    double (*samples)[2], size_t n_samples, pnr_error *error)
{
    const size_t bytes = pnr_format_get(format)->bytes;
    unsigned char raw[32];

    for (size_t k = 0; k < n_samples; k++) {
        if (fread(raw, bytes, 1, file) != 1)
            return pnr_error_set(error, PNR_EIO, "%s %s: cannot read sample %zu of %zu", key, path,
                                 k, n_samples);
        if (pnr_format_read(format, raw, samples[k]) & PNR_SAMPLE_NONFINITE)
            return pnr_error_set(error, PNR_EDATA, "%s %s: sample %zu is not finite", key, path, k);
    }
    if (pnr_code_normalise(samples, n_samples) != PNR_OK)
        return pnr_error_set(error, PNR_EDATA, "%s %s: all %zu samples are zero", key, path,
                             n_samples);
    return PNR_OK;
}

int pnr_code_read_samples(const char *path, const char *key, double (**samples)[2],
                          size_t *n_samples, pnr_error *error)
{
    const pnr_format format = pnr_format_of_path(path);
    FILE *file = NULL;
    int rc;

    *samples = NULL;
    *n_samples = 0;
    if (path[0] == '\0')
        return pnr_refuse(error, "%s: not given", key);
    if (format == PNR_FORMAT_NONE)
        return pnr_refuse(error, "%s %s: the extension names no sample format (one of: %s)", key,
                          path, pnr_format_names());
    rc = open_samples(path, key, pnr_format_get(format), &file, n_samples, error);
    if (rc != PNR_OK)
        goto done;
    *samples = malloc(*n_samples * sizeof **samples);
    if (*samples)
        rc = read_all(file, path, key, format, *samples, *n_samples, error);
    else
        rc = pnr_error_set(error, PNR_ENOMEMORY, "%s %s: no memory for %zu samples", key, path,
                           *n_samples);
done:
    if (file)
        fclose(file);
    if (rc != PNR_OK) {
        free(*samples);
        *samples = NULL;
        *n_samples = 0;
    }
    return rc;
}

int pnr_code_build_file(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const char *path = config->code.path;
    const char *slash = strrchr(path, '/');
    int rc = pnr_code_read_samples(path, "code.path", &code->chips, &code->n_chips, error);

    if (rc != PNR_OK)
        return rc;
    snprintf(code->name, sizeof code->name, "file length=%zu %.60s", code->n_chips,
             slash ? slash + 1 : path);
    return PNR_OK;
}
