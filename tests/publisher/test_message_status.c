/* SPDX-License-Identifier: MIT */
/* Status, end and events: read back as they were written; every other text is refused. */
#include "publisher/message.h"

#include "tests/fixture/report_fixture.h"

#include <jansson.h>

/* --- status and end --- */

static void fill_status(pnr_status *status, const pnr_radar *radar, const pnr_config *config)
{
    memset(status, 0, sizeof *status);
    strcpy(status->run, "0123456789abcdef");
    strcpy(status->stream, "demo");
    strcpy(status->engine, "cpu/library");
    status->seq = 3;
    status->elapsed_s = 12.5;
    status->account = (pnr_account){.positions = UINT64_C(9007199254740993), /* 2^53 + 1 */
                                    .used = UINT64_C(9007199254740900),
                                    .lost_ring_full = 93,
                                    .windows = 10,
                                    .processed = 9,
                                    .dropped_shutdown = 1,
                                    .results = 9,
                                    .sent = 8,
                                    .unsent_publish_refused = 1,
                                    .n_clipped = 4,
                                    .deadline_missed = 6};
    status->latency_p50_us = 10;
    status->latency_p99_us = 20;
    status->latency_p999_us = 30;
    status->latency_max_us = 40.5;
    status->deadline_s = 0.001;
    status->ring_fill = 0.375;
    status->subscribers = 2;
    status->radar = radar;
    status->config = config;
}

TEST(test_status)
{
    static char text[PNR_MESSAGE_MAX];
    const pnr_realtime_outcome realtime = {.lock_memory = "refused: \"no\"",
                                           .acquisition_cpu = "any",
                                           .processing_cpu = "3",
                                           .priority = "none"};
    const pnr_zero_tracker zero = {.last = zero_fixture, .n_alarms = 2, .is_alarm = true};
    const pnr_source_info source = {.loss_visibility = PNR_LOSS_FLAG};
    pnr_config config = {.code.type = PNR_CODE_GPS_L1CA, .radar.carrier_hz = 1575420000};
    pnr_status status;
    pnr_end_summary end;
    pnr_error error;
    json_t *json, *part;
    size_t length;

    fill_status(&status, &radar_fixture, &config);
    status.realtime = &realtime;
    status.source = &source;
    status.source_refused = 17;
    status.source_dropped = 18;
    status.zero = &zero;
    length = pnr_message_write_status(&status, text, sizeof text);
    json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "subscribers")), 2);
    assert_null(json_object_get(json, "reason"));
    part = json_object_get(json, "account");
    assert_string_equal(json_string_value(json_object_get(part, "positions")), "9007199254740993");
    assert_string_equal(json_string_value(json_object_get(part, "lost_ring_full")), "93");
    assert_true(json_is_true(json_object_get(part, "closes")));
    assert_string_equal(json_string_value(json_object_get(part, "deadline_missed")), "6");
    assert_close(json_number_value(json_object_get(json, "deadline_s")), 0.001);
    assert_close(json_number_value(json_object_get(json, "ring_fill")), 0.375);
    part = json_object_get(json, "realtime");
    assert_string_equal(json_string_value(json_object_get(part, "lock_memory")), "refused: \"no\"");
    assert_string_equal(json_string_value(json_object_get(part, "acquisition_cpu")), "any");
    assert_string_equal(json_string_value(json_object_get(part, "processing_cpu")), "3");
    assert_string_equal(json_string_value(json_object_get(part, "priority")), "none");
    part = json_object_get(json, "source");
    assert_string_equal(json_string_value(json_object_get(part, "loss_visibility")), "flag");
    assert_int_equal(json_integer_value(json_object_get(part, "refused")), 17);
    assert_int_equal(json_integer_value(json_object_get(part, "dropped")), 18);
    part = json_object_get(json, "latency_us");
    assert_close(json_number_value(json_object_get(part, "max")), 40.5);
    part = json_object_get(json, "zero");
    assert_close(json_number_value(json_object_get(part, "drift_ppm")), -2.75);
    assert_int_equal(json_integer_value(json_object_get(part, "alarms")), 2);
    assert_true(json_is_true(json_object_get(part, "alarm")));
    part = json_object_get(json, "radar");
    assert_int_equal(json_integer_value(json_object_get(part, "n_samples")), 4000);
    assert_close(json_number_value(json_object_get(part, "rate_hz")), 4e6);
    assert_close(json_number_value(json_object_get(part, "unambiguous_m")), 149896.229);
    assert_close(json_number_value(json_object_get(part, "carrier_hz")), 1575420000);
    assert_string_equal(json_string_value(json_object_get(part, "code_type")), "gps-l1ca");
    json_decref(json);

    assert_int_equal(pnr_message_read_status(text, length, &end, &error), PNR_OK);
    assert_string_equal(end.run, status.run);
    assert_close(end.deadline_s, 0.001);
    assert_close(end.ring_fill, 0.375);
    assert_string_equal(end.radar.code_type, "gps-l1ca");
    assert_int_equal(end.radar.n_chips, radar_fixture.n_chips);
    assert_close(end.radar.period_s, radar_fixture.period_s);
    status.deadline_s = 0; /* none */
    config.codes = &(pnr_code_section){.type = PNR_CODE_GOLD, .has_type = true};
    config.n_codes = 1;
    length = pnr_message_write_status(&status, text, sizeof text);
    assert_int_equal(pnr_message_read_status(text, length, &end, &error), PNR_OK);
    assert_true(isnan(end.deadline_s));
    assert_string_equal(end.radar.code_type, "gold"); /* that of [code.1] */
    assert_memory_equal(&end.account, &status.account, sizeof end.account);
    assert_int_equal(pnr_message_read_end(text, length, &end, &error), PNR_EDATA); /* no reason */
}

TEST(test_end)
{
    static char text[PNR_MESSAGE_MAX];
    char reason[400];
    pnr_status status;
    pnr_end_summary end;
    pnr_error error;
    size_t length;

    fill_status(&status, NULL, NULL);
    status.reason = "end of input";
    status.exit_status = 75;
    length = pnr_message_write_status(&status, text, sizeof text);
    assert_int_equal(pnr_message_read_end(text, length, &end, &error), PNR_OK);
    assert_string_equal(end.reason, "end of input");
    assert_string_equal(end.stream, "demo");
    assert_int_equal(end.exit_status, 75);
    assert_string_equal(end.radar.code_type, "");
    assert_memory_equal(&end.account, &status.account, sizeof end.account);

    memset(reason, 'r', sizeof reason);
    reason[10] = '\x1b';
    reason[sizeof reason - 1] = '\0';
    status.reason = reason;
    length = pnr_message_write_status(&status, text, sizeof text);
    assert_int_equal(pnr_message_read_end(text, length, &end, &error), PNR_OK);
    assert_int_equal(strlen(end.reason), sizeof end.reason - 1);
    assert_int_equal(end.reason[10], '?');

    *strstr(text, "\"sent\":\"8\"") = ' ';
    assert_int_equal(pnr_message_read_end(text, length, &end, &error), PNR_EDATA);
}

/* Every code type has on the wire the word that the configuration has for it. */
TEST(test_words)
{
    static char text[PNR_MESSAGE_MAX];
    static const char *const words[] = {
        "m-sequence", "gold",   "gps-l1ca", "gps-l2c",    "gps-l5", "glonass", "bds-b1i", "bds-b3i",
        "kasami",     "barker", "legendre", "zadoff-chu", "frank",  "p4",      "random",  "file"};
    const pnr_radar radar = {0};
    char setting[64];
    pnr_config config;
    pnr_status status;
    pnr_error error;
    size_t i;

    pnr_config_init(&config);
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        snprintf(setting, sizeof setting, "code.type=%s", words[i]);
        assert_int_equal(pnr_config_set(&config, setting, &error), PNR_OK);
        fill_status(&status, &radar, &config);
        assert_true(pnr_message_write_status(&status, text, sizeof text) > 0);
        snprintf(setting, sizeof setting, "\"code_type\":\"%s\"", words[i]);
        assert_non_null(strstr(text, setting));
    }
    pnr_config_clear(&config);
}

/* --- events --- */

TEST(test_event)
{
    static pnr_event event = {.kind = PNR_EVENT_SLIP,
                              .utc_ns = INT64_C(1763692812000041943),
                              .sample = UINT64_MAX - 1,
                              .count = 7,
                              .numbers = {965, 1000},
                              .text = "slip: \"965\" \xff samples"};
    pnr_event_summary read;
    pnr_error error;
    char text[2048];

    for (int i = 0; i < 2; i++) {
        const size_t length =
            pnr_message_write_event("0123456789abcdef", "demo", 5, &event, text, sizeof text);
        json_t *root = json_loadb(text, length, 0, NULL);

        assert_true(json_number_value(json_object_get(root, "vanished")) == 965);
        json_decref(root);
        assert_int_equal(pnr_message_read_event(text, length, &read, &error), PNR_OK);
        assert_string_equal(read.run, "0123456789abcdef");
        assert_string_equal(read.stream, "demo");
        assert_string_equal(read.kind, "slip");
        assert_true(read.seq == 5 && read.utc_ns == event.utc_ns && read.count == 7);
        assert_true(read.sample == event.sample);
        assert_string_equal(read.text, "slip: \"965\" \xef\xbf\xbd samples");
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(pnr_message_read_event(text, cut, &read, &error), PNR_EDATA);
        event.sample = PNR_EVENT_NO_SAMPLE;
    }
}

/* Later versions have other kinds, and texts that a terminal would obey are refused. */
TEST(test_strange_events)
{
    static const char *const good = "{\"v\":1,\"run\":\"0123456789abcdef\",\"stream\":\"demo\","
                                    "\"seq\":0,\"event\":\"flood\",\"time\":"
                                    "\"2026-11-21T02:40:12Z\",\"sample\":null,\"count\":1,"
                                    "\"text\":\"water\"}";
    static const char *const changes[][2] = {{"water", "wa\\u001bter"},
                                             {"water", "\\u009b"},
                                             {"flood", "\\u0007"},
                                             {"null", "1"},
                                             {"null", "\"-1\""},
                                             {":12Z", ":12"},
                                             {"\"count\":1", "\"count\":-1"}};
    pnr_event_summary read;
    pnr_error error;
    char text[1024];

    assert_int_equal(pnr_message_read_event(good, strlen(good), &read, &error), PNR_OK);
    assert_string_equal(read.kind, "flood");
    for (size_t i = 0; i < COUNT(changes); i++) {
        const char *at = strstr(good, changes[i][0]);

        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, changes[i][1],
                 at + strlen(changes[i][0]));
        assert_int_equal(pnr_message_read_event(text, strlen(text), &read, &error), PNR_EDATA);
    }
}

/* A text that no publisher writes is refused before it takes memory. */
TEST(test_long_text)
{
    char *text = malloc(PNR_MESSAGE_MAX + 1);
    pnr_end_summary end;
    pnr_error error;

    memset(text, ' ', PNR_MESSAGE_MAX + 1);
    assert_int_equal(pnr_message_read_end(text, PNR_MESSAGE_MAX + 1, &end, &error), PNR_EDATA);
    assert_non_null(strstr(error.text, "65537 bytes: at most 65536"));
    assert_int_equal(pnr_message_read_end(text, PNR_MESSAGE_MAX, &end, &error), PNR_EDATA);
    assert_non_null(strstr(error.text, "no JSON"));
    free(text);
}
