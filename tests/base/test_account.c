/* SPDX-License-Identifier: MIT */
/* Tests that each number of an account belongs to its sum, and that each loss counts as a loss. */
#include "base/account.h"
#include "tests/fixture/test.h"

#define ALL_FIELDS(X)                                                                              \
    X(positions)                                                                                   \
    PNR_ACCOUNT_SAMPLES(X) X(windows) PNR_ACCOUNT_WINDOWS(X) X(results) PNR_ACCOUNT_RESULTS(X)

static const size_t fields[] = {
#define OFFSET(name) offsetof(pnr_account, name),
    ALL_FIELDS(OFFSET)
#undef OFFSET
};

static uint64_t *field(pnr_account *account, size_t offset)
{
    return (uint64_t *)(void *)((char *)account + offset);
}

static pnr_account example(void)
{
    return (pnr_account){
        .positions = 1000,
        .used = 800,
        .skipped_alignment = 10,
        .skipped_tail = 20,
        .skipped_refused = 30,
        .lost_source = 40,
        .lost_ring_full = 100,
        .windows = 20,
        .processed = 13,
        .dropped_engine_error = 4,
        .dropped_shutdown = 2,
        .refused_too_much_lost = 1,
        .results = 15,
        .sent = 10,
        .unsent_publish_refused = 3,
        .unsent_queue_full = 2,
        .n_clipped = 5,
        .n_nonfinite = 7,
    };
}

TEST(nothing_closes)
{
    const pnr_account account = {0};

    assert_true(pnr_account_closes(&account));
    assert_true(pnr_account_lossless(&account));
}

TEST(every_number_counts)
{
    pnr_account account = example();

    assert_true(pnr_account_closes(&account));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        ++*field(&account, fields[i]);
        assert_false(pnr_account_closes(&account));
        *field(&account, fields[i]) -= 2;
        assert_false(pnr_account_closes(&account));
        ++*field(&account, fields[i]);
        assert_true(pnr_account_closes(&account));
    }
}

TEST(the_three_sums_are_apart)
{
    pnr_account account = example();

    /* Two errors that cancel each other, one too many and one too few, are still found. */
    account.used++;
    account.processed--;
    assert_false(pnr_account_closes(&account));
    account = example();
    account.n_clipped = 999;
    account.n_nonfinite = 999;
    assert_true(pnr_account_closes(&account));
}

TEST(a_sum_beyond_64_bits_does_not_close)
{
    const pnr_account account = {.positions = 4, .used = UINT64_MAX, .lost_source = 5};

    assert_false(pnr_account_closes(&account));
}

TEST(what_is_a_loss)
{
    const size_t losses[] = {
        offsetof(pnr_account, skipped_refused),
        offsetof(pnr_account, lost_source),
        offsetof(pnr_account, lost_ring_full),
        offsetof(pnr_account, dropped_engine_error),
        offsetof(pnr_account, dropped_shutdown),
        offsetof(pnr_account, refused_too_much_lost),
        offsetof(pnr_account, unsent_publish_refused),
        offsetof(pnr_account, unsent_queue_full),
        offsetof(pnr_account, unsent_maps),
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        pnr_account account = {0};
        bool is_loss = false;
        *field(&account, fields[i]) = 1;
        for (size_t j = 0; j < sizeof losses / sizeof losses[0]; j++)
            is_loss |= losses[j] == fields[i];
        assert_int_equal(pnr_account_lossless(&account), !is_loss);
    }
    const pnr_account clipped = {.n_clipped = 9};
    assert_true(pnr_account_lossless(&clipped));
}

TEST(the_line)
{
    const pnr_account clean = {.positions = 41943,
                               .used = 40960,
                               .skipped_tail = 983,
                               .windows = 40,
                               .processed = 40,
                               .results = 40,
                               .sent = 40};
    const pnr_account none = {0}, full = example();
    char text[512];

    assert_string_equal(pnr_account_format(&clean, text, sizeof text),
                        "41943 samples = 40960 used + 983 skipped tail; 40 windows = 40 processed; "
                        "40 results = 40 sent");
    assert_string_equal(pnr_account_format(&none, text, sizeof text),
                        "0 samples = 0 used; 0 windows = 0 processed; 0 results = 0 sent");
    assert_string_equal(
        pnr_account_format(&full, text, sizeof text),
        "1000 samples = 800 used + 10 skipped alignment + 20 skipped tail + 30 skipped refused + "
        "40 lost source + 100 lost ring full; 20 windows = 13 processed + 4 dropped engine error + "
        "2 dropped shutdown + 1 refused too much lost; 15 results = 10 sent + 3 unsent publish "
        "refused + 2 unsent queue full; 5 clipped; 7 non-finite");
}

TEST(the_longest_line_fits_the_log)
{
    pnr_account account;
    char text[1024];

    memset(&account, 0xff, sizeof account);
    pnr_account_format(&account, text, sizeof text);
    assert_in_range(strlen(text), 400, sizeof text - 2);
    assert_null(strchr(text, '\n'));
}

TEST(a_short_line_is_cut)
{
    const pnr_account account = example();
    char whole[512], cut[512];

    pnr_account_format(&account, whole, sizeof whole);
    for (size_t size = 1; size <= strlen(whole) + 1; size++) {
        memset(cut, '#', sizeof cut);
        assert_ptr_equal(pnr_account_format(&account, cut, size), cut);
        assert_int_equal(strlen(cut), size - 1);
        assert_memory_equal(cut, whole, size - 1);
        assert_int_equal(cut[size], '#');
    }
    cut[0] = '#';
    pnr_account_format(&account, cut, 0);
    assert_int_equal(cut[0], '#');
}
