/* SPDX-License-Identifier: MIT */
/* Receives the profiles and maps of a stream by a separate subscription, so that they never
 * displace a result. */
#include "tools/listen/profiles.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* libzmq stops reading when the queue is full. When the publisher then closes the connection, the
 * messages that libzmq has not yet read are lost. So, after the first profile, the queue is as long
 * as queue_bytes allow. */
enum { LEAST_HIGH_WATER = 8, MOST_HIGH_WATER = 100000 };
static const size_t queue_bytes = (size_t)256 << 20;
static const char *const topics[] = {"profile", "map", "end", NULL};
static const char monitor_address[] = "inproc://profiles";

struct listen_profiles {
    const pnr_subscriber_source *source;
    void *socket;
    void *monitor; /* NULL: the publisher has been reached */
    pnr_subscriber_message message;
    char run[17], ended_run[17];
    size_t bytes;  /* of the last profile */
    uint64_t last; /* last seq of this run */
    uint64_t n_run, n_received, n_missed;
};

/* --- cells --- */

/* Returns the power of a cell. cell: its index in the whole map. */
static float power_at(const listen_profile *p, size_t cell)
{
    const char *cells = p->cells;
    float value[2] = {0, 0};

    if (!p->map.row.is_complex) {
        memcpy(value, cells + cell * sizeof *value, sizeof *value);
        return value[0];
    }
    memcpy(value, cells + cell * sizeof value, sizeof value);
    return value[0] * value[0] + value[1] * value[1];
}

/* Raises each bin to the greatest power of its cells in one more row. */
static void reduce_row(const listen_profile *p, size_t row, double cells_per_bin, size_t n_bins,
                       float *bins)
{
    const pnr_profile_info *info = &p->map.row;
    size_t i, from, to;

    for (i = 0; i < n_bins; i++) {
        float greatest = bins[i];

        from = (size_t)((double)i * cells_per_bin);
        to = (size_t)((double)(i + 1) * cells_per_bin);
        to = to > from ? to : from + 1;
        for (; from < to && from < info->n_gate; from++) {
            const size_t cell = info->first_cell + from;
            const size_t at = cell < info->n_cells ? cell : cell - info->n_cells;
            const float power = power_at(p, row * info->n_cells + at);

            greatest = power > greatest ? power : greatest;
        }
        bins[i] = greatest;
    }
}

void listen_profile_reduce(const listen_profile *p, size_t first_row, size_t n_rows,
                           double cells_per_bin, size_t n_bins, float *bins)
{
    const double floor_power = p->map.row.floor;
    const float scale = floor_power > 0 ? (float)(1 / floor_power) : NAN;
    size_t c, r, i;

    for (i = 0; i < n_bins; i++)
        bins[i] = -1;
    for (c = 0; c < p->map.n_codes; c++)
        for (r = first_row; r < first_row + n_rows; r++)
            reduce_row(p, c * p->map.n_rows + r, cells_per_bin, n_bins, bins);
    for (i = 0; i < n_bins; i++)
        bins[i] = bins[i] >= 0 && isfinite(bins[i] * scale) ? bins[i] * scale : NAN;
}

double listen_range_m(const pnr_profile_info *info, double cell)
{
    return info->metres_per_second * (info->delay_s + cell * info->step_s);
}

bool listen_is_km(const pnr_profile_info *info)
{
    return fmax(fabs(listen_range_m(info, 0)), fabs(listen_range_m(info, (double)info->n_gate))) >=
           1e4;
}

listen_doppler listen_doppler_of(const pnr_map_info *map, size_t most_bins)
{
    const double first_hz = pnr_map_doppler_hz(map, 0);
    const double span_hz = pnr_map_doppler_hz(map, map->n_rows - 1) - first_hz;
    const size_t n = map->n_rows < most_bins ? map->n_rows : most_bins;
    const double row_hz = map->n_rows > 1 ? span_hz / (double)(map->n_rows - 1) : 1;
    const double step_hz = row_hz * (double)map->n_rows / (double)n;

    /* The outer rows extend half a row beyond their middles. */
    return (listen_doppler){first_hz + (step_hz - row_hz) / 2, step_hz, n};
}

/* Returns the first row at or above a Doppler. */
static size_t row_from(const pnr_map_info *map, double doppler_hz)
{
    size_t low = 0, high = map->n_rows;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (pnr_map_doppler_hz(map, middle) < doppler_hz)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t listen_doppler_rows(const listen_doppler *doppler, const pnr_map_info *map, size_t bin,
                           size_t *first_row)
{
    /* The tolerance keeps rounding from putting a row between two bins, or into both. */
    const double middle_hz = doppler->first_hz + (double)bin * doppler->step_hz;
    const double slack_hz = doppler->step_hz * 1e-6;
    const size_t from = row_from(map, middle_hz - doppler->step_hz / 2 - slack_hz);
    const size_t to = row_from(map, middle_hz + doppler->step_hz / 2 - slack_hz);

    *first_row = from;
    if (to > from)
        return to - from;
    if (from == map->n_rows || (from > 0 && middle_hz - pnr_map_doppler_hz(map, from - 1) <
                                                pnr_map_doppler_hz(map, from) - middle_hz))
        *first_row = from - 1;
    return 1;
}

/* --- messages --- */

static void count_profile(listen_profiles *p, const pnr_report *head)
{
    if (strcmp(p->run, head->run) != 0) {
        memcpy(p->run, head->run, sizeof p->run);
        p->n_run = 0;
    }
    if (p->n_run > 0 && head->seq > p->last)
        p->n_missed += head->seq - p->last - 1;
    p->last = head->seq;
    p->n_run++;
    p->n_received++;
}

/* Counts the profiles missing at the end of a run. Each result has a profile, so the profiles after
 * the last received one are missing. */
void listen_profiles_finish(listen_profiles *p, const pnr_end_summary *end)
{
    if (p->n_run > 0 && strcmp(p->run, end->run) == 0 && end->account.results > p->last + 1) {
        p->n_missed += end->account.results - 1 - p->last;
        p->last = end->account.results - 1;
    }
    memcpy(p->ended_run, end->run, sizeof p->ended_run);
}

static bool is_wanted(const listen_profiles *p, const char *stream)
{
    return p->source->stream == NULL || strcmp(p->source->stream, stream) == 0;
}

/* Makes the queue as long as queue_bytes allow for messages of this size. */
static void fit_queue(listen_profiles *p, size_t bytes)
{
    const size_t most = queue_bytes / (bytes > 0 ? bytes : 1);
    const int high_water = most < LEAST_HIGH_WATER  ? LEAST_HIGH_WATER
                           : most > MOST_HIGH_WATER ? MOST_HIGH_WATER
                                                    : (int)most;

    p->bytes = bytes;
    (void)zmq_setsockopt(p->socket, ZMQ_RCVHWM, &high_water, sizeof high_water);
}

/* Reads the received message. PNR_OK: a profile of this stream; PNR_EAGAIN: another message. */
static int take_message(listen_profiles *p, listen_profile *out, pnr_error *error)
{
    pnr_end_summary end;
    size_t length, bytes;
    const char *text = pnr_subscriber_part(&p->message, 1, &length);
    int code;

    if (pnr_subscriber_has_topic(&p->message,
                                 "end/")) { /* the reader of the results reports a bad end
                                             * message */
        if (pnr_message_read_end(text, length, &end, NULL) == PNR_OK && is_wanted(p, end.stream))
            listen_profiles_finish(p, &end);
        return PNR_EAGAIN;
    }
    out->cells = pnr_subscriber_part(&p->message, 2, &bytes);
    if (bytes != p->bytes)
        fit_queue(p, bytes);
    if (pnr_subscriber_has_topic(&p->message, "map/")) {
        code = pnr_message_read_map(text, length, bytes, &out->head, &out->map, error);
    } else {
        out->map = (pnr_map_info){.n_codes = 1, .n_rows = 1, .n_runs = 1, .mps_per_hz = NAN};
        out->map.runs[0].n_rows = 1;
        code = pnr_message_read_profile(text, length, bytes, &out->head, &out->map.row, error);
    }
    if (code != PNR_OK)
        return code;
    if (!is_wanted(p, out->head.stream))
        return PNR_EAGAIN;
    count_profile(p, &out->head);
    return PNR_OK;
}

int listen_profiles_next(listen_profiles *p, listen_profile *out, pnr_error *error)
{
    int code = PNR_EAGAIN;

    while (code == PNR_EAGAIN) {
        pnr_subscriber_release(&p->message);
        if (pnr_subscriber_receive(p->socket, &p->message) != PNR_OK)
            return PNR_EAGAIN;
        code = take_message(p, out, error);
    }
    return code;
}

bool listen_profiles_reached(listen_profiles *p)
{
    return pnr_subscriber_reached(p->socket, &p->monitor);
}

bool listen_profiles_ended(const listen_profiles *p, const char *run)
{
    return strcmp(p->ended_run, run) == 0;
}

void listen_profiles_print(const listen_profiles *p, FILE *stream)
{
    fprintf(stream, "%" PRIu64 " profiles received, %" PRIu64 " missed\n", p->n_received,
            p->n_missed);
}

void *listen_profiles_socket(listen_profiles *p)
{
    return p->monitor != NULL ? p->monitor : p->socket;
}

/* --- open and close --- */

int listen_profiles_open(void *context, const pnr_subscriber_source *source, listen_profiles **out,
                         pnr_error *error)
{
    listen_profiles *p = calloc(1, sizeof *p);
    int code;

    *out = NULL;
    if (p == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "profiles: out of memory");
    p->source = source;
    if ((code = pnr_subscriber_create(context, source, topics, MOST_HIGH_WATER, &p->socket,
                                      error)) != PNR_OK ||
        (code = pnr_subscriber_watch(context, p->socket, monitor_address, &p->monitor, error)) !=
            PNR_OK ||
        (code = pnr_subscriber_connect(p->socket, source, error)) != PNR_OK) {
        listen_profiles_close(p);
        return code;
    }
    *out = p;
    return PNR_OK;
}

void listen_profiles_close(listen_profiles *p)
{
    if (p == NULL)
        return;
    pnr_subscriber_release(&p->message);
    pnr_subscriber_unwatch(p->socket, &p->monitor);
    pnr_subscriber_destroy(p->socket);
    free(p);
}
