/* SPDX-License-Identifier: MIT */
/* Monotonic time, UTC, and their text in the proleptic Gregorian calendar. */
#include "base/clock.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STEP_NS = 50000000, SECONDS_PER_DAY = 86400 };

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * PNR_NS_PER_S + now.tv_nsec;
}

uint64_t pnr_clock_ns(void)
{
    return (uint64_t)read_ns(CLOCK_MONOTONIC);
}

int64_t pnr_clock_utc_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

bool pnr_clock_sleep_until(uint64_t time_ns, const volatile int *stop)
{
    for (;;) {
        uint64_t now = pnr_clock_ns();

        if (now >= time_ns)
            return true;
        if (stop && *stop)
            return false;
        uint64_t wake = time_ns - now > STEP_NS ? now + STEP_NS : time_ns;
        struct timespec at = {.tv_sec = (time_t)(wake / (uint64_t)PNR_NS_PER_S),
                              .tv_nsec = (long)(wake % (uint64_t)PNR_NS_PER_S)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
}

/* Days since 1970-01-01 of a Gregorian date: years counted from March, so that the leap day is the
 * last of its year; 153 days in every five months from March. */
static int64_t days_of_date(int64_t year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

static void date_of_days(int64_t days, int *year, int *month, int *day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;

    *day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
    *month = (int)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    *year = (int)(year_of_era + era * 400 + (*month <= 2));
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

/* "0" stands for a digit, any other character for itself. */
static bool has_shape(const char *text, const char *shape)
{
    for (; *shape; text++, shape++)
        if (*shape == '0' ? *text < '0' || *text > '9' : *text != *shape)
            return false;
    return true;
}

static int digits(const char *text, int n)
{
    int value = 0;

    for (int i = 0; i < n; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

int pnr_time_parse(const char *text, int64_t *utc_ns)
{
    if (!has_shape(text, "0000-00-00T00:00:00"))
        return PNR_ECONFIG;
    int year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
    int hour = digits(text + 11, 2), minute = digits(text + 14, 2), second = digits(text + 17, 2);
    if (year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 ||
        day > days_in_month(year, month) || hour > 23 || minute > 59 || second > 59)
        return PNR_ECONFIG;

    const char *rest = text + 19;
    int64_t fraction_ns = 0;
    if (*rest == '.') {
        int64_t unit_ns = PNR_NS_PER_S / 10;
        for (rest++; *rest >= '0' && *rest <= '9' && unit_ns > 0; rest++, unit_ns /= 10)
            fraction_ns += (*rest - '0') * unit_ns;
        if (unit_ns == PNR_NS_PER_S / 10)
            return PNR_ECONFIG;
    }
    if (strcmp(rest, "Z") != 0)
        return PNR_ECONFIG;

    int64_t seconds =
        days_of_date(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    *utc_ns = seconds * PNR_NS_PER_S + fraction_ns;
    return PNR_OK;
}

char *pnr_time_format(int64_t utc_ns, char out[PNR_TIME_LEN])
{
    int64_t seconds = utc_ns / PNR_NS_PER_S, fraction_ns = utc_ns % PNR_NS_PER_S;
    int year, month, day;

    if (fraction_ns < 0) {
        seconds--;
        fraction_ns += PNR_NS_PER_S;
    }
    int64_t days = seconds / SECONDS_PER_DAY;
    int second = (int)(seconds % SECONDS_PER_DAY);
    if (second < 0) {
        days--;
        second += SECONDS_PER_DAY;
    }
    date_of_days(days, &year, &month, &day);
    snprintf(out, PNR_TIME_LEN, "%04d-%02d-%02dT%02d:%02d:%02d.%09dZ", year, month, day,
             second / 3600, second / 60 % 60, second % 60, (int)fraction_ns);
    return out;
}
