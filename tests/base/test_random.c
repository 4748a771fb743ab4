/* SPDX-License-Identifier: MIT */
#include "base/random.h"
#include "tests/fixture/test.h"

/* The published first numbers of splitmix64 for the seed 1234567. */
TEST(seed_1234567_gives_the_published_numbers)
{
    static const uint64_t published[] = {
        UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821),
    };
    uint64_t state = 1234567, same = 1234567;

    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        assert_int_equal(pnr_random_next(&state), published[i]);
        assert_true(pnr_random_uniform(&same) == (double)(published[i] >> 11) / 9007199254740992.0);
    }
}
