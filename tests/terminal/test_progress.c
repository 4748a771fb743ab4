/* SPDX-License-Identifier: MIT */
/* The text of the progress line. */
#include "terminal/progress.h"

#include "tests/fixture/test.h"

TEST(test_format)
{
    static const struct {
        pnr_progress progress;
        const char *text;
    } cases[] = {
        {{420, 1000, 2, 3}, "42 %, 210 samples/s, 3 s left, 3 echoes"},
        {{999, 1000, 0.5, 1}, "99 %, 2 ksamples/s, 1 s left, 1 echo"},
        {{1000000, 100000000, 1, 0}, "1 %, 1 Msamples/s, 1 min 39 s left, 0 echoes"},
        {{UINT64_C(1) << 40, UINT64_C(1) << 53, 80, 7},
         "0 %, 13.7 Gsamples/s, 182 h 01 min left, 7 echoes"},
        {{0, 1000, 1, 0}, "0 %, 0 samples/s, ? left, 0 echoes"},
        {{0, 1000, 0, 0}, "0 %, 0 samples/s, ? left, 0 echoes"},
        {{1000, 1000, 4, 12}, "100 %, 250 samples/s, 0 s left, 12 echoes"},
    };
    char text[PNR_PROGRESS_LEN];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_progress_format(&cases[i].progress, text);
        assert_string_equal(text, cases[i].text);
    }
}
