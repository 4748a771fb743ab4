/* SPDX-License-Identifier: MIT */
/* Stores the zero delay in a file for the next run. Checks the file when it is read. */
#include "detector/zero_state.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WHY_LEN = 200, HASH_LEN = 17 };

static const char what[] = "radar.zero_state_path", mark[] = "{\"pnradar\":\"zero\"";
static const double most_drift = 0.01;                    /* seconds per second */
static const int64_t most_ahead_ns = 3600 * PNR_NS_PER_S; /* a time stamp may be this much later
                                                           * than this clock */

/* Further settings on which the measured delay depends. The file contains a hash of these
 * settings. */
static const pnr_config_part parts[] = {
    {"code", NULL},         {"code.n", NULL},     {"window", NULL},       {"source", "tune_hz"},
    {"source", "spectrum"}, {"source", "layout"}, {"source", "channels"},
};

/* --- write --- */

static void number(pnr_text *t, const char *name, double value)
{
    pnr_text_add(t, ",\"");
    pnr_text_add(t, name);
    pnr_text_add(t, "\":");
    pnr_text_double(t, value, "null");
}

static void string(pnr_text *t, const char *name, const char *value)
{
    pnr_text_add(t, ",\"");
    pnr_text_add(t, name);
    pnr_text_add(t, "\":");
    pnr_text_string(t, value);
}

static char *write_hash(const pnr_config *config, char out[HASH_LEN])
{
    snprintf(out, HASH_LEN, "%016" PRIx64,
             pnr_config_hash(config, parts, sizeof parts / sizeof parts[0]));
    return out;
}

static size_t compose(const pnr_config *config, pnr_format format, const pnr_zero_memory *memory,
                      char *out)
{
    char rate[48], time[PNR_TIME_LEN], hash[HASH_LEN];
    pnr_text t;

    pnr_text_begin(&t, out, PNR_ZERO_STATE_LEN);
    pnr_text_add(&t, mark);
    pnr_text_add(&t, ",\"v\":1");
    string(&t, "source", config->source.input);
    string(&t, "format", pnr_format_get(format)->name);
    string(&t, "rate_hz", pnr_rational_format(config->source.rate_hz, rate));
    number(&t, "channel", (double)config->source.channel);
    string(&t, "config", write_hash(config, hash));
    string(&t, "written", pnr_time_format(pnr_clock_utc_ns(), time));
    number(&t, "zero_delay_s", memory->delay_s);
    number(&t, "sigma_s", memory->sigma_s);
    number(&t, "drift", memory->drift);
    number(&t, "drift_sigma", memory->drift_sigma);
    number(&t, "first_s", memory->first_s);
    pnr_text_add(&t, "}\n");
    return pnr_text_end(&t);
}

int pnr_zero_state_check(const pnr_config *config, pnr_error *error)
{
    return pnr_new_file_check(what, config->radar.zero_state_path, mark, error);
}

int pnr_zero_state_write(const pnr_config *config, pnr_format format, const pnr_zero_memory *memory,
                         bool lasting, pnr_error *error)
{
    char text[PNR_ZERO_STATE_LEN];
    const size_t length = compose(config, format, memory, text);
    pnr_new_file file;
    int code = pnr_new_file_create(what, config->radar.zero_state_path, mark, &file, error);

    if (code != PNR_OK)
        return code;
    if ((code = pnr_new_file_write(&file, text, length, error)) == PNR_OK)
        return pnr_new_file_finish(&file, lasting, error);
    pnr_new_file_discard(&file);
    return code;
}

/* --- read --- */

/* Returns the number of bytes read, at most `capacity`, or PNR_E... on failure. */
static ssize_t read_all(const char *path, char *out, size_t capacity, pnr_error *error)
{
    ssize_t n = 0, all = 0;
    int file;
    const int code = pnr_file_open(what, path, &file, error);

    if (code != PNR_OK)
        return code;
    while ((size_t)all < capacity && (n = read(file, out + all, capacity - (size_t)all)) > 0)
        all += n;
    close(file);
    return n < 0 ? pnr_error_file(error, PNR_EIO, what, path, errno) : all;
}

static bool is_text(const json_t *root, const char *name, const char *wanted)
{
    const char *is = json_string_value(json_object_get(root, name));

    return is != NULL && strcmp(is, wanted) == 0;
}

static bool get(const json_t *root, const char *name, double *out)
{
    const json_t *value = json_object_get(root, name);

    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out);
}

/* Returns why the file does not belong to this configuration; NULL: it does belong. */
static const char *check_origin(const pnr_config *config, pnr_format format, const json_t *root)
{
    char rate[48], hash[HASH_LEN];

    if (!json_is_object(root) || !is_text(root, "pnradar", "zero") ||
        json_integer_value(json_object_get(root, "v")) != 1)
        return "it is no state of this version";
    if (!is_text(root, "source", config->source.input))
        return "it is of another source";
    if (!is_text(root, "format", pnr_format_get(format)->name))
        return "it is of another sample format";
    if (!is_text(root, "rate_hz", pnr_rational_format(config->source.rate_hz, rate)))
        return "it is of another sampling rate";
    if (json_number_value(json_object_get(root, "channel")) != (double)config->source.channel)
        return "it is of another channel";
    if (!is_text(root, "config", write_hash(config, hash)))
        return "it is of another code, window or tuning";
    return NULL;
}

/* Returns why the age is not plausible; NULL: the age is plausible. *age_s: seconds since the file
 * was written. */
static const char *check_age(const json_t *root, double *age_s, char why[WHY_LEN])
{
    const char *written = json_string_value(json_object_get(root, "written"));
    int64_t written_ns, age_ns;

    if (written == NULL || pnr_time_parse(written, &written_ns) != PNR_OK)
        return "it has no time";
    age_ns = pnr_clock_utc_ns() - written_ns;
    *age_s = (double)age_ns / (double)PNR_NS_PER_S;
    if (age_ns < -most_ahead_ns)
        snprintf(why, WHY_LEN, "it is of the future, %s", written);
    else if (*age_s > PNR_ZERO_STATE_DAYS * 86400.0)
        snprintf(why, WHY_LEN, "it is %.0f days old, and %d days are trusted", *age_s / 86400,
                 PNR_ZERO_STATE_DAYS);
    else
        return NULL;
    return why;
}

/* Returns why the numbers are not plausible; NULL: they are plausible. */
static const char *check_numbers(const pnr_config *config, const pnr_radar *radar,
                                 const pnr_zero_memory *m, char why[WHY_LEN])
{
    const double zero_s = config->radar.zero_delay_s;
    const double off_s = fmax(fabs(pnr_zero_wrap(radar, m->delay_s - zero_s)),
                              fabs(pnr_zero_wrap(radar, m->first_s - zero_s)));
    const double limit_m = radar->zero_search_s * radar->metres_per_second;

    if (!(m->sigma_s > 0) || m->sigma_s > radar->zero_search_s)
        snprintf(why, WHY_LEN,
                 "its sigma of %.4g m is not between 0 and radar.zero_search_m = %.4g",
                 m->sigma_s * radar->metres_per_second, limit_m);
    else if (fabs(m->drift) > most_drift || !(m->drift_sigma >= 0) || m->drift_sigma > most_drift)
        snprintf(why, WHY_LEN, "its drift of %.4g +- %.4g ppm is none of a clock", m->drift * 1e6,
                 m->drift_sigma * 1e6);
    else if (!(off_s <= radar->zero_search_s))
        snprintf(why, WHY_LEN,
                 "it is %.6g m from radar.zero_delay_s, and radar.zero_search_m is %.4g: correct "
                 "one of them if it is right",
                 off_s * radar->metres_per_second, limit_m);
    else
        return NULL;
    return why;
}

static const char *take(const pnr_config *config, const pnr_radar *radar, pnr_format format,
                        const json_t *root, double *age_s, pnr_zero_memory *out, char why[WHY_LEN])
{
    const char *wrong = check_origin(config, format, root);

    if (wrong == NULL &&
        (!get(root, "zero_delay_s", &out->delay_s) || !get(root, "sigma_s", &out->sigma_s) ||
         !get(root, "drift", &out->drift) || !get(root, "drift_sigma", &out->drift_sigma) ||
         !get(root, "first_s", &out->first_s)))
        wrong = "a number is missing, or is none";
    if (wrong == NULL)
        wrong = check_age(root, age_s, why);
    return wrong != NULL ? wrong : check_numbers(config, radar, out, why);
}

bool pnr_zero_state_read(const pnr_config *config, const pnr_radar *radar, pnr_format format,
                         pnr_events *events, pnr_zero_memory *out)
{
    const char *path = config->radar.zero_state_path, *wrong;
    char text[PNR_ZERO_STATE_LEN], why[WHY_LEN];
    json_error_t error;
    pnr_error unread;
    const ssize_t length = read_all(path, text, sizeof text, &unread);
    json_t *root = NULL;
    double age_s = 0;

    *out = (pnr_zero_memory){0};
    if (length < 0) {
        if (access(path, F_OK) == 0 || errno != ENOENT)
            pnr_log(PNR_LOG_WARN, "%s; it is not used", unread.text);
        return false;
    }
    if ((root = pnr_json_read(text, (size_t)length, &error)) == NULL)
        wrong = error.text;
    else
        wrong = take(config, radar, format, root, &age_s, out, why);
    if (wrong != NULL)
        pnr_event_post(events, PNR_EVENT_ZERO_STATE_DROPPED, PNR_EVENT_NO_SAMPLE, out->delay_s, 0,
                       "radar.zero_state_path %.80s is not used: %s", path, wrong);
    else
        pnr_log(PNR_LOG_INFO,
                "direct path: expected at %.6g us +- %.3g ns, from %s, which is %.3g h old",
                out->delay_s * 1e6, out->sigma_s * 1e9, path, age_s / 3600);
    json_decref(root);
    return wrong == NULL;
}
