/* SPDX-License-Identifier: MIT */
/* Every message, pack and print of fixed reports has the bytes of tests/golden/wire.txt.
 * `test_wire --print` writes that file. */
#include "publisher/message.h"
#include "publisher/report.h"
#include "tests/fixture/report_fixture.h"

static char message[PNR_MESSAGE_MAX];

/* Two echoes without equal numbers, every flag, a tracked direct path. */
static void fill_report(pnr_report *report)
{
    report_fixture(report, 2);
    for (size_t i = 0; i < 2; i++) {
        pnr_echo *e = &report->detection.echoes[i];

        e->code = 3 + (uint32_t)i;
        strcpy(e->code_name.text, i == 0 ? "prn 29" : "");
        e->channel = 1 + (uint32_t)i;
        e->range_sigma_m = 2.25 + (double)i;
        e->phase_rad = -1.25 + (double)i / 3;
        e->doppler_hz = -123.456789 * (double)(i + 1);
        e->doppler_sigma_hz = 0.1 + (double)i;
        e->velocity_mps = 18.5 + (double)i / 7;
        e->velocity_sigma_mps = 0.015 * (double)(i + 1);
    }
    report->lost = 3;
    report->lost_before = UINT64_C(1) << 40;
    report->slip = 965;
    report->flags = 127;
    report->zero = (pnr_zero){true, 3.25e-6, 1.5e-9, 33.5, -2.75, 0.125, -1e-7};
}

static void put_message(FILE *out, const char *name, size_t length)
{
    assert_true(length > 0);
    fprintf(out, "%s %.*s\n", name, (int)length, message);
}

static void put_records(FILE *out, const pnr_report *report, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char bytes[sizeof(pnr_record)];
        pnr_record record;

        pnr_message_fill_record(report, i, &record);
        memcpy(bytes, &record, sizeof bytes);
        fputs("record ", out);
        for (size_t at = 0; at < sizeof bytes; at++)
            fprintf(out, "%02x", bytes[at]);
        fputc('\n', out);
    }
}

static void put_status(FILE *out)
{
    const pnr_realtime_outcome realtime = {"refused: \"no\"", "any", "3", "none"};
    const pnr_zero_tracker zero = {.last = {true, 3.25e-6, 1.5e-9, 33.5, -2.75, 0.125, -1e-7},
                                   .n_alarms = 2};
    pnr_status status = {.run = "0123456789abcdef",
                         .stream = "demo",
                         .engine = "cpu/library",
                         .seq = 3,
                         .elapsed_s = 12.5,
                         .account = {.positions = 10, .used = 10, .windows = 5, .processed = 5},
                         .latency_p50_us = 10,
                         .latency_p99_us = 20,
                         .latency_p999_us = 30,
                         .latency_max_us = 40.5,
                         .subscribers = 2};
    pnr_config config;

    pnr_config_init(&config);
    put_message(out, "status", pnr_message_write_status(&status, message, sizeof message));
    status.access = "keys";
    status.radar = &radar_fixture;
    status.config = &config;
    status.realtime = &realtime;
    status.zero = &zero;
    status.deadline_s = 0.001;
    put_message(out, "status", pnr_message_write_status(&status, message, sizeof message));
    config.code.type = PNR_CODE_GPS_L1CA;
    config.code.pulse = PNR_PULSE_RECTANGULAR;
    config.radar.path = PNR_PATH_ONE_WAY;
    config.radar.zero = PNR_ZERO_DIRECT_PATH;
    config.dwell.combine = PNR_COMBINE_DOPPLER;
    status.reason = "end of \"input\"";
    status.exit_status = -1;
    put_message(out, "end", pnr_message_write_status(&status, message, sizeof message));
    pnr_config_clear(&config);
}

static void put_events(FILE *out)
{
    static pnr_event event = {.kind = PNR_EVENT_LOSS_ENDS,
                              .utc_ns = INT64_C(1763692812000041943),
                              .sample = UINT64_C(1) << 60,
                              .count = 7,
                              .numbers = {4096, 0},
                              .text = "loss ends: 4096 samples"};

    put_message(
        out, "event",
        pnr_message_write_event("0123456789abcdef", "demo", 5, &event, message, sizeof message));
    event = (pnr_event){.kind = PNR_EVENT_ENGINE_FAILED,
                        .sample = PNR_EVENT_NO_SAMPLE,
                        .count = 1,
                        .numbers = {3, 0},
                        .text = "engine \"fault\""};
    put_message(
        out, "event",
        pnr_message_write_event("0123456789abcdef", "demo", 6, &event, message, sizeof message));
}

static void put_cells(FILE *out, const pnr_report *report)
{
    static const char *const names[] = {"gold 0", "gold 1"};
    const pnr_map_info map = {
        .row = cells_fixture,
        .n_codes = 2,
        .n_rows = 5,
        .code_names = names,
        .mps_per_hz = -0.15,
        .n_runs = 2,
        .runs = {{-100, 25, 4}, {50, 0, 1}},
    };

    pnr_map_info profile = map;

    profile.n_codes = profile.n_rows = 1;
    put_message(out, "profile",
                pnr_message_write_cells(report, 12, &profile, message, sizeof message));
    put_message(out, "map", pnr_message_write_cells(report, 13, &map, message, sizeof message));
}

static void put_prints(FILE *out, const pnr_report *report, const pnr_report *empty)
{
    static const pnr_report_truth truth[] = {{2, 374741.5, -0.875}, {0, NAN, NAN}};

    for (int print = PNR_PRINT_TABLE; print <= PNR_PRINT_JSON; print++)
        for (int with_truth = 0; with_truth < 2; with_truth++) {
            pnr_printer printer;

            fprintf(out, "--- print %d %d\n", print, with_truth);
            pnr_printer_init(&printer, out, (pnr_print)print, with_truth);
            assert_int_equal(pnr_printer_print(&printer, empty, NULL), PNR_OK);
            assert_int_equal(pnr_printer_print(&printer, report, with_truth ? truth : NULL),
                             PNR_OK);
            assert_int_equal(pnr_printer_finish(&printer), PNR_OK);
        }
}

static void put_all(FILE *out)
{
    pnr_report report, empty;

    fill_report(&report);
    report_fixture(&empty, 0);
    empty.has_time = false;
    empty.time_source = PNR_TIME_NONE;
    put_message(out, "range", pnr_message_write_range(&report, message, sizeof message));
    put_message(out, "range", pnr_message_write_range(&empty, message, sizeof message));
    put_message(out, "pack", pnr_message_write_pack(&report, 2, 3, message, sizeof message));
    put_records(out, &report, 2);
    put_records(out, &empty, 1);
    put_cells(out, &report);
    put_status(out);
    put_events(out);
    put_prints(out, &report, &empty);
}

TEST(test_wire)
{
    char *written = NULL, golden[65536];
    size_t size = 0, at = 0;
    FILE *out = open_memstream(&written, &size);
    FILE *file = fopen("tests/golden/wire.txt", "r");

    if (file == NULL)
        fail_msg("tests/golden/wire.txt: cannot be opened (tests run from the repository's top)");
    assert_non_null(out);
    put_all(out);
    assert_int_equal(fclose(out), 0);
    golden[fread(golden, 1, sizeof golden - 1, file)] = '\0';
    fclose(file);
    while (written[at] != '\0' && written[at] == golden[at])
        at++;
    if (strcmp(written, golden) != 0)
        fail_msg("byte %zu: ...%.100s\ninstead of ...%.100s", at, written + at, golden + at);
    free(written);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        put_all(stdout);
        return 0;
    }
    return test_run();
}
