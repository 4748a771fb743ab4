/* SPDX-License-Identifier: MIT */
/* Writes a channel of Digital RF 2: a folder with a file of properties and files of samples. Each
 * file of samples has the samples of a fixed interval of time. The name of the file is the time at
 * which the interval starts. The samples are kept in memory until the interval has passed. HDF5
 * makes an image of the file in memory. The image is written to a file with a temporary name, and
 * the file is renamed. HDF5 therefore never writes to the disk, which may be full. A killed program
 * leaves only complete files. */
#include "recorder/digital-rf/image.h"
#include "recorder/recording.h"
#include "source/drf_layout.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FOLDER_S = 3600,
    FILE_MS = 1000,
    MAX_FILE_BYTES = 1 << 29, /* largest number of bytes of samples in a file */
    MAX_ROWS = 1 << 16,       /* largest number of rows in the index of a file */
    IMAGE_BYTES = 1 << 16     /* largest size of an image without its samples and its index */
};

static const char key[] = "recorder.samples";
static const char mark[] = "\x89HDF\r\n\x1a\n"; /* every file of HDF5 begins with it */
static const char version[] = "2.6.0";
static const char time_text[] =
    "All times in this format are in number of samples since the epoch in the epoch attribute.  "
    "The first sample time will be sample_rate * UTC time at first sample.  Attribute "
    "init_utc_timestamp records this init UTC time so that a conversion to any other time is "
    "possible given the number of leapseconds difference at init_utc_timestamp.  Leapseconds that "
    "occur during data recording are included in the data.";

typedef struct channel {
    const char *path; /* path of the folder, borrowed */
    pnr_drf_layout layout;
    hid_t number, sample; /* HDF5 types of one value (I or Q), and of one sample of one channel */
    size_t sample_bytes;  /* bytes of one sample of all channels */

    bool has_base;
    uint64_t base;       /* number of samples from 1970 to position 0 */
    int64_t begun_utc_s; /* when the run began, by the clock of this machine */
    char run[37];        /* a random UUID */
    uint64_t n_files, n_dropped;
    pnr_error failure; /* error of the latest file; its code is PNR_OK if the file was written */

    /* the file that is in memory */
    int64_t ms;    /* start of its interval, ms since 1970; -1: no file */
    bool is_taken; /* a file of this name exists: the samples are dropped */
    uint64_t end;  /* first sample after the interval of the file, counted from 1970 */
    uint64_t next; /* sample after the last sample in the file, counted from 1970 */
    size_t n_data; /* number of samples in `data` */
    size_t room;   /* bytes of `data` */
    char *data;    /* [n_data] samples; make_image replaces them by the image */
    size_t n_rows;
    pnr_drf_row *rows; /* [MAX_ROWS] */
} channel;

/* Adds the attributes of the channel to the file of properties, or to the samples of a file. */
static void add_properties(const channel *c, hid_t owner)
{
    const pnr_drf_layout *layout = &c->layout;
    const bool is_integer = H5Tget_class(c->number) == H5T_INTEGER;

    pnr_image_add_number(owner, "H5Tget_class", H5T_STD_I32LE, H5Tget_class(c->number));
    pnr_image_add_number(owner, "H5Tget_size", H5T_STD_I32LE, (int64_t)H5Tget_size(c->number));
    pnr_image_add_number(owner, "H5Tget_order", H5T_STD_I32LE, H5Tget_order(c->number));
    pnr_image_add_number(owner, "H5Tget_precision", H5T_STD_I32LE,
                         (int64_t)H5Tget_precision(c->number));
    pnr_image_add_number(owner, "H5Tget_offset", H5T_STD_I32LE,
                         is_integer ? (int64_t)H5Tget_offset(c->number) : 0);
    pnr_image_add_number(owner, "subdir_cadence_secs", H5T_STD_U64LE, layout->folder_s);
    pnr_image_add_number(owner, "file_cadence_millisecs", H5T_STD_U64LE, layout->file_ms);
    pnr_image_add_number(owner, "sample_rate_numerator", H5T_STD_U64LE, layout->rate_num);
    pnr_image_add_number(owner, "sample_rate_denominator", H5T_STD_U64LE, layout->rate_den);
    pnr_image_add_number(owner, "is_complex", H5T_STD_I32LE, layout->is_complex);
    pnr_image_add_number(owner, "num_subchannels", H5T_STD_I32LE, layout->n_channels);
    pnr_image_add_number(owner, "is_continuous", H5T_STD_I32LE, layout->is_continuous);
    pnr_image_add_text(owner, "epoch", "1970-01-01T00:00:00Z");
    pnr_image_add_text(owner, "digital_rf_time_description", time_text);
    pnr_image_add_text(owner, "digital_rf_version", version);
}

/* --- the folder --- */

static int explain(const char *path, pnr_error *error)
{
    const bool is_denied = errno == EACCES || errno == EPERM || errno == EROFS;

    if (errno == EEXIST)
        return pnr_refuse(error, "%s %.300s: it exists and is not replaced", key, path);
    return pnr_error_file(error, is_denied ? PNR_EPERMISSION : PNR_EIO, key, path, errno);
}

static int make_folder(const char *path, pnr_error *error)
{
    struct stat status;

    if (mkdir(path, 0777) == 0 ||
        (errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode)))
        return PNR_OK;
    return explain(path, error);
}

/* Compares the image with a file. PNR_EAGAIN: there is no such file; PNR_ECONFIG: they differ. */
static int compare_image(const channel *c, size_t n_bytes, const char *path, pnr_error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char found[IMAGE_BYTES];
    ssize_t n_found;

    if (fd < 0)
        return errno == ENOENT ? PNR_EAGAIN : explain(path, error);
    n_found = read(fd, found, sizeof found);
    close(fd);
    if (n_found > 0 && (size_t)n_found == n_bytes && memcmp(found, c->data, n_bytes) == 0)
        return PNR_OK;
    return pnr_refuse(
        error,
        "%s %.300s: it is of other samples, of another recorder.rotate_s, or of another "
        "program: name another folder",
        key, path);
}

/* Writes the file of properties of a new channel. If the channel exists, its file must have the
 * same bytes. */
static int write_properties(channel *c, pnr_error *error)
{
    const hid_t file = pnr_image_create(IMAGE_BYTES);
    char path[PATH_MAX];
    pnr_new_file out;
    size_t n_bytes;
    int code;

    add_properties(c, file);
    if ((n_bytes = pnr_image_take(file, c->data, c->room)) == 0)
        return pnr_error_set(error, PNR_EIO, "%s %.300s: HDF5 failed", key, c->path);
    if ((size_t)snprintf(path, sizeof path, "%s/drf_properties.h5", c->path) >= sizeof path)
        return pnr_error_file(error, PNR_EIO, key, c->path, ENAMETOOLONG);
    if ((code = compare_image(c, n_bytes, path, error)) != PNR_EAGAIN)
        return code;
    if ((code = pnr_new_file_create(key, path, mark, &out, error)) != PNR_OK)
        return code;
    if ((code = pnr_new_file_write(&out, c->data, n_bytes, error)) == PNR_OK)
        return pnr_new_file_finish(&out, true, error);
    pnr_new_file_discard(&out);
    return code;
}

/* --- one file --- */

/* Creates the folder of the file. Writes the path of the file to `out`, with its temporary or its
 * final name. */
static int name_file(const channel *c, bool is_partial, char out[PATH_MAX], pnr_error *error)
{
    const int64_t folder_s = c->ms / 1000 / c->layout.folder_s * c->layout.folder_s;
    char time[PNR_TIME_LEN];
    int n, code;

    (void)pnr_time_format(folder_s * PNR_NS_PER_S, time);
    time[13] = time[16] = '-';
    n = snprintf(out, PATH_MAX, "%.4000s/%.19s", c->path, time);
    if ((code = make_folder(out, error)) != PNR_OK)
        return code;
    snprintf(out + n, PATH_MAX - (size_t)n, "/%srf@%" PRId64 ".%03" PRId64 ".h5",
             is_partial ? "tmp." : "", c->ms / 1000, c->ms % 1000);
    return PNR_OK;
}

/* Writes n_bytes of the image to a file, and waits until they are on the disk. False: errno tells
 * why. */
static bool write_bytes(const channel *c, size_t n_bytes, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    size_t done = 0;
    ssize_t n = 1;
    bool is_good;

    if (fd < 0)
        return false;
    while (done < n_bytes && (n > 0 || (n < 0 && errno == EINTR))) {
        n = write(fd, c->data + done, n_bytes - done);
        done += n > 0 ? (size_t)n : 0;
    }
    is_good = done == n_bytes && fdatasync(fd) == 0;
    return close(fd) == 0 && is_good;
}

/* Writes the image to a file with a temporary name, then renames the file. */
static int write_image(const channel *c, size_t n_bytes, pnr_error *error)
{
    char partial[PATH_MAX], final[PATH_MAX];
    int code = name_file(c, true, partial, error);

    if (code != PNR_OK || (code = name_file(c, false, final, error)) != PNR_OK)
        return code;
    if (access(final, F_OK) == 0) {
        errno = EEXIST;
        return explain(final, error);
    }
    if (write_bytes(c, n_bytes, partial) && pnr_file_rename(partial, final))
        return PNR_OK;
    code = explain(partial, error);
    (void)unlink(partial);
    return code;
}

/* Makes the image of the file and copies it to c->data, over the samples. Returns the bytes of the
 * image; 0: HDF5 failed. */
static size_t make_image(channel *c)
{
    const size_t n_columns = (size_t)c->layout.n_channels;
    const hid_t file = pnr_image_create(c->n_data * c->sample_bytes + IMAGE_BYTES);
    const hid_t data =
        pnr_image_add_data(file, "rf_data", c->sample, c->sample, c->n_data, n_columns, c->data);
    const hid_t index = pnr_image_add_data(file, "rf_data_index", H5T_STD_U64LE, H5T_NATIVE_UINT64,
                                           c->n_rows, 2, c->rows);
    const bool is_good = data >= 0 && index >= 0;

    if (is_good) {
        add_properties(c, data);
        pnr_image_add_number(data, "sequence_num", H5T_STD_I32LE, (int64_t)c->n_files);
        pnr_image_add_number(data, "init_utc_timestamp", H5T_STD_U64LE, c->begun_utc_s);
        pnr_image_add_number(data, "computer_time", H5T_STD_U64LE,
                             pnr_clock_utc_ns() / PNR_NS_PER_S);
        pnr_image_add_text(data, "uuid_str", c->run);
    }
    if (data >= 0)
        H5Dclose(data);
    if (index >= 0)
        H5Dclose(index);

    const size_t n_bytes = pnr_image_take(file, c->data, c->room);

    return is_good ? n_bytes : 0;
}

/* Writes the file to the disk. Clears it in memory, also after an error. */
static void finish_file(channel *c)
{
    const size_t n_data = c->n_data, n_bytes = n_data > 0 ? make_image(c) : 0;

    c->failure = (pnr_error){.code = PNR_OK};
    if (n_data > 0 && n_bytes == 0)
        pnr_error_set(&c->failure, PNR_EIO, "%s %.300s: HDF5 failed", key, c->path);
    else if (n_data > 0 && write_image(c, n_bytes, &c->failure) == PNR_OK)
        c->n_files++;
    if (c->failure.code != PNR_OK)
        c->n_dropped += n_data;
    c->ms = -1;
    c->n_data = c->n_rows = 0;
}

/* Begins the file that contains `sample`, counted from 1970. If a file of this name exists on the
 * disk, the samples of the interval are dropped. */
static void begin_file(channel *c, uint64_t sample)
{
    const pnr_drf_layout *layout = &c->layout;
    const unsigned __int128 ms =
        (unsigned __int128)sample * 1000 * (uint64_t)layout->rate_den / (uint64_t)layout->rate_num;
    char final[PATH_MAX];
    pnr_error unused;

    c->ms = (int64_t)ms / layout->file_ms * layout->file_ms;
    c->end = pnr_drf_first_sample(layout, c->ms + layout->file_ms);
    c->next = UINT64_MAX; /* the first sample begins a row of the index */
    c->is_taken = name_file(c, false, final, &unused) == PNR_OK && access(final, F_OK) == 0;
    if (c->is_taken) {
        errno = EEXIST;
        explain(final, &c->failure);
    }
}

/* --- the recording --- */

/* Fills the layout. Computes the memory that a file needs. */
static int fill_layout(channel *c, const pnr_config *config, const pnr_setup *setup,
                       pnr_format format, size_t n_channels, pnr_error *error)
{
    const double rotate_s = config->recorder.rotate_s;
    const pnr_rational rate_hz = setup->radar.rate_hz;
    double most_bytes;

    c->layout = (pnr_drf_layout){
        .rate_num = rate_hz.num,
        .rate_den = rate_hz.den,
        .folder_s = FOLDER_S,
        .file_ms = rotate_s > 0 ? (int64_t)(rotate_s * 1000 + 0.5) : FILE_MS,
        .n_channels = (int64_t)n_channels,
        .is_complex = pnr_format_get(format)->is_complex,
    };
    if (pnr_drf_layout_check(&c->layout, error) != PNR_OK)
        return pnr_refuse(error,
                          "recorder.rotate_s = %.10g: the time of a file of Digital RF is a whole "
                          "number of ms that divides an hour",
                          rotate_s);
    most_bytes =
        (double)c->layout.file_ms * 1e-3 * pnr_rational_double(rate_hz) * (double)c->sample_bytes;
    if (most_bytes > MAX_FILE_BYTES)
        return pnr_refuse(error,
                          "recorder.rotate_s: a file of Digital RF, which stays in memory until it "
                          "is complete, would have %.4g MB, more than %.4g",
                          most_bytes * 1e-6, MAX_FILE_BYTES * 1e-6);
    c->room = (size_t)most_bytes + 2 * c->sample_bytes + MAX_ROWS * sizeof *c->rows + IMAGE_BYTES;
    return PNR_OK;
}

static void make_types(channel *c, pnr_format format)
{
    const pnr_number_form *form = pnr_number_form_of(format);
    const bool is_float = form->name[0] == 'f', is_signed = form->name[0] == 'i';

    if (is_float)
        c->number = H5Tcopy(form->number.bytes == 8 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE);
    else if (form->number.bytes == 2)
        c->number = H5Tcopy(H5T_STD_I16LE);
    else
        c->number = H5Tcopy(is_signed ? H5T_STD_I8LE : H5T_STD_U8LE);
    c->sample = c->number;
    if (!c->layout.is_complex)
        return;
    c->sample = H5Tcreate(H5T_COMPOUND, 2 * (size_t)form->number.bytes);
    H5Tinsert(c->sample, "r", 0, c->number);
    H5Tinsert(c->sample, "i", form->number.bytes, c->number);
}

static void read_line(const char *path, char *out, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, out, room - 1) : 0;

    out[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static int channel_create(const pnr_config *config, const pnr_setup *setup, pnr_format format,
                          size_t n_channels, void **state, pnr_error *error)
{
    channel *c = calloc(1, sizeof *c);
    int code;

    *state = c;
    if (c == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
    c->path = config->recorder.samples;
    c->sample_bytes = pnr_format_get(format)->bytes * n_channels;
    c->ms = -1;
    c->begun_utc_s = pnr_clock_utc_ns() / PNR_NS_PER_S;
    read_line("/proc/sys/kernel/random/uuid", c->run, sizeof c->run);
    if ((code = fill_layout(c, config, setup, format, n_channels, error)) != PNR_OK)
        return code;
    c->data = malloc(c->room);
    c->rows = malloc(MAX_ROWS * sizeof *c->rows);
    if (c->data == NULL || c->rows == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: no memory for a file of %zu bytes",
                             c->room);
    make_types(c, format);
    return PNR_OK;
}

static void channel_destroy(void *state)
{
    channel *c = state;

    if (c == NULL)
        return;
    if (c->sample > 0 && c->sample != c->number)
        H5Tclose(c->sample);
    if (c->number > 0)
        H5Tclose(c->number);
    free(c->data);
    free(c->rows);
    free(c);
}

/* Creates the folder and its file of properties. */
static int channel_check(void *state, const char *path, pnr_error *error)
{
    const int code = make_folder(path, error);

    return code == PNR_OK ? write_properties(state, error) : code;
}

static int channel_open(void *state, const char *path, pnr_error *error)
{
    (void)state;
    (void)path;
    (void)error;
    return PNR_OK; /* channel_check has created the folder */
}

/* Computes c->base from the time of the first samples. Later times do not change it, so only a gap
 * of the stream is a gap of the recording. */
static void set_base(channel *c, uint64_t position, int64_t start_utc_ns)
{
    const __int128 num = c->layout.rate_hz.num, den = c->layout.rate_hz.den;
    const int64_t utc_ns =
        start_utc_ns != PNR_RECORDING_NO_TIME
            ? start_utc_ns
            : pnr_clock_utc_ns() - pnr_rational_time_ns(c->layout.rate_hz, position);

    if (c->has_base)
        return;
    c->has_base = true;
    c->base = (uint64_t)((utc_ns * num + den * PNR_NS_PER_S / 2) / (den * PNR_NS_PER_S));
}

static int channel_append(void *state, uint64_t position, int64_t start_utc_ns, const void *samples,
                          size_t n_samples, size_t *n_written, pnr_error *error)
{
    channel *c = state;

    *n_written = 0;
    set_base(c, position, start_utc_ns);
    while (*n_written < n_samples) {
        const uint64_t sample = c->base + position + *n_written;

        if (c->ms >= 0 && sample >= c->end)
            finish_file(c);
        if (c->ms < 0)
            begin_file(c, sample);

        const size_t left = n_samples - *n_written;
        const size_t n = c->end - sample < left ? (size_t)(c->end - sample) : left;

        if (c->is_taken) {
            c->n_dropped += n;
            *n_written += n;
            continue;
        }
        if (sample != c->next && c->n_rows == MAX_ROWS)
            return pnr_error_set(error, PNR_EDATA, "%s %.300s: a file has %d gaps, the most", key,
                                 c->path, MAX_ROWS);
        if (sample != c->next)
            c->rows[c->n_rows++] = (pnr_drf_row){sample, c->n_data};
        memcpy(c->data + c->n_data * c->sample_bytes,
               (const char *)samples + *n_written * c->sample_bytes, n * c->sample_bytes);
        c->n_data += n;
        c->next = sample + n;
        *n_written += n;
    }
    return PNR_OK;
}

static int channel_finish(void *state, pnr_error *error)
{
    channel *c = state;

    finish_file(c);
    if (c->failure.code != PNR_OK && error != NULL)
        *error = c->failure;
    return c->failure.code;
}

static int channel_outcome(const void *state, uint64_t *n_dropped, pnr_error *error)
{
    const channel *c = state;

    *n_dropped = c->n_dropped;
    if (c->failure.code != PNR_OK)
        *error = c->failure;
    return c->failure.code;
}

__attribute__((visibility("default"))) const pnr_recording_kind *pnr_recording_kind_get(void);

const pnr_recording_kind *pnr_recording_kind_get(void)
{
    static const pnr_recording_kind kind = {.abi = PNR_RECORDING_ABI,
                                            .is_continued = true,
                                            .create = channel_create,
                                            .destroy = channel_destroy,
                                            .check = channel_check,
                                            .open = channel_open,
                                            .append = channel_append,
                                            .finish = channel_finish,
                                            .outcome = channel_outcome};

    return &kind;
}
