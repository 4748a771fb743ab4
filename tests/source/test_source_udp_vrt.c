/* SPDX-License-Identifier: MIT */
/* Packets of VITA-49 over loopback: times, clocks, padding, contexts; what is refused. */
#include "source/vrt.h"
#include "tests/fixture/random.h"
#include "tests/fixture/source_fixture.h"
#include "tests/fixture/udp_fixture.h"

#include <endian.h>

TEST(test_a_receiver_of_vita49_that_loses_samples_itself)
{
    const form *f = &forms[2];
    uint64_t lost;
    datagram d;
    wire w;

    open_wire(&w, f->kind, "source.udp_reorder=0");
    make_datagram(f, 15, 1000, 10, &d);
    send_datagram(&w, &d);
    make_datagram(f, 16, 1023, 10, &d); /* the packet count goes on, the time jumps by 13 */
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost), 20);
    assert_int_equal(lost, 13);
    make_datagram(f, 17, 1033 + UINT64_C(3600) * RATE, 10, &d); /* the link was down for an hour */
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost), 10);
    assert_true(lost == UINT64_C(3600) * RATE);
    make_datagram(f, 18, 1043 + UINT64_C(100000) * RATE, 10, &d); /* more than a day */
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost), 0);
    expect_refused(&w, 1);
    close_wire(&w);
}

/* Stamps of a clock that is 5 ppm off and cut to microseconds; 49 packets in a row are lost. */
TEST(test_clocks_that_drift)
{
    pnr_vrt_time from = {PNR_VRT_UTC, PNR_VRT_PICOSECONDS, START_S, 0}, to = from;
    const pnr_rational rate = {3 * RATE, 7};

    to.seconds += 7 * 86400;
    assert_true(pnr_vrt_elapsed(&from, &to, rate) == INT64_C(3) * RATE * 86400);
    assert_true(pnr_vrt_elapsed(&to, &from, rate) == -INT64_C(3) * RATE * 86400);
    to.seconds = from.seconds;
    to.fraction = 999999999999;
    assert_true(pnr_vrt_elapsed(&from, &to, rate) == 428571);
    from = (pnr_vrt_time){PNR_VRT_OTHER, PNR_VRT_FREE_RUNNING, 5, UINT64_MAX};
    to = (pnr_vrt_time){PNR_VRT_OTHER, PNR_VRT_FREE_RUNNING, 900, 9};
    assert_true(pnr_vrt_elapsed(&from, &to, rate) == 10);

    const form *f = &forms[2];
    static uint32_t data[30000];
    pnr_source_block block;
    datagram d;
    wire w;

    open_wire(&w, f->kind, "source.udp_reorder=0");
    for (uint64_t i = 0; i < 3000; i++) {
        const uint64_t ps = i * 1000 * 1000000 / 200000 * 200001;
        const uint64_t fraction = htobe64(ps % 1000000000000 / 1000000 * 1000000);
        const uint32_t second = htobe32((uint32_t)(START_S + ps / 1000000000000));

        if (i % 300 > 250)
            continue; /* lost, 49 in a row */
        make_datagram(f, i, i * 1000, 1000, &d);
        memcpy(d.bytes + 8, &second, sizeof second);
        memcpy(d.bytes + 12, &fraction, sizeof fraction);
        send_datagram(&w, &d);
        while (i % 20 == 0 && w.position < (i + 1) * 1000) {
            assert_int_equal(pnr_source_read(w.source, data, COUNT(data), &block, &w.error),
                             PNR_OK);
            assert_true(block.gap == 0 || block.gap == 49000);
            w.position += block.n_samples + block.gap;
        }
    }
    assert_int_equal(w.position, 2941 * 1000);
    expect_refused(&w, 0);
    close_wire(&w);
}

TEST(test_times)
{
    static const struct {
        unsigned tsi, tsf;
        int64_t begin_s; /* 0: no time */
    } times[] = {{1, 2, START_S}, {1, 1, START_S}, {2, 2, START_S + 315964800 - 18},
                 {3, 2, 0},       {1, 3, 0},       {0, 1, 0}};

    for (size_t i = 0; i < COUNT(times); i++) {
        const form f = {.kind = "vrt", .tsi = times[i].tsi, .tsf = times[i].tsf};
        uint32_t data[64];
        pnr_source_block block;
        datagram d;
        wire w;

        open_wire(&w, f.kind, "");
        make_datagram(&f, 0, 1250000, 10, &d);
        send_datagram(&w, &d);
        assert_int_equal(pnr_source_read(w.source, data, 4, &block, &w.error), PNR_OK);
        assert_int_equal(block.has_time, times[i].begin_s != 0);
        assert_int_equal(pnr_source_read(w.source, data, 6, &block, &w.error), PNR_OK);
        if (block.has_time)
            assert_true(block.utc_ns == times[i].begin_s * 1000000000 + 1250004000);
        close_wire(&w);
    }
}

/* --- what is refused --- */

/* Packets of VITA-49 that differ from a right one in one place. */
TEST(test_hostile_packets_of_vita49)
{
    static const struct {
        size_t at; /* byte */
        unsigned char value;
    } changes[] = {
        {0, 0x51},  /* another type */
        {0, 0x11},  /* a spectrum */
        {3, 16},    /* a length that is not that of the datagram */
        {1, 0x01},  /* no time stamp */
        {1, 0x21},  /* picoseconds of no second */
        {1, 0x71},  /* another form of time */
        {4, 0xff},  /* another stream */
        {12, 0xff}, /* beyond the second */
    };
    const form *f = &forms[2];
    uint64_t lost;
    datagram d;
    wire w;

    open_wire(&w, f->kind, "");
    send_packet(&w, f, 0);
    for (size_t i = 0; i < COUNT(changes); i++) {
        make_datagram(f, 1, 10, 10, &d);
        d.bytes[changes[i].at] = changes[i].value;
        send_datagram(&w, &d);
    }
    send_packet(&w, f, 1);
    assert_int_equal(read_all(&w, &lost) + lost, 20);
    expect_refused(&w, COUNT(changes));
    close_wire(&w);
}

TEST(test_padding_of_vita49)
{
    const form f = {.kind = "vrt", .has_stream = true, .has_class = true, .tsi = 1, .tsf = 2};
    uint64_t lost;
    datagram d;
    wire w;

    open_wire(&w, f.kind, "source.format=ci8");
    make_datagram(&f, 0, 0, 5, &d); /* ten samples of ci8 */
    send_datagram(&w, &d);
    make_datagram(&f, 1, 10, 5, &d);
    d.bytes[8] |= 16 << 3; /* the last one is padding */
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost), 19);
    d.bytes[8] |= 3 << 3;
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost) + lost, 0);
    expect_refused(&w, 1);
    close_wire(&w);
}

/* --- context --- */

TEST(test_contexts)
{
    static const struct {
        double frequency_hz, rate_hz;
        uint32_t format;
        const char *words; /* NULL: it agrees */
    } contexts[] = {
        {99.5e6, RATE, 0, NULL},
        {99.5e6, RATE, 0xa00003cf, NULL},
        {99.5e6, 2 * RATE, 0, "2000000 Hz"},
        {88e6, RATE, 0, "88000000 Hz"},
        {99.5e6, RATE, 0xa00001c7, "integer samples of 8 bits"},
        {99.5e6, RATE, 0x800003cf, "real integer"},
        {99.5e6, RATE, 0xae0007df, "complex float samples of 32 bits"},
        {99.5e6, RATE, 0xb00003cf, "complex unsigned"},
    };
    const form *f = &forms[2];
    uint64_t lost;
    datagram d;

    for (size_t i = 0; i < COUNT(contexts); i++) {
        wire w;

        open_wire(&w, f->kind, "source.centre_hz=99.5e6");
        make_context(STREAM + 1, 5, 5, 0, &d); /* of another stream */
        send_datagram(&w, &d);
        send_packet(&w, f, 0);
        send_datagram(&w, &d);
        make_context(STREAM, contexts[i].frequency_hz, contexts[i].rate_hz, contexts[i].format, &d);
        send_datagram(&w, &d);
        send_packet(&w, f, 1);
        assert_int_equal(read_all(&w, &lost), contexts[i].words == NULL ? 20 : 0);
        assert_int_equal(w.end, contexts[i].words == NULL ? PNR_EAGAIN : PNR_ECONFIG);
        if (contexts[i].words != NULL)
            assert_non_null(strstr(w.error.text, contexts[i].words));
        expect_refused(&w, 0);
        close_wire(&w);
    }
}
