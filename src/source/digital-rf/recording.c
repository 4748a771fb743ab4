/* SPDX-License-Identifier: MIT */
/* Reads Digital RF recordings: a channel is a folder, which has folders of HDF5 files. The names of
 * folders and files are times. */
#include "source/digital-rf/hdf5_file.h"
#include "source/kind.h"

#include "base/clock.h"
#include "base/event.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STAGE_BYTES = 1 << 18, PATIENCE_MS = 50, NAME_LEN = 64, CHILD_S = 30 };

/* The times in the names of a folder's entries, in ascending order. */
typedef struct times {
    int64_t *items;
    size_t n, next, room;
} times;

typedef struct recording {
    pnr_source_input *input;
    pnr_drf_layout layout;
    bool follows; /* at the end, the source waits for more files */
    char *path;   /* path of the open file; the memory is enough for the longest name */
    size_t path_room;

    times folders, files; /* times since 1970: of folders in s, of files in ms */
    int64_t folder_s, file_ms;
    pnr_drf_file file;
    const pnr_number_form *form; /* type of the numbers in all files */
    size_t sample_bytes;         /* bytes of a sample of all channels */
    size_t row;                  /* row of the file's index that is read next */
    uint64_t local;              /* row of the file's data that is read next */

    /* `stage` has samples of the file that are not returned yet. All sample numbers count from
     * 1970. */
    unsigned char *stage; /* [STAGE_BYTES] samples as in the file */
    size_t staged_at, n_staged;
    uint64_t staged_sample; /* number of the next sample in the stage */
    size_t n_present;       /* samples in the stage before the next missing sample */
    uint64_t read_end;      /* number of the sample after the last one that was read from a file */
    uint64_t position;      /* number of the next sample to return */
    uint64_t first;         /* number of the first sample of the stream */
    bool has_begun;
} recording;

/* --- names --- */

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Reads the times from the names in a folder. Lists the times after `above` in ascending order. If
 * the folder does not exist, the list is empty. */
static int list_times(times *out, const char *path, bool (*read_name)(const char *, int64_t *),
                      int64_t above, pnr_error *error)
{
    DIR *folder = opendir(path);
    int64_t time;

    out->n = out->next = 0;
    if (folder == NULL)
        return PNR_OK;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (!read_name(entry->d_name, &time) || time <= above)
            continue;
        if (out->n == out->room) {
            const size_t room = out->room > 0 ? 2 * out->room : 256;
            int64_t *items = realloc(out->items, room * sizeof *items);

            if (items == NULL) {
                closedir(folder);
                return pnr_error_set(error, PNR_ENOMEMORY, "no memory for the names in %.200s",
                                     path);
            }
            out->items = items;
            out->room = room;
        }
        out->items[out->n++] = time;
    }
    closedir(folder);
    if (out->n > 0)
        qsort(out->items, out->n, sizeof *out->items, compare_times);
    return PNR_OK;
}

/* Writes the path of a folder into r->path. If ms >= 0, writes the path of a file in this
 * folder. */
static void make_path(recording *r, int64_t folder_s, int64_t ms)
{
    char time[PNR_TIME_LEN];

    (void)pnr_time_format(folder_s * PNR_NS_PER_S, time);
    time[13] = time[16] = '-';
    const int n = snprintf(r->path, r->path_room, "%s/%.19s", r->input->name, time);

    if (ms >= 0)
        snprintf(r->path + n, r->path_room - (size_t)n, "/rf@%" PRId64 ".%03" PRId64 ".h5",
                 ms / 1000, ms % 1000);
}

/* Finds the next file: sets folder_s, file_ms and path. PNR_EEND: there is no next file yet. */
static int find_next_file(recording *r, pnr_error *error)
{
    int code;

    while (r->files.next == r->files.n) {
        /* First lists the folders, then the files of folder_s. If the first list has a later
         * folder, the recorder adds no more files to folder_s, so the second list is complete. */
        if (r->folders.next == r->folders.n &&
            (code = list_times(&r->folders, r->input->name, pnr_drf_folder_name, r->folder_s,
                               error)) != PNR_OK)
            return code;
        if (r->folder_s >= 0) {
            make_path(r, r->folder_s, -1);
            if ((code = list_times(&r->files, r->path, pnr_drf_file_name, r->file_ms, error)) !=
                PNR_OK)
                return code;
        }
        if (r->files.n > 0)
            break;
        if (r->folders.next == r->folders.n)
            return PNR_EEND;
        r->folder_s = r->folders.items[r->folders.next++];
    }
    r->file_ms = r->files.items[r->files.next++];
    make_path(r, r->folder_s, r->file_ms);
    return PNR_OK;
}

/* --- samples --- */

/* Opens the file r->path. Its samples must have the same number type as the samples of the earlier
 * files, and must follow them in time. */
static int open_file(recording *r, pnr_error *error)
{
    const int code = pnr_drf_file_open(r->path, &r->layout, r->file_ms, &r->file, error);

    if (code != PNR_OK)
        return code;
    r->row = 0;
    r->local = 0;
    if (r->form == NULL)
        r->form = r->file.form;
    if (r->file.form != r->form)
        pnr_error_set(error, PNR_EDATA, "%.200s: its samples are %s, those before are %s", r->path,
                      r->file.form->name, r->form->name);
    else if (r->file.rows[0].sample < r->read_end)
        pnr_error_set(error, PNR_EDATA,
                      "%.200s: it begins at sample %" PRIu64 ", the file before ends at %" PRIu64,
                      r->path, r->file.rows[0].sample, r->read_end);
    else
        return PNR_OK;
    pnr_drf_file_close(&r->file);
    return PNR_EDATA;
}

/* Reads the next samples of the open file into the stage. Closes the file after its last
 * samples. */
static int fill_stage(recording *r, pnr_error *error)
{
    const pnr_drf_row *row = &r->file.rows[r->row];
    const uint64_t end = r->row + 1 < r->file.n_rows ? row[1].local : r->file.n_data;
    const size_t most = STAGE_BYTES / r->sample_bytes;
    const size_t n = end - r->local < most ? (size_t)(end - r->local) : most;
    pnr_error inner = {0};

    if (pnr_drf_file_read(&r->file, &r->layout, r->local, n, r->stage, &inner) != PNR_OK) {
        pnr_drf_file_close(&r->file);
        return pnr_error_set(error, PNR_EDATA, "%.200s: %.200s", r->path, inner.text);
    }
    r->staged_at = 0;
    r->n_staged = n;
    r->staged_sample = row->sample + (r->local - row->local);
    r->read_end = r->staged_sample + n;
    r->local += n;
    if (r->local == end && ++r->row == r->file.n_rows)
        pnr_drf_file_close(&r->file);
    return PNR_OK;
}

/* Loads samples into the empty stage. PNR_EEND: all files are read. After the start of the stream,
 * skips a file that has an error. */
static int load_samples(recording *r, pnr_error *error)
{
    pnr_error inner = {0};
    int code;

    for (;;) {
        if (r->file.file == 0 && (code = find_next_file(r, error)) != PNR_OK)
            return code;
        code = r->file.file == 0 ? open_file(r, &inner) : PNR_OK;
        if (code == PNR_OK && r->stage == NULL)
            return PNR_OK; /* open_recording needs only the open file */
        if (code == PNR_OK && (code = fill_stage(r, &inner)) == PNR_OK)
            return PNR_OK;
        if (!r->has_begun || code == PNR_ENOMEMORY)
            return pnr_error_set(error, code, "%s", inner.text);
        pnr_event_post(r->input->events, PNR_EVENT_SOURCE_ERROR,
                       r->read_end > r->first ? r->read_end - r->first : 0, 0, 0,
                       "source: a file counts as lost: %s", inner.text);
    }
}

static void drop_staged(recording *r, size_t n)
{
    r->staged_at += n * r->sample_bytes;
    r->staged_sample += n;
    r->n_staged -= n;
}

/* Sets n_present to the number of samples in the stage before the next missing sample, 1 or more.
 * Drops missing samples at the start of the stage. PNR_EEND: the recording has ended. */
static int find_present(recording *r, pnr_error *error)
{
    const size_t n_numbers = r->sample_bytes / r->form->number.bytes;
    bool is_missing = false;
    int code;

    while (r->n_present == 0) {
        if (r->n_staged == 0 && (code = load_samples(r, error)) != PNR_OK)
            return code;

        const size_t n =
            r->layout.is_continuous
                ? pnr_drf_run(r->form, n_numbers, r->stage + r->staged_at, r->n_staged, &is_missing)
                : r->n_staged;

        if (is_missing)
            drop_staged(r, n);
        else
            r->n_present = n;
    }
    return PNR_OK;
}

/* --- the kind --- */

/* Returns the number of the sample after the last one of the open file. Missing samples at the end
 * of the file do not count. */
static uint64_t find_end(recording *r)
{
    const pnr_drf_row *last = &r->file.rows[r->file.n_rows - 1];
    const size_t n_numbers = r->sample_bytes / r->form->number.bytes;
    const size_t most = STAGE_BYTES / r->sample_bytes;
    uint64_t n = r->file.n_data - last->local;
    bool is_missing = r->layout.is_continuous;
    pnr_error unused;

    while (n > 0 && is_missing) {
        const size_t block = n < most ? (size_t)n : most;
        size_t left = block, present = 0;

        if (pnr_drf_file_read(&r->file, &r->layout, last->local + n - block, block, r->stage,
                              &unused) != PNR_OK)
            break;
        while (left > 0) {
            const size_t run = pnr_drf_run(
                r->form, n_numbers, r->stage + (block - left) * r->sample_bytes, left, &is_missing);

            left -= run;
            present = is_missing ? present : block - left;
        }
        is_missing = present == 0;
        n -= block - present;
    }
    return last->sample + n;
}

/* Finds the end of the samples that are already recorded. Opens only the last file. *end: number of
 * the sample after the last one. */
static int measure(recording *r, uint64_t *end, pnr_error *error)
{
    times *folders = &r->folders, *files = &r->files;
    int code = list_times(folders, r->input->name, pnr_drf_folder_name, -1, error);

    for (files->n = 0; code == PNR_OK && folders->n > 0 && files->n == 0; folders->n--) {
        r->folder_s = folders->items[folders->n - 1];
        make_path(r, r->folder_s, -1);
        code = list_times(files, r->path, pnr_drf_file_name, -1, error);
    }
    if (code != PNR_OK || files->n == 0)
        return code;
    r->file_ms = files->items[files->n - 1];
    make_path(r, r->folder_s, r->file_ms);
    *end =
        open_file(r, NULL) == PNR_OK ? find_end(r) : pnr_drf_first_sample(&r->layout, r->file_ms);
    pnr_drf_file_close(&r->file);
    return PNR_OK;
}

/* Closes the file and empties the lists of names, so that find_next_file returns the first file
 * again. */
static void rewind_files(recording *r)
{
    pnr_drf_file_close(&r->file);
    r->folders.n = r->folders.next = r->files.n = r->files.next = 0;
    r->folder_s = r->file_ms = -1;
    r->n_staged = r->n_present = 0;
    r->read_end = 0;
}

/* Reads the properties, and opens the first file, which states the type of the samples. */
static int open_recording(recording *r, pnr_error *error)
{
    static const char *const names[] = {"drf_properties.h5", "metadata.h5"};
    int code;

    r->path_room = strlen(r->input->name) + NAME_LEN;
    if ((r->path = malloc(r->path_room)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a Digital RF source");
    for (size_t i = 0; i < 2; i++) {
        snprintf(r->path, r->path_room, "%s/%s", r->input->name, names[i]);
        if (access(r->path, F_OK) == 0)
            break;
    }
    if ((code = pnr_drf_properties_read(r->path, &r->layout, error)) != PNR_OK)
        return code;
    rewind_files(r);
    code = load_samples(r, error);
    if (code == PNR_EEND)
        return pnr_error_set(
            error, PNR_EDATA,
            "%.200s: no file YYYY-MM-DDTHH-MM-SS/rf@SECONDS.MS.h5 (a recorder that "
            "still writes its first file has only tmp.rf@...)",
            r->input->name);
    if (code != PNR_OK)
        return code;
    r->sample_bytes =
        r->form->number.bytes * (r->layout.is_complex ? 2 : 1) * (size_t)r->layout.n_channels;
    if ((r->stage = malloc(STAGE_BYTES)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a Digital RF source");
    return PNR_OK;
}

/* Opens the recording at its first sample. *end: number of the sample after its last one. */
static int find_bounds(recording *r, uint64_t *end, pnr_error *error)
{
    int code = open_recording(r, error);

    if (code != PNR_OK)
        return code;
    rewind_files(r);
    if ((code = measure(r, end, error)) != PNR_OK)
        return code;
    rewind_files(r);
    return find_present(r, error);
}

/* Tries the recording in a child process, because HDF5 1.10.8 crashes on some damaged files.
 * Returns false if the child crashed, or needed more than CHILD_S seconds of processor time. The
 * caller then refuses the recording. */
static bool is_survived(recording *r)
{
    const struct rlimit time = {CHILD_S, CHILD_S}, no_core = {0, 0};
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        pnr_error unused;
        uint64_t end = 0;

        (void)setrlimit(RLIMIT_CPU, &time);
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)find_bounds(r, &end, &unused);
        _exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}

static int recording_describe(pnr_source_input *input, const pnr_config *config,
                              pnr_source_info *info, void **state, pnr_error *error)
{
    recording *r = calloc(1, sizeof *r);
    uint64_t end = 0;
    char rate[48];
    int code;

    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a Digital RF source");
    *state = r;
    r->input = input;
    r->follows = config->source.follow;
    if (!is_survived(r))
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: the properties or a file of samples are damaged: HDF5 does "
                             "not survive them",
                             input->name);
    code = find_bounds(r, &end, error);
    if (code == PNR_EEND)
        return pnr_error_set(error, PNR_EDATA, "%.200s: all samples are missing", input->name);
    if (code != PNR_OK)
        return code;
    r->has_begun = true;
    r->first = r->position = r->staged_sample;
    info->format = r->layout.is_complex ? r->form->complex_format : r->form->real_format;
    info->n_channels = (size_t)r->layout.n_channels;
    info->rate_hz = r->layout.rate_hz;
    info->n_samples = r->follows || end <= r->position ? UINT64_MAX : end - r->position;
    info->loss_visibility = PNR_LOSS_EXACT;
    info->start_utc_ns = pnr_rational_time_ns(info->rate_hz, r->position);
    info->has_start = true;
    snprintf(info->text, sizeof info->text, "Digital RF %s%s as %s, %zu %s, %s Hz%s",
             r->layout.is_complex ? "c" : "r", r->form->name, pnr_format_get(info->format)->name,
             info->n_channels, info->n_channels == 1 ? "channel" : "channels",
             pnr_rational_format(info->rate_hz, rate), r->follows ? ", followed" : "");
    return PNR_OK;
}

/* Opens the first file that has samples at or after this position, and skips the samples before the
 * position. */
static int recording_seek(void *state, uint64_t position, pnr_error *error)
{
    recording *r = state;
    const uint64_t wanted = r->first + position;
    const int64_t ms = pnr_rational_time_ns(r->layout.rate_hz, wanted) / 1000000;
    const int64_t file_ms = ms - 2 * r->layout.file_ms;
    const int64_t folder_s = ms / 1000 - 2 * r->layout.folder_s;
    int code = PNR_OK;

    rewind_files(r);
    r->file_ms = file_ms > 0 ? file_ms : -1;
    r->folder_s = folder_s > 0 ? folder_s : -1;
    while (r->staged_sample + r->n_present <= wanted || r->n_present == 0) {
        drop_staged(r, r->n_present);
        r->n_present = 0;
        if ((code = find_present(r, error)) != PNR_OK)
            break;
    }
    if (code == PNR_OK && r->staged_sample < wanted) {
        const size_t n = (size_t)(wanted - r->staged_sample);

        drop_staged(r, n);
        r->n_present -= n;
    }
    r->position = wanted;
    return code == PNR_EEND ? PNR_OK : code;
}

static int recording_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                          pnr_error *error)
{
    recording *r = state;
    const int code = find_present(r, error);

    if (code == PNR_EEND && r->follows) {
        (void)pnr_clock_sleep_until(pnr_clock_ns() + PATIENCE_MS * UINT64_C(1000000), NULL);
        return PNR_EAGAIN;
    }
    if (code != PNR_OK)
        return code;
    if (r->staged_sample > r->position) {
        block->gap = r->staged_sample - r->position;
        r->position = r->staged_sample;
        return PNR_OK;
    }
    block->n_samples = r->n_present < max_samples ? r->n_present : max_samples;

    const size_t n_bytes = block->n_samples * r->sample_bytes;

    memcpy(data, r->stage + r->staged_at, n_bytes);
    pnr_number_convert(&r->form->number, data, n_bytes / r->form->number.bytes);
    drop_staged(r, block->n_samples);
    r->n_present -= block->n_samples;
    r->position += block->n_samples;
    return PNR_OK;
}

static void recording_close(void *state)
{
    recording *r = state;

    pnr_drf_file_close(&r->file);
    free(r->folders.items);
    free(r->files.items);
    free(r->stage);
    free(r->path);
    free(r);
}

static const pnr_source_kind digital_rf = {.title = "a Digital RF recording",
                                           .describe = recording_describe,
                                           .seek = recording_seek,
                                           .read = recording_read,
                                           .close = recording_close};
PNR_SOURCE_MODULE(digital_rf);
