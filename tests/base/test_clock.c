/* SPDX-License-Identifier: MIT */
/* Tests of clock.c against the calendar of the C library. */
#include "base/clock.h"

#include "base/error.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <pthread.h>
#include <time.h>

TEST(known_moments)
{
    static const struct {
        const char *text;
        int64_t ns;
    } moments[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.000000001Z", 1},
        {"1970-01-01T00:00:00.1Z", 100000000},
        {"2000-02-29T23:59:59Z", INT64_C(951868799) * PNR_NS_PER_S},
        {"2026-11-21T02:40:12.000041943Z", INT64_C(1795228812) * PNR_NS_PER_S + 41943},
        {"2100-03-01T00:00:00Z", INT64_C(4107542400) * PNR_NS_PER_S},
        {"2261-12-31T23:59:59.999999999Z", INT64_C(9214646399) * PNR_NS_PER_S + 999999999},
    };

    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        int64_t ns = -1;
        assert_int_equal(pnr_time_parse(moments[i].text, &ns), PNR_OK);
        assert_true(ns == moments[i].ns);
    }
}

TEST(refused)
{
    static const char *const bad[] = {
        "",
        "now",
        "2026-11-21",
        "2026-11-21T02:40:12",
        "2026-11-21T02:40:12z",
        "2026-11-21 02:40:12Z",
        " 2026-11-21T02:40:12Z",
        "2026-11-21T02:40:12Z ",
        "2026-11-21T02:40:12.Z",
        "2026-11-21T02:40:12.1234567890Z",
        "2026-11-21T02:40:12,5Z",
        "2026-11-21T02:40:12+00:00",
        "2026-11-21T02:40:60Z",
        "2026-11-21T02:60:12Z",
        "2026-11-21T24:00:00Z",
        "2026-11-31T02:40:12Z",
        "2026-00-21T02:40:12Z",
        "2026-13-21T02:40:12Z",
        "2026-11-00T02:40:12Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "2262-01-01T00:00:00Z",
        "20261-1-21T02:40:12Z",
        "-026-11-21T02:40:12Z",
        "2026-11-21T02:40:1",
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t ns = 77;
        if (pnr_time_parse(bad[i], &ns) != PNR_ECONFIG)
            fail_msg("taken: '%s'", bad[i]);
        assert_true(ns == 77);
    }
}

static void check_against_library(int64_t ns)
{
    char ours[PNR_TIME_LEN], theirs[128], date[64];
    int64_t seconds = ns / PNR_NS_PER_S, fraction = ns % PNR_NS_PER_S;
    struct tm tm;

    if (fraction < 0) {
        seconds--;
        fraction += PNR_NS_PER_S;
    }
    time_t t = (time_t)seconds;
    gmtime_r(&t, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(theirs, sizeof theirs, "%s.%09dZ", date, (int)fraction);
    assert_string_equal(pnr_time_format(ns, ours), theirs);
    if (tm.tm_year + 1900 >= 1970 && tm.tm_year + 1900 <= 2261) {
        int64_t back = -1;
        assert_int_equal(pnr_time_parse(ours, &back), PNR_OK);
        assert_true(back == ns);
    }
}

TEST(every_day_agrees_with_the_library)
{
    for (int64_t day = -106751; day <= 106751; day++)
        check_against_library(day * 86400 * PNR_NS_PER_S);
}

TEST(any_moment_agrees_with_the_library)
{

    for (int i = 0; i < 20000; i++)
        check_against_library((int64_t)random_bits());
    check_against_library(INT64_MAX);
    check_against_library(INT64_MIN);
    check_against_library(-1);
}

TEST(every_number_of_digits)
{
    for (int n = 1; n <= 9; n++) {
        char text[64];
        int64_t ns, expected = 0, unit = PNR_NS_PER_S;
        for (int i = 0; i < n; i++) {
            unit /= 10;
            expected += (i + 1) * unit;
        }
        snprintf(text, sizeof text, "1970-01-01T00:00:00.%.*sZ", n, "123456789");
        assert_int_equal(pnr_time_parse(text, &ns), PNR_OK);
        assert_true(ns == expected);
    }
}

TEST(clocks_go_forward)
{
    uint64_t last = pnr_clock_ns();
    int64_t utc = pnr_clock_utc_ns();

    for (int i = 0; i < 10000; i++) {
        uint64_t now = pnr_clock_ns();
        assert_true(now >= last);
        last = now;
    }
    assert_true(utc / PNR_NS_PER_S - (int64_t)time(NULL) <= 1);
    assert_true((int64_t)time(NULL) - utc / PNR_NS_PER_S <= 5);
}

TEST(sleep_ends_at_its_time)
{
    const int stop = 0;
    uint64_t wake = pnr_clock_ns() + 70000000; /* longer than the interval at which the flag is
                                                * checked */

    assert_true(pnr_clock_sleep_until(wake, &stop));
    assert_true(pnr_clock_ns() >= wake);
    wake = pnr_clock_ns() + 2000000;
    assert_true(pnr_clock_sleep_until(wake, NULL));
    assert_true(pnr_clock_ns() >= wake);
}

TEST(sleep_until_the_past_is_over_at_once)
{
    const int stop = 1;

    assert_true(pnr_clock_sleep_until(0, NULL));
    assert_true(pnr_clock_sleep_until(pnr_clock_ns(), &stop));
}

static void *stop_soon(void *context)
{
    volatile int *stop = context;

    pnr_clock_sleep_until(pnr_clock_ns() + 20000000, NULL);
    *stop = 1;
    return NULL;
}

TEST(sleep_ends_early_when_stopped)
{
    volatile int stop = 0;
    pthread_t thread;
    uint64_t begin = pnr_clock_ns();

    assert_int_equal(pthread_create(&thread, NULL, stop_soon, (void *)(uintptr_t)&stop), 0);
    assert_false(pnr_clock_sleep_until(begin + UINT64_C(60000000000), &stop));
    pthread_join(thread, NULL);
    assert_true(pnr_clock_ns() - begin < UINT64_C(10000000000));
    assert_false(pnr_clock_sleep_until(UINT64_MAX, &stop));
}
