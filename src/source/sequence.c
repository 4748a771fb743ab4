/* SPDX-License-Identifier: MIT */
/* Computes positions of datagrams. VITA-49 counts packets only modulo 16. Its time stamps give the
 * full count. */
#include "source/sequence.h"

#include "base/format.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Without time stamps, the count of a packet is compared with the count of the latest packet,
 * modulo COUNTS. A packet that is 1 to MOST_BACK counts behind came late. All others are ahead, or
 * duplicates. */
enum { COUNT_BYTES = 8, COUNTS = 16, MOST_BACK = 4 };

static const uint64_t vrt_begin = UINT64_C(1) << 62; /* number of the first sample if the stream has
                                                      * no sample numbers */
static const uint64_t most_first = UINT64_C(3) << 61;

int pnr_sequence_init(const pnr_config *config, bool is_vrt, pnr_format format, pnr_sequence *out,
                      pnr_error *error)
{
    const char *stream = config->source.vrt_stream;
    char *end;
    const unsigned long long number = strtoull(stream, &end, 0);

    if (is_vrt && (*end != '\0' || number > UINT32_MAX || strchr(stream, '-') != NULL))
        return pnr_refuse(error, "source.vrt_stream = %.64s: want 0..4294967295, or 0x in front",
                          stream);
    *out = (pnr_sequence){.is_vrt = is_vrt,
                          .counts_packets = config->source.udp_count == PNR_UDP_PACKETS,
                          .uses_time = config->source.vrt_place == PNR_VRT_BY_TIME,
                          .has_stream = stream[0] != '\0',
                          .is_filter = stream[0] != '\0',
                          .stream = (uint32_t)number,
                          .centre_hz = config->source.centre_hz,
                          .rate_hz = config->source.rate_hz,
                          .format = format,
                          .n_channels = config->source.channels > 0 ? config->source.channels : 1};
    out->sample_bytes = pnr_format_get(format)->bytes * out->n_channels;
    return PNR_OK;
}

size_t pnr_sequence_header_bytes(const pnr_sequence *s, const unsigned char *bytes)
{
    if (!s->is_vrt)
        return COUNT_BYTES;
    return pnr_vrt_is_data(bytes) ? pnr_vrt_header_bytes(bytes) : 0;
}

static int count_samples(const pnr_sequence *s, pnr_datagram *out, pnr_error *error)
{
    out->n_samples = out->n_payload / s->sample_bytes;
    if (out->n_payload % s->sample_bytes != 0 || out->n_samples == 0)
        return pnr_error_set(error, PNR_EDATA, "its %zu bytes are no whole samples of %zu",
                             out->n_payload, s->sample_bytes);
    return PNR_OK;
}

static int place_plain(const pnr_sequence *s, const unsigned char *bytes, size_t n_total,
                       pnr_datagram *out, pnr_error *error)
{
    uint64_t count;

    if (n_total <= COUNT_BYTES)
        return pnr_error_set(error, PNR_EDATA, "%zu bytes are no count and samples", n_total);
    memcpy(&count, bytes, sizeof count);
    count = le64toh(count);
    out->n_header = COUNT_BYTES;
    out->n_payload = n_total - COUNT_BYTES;
    if (count_samples(s, out, error) != PNR_OK)
        return PNR_EDATA;
    if (s->counts_packets && s->has_begun && out->n_samples != s->latest.n_samples)
        return pnr_error_set(error, PNR_EDATA,
                             "it has %zu samples and the first one had %zu: with source.udp_count "
                             "= packets all are equal",
                             out->n_samples, s->latest.n_samples);
    if (count > most_first / (s->counts_packets ? out->n_samples : 1))
        return pnr_error_set(error, PNR_EDATA, "its count is %" PRIu64, count);
    out->first = s->counts_packets ? count * out->n_samples : count;
    return PNR_OK;
}

/* --- VITA-49 --- */

static bool has_format(const pnr_sequence *s, const pnr_vrt_format *stated)
{
    const pnr_format_info *ours = pnr_format_get(s->format);

    return stated->is_complex == ours->is_complex && stated->is_float == ours->is_float &&
           stated->is_signed == (ours->offset == 0) &&
           stated->bits == ours->bytes * 8 / (ours->is_complex ? 2 : 1) &&
           stated->n_channels == s->n_channels;
}

/* Compares a context with the configuration. */
static int check_context(const pnr_sequence *s, const pnr_vrt_packet *context, pnr_error *error)
{
    const double rate_hz = pnr_rational_double(s->rate_hz);
    const pnr_vrt_format *stated = &context->format;

    if (context->rate_hz > 0 && fabs(context->rate_hz / rate_hz - 1) > 1e-6)
        return pnr_refuse(error, "the context says %.10g Hz, source.rate_hz says %.10g Hz",
                          context->rate_hz, rate_hz);
    if (context->frequency_hz > 0 && s->centre_hz > 0 &&
        fabs(context->frequency_hz - s->centre_hz) > 1)
        return pnr_refuse(error,
                          "the context says a frequency of %.12g Hz, source.centre_hz says %.12g "
                          "Hz",
                          context->frequency_hz, s->centre_hz);
    if (context->has_format && !has_format(s, stated))
        return pnr_refuse(error,
                          "the context says %s%s samples of %u bits in %zu %s, source.format says "
                          "%s in %zu",
                          stated->is_complex ? "complex " : "real ",
                          stated->is_float    ? "float"
                          : stated->is_signed ? "integer"
                                              : "unsigned",
                          stated->bits, stated->n_channels,
                          stated->n_channels == 1 ? "channel" : "channels",
                          pnr_format_get(s->format)->name, s->n_channels);
    return PNR_EAGAIN;
}

/* Returns the number of samples from the latest packet to this one. Uses only the packet count. */
static int64_t count_on(const pnr_sequence *s, const pnr_datagram *d)
{
    int ahead = (int)((d->count - s->latest.count) % COUNTS);

    if (ahead >= COUNTS - MOST_BACK)
        ahead -= COUNTS;
    return ahead * (int64_t)(ahead < 0 ? d->n_samples : s->latest.n_samples);
}

/* Returns the number of samples from the latest packet to this one. The time stamps give this
 * number with an error of at most 10 ppm and one sample. The packet count gives the exact number if
 * all packets have the same length, or if this packet follows the latest one. Returns the exact
 * number if it agrees with the time stamps. If it does not agree, the sender itself has lost
 * samples. Then, or without an exact number, returns the number from the time stamps. */
static int64_t time_on(const pnr_sequence *s, const pnr_datagram *d)
{
    const int64_t n = (int64_t)s->latest.n_samples;
    const int64_t elapsed = pnr_vrt_elapsed(&s->latest.vrt, &d->vrt, s->rate_hz);
    const int64_t whole = elapsed / n;
    int64_t off = ((int64_t)d->count - (int64_t)s->latest.count - whole) % COUNTS;

    off += off >= COUNTS / 2 ? -COUNTS : off < -COUNTS / 2 ? COUNTS : 0;

    const bool is_counted = !s->is_uneven || whole + off == 1;
    const int64_t counted = (whole + off) * n;

    return is_counted && llabs(counted - elapsed) <= 1 + llabs(elapsed) / 100000 ? counted
                                                                                 : elapsed;
}

static int place_by_time(const pnr_sequence *s, pnr_datagram *out, pnr_error *error)
{
    const pnr_vrt_time *latest = &s->latest.vrt;
    int64_t ahead;

    if (!pnr_vrt_time_is_exact(&out->vrt))
        return pnr_error_set(
            error, PNR_EDATA,
            "its time stamp does not tell samples apart: set source.vrt_place = count");
    if (!s->has_begun)
        return PNR_OK;
    if (out->vrt.seconds_kind != latest->seconds_kind ||
        out->vrt.fraction_kind != latest->fraction_kind)
        return pnr_error_set(error, PNR_EDATA, "its time stamp has another form than before");
    ahead = time_on(s, out);
    if (ahead < 0 && (uint64_t)-ahead > s->latest.first)
        return pnr_error_set(error, PNR_EDATA, "its time stamp is far in the past");
    out->first = s->latest.first + (uint64_t)ahead;
    return PNR_OK;
}

/* Checks that a packet belongs to the wanted stream. If the configuration names no stream, the
 * first data packet chooses it. */
static int check_stream(pnr_sequence *s, const pnr_vrt_packet *packet, pnr_error *error)
{
    if (!s->is_filter && !s->has_begun && !packet->is_context) {
        s->has_stream = packet->has_stream;
        s->stream = packet->stream;
    }
    if (packet->has_stream == s->has_stream && packet->stream == s->stream)
        return PNR_OK;
    if (s->is_filter || packet->is_context)
        return PNR_EAGAIN;
    return pnr_error_set(error, PNR_EDATA, "its stream is 0x%" PRIx32 ": set source.vrt_stream",
                         packet->stream);
}

static int place_vrt(pnr_sequence *s, const unsigned char *bytes, size_t n_bytes, size_t n_total,
                     pnr_datagram *out, pnr_error *error)
{
    pnr_vrt_packet packet;
    int code = pnr_vrt_read(bytes, n_bytes, n_total, &packet, error);

    if (code != PNR_OK)
        return code;
    out->n_header = packet.n_header;
    out->n_payload = packet.n_payload;
    out->count = packet.count;
    out->vrt = packet.time;
    out->first = vrt_begin;
    if (!packet.is_context && (code = count_samples(s, out, error)) != PNR_OK)
        return code;
    if ((code = check_stream(s, &packet, error)) != PNR_OK)
        return code;
    if (packet.is_context)
        return check_context(s, &packet, error);
    out->has_time = pnr_vrt_utc(&out->vrt, s->rate_hz, &out->utc_ns);
    if (s->uses_time)
        return place_by_time(s, out, error);
    if (s->has_begun)
        out->first = s->latest.first + (uint64_t)count_on(s, out);
    return PNR_OK;
}

int pnr_sequence_place(pnr_sequence *s, const unsigned char *bytes, size_t n_bytes, size_t n_total,
                       pnr_datagram *out, pnr_error *error)
{
    *out = (pnr_datagram){0};
    return s->is_vrt ? place_vrt(s, bytes, n_bytes, n_total, out, error)
                     : place_plain(s, bytes, n_total, out, error);
}

void pnr_sequence_follow(pnr_sequence *s, const pnr_datagram *d)
{
    s->is_uneven |= s->has_begun && d->n_samples != s->latest.n_samples;
    if (s->has_begun && d->first < s->latest.first)
        return;
    s->latest = *d;
    s->has_begun = true;
}
