/* SPDX-License-Identifier: MIT */
/* Tests of error.c: the list, its three tables, and explained errors. */
#include "base/error.h"
#include "tests/fixture/test.h"

#include <errno.h>

static const int codes[] = {
#define CODE(name, value, status, text) PNR_##name,
    PNR_ERRORS(CODE)
#undef CODE
};
enum { N_CODES = sizeof codes / sizeof codes[0] };

TEST(names_and_texts_of_every_code)
{
    assert_string_equal(pnr_error_name(PNR_OK), "OK");
    assert_string_equal(pnr_error_name(PNR_EDATA), "EDATA");
    assert_string_equal(pnr_error_name(PNR_ELOST), "ELOST");
    assert_string_equal(pnr_error_text(PNR_EEND), "the stream has ended");
    for (size_t i = 0; i < N_CODES; i++) {
        assert_string_not_equal(pnr_error_name(codes[i]), "EUNKNOWN");
        assert_true(strlen(pnr_error_text(codes[i])) > 0);
        assert_null(strchr(pnr_error_text(codes[i]), '\n'));
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(codes[i], codes[j]);
            assert_string_not_equal(pnr_error_name(codes[i]), pnr_error_name(codes[j]));
        }
    }
}

TEST(only_ok_is_not_negative)
{
    assert_int_equal(PNR_OK, 0);
    for (size_t i = 0; i < N_CODES; i++)
        assert_true(codes[i] == PNR_OK || codes[i] < 0);
}

TEST(exit_statuses_are_those_of_the_design)
{
    static const struct {
        int code, status;
    } expected[] = {
        {PNR_OK, 0},           {PNR_EEND, 0},     {PNR_EUSAGE, 64},       {PNR_EDATA, 65},
        {PNR_ENOINPUT, 66},    {PNR_EIO, 74},     {PNR_EUNAVAILABLE, 69}, {PNR_EUNSUPPORTED, 69},
        {PNR_ENOMEMORY, 69},   {PNR_ELOST, 75},   {PNR_EINTERNAL, 70},    {PNR_EENGINE, 70},
        {PNR_EPERMISSION, 77}, {PNR_ECONFIG, 78}, {PNR_EAGAIN, 70},
    };

    assert_int_equal(sizeof expected / sizeof expected[0], N_CODES);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(pnr_error_exit(expected[i].code), expected[i].status);
    assert_int_equal(PNR_EXIT_LOST, 3);
}

TEST(a_text_gives_the_terminal_no_orders)
{
    pnr_error error;

    (void)pnr_error_set(&error, PNR_EIO, "%s: gone", "a\x1b[31m\nb\xc2\x85\x84");
    assert_string_equal(error.text, "a?[31m b???: gone");
}

TEST(a_code_that_nobody_knows)
{
    static const int unknown[] = {1, -15, -1000, INT32_MAX, INT32_MIN};

    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_string_equal(pnr_error_name(unknown[i]), "EUNKNOWN");
        assert_non_null(pnr_error_text(unknown[i]));
        assert_int_equal(pnr_error_exit(unknown[i]), 70);
    }
}

TEST(set_explains_and_returns_the_code)
{
    pnr_error error = {.code = 7};

    assert_int_equal(pnr_error_set(&error, PNR_ECONFIG, "%s:%d: '%s'", "a.conf", 12, "x"),
                     PNR_ECONFIG);
    assert_int_equal(error.code, PNR_ECONFIG);
    assert_string_equal(error.text, "a.conf:12: 'x'");
    assert_int_equal(pnr_error_set(NULL, PNR_EIO, "%d", 1), PNR_EIO);
}

TEST(set_cuts_what_is_too_long)
{
    char text[2 * sizeof((pnr_error *)0)->text];
    pnr_error error;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memset(&error, '!', sizeof error);
    pnr_error_set(&error, PNR_EIO, "%s", text);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
    assert_memory_equal(error.text, text, sizeof error.text - 1);
}

TEST(set_keeps_to_one_line)
{
    pnr_error error;

    pnr_error_set(&error, PNR_EIO, "a\nb\r\nc\n\n");
    assert_string_equal(error.text, "a b  c");
    pnr_error_set(&error, PNR_EIO, "%s", "\n");
    assert_string_equal(error.text, "");
}

TEST(set_may_quote_the_error_itself)
{
    pnr_error error;

    pnr_error_set(&error, PNR_EIO, "disk full");
    pnr_error_set(&error, PNR_ECONFIG, "reading: %s", error.text);
    assert_string_equal(error.text, "reading: disk full");
}

TEST(set_leaves_errno_alone)
{
    pnr_error error;

    errno = ENOSPC;
    pnr_error_set(&error, PNR_EIO, "%m");
    assert_int_equal(errno, ENOSPC);
    assert_string_equal(error.text, strerror(ENOSPC));
}
