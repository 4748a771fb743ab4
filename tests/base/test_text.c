/* SPDX-License-Identifier: MIT */
/* Tests of text.c: the C library judges the numbers, and jansson judges the JSON. */
#include "base/text.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <float.h>
#include <jansson.h>

static const char *number(double value, char out[64])
{
    pnr_text t;

    pnr_text_begin(&t, out, 64);
    pnr_text_double(&t, value, "null");
    assert_int_not_equal(pnr_text_end(&t), 0);
    return out;
}

/* Checks that the error is at most 0.51 units of the 12th digit, that no shorter text would do, and
 * that the text is a JSON number. */
static void check_double(double value)
{
    char out[64], twelve[64];
    double unit, read;
    json_t *json;
    int exponent;

    number(value, out);
    snprintf(twelve, sizeof twelve, "%.11e", value);
    exponent = atoi(strchr(twelve, 'e') + 1);
    read = strtod(out, NULL);
    /* the unit of the 12th digit is subnormal, so this test compares relative errors */
    if (exponent < -300) {
        assert_true(fabs(read - value) <= fabs(value) * 5.2e-12 + DBL_TRUE_MIN);
    } else {
        unit = pow(10, exponent - 11);
        if (!(fabs(read - value) <= 0.51 * unit))
            fail_msg("%s for %.17g", out, value);
    }
    json = json_loads(out, JSON_DECODE_ANY, NULL);
    if (!json_is_number(json))
        fail_msg("%s is no JSON number", out);
    json_decref(json);
    assert_true(strlen(out) <= 19);
}

TEST(test_known_numbers)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1, "-1"},
        {10, "10"},
        {0.5, "0.5"},
        {61.2, "61.2"},
        {-12.4, "-12.4"},
        {1e-5, "0.00001"},
        {1.25e-6, "1.25e-6"},
        {1e-300, "1e-300"},
        {123456789012, "123456789012"},
        {1234567890123, "1.23456789012e12"},
        {100000, "100000"},
        {299792458, "299792458"},
        {0.1 + 0.2, "0.3"},
        {999999999999.7, "1e12"},
        {9.9999999999996, "10"},
        {9.99999999999, "9.99999999999"},
        {0.000123456789012345, "0.000123456789012"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };
    char out[64];
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(number(cases[i].value, out), cases[i].text);
}

TEST(test_random_numbers)
{
    int i;

    for (i = 0; i < 200000; i++) {
        const uint64_t s = random_bits();
        double value;

        memcpy(&value, &s, sizeof value); /* all exponents occur */
        if (isfinite(value))
            check_double(value);
        check_double(((double)(s >> 11) - 4503599627370496.0) * 1e-9);
    }
    for (i = -323; i <= 308; i++) {
        char text[16];

        snprintf(text, sizeof text, "1e%d", i);
        check_double(strtod(text, NULL));
        check_double(nextafter(strtod(text, NULL), 0));
        check_double(nextafter(strtod(text, NULL), INFINITY));
    }
    check_double(DBL_MAX);
    check_double(DBL_MIN);
}

TEST(test_integers)
{
    char out[128];
    pnr_text t;

    pnr_text_begin(&t, out, sizeof out);
    pnr_text_u64(&t, 0);
    pnr_text_add(&t, " ");
    pnr_text_u64(&t, UINT64_MAX);
    pnr_text_add(&t, " ");
    pnr_text_i64(&t, INT64_MIN);
    pnr_text_add(&t, " ");
    pnr_text_i64(&t, -7);
    assert_int_equal(pnr_text_end(&t), strlen(out));
    assert_string_equal(out, "0 18446744073709551615 -9223372036854775808 -7");
}

static void check_string(const char *string, const char *want)
{
    char out[128];
    json_t *json;
    pnr_text t;

    pnr_text_begin(&t, out, sizeof out);
    pnr_text_string(&t, string);
    assert_int_not_equal(pnr_text_end(&t), 0);
    json = json_loads(out, JSON_DECODE_ANY, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json), want);
    json_decref(json);
}

/* Control characters are found, replaced in place, and escaped in JSON. All other text stays. */
TEST(test_controls)
{
    static const struct {
        const char *text, *hidden;
    } cases[] = {
        {"a\x1b[2Jb", "a?[2Jb"},
        {"\x7f", "?"},
        {"a\nb\rc\td", "a b c d"},
        {"\x9b\x32J", "?2J"},         /* CSI of an 8-bit terminal */
        {"x\xc2\x9b\x32J", "x??2J"},  /* the same control character in UTF-8 */
        {"\xc2\x80\xc2\x9f", "????"}, /* the first and the last control character of two bytes */
        /* three bytes for a character that needs two: each byte counts alone */
        {"\xe0\x82\x9b", "\xe0??"},
        {"\xf0\x9f\x93\x1b", "\xf0???"}, /* the sequence of four bytes is cut short */
        {"end \xc2", "end \xc2"},
    };
    static const char *const clean[] = {"", "plain", "\xc2\xa0\xc2\xb5s",
                                        "\xe2\x82\xac \xf0\x9f\x93\xa1 \xc3\x9f", "latin \xe9"};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const bool is_found = pnr_text_find_control(cases[i].text, strlen(cases[i].text)) != NULL;
        char text[32];

        strcpy(text, cases[i].text);
        pnr_text_hide_controls(text);
        assert_string_equal(text, cases[i].hidden);
        assert_null(pnr_text_find_control(text, strlen(text)));
        assert_int_equal(is_found, strcmp(text, cases[i].text) != 0);
    }
    for (size_t i = 0; i < COUNT(clean); i++)
        assert_null(pnr_text_find_control(clean[i], strlen(clean[i])));
    assert_null(pnr_text_find_control("ab\x1b", 2));
    assert_null(pnr_text_find_control("\xc2\x9b", 1)); /* must not read beyond the one byte */
}

TEST(test_controls_in_json)
{
    char out[64];
    pnr_text t;

    pnr_text_begin(&t, out, sizeof out);
    pnr_text_string(&t, "\x1b\xc2\x9b\xc2\xa0\x7f");
    assert_int_not_equal(pnr_text_end(&t), 0);
    assert_string_equal(out, "\"\\u001b\\u009b\xc2\xa0\\u007f\"");
    check_string("\xc2\x9b", "\xc2\x9b");
}

TEST(test_strings)
{
    check_string("", "");
    check_string("demo", "demo");
    check_string("a\"b\\c/d", "a\"b\\c/d");
    check_string("tab\there\x01\x1f\x7f", "tab\there\x01\x1f\x7f");
    check_string("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x93\xa1",
                 "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x93\xa1");
    /* malformed UTF-8: a lone byte, a cut sequence, a sequence that is too long, a surrogate, a
     * code point above U+10FFFF */
    check_string("a\x80z", "a\xef\xbf\xbdz");
    check_string("\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd");
    check_string("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");
    check_string("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check_string("\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(test_full)
{
    char out[8] = "xxxxxxx";
    pnr_text t;

    pnr_text_begin(&t, out, 5);
    pnr_text_add(&t, "abcd");
    assert_int_equal(pnr_text_end(&t), 4);
    assert_string_equal(out, "abcd");
    pnr_text_add(&t, "e");
    assert_int_equal(pnr_text_end(&t), 0);
    assert_memory_equal(out + 5, "xx", 3); /* nothing was written after the fifth byte */
    pnr_text_begin(&t, out, 0);
    pnr_text_add(&t, "");
    assert_int_equal(pnr_text_end(&t), 0);
}
