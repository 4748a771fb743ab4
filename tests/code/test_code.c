/* SPDX-License-Identifier: MIT */
/* Tests each family of codes by its defining property: autocorrelation, cross-correlation bound,
 * balance. */
#include "tests/fixture/code_fixture.h"

#include "tests/golden/random_phase.h"

/* Checks all pairs of a family of n_codes codes. Every correlation must have one of these values,
 * except the peak of a code with itself. */
static void family_has_values(keys k, size_t n_codes, const double *values, size_t n_values)
{
    sample **spectra = calloc(n_codes, sizeof *spectra);
    sample *c = NULL;
    size_t n = 0;

    assert_non_null(spectra);
    for (k.index = 0; k.index < n_codes; k.index++) {
        pnr_code *code = new_code(k);

        n = code->n_chips;
        spectra[k.index] = spectrum_of((const sample *)code->chips, n);
        pnr_code_destroy(code);
    }
    c = malloc(n * sizeof *c);
    assert_non_null(c);
    for (size_t i = 0; i < n_codes; i++) {
        for (size_t j = i; j < n_codes; j++) {
            correlate_spectra((const sample *)spectra[i], (const sample *)spectra[j], n, c);
            for (size_t lag = i == j; lag < n; lag++) {
                if (!is_one_of(c[lag], values, n_values))
                    fail_msg("length %zu, codes %zu and %zu, lag %zu: %g", n, i, j, lag, c[lag][0]);
            }
            if (i == j)
                assert_true(fabs(c[0][0] - (double)n) < 1e-5);
        }
    }
    for (size_t i = 0; i < n_codes; i++)
        free(spectra[i]);
    free(spectra);
    free(c);
}

static double gold_bound(size_t degree)
{
    /* for degree n: 2^((n+1)/2) + 1 if n is odd, 2^((n+2)/2) + 1 if n is even */
    return exp2((double)(degree / 2 + 1)) + 1;
}

TEST(gold_family_is_three_valued)
{
    static const size_t degrees[] = {3, 5, 6, 7};

    for (size_t i = 0; i < 4; i++) {
        const double t = gold_bound(degrees[i]);
        const double values[] = {-1, -t, t - 2};

        family_has_values((keys){.type = PNR_CODE_GOLD, .degree = degrees[i]},
                          ((size_t)1 << degrees[i]) + 1, values, 3);
    }
}

TEST(gold_pair_is_preferred_at_longer_degrees)
{
    static const size_t degrees[] = {9, 10, 11, 13, 14, 15, 17};

    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
        const double t = gold_bound(degrees[i]);
        const double values[] = {-1, -t, t - 2};
        size_t times[3] = {0};
        pnr_code *u = new_code((keys){.type = PNR_CODE_GOLD, .degree = degrees[i]});
        pnr_code *v = new_code((keys){.type = PNR_CODE_GOLD, .degree = degrees[i], .index = 1});
        pnr_code *m = new_code((keys){.type = PNR_CODE_M_SEQUENCE, .degree = degrees[i]});
        const size_t n = u->n_chips;
        sample *cross = correlate_periods((const sample *)u->chips, (const sample *)v->chips, n);
        sample *own = correlate_periods((const sample *)v->chips, (const sample *)v->chips, n);

        assert_memory_equal(u->chips, m->chips, n * sizeof(sample));
        for (size_t lag = 0; lag < n; lag++) {
            for (int j = 0; j < 3; j++)
                times[j] += (size_t)is_one_of(cross[lag], values + j, 1);
            assert_true(lag == 0 || is_one_of(own[lag], values, 1)); /* v is an m-sequence */
        }
        assert_int_equal(times[0] + times[1] + times[2], n);
        assert_true(times[0] > 0 && times[1] > 0 && times[2] > 0);
        free(cross);
        free(own);
        pnr_code_destroy(u);
        pnr_code_destroy(v);
        pnr_code_destroy(m);
    }
}

TEST(gold_members_are_shifted_products_of_the_pair)
{
    const size_t shifts[] = {0, 1, 500, 1022};
    pnr_code *u = new_code((keys){.type = PNR_CODE_GOLD, .degree = 10});
    pnr_code *v = new_code((keys){.type = PNR_CODE_GOLD, .degree = 10, .index = 1});

    for (int i = 0; i < 4; i++) {
        pnr_code *code =
            new_code((keys){.type = PNR_CODE_GOLD, .degree = 10, .index = 2 + shifts[i]});

        for (size_t k = 0; k < 1023; k++)
            assert_true(code->chips[k][0] == u->chips[k][0] * v->chips[(k + shifts[i]) % 1023][0]);
        assert_int_equal(code->is_m_sequence, 0);
        pnr_code_destroy(code);
    }
    assert_string_equal(v->name, "gold n=10 index=1 taps=10,3");
    pnr_code_destroy(u);
    pnr_code_destroy(v);
    u = new_code((keys){.type = PNR_CODE_GOLD, .degree = 10, .text = "10,7"});
    assert_string_equal(u->name, "gold n=10 index=0 taps=10,7");
    pnr_code_destroy(u);
}

TEST(kasami_family_keeps_its_bound)
{
    for (size_t degree = 4; degree <= 10; degree += 2) {
        const double t = exp2((double)degree / 2) + 1;
        const double values[] = {-1, -t, t - 2};

        family_has_values((keys){.type = PNR_CODE_KASAMI, .degree = degree},
                          (size_t)1 << degree / 2, values, 3);
    }
    /* For long codes only the first and the last code of the family are tested. */
    for (size_t degree = 12; degree <= 16; degree += 2) {
        const size_t last = ((size_t)1 << degree / 2) - 1;
        const double t = exp2((double)degree / 2) + 1;
        const double values[] = {-1, -t, t - 2};
        pnr_code *a = new_code((keys){.type = PNR_CODE_KASAMI, .degree = degree});
        pnr_code *b = new_code((keys){.type = PNR_CODE_KASAMI, .degree = degree, .index = last});
        sample *c =
            correlate_periods((const sample *)a->chips, (const sample *)b->chips, a->n_chips);

        for (size_t lag = 0; lag < a->n_chips; lag++)
            assert_true(is_one_of(c[lag], values, 3));
        free(c);
        pnr_code_destroy(a);
        pnr_code_destroy(b);
    }
}

/* Code 1 + s of the family is u times w delayed by s, where w[i] is u[(2^(n/2) + 1) i]. */
TEST(kasami_members_are_shifted_products)
{
    pnr_code *u = new_code((keys){.type = PNR_CODE_KASAMI, .degree = 8});

    for (size_t s = 0; s < 15; s++) {
        pnr_code *code = new_code((keys){.type = PNR_CODE_KASAMI, .degree = 8, .index = 1 + s});

        for (size_t k = 0; k < 255; k++)
            assert_true(code->chips[k][0] == u->chips[k][0] * u->chips[17 * (k + s) % 255][0]);
        assert_int_equal(code->is_m_sequence, 0);
        pnr_code_destroy(code);
    }
    assert_string_equal(u->name, "kasami n=8 index=0 taps=8,4,3,2");
    pnr_code_destroy(u);
}

TEST(gps_codes_are_one_gold_family)
{
    const double values[] = {-1, -65, 63};
    sample *spectra[38] = {NULL};
    sample *c = malloc(1023 * sizeof *c);

    assert_non_null(c);
    for (size_t prn = 1; prn <= 37; prn++) {
        pnr_code *code = new_code((keys){.type = PNR_CODE_GPS_L1CA, .prn = prn});

        spectra[prn] = spectrum_of((const sample *)code->chips, 1023);
        pnr_code_destroy(code);
    }
    for (size_t a = 1; a <= 37; a++) {
        for (size_t b = a; b <= 37; b++) {
            const int same = a == b || (a == 34 && b == 37);

            correlate_spectra((const sample *)spectra[a], (const sample *)spectra[b], 1023, c);
            if (same)
                assert_true(fabs(c[0][0] - 1023) < 1e-5);
            for (size_t lag = (size_t)same; lag < 1023; lag++)
                assert_true(is_one_of(c[lag], values, 3));
        }
    }
    for (size_t prn = 1; prn <= 37; prn++)
        free(spectra[prn]);
    free(c);
}

TEST(barker_sidelobes_are_at_most_one)
{
    static const size_t all[] = {2, 3, 4, 5, 7, 11, 13};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const size_t n = all[i];
        pnr_code *code = new_code((keys){.type = PNR_CODE_BARKER, .length = n});

        assert_int_equal(code->n_chips, n);
        for (size_t lag = 1; lag < n; lag++) {
            double sum = 0; /* the sum is aperiodic */

            for (size_t k = 0; k + lag < n; k++)
                sum += code->chips[k + lag][0] * code->chips[k][0];
            assert_true(fabs(sum) <= 1);
        }
        for (size_t k = 0; k < n; k++)
            assert_true(fabs(code->chips[k][0]) == 1 && code->chips[k][1] == 0);
        pnr_code_destroy(code);
    }
}

TEST(legendre_autocorrelation_is_two_valued)
{
    static const size_t primes[] = {3, 5, 7, 11, 13, 17, 19, 101, 103, 1009, 1019, 10007};
    const double minus_one[] = {-1}, one_or_minus_three[] = {1, -3};

    for (size_t i = 0; i < sizeof primes / sizeof primes[0]; i++) {
        const size_t n = primes[i];
        pnr_code *code = new_code((keys){.type = PNR_CODE_LEGENDRE, .length = n});
        sample *c = correlate_periods((const sample *)code->chips, (const sample *)code->chips, n);
        double sum = 0;

        for (size_t lag = 1; lag < n; lag++)
            assert_true(n % 4 == 3 ? is_one_of(c[lag], minus_one, 1)
                                   : is_one_of(c[lag], one_or_minus_three, 2));
        for (size_t k = 0; k < n; k++)
            sum += code->chips[k][0];
        assert_true(sum == 1); /* the sum has as many squares as non-squares, and chip 0 */
        assert_true(code->chips[0][0] == 1 && code->chips[1][0] == 1);
        free(c);
        pnr_code_destroy(code);
    }
}

static void is_perfect(keys k)
{
    pnr_code *code = new_code(k);
    const size_t n = code->n_chips;
    sample *c = correlate_periods((const sample *)code->chips, (const sample *)code->chips, n);

    assert_true(fabs(c[0][0] - (double)n) < 1e-12 * (double)n);
    for (size_t lag = 1; lag < n; lag++)
        assert_true(hypot(c[lag][0], c[lag][1]) < 1e-12 * (double)n);
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(hypot(code->chips[i][0], code->chips[i][1]) - 1) < 1e-15);
    free(c);
    pnr_code_destroy(code);
}

TEST(polyphase_codes_have_perfect_periodic_autocorrelation)
{
    static const keys all[] = {
        {.type = PNR_CODE_ZADOFF_CHU, .length = 1, .root = 1},
        {.type = PNR_CODE_ZADOFF_CHU, .length = 2, .root = 1},
        {.type = PNR_CODE_ZADOFF_CHU, .length = 255, .root = 7},
        {.type = PNR_CODE_ZADOFF_CHU, .length = 256, .root = 3},
        {.type = PNR_CODE_ZADOFF_CHU, .length = 839, .root = 838},
        {.type = PNR_CODE_ZADOFF_CHU, .length = 1000, .root = 499},
        {.type = PNR_CODE_ZADOFF_CHU, .length = 10007, .root = 5000},
        {.type = PNR_CODE_ZADOFF_CHU, .length = 65536, .root = 12345},
        {.type = PNR_CODE_FRANK, .length = 1},
        {.type = PNR_CODE_FRANK, .length = 4},
        {.type = PNR_CODE_FRANK, .length = 25},
        {.type = PNR_CODE_FRANK, .length = 1024},
        {.type = PNR_CODE_FRANK, .length = 99 * 99},
        {.type = PNR_CODE_P4, .length = 1},
        {.type = PNR_CODE_P4, .length = 2},
        {.type = PNR_CODE_P4, .length = 63},
        {.type = PNR_CODE_P4, .length = 1000},
        {.type = PNR_CODE_P4, .length = 10007},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        is_perfect(all[i]);
}

TEST(polyphase_phases_are_those_of_the_definition)
{
    pnr_code *odd = new_code((keys){.type = PNR_CODE_ZADOFF_CHU, .length = 63, .root = 25});
    pnr_code *even = new_code((keys){.type = PNR_CODE_ZADOFF_CHU, .length = 64, .root = 25});
    pnr_code *frank = new_code((keys){.type = PNR_CODE_FRANK, .length = 64});
    pnr_code *p4 = new_code((keys){.type = PNR_CODE_P4, .length = 64});

    for (int k = 0; k < 63; k++) {
        const struct {
            const double *chip;
            double phase;
        } all[] = {
            {odd->chips[k], -M_PI * 25 * k * (k + 1) / 63.0},
            {even->chips[k], -M_PI * 25 * k * k / 64.0},
            {frank->chips[k], 2 * M_PI * (k / 8) * (k % 8) / 8.0},
            {p4->chips[k], M_PI * (k * k / 64.0 - k)},
        };

        for (int j = 0; j < 4; j++) {
            assert_true(fabs(all[j].chip[0] - cos(all[j].phase)) < 1e-11);
            assert_true(fabs(all[j].chip[1] - sin(all[j].phase)) < 1e-11);
        }
    }
    assert_string_equal(odd->name, "zadoff-chu length=63 root=25");
    pnr_code_destroy(odd);
    pnr_code_destroy(even);
    pnr_code_destroy(frank);
    pnr_code_destroy(p4);
}

/* If the length N is odd and the difference of two roots is coprime to N, |c| = sqrt(N) at every
 * lag. */
TEST(zadoff_chu_roots_cross_at_the_square_root)
{
    pnr_code *a = new_code((keys){.type = PNR_CODE_ZADOFF_CHU, .length = 839, .root = 25});
    pnr_code *b = new_code((keys){.type = PNR_CODE_ZADOFF_CHU, .length = 839, .root = 129});
    sample *c = correlate_periods((const sample *)a->chips, (const sample *)b->chips, 839);

    for (size_t lag = 0; lag < 839; lag++)
        assert_true(fabs(hypot(c[lag][0], c[lag][1]) - sqrt(839)) < 1e-9);
    free(c);
    pnr_code_destroy(a);
    pnr_code_destroy(b);
}

TEST(random_phases_are_numpys)
{
    pnr_code *code = NULL;
    size_t seed = SIZE_MAX;

    for (size_t i = 0; i < sizeof golden_random_phase / sizeof golden_random_phase[0]; i++) {
        const double *chip;

        if (golden_random_phase[i].seed != seed) {
            seed = golden_random_phase[i].seed;
            pnr_code_destroy(code);
            code = new_code((keys){.type = PNR_CODE_RANDOM, .length = GOLDEN_LENGTH, .seed = seed});
        }
        chip = code->chips[golden_random_phase[i].chip];
        /* The phase has the same bits as numpy's. The sine of numpy may differ in the last
         * place. */
        assert_true(chip[0] == cos(2 * M_PI * golden_random_phase[i].u));
        assert_true(chip[1] == sin(2 * M_PI * golden_random_phase[i].u));
        assert_true(fabs(chip[0] - golden_random_phase[i].re) < 2.3e-16);
        assert_true(fabs(chip[1] - golden_random_phase[i].im) < 2.3e-16);
    }
    pnr_code_destroy(code);
}

TEST(wrong_parameters_are_refused_with_the_reason)
{
    static const struct {
        keys k;
        const char *reason;
    } all[] = {
        {{.type = PNR_CODE_GOLD, .degree = 8}, "code.degree 8"},
        {{.type = PNR_CODE_GOLD, .degree = 24}, "no multiple of 4"},
        {{.type = PNR_CODE_GOLD, .degree = 2}, "code.degree 2"},
        {{.type = PNR_CODE_GOLD, .degree = 5, .index = 33}, "code.index 33: must be 0 to 32"},
        {{.type = PNR_CODE_GOLD, .degree = 10, .text = "10,5"}, "not primitive"},
        {{.type = PNR_CODE_KASAMI, .degree = 5}, "even degree"},
        {{.type = PNR_CODE_KASAMI, .degree = 2}, "even degree of 4 to 24"},
        {{.type = PNR_CODE_KASAMI, .degree = 6, .index = 8}, "code.index 8: must be 0 to 7"},
        {{.type = PNR_CODE_GPS_L1CA, .prn = 0}, "code.prn 0: must be 1 to 210 for gps-l1ca"},
        {{.type = PNR_CODE_GPS_L1CA, .prn = 211}, "code.prn 211"},
        {{.type = PNR_CODE_BARKER, .length = 6}, "2, 3, 4, 5, 7, 11 or 13"},
        {{.type = PNR_CODE_BARKER, .length = 0}, "code.length 0"},
        {{.type = PNR_CODE_LEGENDRE, .length = 1001}, "code.length 1001"},
        {{.type = PNR_CODE_LEGENDRE, .length = 1020}, "1019 would be right"},
        {{.type = PNR_CODE_LEGENDRE, .length = 0}, "3 would be right"},
        {{.type = PNR_CODE_LEGENDRE, .length = 2}, "3 would be right"},
        {{.type = PNR_CODE_LEGENDRE, .length = SIZE_MAX}, "code.length"},
        {{.type = PNR_CODE_ZADOFF_CHU, .length = 255, .root = 5}, "common divisor is 5"},
        {{.type = PNR_CODE_ZADOFF_CHU, .length = 255, .root = 0}, "code.root 0: must be 1 to 254"},
        {{.type = PNR_CODE_ZADOFF_CHU, .length = 255, .root = 256}, "code.root 256"},
        {{.type = PNR_CODE_ZADOFF_CHU, .length = 0, .root = 1}, "code.length = 0"},
        {{.type = PNR_CODE_FRANK, .length = 63}, "64 would be right"},
        {{.type = PNR_CODE_FRANK, .length = 0}, "code.length = 0"},
        {{.type = PNR_CODE_P4, .length = SIZE_MAX}, "must be 1 to 16777216"},
        {{.type = PNR_CODE_RANDOM, .length = 0}, "code.length = 0"},
        {{.type = PNR_CODE_RANDOM, .length = 8, .seed = 4294967296}, "code.seed 4294967296"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_code_refused(all[i].k, PNR_ECONFIG, all[i].reason);
    expect_code_refused((keys){.type = 99}, PNR_EINTERNAL, "99");
    expect_code_refused((keys){.type = -1}, PNR_EINTERNAL, "-1");
    pnr_code_destroy(NULL);
}
