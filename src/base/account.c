/* SPDX-License-Identifier: MIT */
/* Checks the three sums of the account, and writes the account as one line for people. */
#include "base/account.h"

#include "base/text.h"

#include <stdio.h>

/* The name and the count of one part of a sum. */
typedef struct part {
    const char *name;
    uint64_t value;
} part;

#define PART(name) {#name, account->name},
#define SAMPLE_PARTS                                                                               \
    {                                                                                              \
        PNR_ACCOUNT_SAMPLES(PART)                                                                  \
    }
#define WINDOW_PARTS                                                                               \
    {                                                                                              \
        PNR_ACCOUNT_WINDOWS(PART)                                                                  \
    }
#define RESULT_PARTS                                                                               \
    {                                                                                              \
        PNR_ACCOUNT_RESULTS(PART)                                                                  \
    }
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static bool adds_up(const part *parts, size_t n, uint64_t total)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(sum, parts[i].value, &sum))
            return false;
    return sum == total;
}

void pnr_account_add(pnr_account *account, const pnr_account *more)
{
#define ADD_COUNT(name) account->name += more->name;
    PNR_ACCOUNT_FIELDS(ADD_COUNT)
#undef ADD_COUNT
}

bool pnr_account_closes(const pnr_account *account)
{
    const part samples[] = SAMPLE_PARTS, windows[] = WINDOW_PARTS, results[] = RESULT_PARTS;

    return adds_up(samples, LENGTH(samples), account->positions) &&
           adds_up(windows, LENGTH(windows), account->windows) &&
           adds_up(results, LENGTH(results), account->results);
}

bool pnr_account_lossless(const pnr_account *account)
{
    return account->skipped_refused == 0 && account->lost_source == 0 &&
           account->lost_ring_full == 0 && account->dropped_engine_error == 0 &&
           account->dropped_shutdown == 0 && account->refused_too_much_lost == 0 &&
           account->unsent_publish_refused == 0 && account->unsent_queue_full == 0 &&
           account->unsent_maps == 0 && account->unrecorded_samples == 0 &&
           account->unrecorded_results == 0;
}

static void add_part(pnr_text *text, const char *before, uint64_t value, const char *name)
{
    pnr_text_add(text, before);
    pnr_text_u64(text, value);
    pnr_text_add(text, " ");
    pnr_text_add(text, name);
}

/* Writes a sum such as "41943 samples = 40960 used + 983 skipped tail". Omits parts that are 0,
 * except the first part. */
static void add_sum(pnr_text *text, const char *before, uint64_t total, const char *noun,
                    const part *parts, size_t n)
{
    add_part(text, before, total, noun);
    add_part(text, " = ", parts[0].value, parts[0].name);
    for (size_t i = 1; i < n; i++)
        if (parts[i].value > 0)
            add_part(text, " + ", parts[i].value, parts[i].name);
}

char *pnr_account_format(const pnr_account *account, char *out, size_t size)
{
    const part samples[] = SAMPLE_PARTS, windows[] = WINDOW_PARTS, results[] = RESULT_PARTS;
    char whole[1024];
    pnr_text text;

    pnr_text_begin(&text, whole, sizeof whole);
    add_sum(&text, "", account->positions, "samples", samples, LENGTH(samples));
    add_sum(&text, "; ", account->windows, "windows", windows, LENGTH(windows));
    add_sum(&text, "; ", account->results, "results", results, LENGTH(results));
    if (account->n_clipped > 0)
        add_part(&text, "; ", account->n_clipped, "clipped");
    if (account->n_nonfinite > 0)
        add_part(&text, "; ", account->n_nonfinite, "non-finite");
    if (account->deadline_missed > 0)
        add_part(&text, "; ", account->deadline_missed, "late");
    if (account->unrecorded_samples > 0)
        add_part(&text, "; ", account->unrecorded_samples, "unrecorded samples");
    if (account->unrecorded_results > 0)
        add_part(&text, "; ", account->unrecorded_results, "unrecorded results");
    if (account->unsent_maps > 0)
        add_part(&text, "; ", account->unsent_maps, "unsent maps");
    (void)pnr_text_end(&text);
    for (char *c = whole; *c != '\0'; c++)
        if (*c == '_')
            *c = ' ';
    snprintf(out, size, "%s", whole);
    return out;
}
