/* SPDX-License-Identifier: MIT */
/* Opens the input, and chooses the kind of source that reads it. Compares rate, format and channels
 * of the input with the configuration. Reports the samples of source.lost as gaps. */
#include "source/source.h"

#include "base/log.h"
#include "base/module.h"
#include "source/kind.h"
#include "source/plausible.h"

#include "base/clock.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_digital_rf(const pnr_source_input *input, const pnr_config *config)
{
    (void)config;
    return input->is_folder && (faccessat(input->fd, "drf_properties.h5", F_OK, 0) == 0 ||
                                faccessat(input->fd, "metadata.h5", F_OK, 0) == 0);
}

/* The kinds whose operations are in modules. */
static const pnr_source_kind alsa = {
    .prefix = "alsa:", .module = "source-alsa", .package = "libasound2-dev"};
static const pnr_source_kind digital_rf = {
    .is_for = is_digital_rf, .module = "source-digital-rf", .package = "libhdf5-dev"};
static const pnr_source_kind soapy = {
    .prefix = "soapy:", .module = "source-soapy", .package = "libsoapysdr-dev"};

/* The first kind in this order that reads an input is chosen. */
static const pnr_source_kind *const kinds[] = {
    &alsa,
    &soapy,
    &digital_rf,
    &pnr_source_rtl_tcp,
    &pnr_source_zmq_sub,
    &pnr_source_zmq_pull,
    &pnr_source_udp,
    &pnr_source_vrt,
    &pnr_source_sigmf,
    &pnr_source_sound,
    &pnr_source_raw,
};

struct pnr_source {
    pnr_source_input input;
    const pnr_source_kind *kind;
    void *state;
    pnr_source_info info;
    uint64_t position;   /* index of the next sample to read */
    const pnr_run *lost; /* [n_lost] intervals of lost samples, from source.lost */
    size_t n_lost, next_lost;
    pnr_plausible statistics;
    const char *doubt;      /* warning about the format, if it is not logged yet; else NULL */
    uint64_t least_samples; /* the stream has at least this number of samples, see pnr_source_pad */
    uint64_t end;           /* position after the last sample to read; UINT64_MAX: the end of the
                             * input */
};

/* Returns the number of samples that source.lost adds to n_samples recorded samples. *n_beyond: the
 * number of its intervals that begin after the end of the recording. They are ignored. */
static uint64_t count_lost(const pnr_source *source, uint64_t n_samples, size_t *n_beyond)
{
    uint64_t lost = 0;
    size_t i = 0;

    while (i < source->n_lost && source->lost[i].first - lost <= n_samples)
        lost += source->lost[i++].count;
    *n_beyond = source->n_lost - i;
    return lost;
}

/* Adds the samples of source.lost to info->n_samples and info->n_lost. Appends both numbers to
 * info->text. Refuses source.lost if the input states its own losses. */
static int account_for_lost(pnr_source *source, pnr_error *error)
{
    pnr_source_info *info = &source->info;
    size_t used = strlen(info->text);
    char *rest = info->text + used;
    size_t room = sizeof info->text - used;
    const pnr_run *last = source->n_lost > 0 ? &source->lost[source->n_lost - 1] : NULL;
    size_t n_beyond = 0;
    uint64_t lost = 0;
    int length;

    if (last != NULL && last->count >= UINT64_MAX - last->first)
        return pnr_refuse(
            error, "source.lost: %" PRIu64 " samples from sample %" PRIu64 " is beyond any stream",
            last->count, last->first);
    if (last != NULL && (info->loss_visibility == PNR_LOSS_EXACT || info->n_lost > 0))
        return pnr_refuse(error, "source.lost: %.200s states its own losses: leave source.lost out",
                          source->input.name);
    if (info->n_samples == UINT64_MAX) {
        snprintf(rest, room, ", length not known: %s", source->input.name);
        return PNR_OK;
    }
    lost = count_lost(source, info->n_samples, &n_beyond);
    if (lost >= UINT64_MAX - info->n_samples)
        return pnr_refuse(error, "source.lost: %" PRIu64 " samples lost is beyond any stream",
                          lost);
    info->n_samples += lost;
    info->n_lost += lost;
    length = snprintf(rest, room, ", %" PRIu64 " samples", info->n_samples);
    if (info->n_lost > 0)
        length += snprintf(rest + length, room - (size_t)length, ", %" PRIu64 " of them lost",
                           info->n_lost);
    if (n_beyond > 0)
        length += snprintf(rest + length, room - (size_t)length,
                           " (source.lost beyond the end: %zu)", n_beyond);
    snprintf(rest + length, room - (size_t)length, ": %s", source->input.name);
    return PNR_OK;
}

static int open_failure(int number)
{
    if (number == EACCES || number == EPERM)
        return PNR_EPERMISSION;
    if (number == EIO || number == EMFILE || number == ENFILE || number == ENOMEM)
        return PNR_EIO;
    return PNR_ENOINPUT;
}

/* Opens the path, or uses stdin, and fills *input. */
static int open_input(pnr_source_input *input, const char *path, pnr_error *error)
{
    struct stat status;
    off_t offset;

    if (path[0] == '\0')
        return pnr_error_set(error, PNR_ENOINPUT,
                             "no input: name a file, a FIFO or - (stdin), or set source.input");
    input->is_stdin = strcmp(path, "-") == 0;
    if (input->is_stdin)
        input->fd = STDIN_FILENO;
    else /* with O_NONBLOCK, open does not wait for the writer of a FIFO */
        input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (input->fd < 0)
        return pnr_error_file(error, open_failure(errno), "input", path, errno);
    if (fstat(input->fd, &status) != 0)
        return pnr_error_file(error, PNR_ENOINPUT, "input", input->name, errno);
    input->is_folder = S_ISDIR(status.st_mode);
    input->is_regular = S_ISREG(status.st_mode);
    if (!input->is_regular)
        return PNR_OK;
    offset = lseek(input->fd, 0, SEEK_CUR); /* another program may have read a part of stdin */
    if (offset < 0)
        return pnr_error_file(error, PNR_EIO, "input", input->name, errno);
    input->first_byte = (uint64_t)offset;
    input->n_bytes = status.st_size > offset ? (uint64_t)(status.st_size - offset) : 0;
    ssize_t n_head;
    do
        n_head = pread(input->fd, input->head, sizeof input->head, offset);
    while (n_head < 0 && errno == EINTR);
    if (n_head < 0)
        return pnr_error_file(error, PNR_EIO, "input", input->name, errno);
    input->n_head = (size_t)n_head;
    if (input->n_bytes == 0)
        return pnr_error_set(error, PNR_EDATA, "input %s: the file is empty: did the recorder run?",
                             input->name);
    return PNR_OK;
}

/* Returns the words that explain the number of channels of a sound file, or "". */
static const char *explain_channels(const pnr_source *source)
{
    return source->kind == &pnr_source_sound && pnr_format_get(source->info.format)->is_complex
               ? ": two channels of the file are taken as I and Q; for two real signals, set "
                 "source.layout = channels"
               : "";
}

/* Checks that the configuration agrees with an input that states its own rate and format. */
static int check_against_config(const pnr_source *source, const pnr_config *config,
                                pnr_error *error)
{
    const pnr_source_info *info = &source->info;
    const pnr_rational rate_hz = config->source.rate_hz;
    const pnr_format named = pnr_source_named_format(&source->input, config);
    const char *name = source->input.name;
    char stated[48], wanted[48];

    if (rate_hz.den != 0 && info->rate_hz.den != 0 &&
        (__int128)rate_hz.num * info->rate_hz.den != (__int128)info->rate_hz.num * rate_hz.den)
        return pnr_refuse(error,
                          "%.200s: the header says %s Hz, source.rate_hz says %s Hz: leave "
                          "source.rate_hz out",
                          name, pnr_rational_format(info->rate_hz, stated),
                          pnr_rational_format(rate_hz, wanted));
    if (named != PNR_FORMAT_NONE && named != info->format)
        return pnr_refuse(error,
                          "%.200s is %s (%s), but the format is given as %s: leave source.format "
                          "out, or give it raw samples without a header",
                          name, source->kind->title, info->text, pnr_format_get(named)->name);
    if (config->source.channels > 1 && config->source.channels != info->n_channels)
        return pnr_refuse(error, "source.channels is %zu, but %.200s is %s with %zu%s",
                          config->source.channels, name, pnr_format_get(info->format)->name,
                          info->n_channels, explain_channels(source));
    return PNR_OK;
}

/* Returns the first kind that reads addresses with the prefix of `name`. NULL: `name` is the name
 * of a file or a pipe. */
static const pnr_source_kind *find_kind_of_address(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->prefix != NULL &&
            strncmp(name, kinds[i]->prefix, strlen(kinds[i]->prefix)) == 0)
            return kinds[i];
    return NULL;
}

static const pnr_source_kind *find_kind_of_file(const pnr_source_input *input,
                                                const pnr_config *config)
{
    const pnr_source_kind *const *kind = kinds;

    while ((*kind)->prefix != NULL || ((*kind)->is_for != NULL && !(*kind)->is_for(input, config)))
        kind++;
    return *kind;
}

/* Replaces source->kind by the table of operations in its module. */
static int load_kind(pnr_source *source, pnr_error *error)
{
    const pnr_source_kind *named = source->kind;
    const char *name = source->input.name;
    pnr_error reason = {0};

    if (named->module == NULL)
        return PNR_OK;

    void *module = pnr_module_load(named->module, &reason);

    if (module == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "source.input = %.160s needs the module %s.so, which is built where "
                             "%s is installed: %.160s",
                             name, named->module, named->package, reason.text);

    const pnr_source_module *found = dlsym(module, PNR_SOURCE_SYMBOL);

    if (found == NULL || found->abi != PNR_SOURCE_ABI)
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "source.input = %.160s: the module %s.so is of interface %d, this "
                             "program needs %d: install both of one version",
                             name, named->module, found != NULL ? found->abi : 0, PNR_SOURCE_ABI);
    source->kind = found->kind;
    return PNR_OK;
}

static int describe_input(pnr_source *source, const pnr_config *config, pnr_error *error)
{
    int code;

    source->kind = find_kind_of_address(config->source.input);
    source->input.is_address = source->kind != NULL;
    if (source->kind == NULL) {
        if ((code = open_input(&source->input, config->source.input, error)) != PNR_OK)
            return code;
        source->kind = find_kind_of_file(&source->input, config);
        if (source->input.is_folder && source->kind->is_for == NULL)
            return pnr_error_set(error, PNR_ENOINPUT,
                                 "input %.200s is a directory: name a file in it, or a channel of "
                                 "Digital RF, a directory with the file drf_properties.h5",
                                 source->input.name);
    }
    if ((code = load_kind(source, error)) != PNR_OK)
        return code;
    code = source->kind->describe(&source->input, config, &source->info, &source->state, error);
    if (code == PNR_OK && source->kind->title != NULL)
        code = check_against_config(source, config, error);
    return code;
}

static int begin_stream(pnr_source *source, const pnr_config *config, pnr_error *error)
{
    const int code = source->kind->open != NULL ? source->kind->open(source->state, error) : PNR_OK;

    if (code != PNR_OK)
        return code;
    if (config->transmit.output[0] != '\0' && !source->kind->transmits)
        pnr_log(PNR_LOG_WARN,
                "transmit.output = %.200s: nothing is transmitted, because source.input is no "
                "sound card (alsa:DEVICE)",
                config->transmit.output);
    pnr_plausible_begin(&source->statistics, source->info.format);
    if (config->source.channel >= source->info.n_channels)
        return pnr_refuse(error,
                          "source.channel = %zu is not there: it counts from 0, and "
                          "source.channels is %zu in %.200s%s",
                          config->source.channel, source->info.n_channels, source->input.name,
                          explain_channels(source));
    return account_for_lost(source, error);
}

const char *pnr_loss_visibility_word(pnr_loss_visibility visibility)
{
#define LOSS_WORD(name, word) [PNR_LOSS_##name] = word,
    static const char *const words[] = {PNR_LOSS_VISIBILITIES(LOSS_WORD)};

    return words[visibility];
}

pnr_format pnr_source_named_format(const pnr_source_input *input, const pnr_config *config)
{
    if (config->source.format != PNR_FORMAT_NONE || input->is_stdin || input->is_address)
        return config->source.format;
    return pnr_format_of_path(input->name);
}

char *pnr_source_channels_text(size_t n, bool is_complex, char out[PNR_CHANNELS_LEN])
{
    if (!is_complex)
        snprintf(out, PNR_CHANNELS_LEN, "%zu channel%s of real samples", n, n == 1 ? "" : "s");
    else if (n == 2)
        snprintf(out, PNR_CHANNELS_LEN, "2 channels as I and Q");
    else
        snprintf(out, PNR_CHANNELS_LEN, "%zu channels as %zu pairs of I and Q", n, n / 2);
    return out;
}

/* Creates a source and describes its input. Does not begin the stream. */
static int create_source(const pnr_config *config, pnr_source **out, pnr_error *error)
{
    const char *path = config->source.input;
    pnr_source *source;
    int code;

    *out = NULL;
    source = calloc(1, sizeof *source + strlen(path) + sizeof "stdin");
    if (!source)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a source");
    source->lost = config->source.lost;
    source->n_lost = config->source.n_lost;
    source->end = UINT64_MAX;
    source->input.fd = -1;
    source->input.name = strcpy((char *)(source + 1), strcmp(path, "-") == 0 ? "stdin" : path);
    if ((code = describe_input(source, config, error)) == PNR_OK)
        *out = source;
    else
        pnr_source_close(source);
    return code;
}

int pnr_source_open(const pnr_config *config, pnr_source **out, pnr_error *error)
{
    int code = create_source(config, out, error);

    if (code == PNR_OK && (code = begin_stream(*out, config, error)) != PNR_OK) {
        pnr_source_close(*out);
        *out = NULL;
    }
    return code;
}

/* Copies to the configuration the values that the input states. */
static void take_stated(const pnr_source_info *info, pnr_config *config)
{
    if (info->rate_hz.den != 0)
        config->source.rate_hz = info->rate_hz;
    if (info->has_start && config->source.start_time[0] == '\0')
        (void)pnr_time_format(info->start_utc_ns, config->source.start_time);
    config->source.format = info->format;
    if (config->source.channels == 1)
        config->source.channels = info->n_channels;
}

int pnr_source_complete(pnr_config *config, pnr_error *error)
{
    struct stat status;
    pnr_source *source;

    if (config->source.rate_hz.den != 0 && config->source.format != PNR_FORMAT_NONE &&
        config->source.start_time[0] != '\0')
        return PNR_OK;
    /* Opens the input only if this loses no samples. A regular file or a folder can be opened
     * again. An address needs no connection here. */
    const bool is_address = find_kind_of_address(config->source.input) != NULL;
    if (!is_address && stat(config->source.input, &status) != 0)
        return config->source.rate_hz.den == 0 && config->source.input[0] != '\0' &&
                       strcmp(config->source.input, "-") != 0
                   ? pnr_error_file(error, PNR_ENOINPUT, "source.input =", config->source.input,
                                    errno)
                   : PNR_OK;
    if (!is_address && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return PNR_OK;

    const int rc = is_address ? create_source(config, &source, error)
                              : pnr_source_open(config, &source, error);

    if (rc != PNR_OK)
        return rc;
    if (source->kind->title != NULL)
        take_stated(&source->info, config);
    pnr_source_close(source);
    return PNR_OK;
}

void pnr_source_close(pnr_source *source)
{
    if (!source)
        return;
    if (source->state)
        source->kind->close(source->state);
    if (source->input.fd >= 0 && !source->input.is_stdin)
        close(source->input.fd);
    free(source);
}

const pnr_source_info *pnr_source_get_info(const pnr_source *source)
{
    return &source->info;
}

/* Warns once if the first samples look like another format. */
static void doubt_format(pnr_source *source, const void *data, size_t n_samples)
{
    const pnr_format_info *format = pnr_format_get(source->info.format);
    const size_t n_values = n_samples * source->info.n_channels * (format->is_complex ? 2 : 1);
    const char *why = pnr_plausible_add(&source->statistics, data, n_values);

    source->doubt = why != NULL ? why : source->doubt;
    if (source->doubt == NULL || !pnr_log_is_ready())
        return;
    pnr_log(PNR_LOG_WARN, "source: is source.format = %s right? %s: %s", format->name,
            source->input.name, source->doubt);
    source->doubt = NULL;
}

void pnr_source_pad(pnr_source *source, uint64_t n_samples)
{
    source->least_samples = n_samples;
    if (source->info.n_samples < n_samples)
        source->info.n_samples = n_samples;
}

/* Skips the intervals of source.lost before `position`. Returns the number of lost samples before
 * `position`. */
static uint64_t skip_lost(pnr_source *source, uint64_t position)
{
    uint64_t lost = 0;

    for (; source->next_lost < source->n_lost; source->next_lost++) {
        const pnr_run *run = &source->lost[source->next_lost];

        if (run->first >= position)
            break;
        if (run->count > position - run->first)
            return lost + position - run->first;
        lost += run->count;
    }
    return lost;
}

int pnr_source_limit(pnr_source *source, uint64_t first, uint64_t end, pnr_error *error)
{
    if (source->kind->seek == NULL || source->info.n_samples == UINT64_MAX)
        return pnr_refuse(error,
                          "source.first_sample and source.n_samples are a part of a recording: "
                          "%.200s cannot be read from the middle",
                          source->input.name);
    source->end = end;
    source->position = first;
    return source->kind->seek(source->state, first - skip_lost(source, first), error);
}

void pnr_source_report_to(pnr_source *source, pnr_events *events)
{
    source->input.events = events;
}

void pnr_source_refuse(pnr_source_input *input, const char *reason)
{
    const uint64_t now = pnr_clock_ns();

    atomic_fetch_add(&input->n_refused, 1);
    if (input->refused_log_ns != 0 && now - input->refused_log_ns < (uint64_t)PNR_NS_PER_S)
        return;
    input->refused_log_ns = now;
    if (pnr_log_is_ready())
        pnr_log(PNR_LOG_WARN, "source: a message is refused: %s", reason);
}

uint64_t pnr_source_refused(const pnr_source *source)
{
    return atomic_load(&source->input.n_refused);
}

uint64_t pnr_source_dropped(const pnr_source *source)
{
    return atomic_load(&source->input.n_dropped);
}

int pnr_source_read(pnr_source *source, void *data, size_t max_samples, pnr_source_block *block,
                    pnr_error *error)
{
    const uint64_t left = source->end - source->position;

    assert(max_samples > 0);
    *block = (pnr_source_block){0};
    if (left == 0)
        return PNR_EEND;
    if (max_samples > left)
        max_samples = (size_t)left;
    if (source->next_lost < source->n_lost) {
        const pnr_run *run = &source->lost[source->next_lost];

        if (run->first <= source->position) {
            const uint64_t gap = run->first + run->count - source->position;

            source->next_lost++;
            block->gap = gap < left ? gap : left;
            source->position += block->gap;
            return PNR_OK;
        }
        if (max_samples > run->first - source->position)
            max_samples = (size_t)(run->first - source->position);
    }
    int rc = source->kind->read(source->state, data, max_samples, block, error);
    if (rc == PNR_EEND && source->position < source->least_samples) {
        block->gap = source->least_samples - source->position;
        rc = PNR_OK;
    }
    block->gap = block->gap < left ? block->gap : left;
    source->position += block->n_samples + block->gap;
    if (rc == PNR_OK && source->kind == &pnr_source_raw)
        doubt_format(source, data, block->n_samples);
    return rc;
}
