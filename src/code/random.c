/* SPDX-License-Identifier: MIT */
/* Random-phase codes from a seed. Coded continuous-wave ionosondes generate the same codes with
 * numpy. */
#include "code/family.h"

#include <math.h>
#include <stdio.h>

/* MT19937 (M. Matsumoto and T. Nishimura, 1998), the generator of numpy.random.RandomState. */
enum { MT_N = 624, MT_M = 397 };

typedef struct twister {
    uint32_t state[MT_N];
    size_t next;
} twister;

static void twister_seed(twister *mt, uint32_t seed)
{
    mt->state[0] = seed;
    for (uint32_t i = 1; i < MT_N; i++)
        mt->state[i] = UINT32_C(1812433253) * (mt->state[i - 1] ^ (mt->state[i - 1] >> 30)) + i;
    mt->next = MT_N;
}

static void twister_turn(twister *mt)
{
    for (size_t i = 0; i < MT_N; i++) {
        uint32_t y = (mt->state[i] & UINT32_C(0x80000000)) |
                     (mt->state[(i + 1) % MT_N] & UINT32_C(0x7fffffff));

        mt->state[i] = mt->state[(i + MT_M) % MT_N] ^ (y >> 1) ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
    }
    mt->next = 0;
}

static uint32_t twister_next(twister *mt)
{
    uint32_t y;

    if (mt->next == MT_N)
        twister_turn(mt);
    y = mt->state[mt->next++];
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

/* Returns a uniform number in [0, 1) with 53 bits, as genrand_res53 does. */
static double twister_uniform(twister *mt)
{
    double high = (double)(twister_next(mt) >> 5);
    double low = (double)(twister_next(mt) >> 6);

    return (high * 67108864.0 + low) / 9007199254740992.0;
}

/* Chip k = exp(2 pi i u[k]), u = numpy.random.RandomState(seed).random_sample(length). */
int pnr_code_build_random(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t length = config->code.length;
    const size_t seed = config->code.seed;
    twister mt;

    if (seed > UINT32_MAX)
        return pnr_refuse(error, "code.seed %zu: must be 0 to %lu", seed,
                          (unsigned long)UINT32_MAX);
    twister_seed(&mt, (uint32_t)seed);
    for (size_t k = 0; k < length; k++) {
        /* The product 2 pi is rounded first, as in numpy, so that the phases have the same bits. */
        double phase = 2 * M_PI * twister_uniform(&mt);

        code->chips[k][0] = cos(phase);
        code->chips[k][1] = sin(phase);
    }
    snprintf(code->name, sizeof code->name, "random length=%zu seed=%zu", length, seed);
    return PNR_OK;
}
