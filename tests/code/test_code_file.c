/* SPDX-License-Identifier: MIT */
/* Tests codes from text and from numpy arrays. Every form gives its chips, and an error is refused
 * with its line. */
#include "tests/fixture/code_fixture.h"

#include <fcntl.h>
#include <unistd.h>

/* Writes a file whose name ends with `extension`, as ".txt". Returns its path, which the next call
 * overwrites. */
static const char *write_chips(const char *extension, const void *bytes, size_t n)
{
    static char path[64];
    int file;

    snprintf(path, sizeof path, "/tmp/pnr-chips-XXXXXX%s", extension);
    file = mkstemps(path, (int)strlen(extension));
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, n), (ssize_t)n);
    close(file);
    return path;
}

/* Checks that a file gives these chips, scaled to mean power 1. */
static void expect_chips(const char *path, const sample *chips, size_t n)
{
    pnr_code *code = new_code((keys){.type = PNR_CODE_FILE, .text = path});
    double power = 0;

    unlink(path);
    assert_int_equal(code->n_chips, n);
    for (size_t k = 0; k < n; k++)
        power += (chips[k][0] * chips[k][0] + chips[k][1] * chips[k][1]) / (double)n;
    for (size_t k = 0; k < n; k++) {
        assert_true(fabs(code->chips[k][0] * sqrt(power) - chips[k][0]) < 1e-12);
        assert_true(fabs(code->chips[k][1] * sqrt(power) - chips[k][1]) < 1e-12);
    }
    pnr_code_destroy(code);
}

TEST(every_form_of_text_gives_its_chips)
{
    static const sample real[] = {{1, 0}, {-1, 0}, {-0.5, 0}, {2, 0}};
    static const sample both[] = {{1, 2}, {-1, 0.5}, {0, -3}, {2, 0}};
    static const struct {
        const char *text;
        const sample *chips;
    } forms[] = {
        {"1\n-1\n-0.5\n2\n", real},
        {"+1.0\r\n-1e0\r\n-.5\r\n2", real},
        {"\xef\xbb\xbf# chips\n\n1 # the first\n  -1\n-5e-1\n2,\n\n", real},
        {"1,-1,-0.5,2\n", real},
        {"1 -1 -0.5\n2\n", real},
        {"1;-1;-0.5;\n2;\n", real},
        {"1,2\n-1,0.5\n0,-3\n2,0\n", both},
        {"1 2\n-1\t.5\n 0 -3 \n2 0", both},
        {"1+2j\n-1+0.5j\n-3j\n2\n", both},
        {"1+2i, -1+.5i, 0-3i, 2", both},
        {" (1.0e+00+2.0e+00j)\n (-1.0e+00+5.0e-01j)\n (0-3j)\n (2+0j)\n", both},
    };

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        expect_chips(write_chips(i % 2 ? ".TXT" : ".csv", forms[i].text, strlen(forms[i].text)),
                     forms[i].chips, 4);
}

/* The lines of a file may have any length. */
TEST(one_long_line_is_read)
{
    enum { N = 100000 };
    char *text = malloc(3 * N);
    sample *chips = calloc(N, sizeof *chips);
    size_t length = 0;

    for (size_t k = 0; k < N; k++) {
        const bool is_minus = k % 3 == 0;

        chips[k][0] = is_minus ? -1 : 1;
        length += (size_t)sprintf(text + length, is_minus ? "-1," : "1,");
    }
    expect_chips(write_chips(".csv", text, length), (const sample *)chips, N);
    free(chips);
    free(text);
}

static void expect_file_refused(const char *path, const char *reason)
{
    expect_code_refused((keys){.type = PNR_CODE_FILE, .text = path}, PNR_EDATA, reason);
    unlink(path);
}

TEST(a_wrong_line_is_refused_with_its_number_and_text)
{
    static const struct {
        const char *text, *reason;
    } files[] = {
        {"1\n-1\nchip\n1\n", ":3: \"chip\": want a number"},
        {"i,q\n1,2\n", ":1: \"i,q\""},
        {"1\n-1 1\n1\n", ":2: \"-1 1\": more than one"},
        {"1,2\n\n3\n4,5\n", ":3: \"3\": not two"},
        {"1,2\n3,4,5\n", ":2: \"3,4,5\": not two"},
        {"1\n1+2j\n", ":2: \"1+2j\": a complex value"},
        {"1,2\n1+2j\n", ":2: \"1+2j\": a complex value"},
        {"1,-1\n", "two chips, or I and Q of one"},
        {"1\nnan\n", ":2: \"nan\""},
        {"1\n1e999\n", ":2: \"1e999\""},
        {"1\n0x10\n", ":2: \"0x10\""},
        {"1\n1+2\n", ":2: \"1+2\""},
        {"1\n(1+2j\n", ":2: \"(1+2j\""},
        {"1\n1 \001 2\n", ":2: \"1 ? 2\""},
        {"1\n2\n-0.000000001234567890123456789012345678901234567890123456789012345678901234567890"
         "123456789012345678\n",
         ":3: \"-0.00000000123456789"},
        {"# nothing\n\n", "no chips"},
        {"0\n0\n0\n", "all 3 samples are zero"},
        {"", "no chips"},
    };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        expect_file_refused(write_chips(".txt", files[i].text, strlen(files[i].text)),
                            files[i].reason);
    expect_file_refused(write_chips(".txt", "1\n1\0\n1\n", 7), ":2: \"1?\"");
}

/* --- numpy --- */

/* Writes a .npy file of version 1 with this header and n bytes of elements. Returns its path. */
static const char *write_npy(const char *header, const void *elements, size_t n)
{
    unsigned char bytes[512];
    const size_t length = strlen(header);

    assert_true(10 + length + n <= sizeof bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (unsigned char)length;
    bytes[9] = 0;
    memcpy(bytes + 10, header, length);
    memcpy(bytes + 10 + length, elements, n);
    return write_chips(".npy", bytes, 10 + length + n);
}

#define NPY(descr, shape)                                                                          \
    "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }          \n"

TEST(every_numpy_type_gives_its_chips)
{
    static const sample real[] = {{1, 0}, {-1, 0}, {-2, 0}}, both[] = {{1, 2}, {-1, 0}, {0, -3}};
    static const int8_t i1[] = {1, -1, -2};
    static const int16_t i2[] = {1, -1, -2};
    static const int32_t i4[] = {1, -1, -2};
    static const int64_t i8[] = {1, -1, -2};
    static const float f4[] = {1, -1, -2}, c8[] = {1, 2, -1, 0, 0, -3};
    static const double f8[] = {1, -1, -2}, c16[] = {1, 2, -1, 0, 0, -3};

    expect_chips(write_npy(NPY("|i1", "(3,)"), i1, sizeof i1), real, 3);
    expect_chips(write_npy(NPY("<i2", "(3,)"), i2, sizeof i2), real, 3);
    expect_chips(write_npy(NPY("<i4", "(3,)"), i4, sizeof i4), real, 3);
    expect_chips(write_npy(NPY("<i8", "(3,)"), i8, sizeof i8), real, 3);
    expect_chips(write_npy(NPY("<f4", "(3,)"), f4, sizeof f4), real, 3);
    expect_chips(write_npy(NPY("<f8", "(3,)"), f8, sizeof f8), real, 3);
    expect_chips(write_npy(NPY("<c8", "(3,)"), c8, sizeof c8), both, 3);
    expect_chips(write_npy(NPY("<c16", "(3,)"), c16, sizeof c16), both, 3);
}

/* The message ends with the refused value, without the rest of the header. */
static void expect_refused_value(const char *path, const char *value)
{
    pnr_config *config = new_config((keys){.type = PNR_CODE_FILE, .text = path});
    pnr_error error = {0};
    pnr_code *code;

    assert_int_equal(pnr_code_create(config, &code, &error), PNR_EDATA);
    assert_true(strlen(error.text) > strlen(value));
    assert_string_equal(error.text + strlen(error.text) - strlen(value), value);
    free(config);
    unlink(path);
}

TEST(a_wrong_numpy_file_is_refused)
{
    static const float f4[] = {1, -1, -2}, bad[] = {1, -1, NAN};
    const size_t n = sizeof f4;

    expect_refused_value(write_npy(NPY(">f4", "(3,)"), f4, n), "not '>f4'");
    expect_refused_value(write_npy(NPY("|b1", "(12,)"), f4, n), "not '|b1'");
    expect_refused_value(write_npy(NPY("<f4", "(1, 3)"), f4, n), "numpy.ravel), not (1, 3)");
    expect_refused_value(write_npy("{'descr': [('i', '<f4')], 'shape': (3,)}\n", f4, n),
                         "not [('i', '<f4')]");
    expect_file_refused(write_npy(NPY("<f4", "()"), f4, 4), "one dimension");
    expect_file_refused(write_npy(NPY("<f4", "(4,)"), f4, n), "4 elements of 4 bytes");
    expect_file_refused(write_npy(NPY("<f4", "(2,)"), f4, n), "2 elements of 4 bytes");
    expect_file_refused(write_npy(NPY("<f4", "(0,)"), f4, 0), "0 elements");
    expect_file_refused(write_npy(NPY("<f4", "(18446744073709551615,)"), f4, n), "elements");
    expect_file_refused(write_npy(NPY("<f4", "(4611686018427387907,)"), f4, n), "elements");
    expect_file_refused(write_npy(NPY("<f4", "(3,)"), bad, n), "element 2 is not finite");
    expect_file_refused(write_npy("{}\n", f4, n), "want little-endian");
    expect_file_refused(write_chips(".npy", "1\n-1\n", 5), "begin like a numpy array");
    expect_file_refused(write_chips(".npy", "\x93NUMPY\x01\x00\xff\xff{", 11), "65535 bytes");
    expect_file_refused(write_chips(".npy", "\x93NUMPY\x01\x00\x40\x00{", 11), "cut short");
    expect_file_refused(write_chips(".npy", "\x93NUMPY\x02\x00\x00\x00\x00\x7f", 12), "bytes");
}
