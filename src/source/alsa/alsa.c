/* SPDX-License-Identifier: MIT */
/* Records samples with a sound card. If transmit.output is set, the card transmits the code at the
 * same time. One thread reads frames, and then writes the same number of frames. */
#include "base/clock.h"
#include "base/log.h"
#include "source/alsa/device.h"
#include "source/alsa/player.h"
#include "source/kind.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PATIENCE_MS = 50,
    MOST_STOPS = 16, /* limit of the number of stops since the last frame */
    /* After a restart the transmitter is silent for 1/SILENT_SHARE of its buffer (an eighth of a
     * second). During this time the thread computes the position of the first captured frame. */
    SILENT_SHARE = 4
};

typedef struct card {
    pnr_alsa_device capture;
    pnr_alsa_player *player; /* NULL: nothing is transmitted */
    bool is_linked;          /* both directions start and stop together */
    const pnr_source_input *input;
    const pnr_config *config;
    const pnr_source_info *info;
    double rate_hz;
    bool is_short;          /* samples in memory are 16-bit integers; false: floats */
    unsigned char *staging; /* [capture.buffer] frames */
    snd_pcm_status_t *status;

    uint64_t position;   /* position of the next frame in the stream */
    uint64_t n_captured; /* frames read since the last start */
    uint64_t n_dropped;  /* number of frames after a restart that count as lost, because the
                          * transmitter was silent */
    bool has_begun;
    bool is_restarted; /* the position of the first frame after the restart is not known yet */
    /* The card captured the frame before stamp_position at the time stamp_ns of CLOCK_BOOTTIME,
     * which also runs while the machine sleeps. */
    uint64_t stamp_position;
    int64_t stamp_ns; /* 0: no frame was captured yet */
    int64_t slept_ns; /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC */

    int write_error;  /* ALSA's error from the last write to the transmitter: the card must start
                       * again; 0: no error */
    unsigned n_stops; /* number of stops since the last frame */
} card;

static const char prefix[] = "alsa:";

/* --- start and stop --- */

/* Stops both directions, and starts them again. If the directions are linked, their first frames
 * have the same time. n_silent: number of silent frames with which the transmitter begins. Returns
 * 0, or an error of ALSA. */
static int start_card(card *c, uint64_t n_silent)
{
    snd_pcm_t *capture = c->capture.pcm;
    snd_pcm_t *playback = c->player != NULL ? pnr_alsa_player_device(c->player)->pcm : NULL;
    int code;

    /* A stop of one linked direction also stops the other. So both directions stop before either of
     * them is prepared. */
    (void)snd_pcm_drop(capture);
    if (playback != NULL)
        (void)snd_pcm_drop(playback);
    c->n_captured = 0;
    c->n_dropped = n_silent;
    if ((code = snd_pcm_prepare(capture)) < 0 ||
        (playback != NULL && (code = pnr_alsa_player_fill(c->player, c->position, n_silent)) < 0) ||
        (playback != NULL && !c->is_linked && (code = snd_pcm_start(playback)) < 0))
        return code;
    return snd_pcm_start(capture);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * PNR_NS_PER_S + now.tv_nsec;
}

/* Returns CLOCK_BOOTTIME minus CLOCK_MONOTONIC, the time that the machine has slept. One clock is
 * read after the other, so the readings give an interval for the difference. Returns the previous
 * value if it is in this interval, else the middle of the interval. */
static int64_t measure_sleep(card *c)
{
    const int64_t before = (int64_t)pnr_clock_ns(), boot = clock_ns(CLOCK_BOOTTIME),
                  after = (int64_t)pnr_clock_ns();

    if (c->slept_ns < boot - after || c->slept_ns > boot - before)
        c->slept_ns = boot - before - (after - before) / 2;
    return c->slept_ns;
}

/* Waits for frames. Sets the time of the newest frame (the present time if the card has no time
 * stamps), and the number of waiting frames. Returns 1: there are frames; 0: there are none within
 * 50 ms; -EPIPE, -ESTRPIPE: the card stopped; or another error of ALSA. */
static int wait_for_frames(card *c, int64_t *newest_ns, uint64_t *n_waiting)
{
    snd_htimestamp_t stamp;
    int code = c->write_error != 0 ? c->write_error : snd_pcm_wait(c->capture.pcm, PATIENCE_MS);

    c->write_error = 0;
    if (code <= 0 || (code = snd_pcm_status(c->capture.pcm, c->status)) < 0)
        return code;
    switch (snd_pcm_status_get_state(c->status)) {
    case SND_PCM_STATE_XRUN:
        return -EPIPE;
    case SND_PCM_STATE_SUSPENDED:
        return -ESTRPIPE;
    case SND_PCM_STATE_DISCONNECTED:
        return -ENODEV;
    default:
        break;
    }
    snd_pcm_status_get_htstamp(c->status, &stamp);
    *newest_ns = (int64_t)stamp.tv_sec * PNR_NS_PER_S + stamp.tv_nsec;
    if (*newest_ns == 0)
        *newest_ns = (int64_t)pnr_clock_ns();
    *newest_ns += measure_sleep(c);
    *n_waiting = snd_pcm_status_get_avail(c->status);
    return 1;
}

/* Returns the number of missing frames. The time since the last stamp gives the number of frames
 * that the card captured since then. A captured frame is missing if it was not read and does not
 * wait to be read. */
static uint64_t count_missing(const card *c, int64_t newest_ns, uint64_t n_waiting)
{
    const double passed = (double)(newest_ns - c->stamp_ns) * 1e-9 * c->rate_hz;
    const int64_t missing =
        (int64_t)(c->stamp_position - c->position) + llround(passed) - (int64_t)n_waiting;

    return c->stamp_ns != 0 && missing > 0 ? (uint64_t)missing : 0;
}

/* Computes the position of the first frame after a restart, and transmits again. Returns the number
 * of lost frames. */
static uint64_t find_position(card *c, int64_t newest_ns, uint64_t n_waiting)
{
    const uint64_t gap = count_missing(c, newest_ns, n_waiting);

    c->is_restarted = false;
    c->position += gap;
    if (c->player != NULL)
        c->write_error = pnr_alsa_player_resume(c->player, c->position);
    return gap;
}

/* --- losses --- */

/* True if the card stopped because the buffer of the transmitter was empty. False if the buffer of
 * the capture was full. */
static bool is_underrun(const card *c)
{
    if (c->player == NULL)
        return false;

    const pnr_alsa_device *played = pnr_alsa_player_device(c->player);
    const bool is_full = snd_pcm_status(c->capture.pcm, c->status) == 0 &&
                         snd_pcm_status_get_state(c->status) == SND_PCM_STATE_XRUN &&
                         snd_pcm_status_get_avail(c->status) >= c->capture.buffer;

    return !is_full && snd_pcm_status(played->pcm, c->status) == 0 &&
           snd_pcm_status_get_state(c->status) == SND_PCM_STATE_XRUN &&
           snd_pcm_status_get_avail(c->status) >= played->buffer;
}

static void tell_stop(const card *c, int number)
{
    const bool is_empty = is_underrun(c);

    pnr_event_post(c->input->events, is_empty ? PNR_EVENT_UNDERRUN : PNR_EVENT_OVERRUN, c->position,
                   0, 0, "source: %s: %s at sample %" PRIu64 "; the card starts again",
                   c->capture.address,
                   number == -ESTRPIPE ? "the machine slept"
                   : is_empty          ? "the transmitter ran empty"
                                       : "samples came faster than they were read",
                   c->position);
}

/* Starts the card immediately before the first read. If it started earlier, its buffer might be
 * full now. */
static int begin_stream(card *c, pnr_error *error)
{
    const int number = start_card(c, 0);

    c->has_begun = true;
    return number == 0 ? PNR_EAGAIN
                       : pnr_alsa_device_failed(&c->capture, "it does not start", number, error);
}

/* Starts the card again after it stopped. The transmitter is silent until the position of the first
 * captured frame is known. Returns PNR_EAGAIN, or PNR_EIO. */
static int restart_card(card *c, int number, pnr_error *error)
{
    if (number != -EPIPE && number != -ESTRPIPE)
        return pnr_alsa_device_failed(&c->capture, "reading failed", number, error);
    if (++c->n_stops > MOST_STOPS)
        return pnr_error_set(error, PNR_EIO,
                             "%s: the card stopped %d times without a sample between: %s",
                             c->capture.address, MOST_STOPS, snd_strerror(number));
    tell_stop(c, number);
    number = start_card(
        c, c->player != NULL ? pnr_alsa_player_device(c->player)->buffer / SILENT_SHARE : 0);
    c->is_restarted = true;
    return number == 0
               ? PNR_EAGAIN
               : pnr_alsa_device_failed(&c->capture, "it does not start again", number, error);
}

/* --- reading --- */

/* Reads up to n_frames frames into data, in the sample format of the memory. data NULL: drops the
 * frames. Returns the number of frames, or an error of ALSA. */
static snd_pcm_sframes_t read_frames(card *c, size_t n_frames, void *data)
{
    const bool is_direct = c->is_short && data != NULL;
    const size_t most = n_frames < c->capture.buffer ? n_frames : c->capture.buffer;
    const snd_pcm_sframes_t n =
        snd_pcm_readi(c->capture.pcm, is_direct ? data : c->staging, is_direct ? n_frames : most);

    if (n <= 0)
        return n;
    if (!is_direct && data != NULL)
        c->capture.values->read(c->staging, (size_t)n * c->capture.n_channels, data);
    c->n_captured += (uint64_t)n;
    c->position += (uint64_t)n;
    c->n_stops = 0;
    return n;
}

/* Stores the time of the newest frame. Sets the time of the block to the time of the next frame. */
static void keep_time(card *c, int64_t newest_ns, uint64_t n_waiting, pnr_source_block *block)
{
    const double age_s = (double)n_waiting / c->rate_hz;

    c->stamp_position = c->position + n_waiting;
    c->stamp_ns = newest_ns;
    block->has_time = true;
    block->utc_ns = pnr_clock_utc_ns() - ((int64_t)pnr_clock_ns() + c->slept_ns - newest_ns) -
                    (int64_t)(age_s * 1e9);
}

static int alsa_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                     pnr_error *error)
{
    card *c = state;
    int64_t newest_ns = 0;
    uint64_t n_waiting = 0, gap;

    if (!c->has_begun)
        return begin_stream(c, error);

    const int number = wait_for_frames(c, &newest_ns, &n_waiting);

    if (number <= 0)
        return number == 0 ? PNR_EAGAIN : restart_card(c, number, error);
    if (c->is_restarted && (gap = find_position(c, newest_ns, n_waiting)) > 0) {
        block->gap = gap;
        return PNR_OK;
    }
    /* Sound servers drop frames that nobody reads. They do not always report this as a stop. */
    if (count_missing(c, newest_ns, n_waiting) > c->capture.buffer / 2)
        return restart_card(c, -EPIPE, error);
    keep_time(c, newest_ns, n_waiting, block);

    const bool is_dropped = c->n_captured < c->n_dropped;
    const uint64_t most = is_dropped ? c->n_dropped - c->n_captured : max_samples;
    const snd_pcm_sframes_t n =
        read_frames(c, most < max_samples ? (size_t)most : max_samples, is_dropped ? NULL : data);

    if (n == 0 || n == -EAGAIN)
        return PNR_EAGAIN;
    if (n < 0)
        return restart_card(c, (int)n, error);
    if (c->player != NULL)
        c->write_error = pnr_alsa_player_write(c->player, (uint64_t)n);
    if (is_dropped)
        block->gap = (uint64_t)n;
    else
        block->n_samples = (size_t)n;
    return PNR_OK;
}

/* --- open and close --- */

static int alsa_describe(pnr_source_input *input, const pnr_config *config, pnr_source_info *info,
                         void **state, pnr_error *error)
{
    const pnr_rational rate_hz = config->source.rate_hz;
    const pnr_format format =
        config->source.format != PNR_FORMAT_NONE ? config->source.format : PNR_FORMAT_F32;
    card *c = calloc(1, sizeof *c);
    char text[48];

    if (c == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a sound card");
    *state = c;
    c->input = input;
    c->config = config;
    c->capture = (pnr_alsa_device){
        .key = "source.input", .address = input->name, .name = input->name + strlen(prefix)};
    if (c->capture.name[0] == '\0')
        return pnr_refuse(error,
                          "source.input = %s: want alsa:DEVICE, as alsa:hw:0 (`arecord -L` "
                          "lists them)",
                          input->name);
    if (format != PNR_FORMAT_I16 && format != PNR_FORMAT_CI16 && format != PNR_FORMAT_F32 &&
        format != PNR_FORMAT_CF32)
        return pnr_refuse(error,
                          "source.format = %s: a sound card gives i16 (16 bits), f32 (24 and 32 "
                          "bits), ci16 or cf32 (two channels are I and Q)",
                          pnr_format_get(format)->name);
    if (rate_hz.den != 1 || rate_hz.num > INT32_MAX)
        return pnr_refuse(error, "source.rate_hz is %s: a sound card needs a whole rate, as 48000",
                          rate_hz.den == 0 ? "not given" : pnr_rational_format(rate_hz, text));
    info->format = format;
    info->n_channels = config->source.channels;
    info->n_samples = UINT64_MAX;
    info->rate_hz = rate_hz;
    info->loss_visibility = PNR_LOSS_EXACT;
    info->is_live = true;
    c->info = info;
    c->rate_hz = (double)rate_hz.num;
    c->is_short = format == PNR_FORMAT_I16 || format == PNR_FORMAT_CI16;
    const bool is_complex = pnr_format_get(format)->is_complex;
    char channels[PNR_CHANNELS_LEN];

    snprintf(
        info->text, sizeof info->text, "sound card as %s, %s, %u Hz", pnr_format_get(format)->name,
        pnr_source_channels_text(info->n_channels * (is_complex ? 2 : 1), is_complex, channels),
        (unsigned)rate_hz.num);
    return PNR_OK;
}

/* Opens the transmitter if transmit.output is set, and links it to the capture. */
static int open_player(card *c, bool is_complex, pnr_error *error)
{
    const char *output = c->config->transmit.output;

    if (output[0] == '\0')
        return PNR_OK;

    const int code = pnr_alsa_player_create(c->config, is_complex, &c->player, error);

    if (code != PNR_OK)
        return code;
    c->is_linked = snd_pcm_link(c->capture.pcm, pnr_alsa_player_device(c->player)->pcm) == 0;
    pnr_log(PNR_LOG_INFO, "transmit: %s, %s, channels: %zu, amplitude %.4g", output,
            pnr_alsa_player_device(c->player)->values->name,
            pnr_alsa_player_device(c->player)->n_channels, c->config->transmit.amplitude);
    if (!c->is_linked)
        pnr_log(PNR_LOG_WARN,
                "transmit: %s and %s do not start together (hw of one card does): the zero range "
                "differs from start to start, unless radar.zero = direct-path",
                c->capture.address, output);
    return PNR_OK;
}

static int alsa_open(void *state, pnr_error *error)
{
    card *c = state;
    const bool is_complex = pnr_format_get(c->info->format)->is_complex;
    const size_t n_channels = c->info->n_channels * (is_complex ? 2 : 1);
    const pnr_alsa_values *only = c->is_short ? &pnr_alsa_formats[PNR_ALSA_FORMATS - 1] : NULL;
    int code = pnr_alsa_device_open(&c->capture, SND_PCM_STREAM_CAPTURE, (unsigned)c->rate_hz,
                                    n_channels, only, error);

    if (code != PNR_OK)
        return code;
    c->staging = malloc(c->capture.buffer * c->capture.frame_bytes);
    if (c->staging == NULL || snd_pcm_status_malloc(&c->status) < 0)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a sound card");
    return open_player(c, is_complex, error);
}

static void alsa_close(void *state)
{
    card *c = state;

    pnr_alsa_device_close(&c->capture);
    pnr_alsa_player_destroy(c->player);
    if (c->status != NULL)
        snd_pcm_status_free(c->status);
    free(c->staging);
    free(c);
}

static const pnr_source_kind kind = {.title = "a sound card",
                                     .prefix = prefix,
                                     .transmits = true,
                                     .describe = alsa_describe,
                                     .open = alsa_open,
                                     .read = alsa_read,
                                     .close = alsa_close};
PNR_SOURCE_MODULE(kind);
