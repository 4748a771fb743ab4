/* SPDX-License-Identifier: MIT */
/* Reads values of the configuration from text, writes them as text, and checks their ranges. */
#include "base/clock.h"
#include "config/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int refuse_value(char why[PNR_WHY_LEN], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse_value(char why[PNR_WHY_LEN], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, PNR_WHY_LEN, format, arguments);
    va_end(arguments);
    return PNR_ECONFIG;
}

/* --- numbers from text, in any locale --- */

enum { DOUBLE_LEN = 40 };

/* The units of a number of bytes, largest first. */
static const struct suffix {
    char letter;
    unsigned shift;
} suffixes[] = {{'G', 30}, {'M', 20}, {'K', 10}, {0, 0}};

/* Reads [+-] digits [. digits] [e [+-] digits]. Digits may be missing on one side of the point.
 * Returns false for any other text. Sets errno as strtod does. newlocale cannot fail for "C",
 * because it returns a constant object. */
static bool read_decimal(const char *text, double *value)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *end;

    *value = strtod_l(text, &end, c);
    freelocale(c);
    return end > text && text[strspn(text, "0123456789.+-eE")] == '\0' && *end == '\0';
}

/* Writes the value with the fewest digits, 15 to 17, from which strtod reads the same value. */
static void format_double(double value, char *out)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(c);

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, DOUBLE_LEN, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    uselocale(before);
    freelocale(c);
}

/* --- units --- */

static const char *const si_units[] = {"Hz", "s", "m", "m/s", "rad"};

static const struct prefix {
    const char *text;
    int exponent; /* the prefix means 10^exponent */
} prefixes[] = {{"", 0},   {"k", 3},         {"M", 6},         {"G", 9}, {"m", -3},
                {"u", -6}, {"\xc2\xb5", -6}, {"\xce\xbc", -6}, {"n", -9}};

/* Words of samples and chips a second, for keys in Hz. */
static const char *const rates[] = {"sps", "SPS", "S/s", "Sa/s", "chip/s", "chips/s"};

static bool has_prefixes(const char *unit)
{
    for (size_t i = 0; i < sizeof si_units / sizeof si_units[0]; i++)
        if (strcmp(si_units[i], unit) == 0)
            return true;
    return false;
}

static bool is_unit(const char *unit, const char *word)
{
    for (size_t i = 0; i < sizeof rates / sizeof rates[0] && strcmp(unit, "Hz") == 0; i++)
        if (strcmp(rates[i], word) == 0)
            return true;
    return strcmp(unit, word) == 0;
}

/* Finds the power of 10 that the prefix of a word means, for example 3 for "kHz", "ksps" or "k" if
 * the unit of the key is Hz. Only k, M and G can stand without the unit, because "10 m" can be
 * metres, minutes or milliseconds. */
static bool find_exponent(const char *unit, const char *word, int *exponent)
{
    for (size_t i = 0; i < (has_prefixes(unit) ? sizeof prefixes / sizeof prefixes[0] : 1); i++) {
        const size_t n = strlen(prefixes[i].text);

        if (strncmp(word, prefixes[i].text, n) != 0)
            continue;
        *exponent = prefixes[i].exponent;
        if (is_unit(unit, word + n) || (word[n] == '\0' && *exponent > 0))
            return true;
    }
    return false;
}

static int refuse_unit(const char *unit, const char *word, char *why)
{
    if (!has_prefixes(unit))
        return refuse_value(why, "the unit must be %s or nothing, not \"%.20s\"", unit, word);
    return refuse_value(why, "the unit must be %s, as in 5 or 5 %s%s, not \"%.20s\"%s", unit,
                        strcmp(unit, "s") == 0 ? "m" : "k", unit, word,
                        *word == 'K' ? "; k is 1000" : "");
}

/* Writes the number without its unit: "2.4e6" for "2.4 MHz", "40e6/3" for "40/3 M". Writes the
 * prefix as an exponent, so nothing is rounded. A text without a unit does not change. */
static int remove_unit(const pnr_key *key, const char *text, char out[PNR_VALUE_MAX + 16],
                       char *why)
{
    const size_t number = strspn(text, "0123456789.+-eE/");
    const char *word = text + number + strspn(text + number, " \t");
    const size_t scaled = strspn(text, "0123456789.+-");
    int exponent = 0;

    strcpy(out, text);
    if (number == 0 || *word == '\0' || strchr("0123456789.,+-/", *word) != NULL)
        return PNR_OK;
    if (!find_exponent(key->unit, word, &exponent))
        return refuse_unit(key->unit, word, why);
    if (exponent != 0 && strpbrk(text, "eE") != NULL)
        return refuse_value(why, "has an exponent and the prefix of \"%.20s\": give one of them",
                            word);
    out[number] = '\0';
    if (exponent != 0)
        sprintf(out + scaled, "e%d%.*s", exponent, (int)(number - scaled), text + scaled);
    return PNR_OK;
}

/* --- ranges --- */

static bool has_range(const pnr_key *key)
{
    return key->min != 0 || key->max != 0;
}

static bool in_range(const pnr_key *key, double value)
{
    if (!has_range(key))
        return true;
    return (key->open & PNR_OPEN_MIN ? value > key->min : value >= key->min) &&
           (key->open & PNR_OPEN_MAX ? value < key->max : value <= key->max);
}

/* Returns word i of a choice or a format. NULL: the key has no word i. */
static const char *word_of(const pnr_key *key, size_t i)
{
    if (key->type == PNR_KEY_CHOICE)
        return key->choices[i];
    if (key->type != PNR_KEY_FORMAT || i >= PNR_FORMAT_COUNT)
        return NULL;
    return i == PNR_FORMAT_NONE ? "auto" : pnr_format_get((pnr_format)i)->name;
}

char *pnr_value_range(const pnr_key *key, char out[PNR_WHY_LEN])
{
    char low[DOUBLE_LEN], high[DOUBLE_LEN];
    const char *word;
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; n < PNR_WHY_LEN && (word = word_of(key, i)) != NULL; i++)
        n += (size_t)snprintf(out + n, PNR_WHY_LEN - n, "%s%s", i ? " | " : "", word);
    if (key->type == PNR_KEY_YES_NO) {
        strcpy(out, "yes | no");
    } else if (has_range(key)) {
        format_double(key->min, low);
        format_double(key->max, high);
        if (isinf(key->max))
            snprintf(out, PNR_WHY_LEN, key->open ? "more than %s" : "%s or more", low);
        else if (key->open)
            snprintf(out, PNR_WHY_LEN, "more than %s, %s %s", low,
                     key->open & PNR_OPEN_MAX ? "less than" : "at most", high);
        else
            snprintf(out, PNR_WHY_LEN, "%s to %s", low, high);
    }
    return out;
}

static int refuse_range(const pnr_key *key, char why[PNR_WHY_LEN])
{
    char range[PNR_WHY_LEN];

    return refuse_value(why, "out of range: must be %.200s", pnr_value_range(key, range));
}

/* --- one parser for each type of key --- */

/* A key and its value in one configuration. */
typedef struct member {
    const pnr_key *key;
    void *field, *also; /* the members at key->offset and key->also */
    char *why;          /* [PNR_WHY_LEN] the reason of a refusal */
} member;

static int parse_text(const member *to, const char *text)
{
    if (strlen(text) >= to->key->size)
        return refuse_value(to->why, "too long: at most %zu bytes", to->key->size - 1);
    strcpy(to->field, text);
    return PNR_OK;
}

static int parse_time(const member *to, const char *text)
{
    int64_t utc_ns;

    if (*text && pnr_time_parse(text, &utc_ns) != PNR_OK)
        return refuse_value(to->why,
                            "must be UTC as 2026-11-21T02:40:12.5Z, years 1970 to 2261, or empty");
    return parse_text(to, text);
}

/* Reads digits. *end: the text after the digits. */
static int parse_digits(const char *text, const char **end, uint64_t *out, char *why)
{
    char *after;

    if (strspn(text, "0123456789") == 0)
        return refuse_value(why, "must be a whole number, digits alone");
    errno = 0;
    *out = strtoull(text, &after, 10);
    *end = after;
    return errno == 0 ? PNR_OK : refuse_value(why, "does not fit 64 bits");
}

/* Returns the shift in bits of a suffix such as K; 0: there is no such suffix. */
static unsigned shift_of(const pnr_key *key, char letter)
{
    const struct suffix *suffix = suffixes;

    while (suffix->letter && suffix->letter != letter)
        suffix++;
    return key->type == PNR_KEY_BYTES ? suffix->shift : 0;
}

/* Refuses a text that parse_digits has refused. Replaces the reason in to->why if a better reason
 * is known. */
static int refuse_whole(const member *to, const char *text)
{
    const pnr_key *key = to->key;
    const char *synonym = pnr_name_synonym(key->section, key->name, text);
    double decimal;

    if (*text == '-' && read_decimal(text, &decimal) && has_range(key) &&
        key->type != PNR_KEY_BYTES)
        return refuse_range(key, to->why);
    return synonym != NULL
               ? refuse_value(to->why, "must be a whole number; did you mean %s?", synonym)
               : PNR_ECONFIG;
}

/* Reads whole numbers of all types. Only an int may be negative. */
static int parse_whole(const member *to, const char *text)
{
    const pnr_key *key = to->key;
    const bool is_bytes = key->type == PNR_KEY_BYTES;
    const bool is_negative = key->type == PNR_KEY_INT && *text == '-';
    const char *end = text;
    uint64_t value = 0;
    unsigned shift;

    if (parse_digits(text + is_negative, &end, &value, to->why) != PNR_OK)
        return refuse_whole(to, text);
    shift = shift_of(key, *end);
    if (end[shift > 0])
        return refuse_value(to->why, "must be a whole number, digits alone%s",
                            is_bytes ? ", or with K, M or G after them" : "");
    if (value > (key->type == PNR_KEY_INT ? INT_MAX : UINT64_MAX >> shift) ||
        !in_range(key, is_negative ? -(double)value : (double)(value << shift)))
        return refuse_range(key, to->why);
    if (key->type == PNR_KEY_INT)
        *(int *)to->field = is_negative ? -(int)value : (int)value;
    else
        *(size_t *)to->field = value << shift;
    return PNR_OK;
}

static int parse_double(const member *to, const char *text)
{
    double value;

    errno = 0;
    if (!read_decimal(text, &value))
        return refuse_value(to->why, "must be a decimal number, as 0.5 or 1e-4");
    if (errno == ERANGE)
        return refuse_value(to->why, "too large or too small for double precision");
    if (!in_range(to->key, value))
        return refuse_range(to->key, to->why);
    *(double *)to->field = value == 0 ? 0 : value; /* -0 becomes 0 */
    return PNR_OK;
}

static int parse_rational(const member *to, const char *text)
{
    pnr_rational value = {0, 0};

    if (*text || *to->key->initial) {
        if (pnr_rational_parse(text, &value) != PNR_OK)
            return refuse_value(to->why,
                                "must be a decimal number, as 2.5e6, or a quotient p/q that fits "
                                "64 bits");
        if (!in_range(to->key, pnr_rational_double(value)))
            return refuse_range(to->key, to->why);
    }
    *(pnr_rational *)to->field = value;
    return PNR_OK;
}

/* Reads a word of a choice or a format. Formats also have aliases, and an empty text means auto. */
static int parse_choice(const member *to, const char *text)
{
    const pnr_key *key = to->key;
    const bool is_format = key->type == PNR_KEY_FORMAT;
    const pnr_format format = is_format ? pnr_format_find(text) : PNR_FORMAT_NONE;
    const char *synonym = pnr_name_synonym(key->section, key->name, text);
    const char *word, *best = word_of(key, 0);
    char range[PNR_WHY_LEN];

    for (size_t i = 0; (word = word_of(key, i)) != NULL; i++) {
        if (strcmp(text, word) == 0 || (is_format && i == format && (i > 0 || !*text))) {
            *(int *)to->field = (int)i;
            return PNR_OK;
        }
        if (pnr_name_distance(text, word) < pnr_name_distance(text, best))
            best = word;
    }
    pnr_value_range(key, range);
    if (synonym)
        return refuse_value(to->why, "must be one of %.200s; did you mean %s?", range, synonym);
    if (!pnr_name_is_near(text, best))
        return refuse_value(to->why, "must be one of %.200s", range);
    return refuse_value(to->why, "must be one of %.200s; the nearest is \"%s\"", range, best);
}

static int parse_yes_no(const member *to, const char *text)
{
    bool yes = strcmp(text, "yes") == 0;

    if (!yes && strcmp(text, "no") != 0)
        return refuse_value(to->why, "must be yes or no");
    *(bool *)to->field = yes;
    return PNR_OK;
}

static int parse_epoch(const member *to, const char *text)
{
    char number[PNR_VALUE_MAX + 16];
    const char *digits, *end = "";
    pnr_epoch epoch = {0};
    uint64_t value = 0;
    int rc;

    if (pnr_time_parse(text, &epoch.utc_ns) == PNR_OK) {
        epoch.is_utc = true;
        *(pnr_epoch *)to->field = epoch;
        return PNR_OK;
    }
    if ((rc = remove_unit(to->key, text, number, to->why)) == PNR_OK) {
        digits = number + (*number == '-' || *number == '+');
        rc = parse_digits(digits, &end, &value, to->why);
    }
    if (rc != PNR_OK || *end)
        return refuse_value(to->why, "must be a sample index or UTC as 2026-11-21T02:40:12.5Z");
    if (value > INT64_MAX)
        return refuse_value(to->why, "does not fit 64 bits");
    epoch.utc_ns = 0;
    epoch.sample = *number == '-' ? -(int64_t)value : (int64_t)value;
    *(pnr_epoch *)to->field = epoch;
    return PNR_OK;
}

static const char *skip_space(const char *text)
{
    return text + strspn(text, " \t");
}

/* Reads one "first+count" and the comma after it, if there is one. */
static int parse_run(const char **at, pnr_run *run, char *why)
{
    const char *text = skip_space(*at);

    if (parse_digits(text, &text, &run->first, why) != PNR_OK)
        return PNR_ECONFIG;
    text = skip_space(text);
    if (*text != '+')
        return refuse_value(why, "must be first+count, first+count, ...");
    text = skip_space(text + 1);
    if (parse_digits(text, &text, &run->count, why) != PNR_OK)
        return PNR_ECONFIG;
    if (run->count == 0 || run->count > UINT64_MAX - run->first)
        return refuse_value(why, "the count after %" PRIu64 "+ must be 1 or more and fit 64 bits",
                            run->first);
    text = skip_space(text);
    if (*text == ',') {
        text = skip_space(text + 1);
        if (!*text)
            return refuse_value(why, "nothing follows the last comma");
    } else if (*text) {
        return refuse_value(why, "must be first+count, first+count, ...");
    }
    *at = text;
    return PNR_OK;
}

static int parse_runs(const member *to, const char *text)
{
    size_t room = 0, n = 0;
    pnr_run *runs = NULL;
    int rc = PNR_OK;

    for (const char *at = text; (at = strchr(at, '+')) != NULL; at++)
        room++;
    if (*text && !(runs = calloc(room + 1, sizeof *runs))) {
        refuse_value(to->why, "no memory for %zu runs", room);
        return PNR_ENOMEMORY;
    }
    while (rc == PNR_OK && *text) {
        pnr_run run;

        rc = parse_run(&text, &run, to->why);
        if (rc != PNR_OK)
            break;
        uint64_t end = n > 0 ? runs[n - 1].first + runs[n - 1].count : 0;
        if (n > 0 && run.first < end)
            rc = refuse_value(to->why,
                              "runs must be in order and apart: %" PRIu64 " is before %" PRIu64,
                              run.first, end);
        else if (n > 0 && run.first == end)
            runs[n - 1].count += run.count;
        else
            runs[n++] = run;
    }
    if (rc != PNR_OK) {
        free(runs);
        return rc;
    }
    free(*(pnr_run **)to->field);
    *(pnr_run **)to->field = runs;
    *(size_t *)to->also = n;
    return PNR_OK;
}

/* Reads "all", or different whole numbers as "0,1,2". */
static int parse_devices(const member *to, const char *text)
{
    pnr_devices devices = {0};
    bool is_more = strcmp(text, "all") != 0;

    while (is_more) {
        const char *at = skip_space(text);
        const size_t n = devices.n;
        uint64_t index = 0;

        if (parse_digits(at, &text, &index, to->why) != PNR_OK)
            return refuse_whole(to, at);
        if (!in_range(to->key, (double)index))
            return refuse_range(to->key, to->why);
        pnr_devices_add(&devices, (size_t)index);
        if (devices.n == n)
            return refuse_value(to->why, "must name at most %d devices, each once",
                                PNR_MAX_DEVICES);
        text = skip_space(text);
        is_more = *text == ',';
        text += is_more;
        if (!is_more && *text)
            return refuse_value(to->why, "must be all, or whole numbers as 0,1,2");
    }
    *(pnr_devices *)to->field = devices;
    return PNR_OK;
}

static int refuse_notches(char why[PNR_WHY_LEN])
{
    return refuse_value(why,
                        "must be a list of f_hz+-width_hz, as 50e3+-200,-125 kHz+-1 kHz, with at "
                        "most %d entries",
                        PNR_CONFIG_NOTCHES);
}

/* Reads a frequency, which may have a unit and white space around it. */
static int parse_frequency(const member *to, char *text, double *hz)
{
    char number[PNR_VALUE_MAX + 16];
    int rc;

    for (size_t n = strlen(text); n > 0 && strchr(" \t", text[n - 1]) != NULL; n--)
        text[n - 1] = '\0';
    if ((rc = remove_unit(to->key, skip_space(text), number, to->why)) != PNR_OK)
        return rc;
    errno = 0;
    return read_decimal(number, hz) && errno == 0 ? PNR_OK : refuse_notches(to->why);
}

/* Reads frequencies and half widths, as "50e3+-200,-125 kHz+-1 kHz". */
static int parse_notches(const member *to, const char *text)
{
    char copy[PNR_VALUE_MAX + 1], *at = copy;
    pnr_notches notches = {0};
    bool is_more = *text != '\0';
    int rc;

    strcpy(copy, text);
    while (is_more) {
        char *centre = at, *width = strstr(at, "+-");
        double centre_hz, width_hz;

        at += strcspn(at, ",");
        is_more = *at == ',';
        if (notches.n == PNR_CONFIG_NOTCHES || width == NULL || width > at)
            return refuse_notches(to->why);
        *width = *at = '\0';
        at += is_more;
        if ((rc = parse_frequency(to, centre, &centre_hz)) != PNR_OK ||
            (rc = parse_frequency(to, width + 2, &width_hz)) != PNR_OK)
            return rc;
        if (width_hz < 0)
            return refuse_notches(to->why);
        notches.at[notches.n].centre_hz = centre_hz;
        notches.at[notches.n++].width_hz = width_hz;
    }
    *(pnr_notches *)to->field = notches;
    return PNR_OK;
}

typedef int parse_fn(const member *to, const char *text);

static parse_fn *const parsers[] = {
    [PNR_KEY_TEXT] = parse_text,         [PNR_KEY_TIME] = parse_time,
    [PNR_KEY_SIZE] = parse_whole,        [PNR_KEY_INT] = parse_whole,
    [PNR_KEY_BYTES] = parse_whole,       [PNR_KEY_DOUBLE] = parse_double,
    [PNR_KEY_RATIONAL] = parse_rational, [PNR_KEY_CHOICE] = parse_choice,
    [PNR_KEY_YES_NO] = parse_yes_no,     [PNR_KEY_FORMAT] = parse_choice,
    [PNR_KEY_EPOCH] = parse_epoch,       [PNR_KEY_RUNS] = parse_runs,
    [PNR_KEY_DEVICES] = parse_devices,   [PNR_KEY_NOTCHES] = parse_notches,
};

int pnr_value_parse(const pnr_key *key, const char *text, void *base, char why[PNR_WHY_LEN])
{
    const bool has_unit =
        key->unit != NULL && (key->type == PNR_KEY_SIZE || key->type == PNR_KEY_INT ||
                              key->type == PNR_KEY_DOUBLE || key->type == PNR_KEY_RATIONAL);
    char number[PNR_VALUE_MAX + 16];
    char *at = base;
    const member to = {.key = key, .field = at + key->offset, .also = at + key->also, .why = why};
    int rc = PNR_OK;

    why[0] = '\0';
    if (strlen(text) > PNR_VALUE_MAX)
        return refuse_value(why, "too long: at most %d bytes", PNR_VALUE_MAX);
    if (has_unit) {
        rc = remove_unit(key, text, number, why);
        text = number;
    }
    if (rc == PNR_OK && (key->given == 0 || *text != '\0'))
        rc = parsers[key->type](&to, text);
    if (rc == PNR_OK && key->given != 0)
        *(bool *)(at + key->given) = *text != '\0';
    return rc;
}

/* --- values to text --- */

/* Writes a text. Quotes it only if it needs quotes. */
static void format_text(const char *text, char *out)
{
    const bool is_quoted = strpbrk(text, " \t\"#;") != NULL;

    if (is_quoted)
        *out++ = '"';
    for (; *text; text++) {
        if (is_quoted && (*text == '"' || *text == '\\'))
            *out++ = '\\';
        *out++ = *text;
    }
    strcpy(out, is_quoted ? "\"" : "");
}

static void format_bytes(size_t value, char out[PNR_VALUE_MAX + 1])
{
    const struct suffix *suffix = suffixes;

    while (suffix->letter && (value == 0 || value % ((size_t)1 << suffix->shift) != 0))
        suffix++;
    snprintf(out, PNR_VALUE_MAX + 1, "%zu%.1s", value >> suffix->shift, &suffix->letter);
}

/* Writes runs as "first+count,...". The result has no spaces and is never longer than the text that
 * was read, so it fits in a line. */
static void format_runs(const pnr_run *runs, size_t n, char out[PNR_VALUE_MAX + 1])
{
    size_t used = 0;

    for (size_t i = 0; i < n && used < PNR_VALUE_MAX; i++)
        used += (size_t)snprintf(out + used, PNR_VALUE_MAX + 1 - used, "%s%" PRIu64 "+%" PRIu64,
                                 i ? "," : "", runs[i].first, runs[i].count);
}

/* Writes notches as "centre+-width,...". */
static void format_notches(const pnr_notches *notches, char out[PNR_VALUE_MAX + 1])
{
    char centre[DOUBLE_LEN], width[DOUBLE_LEN];
    size_t used = 0;

    for (size_t i = 0; i < notches->n; i++) {
        format_double(notches->at[i].centre_hz, centre);
        format_double(notches->at[i].width_hz, width);
        used += (size_t)snprintf(out + used, PNR_VALUE_MAX + 1 - used, "%s%s+-%s", i ? "," : "",
                                 centre, width);
    }
}

char *pnr_value_format(const pnr_key *key, const void *base, char out[PNR_VALUE_MAX + 1])
{
    const char *at = base;
    const void *field = at + key->offset, *also = at + key->also;

    out[0] = '\0';
    if (key->given != 0 && !*(const bool *)(at + key->given))
        return out;
    switch (key->type) {
    case PNR_KEY_TEXT:
    case PNR_KEY_TIME:
        format_text(field, out);
        break;
    case PNR_KEY_SIZE:
        snprintf(out, PNR_VALUE_MAX, "%zu", *(const size_t *)field);
        break;
    case PNR_KEY_INT:
        snprintf(out, PNR_VALUE_MAX, "%d", *(const int *)field);
        break;
    case PNR_KEY_BYTES:
        format_bytes(*(const size_t *)field, out);
        break;
    case PNR_KEY_DOUBLE:
        format_double(*(const double *)field, out);
        break;
    case PNR_KEY_RATIONAL:
        if (((const pnr_rational *)field)->den != 0)
            pnr_rational_format(*(const pnr_rational *)field, out);
        break;
    case PNR_KEY_CHOICE:
    case PNR_KEY_FORMAT:
        strcpy(out, word_of(key, (size_t)(*(const int *)field)));
        break;
    case PNR_KEY_YES_NO:
        strcpy(out, *(const bool *)field ? "yes" : "no");
        break;
    case PNR_KEY_EPOCH:
        if (((const pnr_epoch *)field)->is_utc)
            pnr_time_format(((const pnr_epoch *)field)->utc_ns, out);
        else
            snprintf(out, PNR_VALUE_MAX, "%" PRId64, ((const pnr_epoch *)field)->sample);
        break;
    case PNR_KEY_DEVICES:
        pnr_devices_format(field, out);
        break;
    case PNR_KEY_RUNS:
        format_runs(*(pnr_run *const *)field, *(const size_t *)also, out);
        break;
    case PNR_KEY_NOTCHES:
        format_notches(field, out);
    }
    return out;
}
