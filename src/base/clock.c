/* SPDX-License-Identifier: MIT */
/* Monotonic time and UTC. Converts UTC to text and back, in the proleptic Gregorian calendar. */
#include "base/clock.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STEP_NS = 50000000, SECONDS_PER_DAY = 86400 };
static const int64_t LAST_SECOND = 9214646399; /* 2261-12-31T23:59:59Z */

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

/* Computes the Gregorian date of a day, counted from 1970-01-01. Years begin in March here, so the
 * leap day is the last day of the year. The five months from March to July have 153 days together,
 * like the five months from August to December. gmtime_r is not used, because its first call reads
 * files and takes a lock. The processing thread must do neither. */
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

/* Reads the fraction of a second and the Z, as ".5Z" or "Z". *fraction_ns: 0 without a fraction. */
static bool read_fraction(const char *text, int64_t *fraction_ns)
{
    int64_t unit_ns = PNR_NS_PER_S;

    *fraction_ns = 0;
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9' && unit_ns > 1; text++)
            *fraction_ns += (*text - '0') * (unit_ns /= 10);
    return strcmp(text, "Z") == 0 && (text[-1] != '.');
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

int pnr_time_parse(const char *text, int64_t *utc_ns)
{
    int64_t fraction_ns;
    char again[PNR_TIME_LEN];
    struct tm tm = {0};

    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec) != 6)
        return PNR_ECONFIG;
    tm.tm_year -= 1900;
    tm.tm_mon--;

    const int64_t seconds = timegm(&tm);

    if (seconds < 0 || seconds > LAST_SECOND)
        return PNR_ECONFIG;
    /* timegm changes a date that does not exist, such as 31 November, to one that exists. */
    pnr_time_format(seconds * PNR_NS_PER_S, again);
    if (strncmp(text, again, strlen("2026-11-21T02:40:12")) != 0 ||
        !read_fraction(text + strlen("2026-11-21T02:40:12"), &fraction_ns))
        return PNR_ECONFIG;
    *utc_ns = seconds * PNR_NS_PER_S + fraction_ns;
    return PNR_OK;
}
