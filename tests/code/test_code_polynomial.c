/* SPDX-License-Identifier: MIT */
/* Tests primitive polynomials by their number and their order, and m-sequences by their
 * definition. */
#include "code/polynomial.h"

#include "tests/fixture/code_fixture.h"

static unsigned long totient(unsigned long n)
{
    unsigned long result = n;

    for (unsigned long p = 2; p * p <= n; p++) {
        if (n % p != 0)
            continue;
        result -= result / p;
        while (n % p == 0)
            n /= p;
    }
    return n > 1 ? result - result / n : result;
}

TEST(primitive_polynomials_are_as_many_as_there_are)
{
    for (unsigned degree = 2; degree <= 13; degree++) {
        unsigned long found = 0;

        for (unsigned long rest = 0; rest < 1UL << (degree - 1); rest++)
            found +=
                pnr_polynomial_is_primitive((pnr_polynomial){degree, rest | 1UL << (degree - 1)});
        assert_int_equal(found, totient((1UL << degree) - 1) / degree);
    }
}

/* Steps the register from all ones, and returns the number of steps until it holds all ones
 * again. */
static size_t period_of(pnr_polynomial polynomial)
{
    const size_t most = (size_t)1 << polynomial.degree;
    const size_t n = polynomial.degree;
    uint8_t *bits = malloc(most + n);
    size_t period = 1;

    assert_non_null(bits);
    memset(bits, 1, n);
    pnr_polynomial_extend(polynomial, bits, most + n);
    while (memcmp(bits + period, bits, n) != 0)
        period++;
    free(bits);
    return period;
}

TEST(primitive_is_the_longest_period)
{
    for (unsigned degree = 2; degree <= 9; degree++) {
        for (unsigned long rest = 0; rest < 1UL << (degree - 1); rest++) {
            const pnr_polynomial polynomial = {degree, rest | 1UL << (degree - 1)};

            assert_int_equal(pnr_polynomial_is_primitive(polynomial),
                             period_of(polynomial) == (1UL << degree) - 1);
        }
    }
}

TEST(the_table_is_primitive_and_obeys_its_recurrence)
{
    for (size_t degree = 2; degree <= 14; degree++) {
        pnr_code *code = new_code((keys){.type = PNR_CODE_M_SEQUENCE, .degree = degree});
        const size_t n = code->n_chips;

        assert_int_equal(n, (1UL << degree) - 1);
        assert_int_equal(code->is_m_sequence, 1);
        assert_int_equal(code->degree, degree);
        assert_true(pnr_polynomial_is_primitive((pnr_polynomial){code->degree, code->taps}));
        /* bit[i + degree] = xor of bit[i + degree - t] over the taps t, which is a product of
         * chips */
        for (size_t i = 0; i < n; i++) {
            double product = 1;

            for (unsigned t = 1; t <= degree; t++) {
                if (code->taps >> (t - 1) & 1)
                    product *= code->chips[(i + degree - t) % n][0];
            }
            assert_true(code->chips[(i + degree) % n][0] == product);
            assert_true(code->chips[i][1] == 0);
        }
        for (size_t i = 0; i < degree; i++)
            assert_true(code->chips[i][0] == -1);
        pnr_code_destroy(code);
    }
}

TEST(autocorrelation_is_n_and_minus_one)
{
    const double minus_one = -1;

    for (size_t degree = 2; degree <= 14; degree++) {
        pnr_code *code = new_code((keys){.type = PNR_CODE_M_SEQUENCE, .degree = degree});
        const size_t n = code->n_chips;
        sample *c = correlate_periods((const sample *)code->chips, (const sample *)code->chips, n);

        assert_true(fabs(c[0][0] - (double)n) < 1e-5);
        for (size_t k = 1; k < n; k++)
            assert_true(is_one_of(c[k], &minus_one, 1));
        free(c);
        pnr_code_destroy(code);
    }
}

/* By the definition of an m-sequence, every state of the register except zero occurs once. Tests
 * the long degrees. */
TEST(every_window_of_bits_comes_once)
{
    for (unsigned degree = 15; degree <= PNR_DEGREE_MAX; degree++) {
        pnr_config *config = new_config((keys){.degree = degree});
        const size_t n = ((size_t)1 << degree) - 1;
        pnr_polynomial polynomial;
        uint8_t *bits = malloc(n);
        uint8_t *seen = calloc(n / 8 + 1, 1);
        size_t window = 0, ones = 0;

        assert_non_null(bits);
        assert_non_null(seen);
        assert_int_equal(pnr_polynomial_choose(config, &polynomial, NULL), PNR_OK);
        assert_true(pnr_polynomial_is_primitive(polynomial));
        memset(bits, 1, polynomial.degree);
        pnr_polynomial_extend(polynomial, bits, n);
        for (size_t i = 0; i < n + degree - 1; i++) {
            window = (window << 1 | bits[i < n ? i : i - n]) & n;
            if (i < degree - 1)
                continue;
            if (window == 0 || seen[window / 8] >> window % 8 & 1)
                fail_msg("degree %u: window %zu comes again at %zu", degree, window, i);
            seen[window / 8] |= (uint8_t)(1 << window % 8);
        }
        for (size_t i = 0; i < n; i++)
            ones += bits[i];
        assert_int_equal(ones, (n + 1) / 2);
        free(seen);
        free(bits);
        free(config);
    }
}

TEST(taps_of_ones_own_are_taken_in_any_order)
{
    static const char *const same[] = {"10,7", "7,10", " 10 , 7 "};
    pnr_code *other = new_code((keys){.degree = 10, .text = "10,3"});
    pnr_code *table = new_code((keys){.degree = 10});

    assert_int_equal(other->taps, table->taps);
    assert_string_equal(table->name, "m-sequence n=10 taps=10,3");
    for (int i = 0; i < 3; i++) {
        pnr_code *code = new_code((keys){.degree = 10, .text = same[i]});

        assert_int_equal(code->taps, 1UL << 9 | 1UL << 6);
        assert_string_equal(code->name, "m-sequence n=10 taps=10,7");
        assert_memory_not_equal(code->chips, table->chips, 1023 * sizeof(sample));
        pnr_code_destroy(code);
    }
    pnr_code_destroy(other);
    pnr_code_destroy(table);
    table = new_code((keys){.degree = 13});
    assert_string_equal(table->name, "m-sequence n=13 taps=13,4,3,1");
    pnr_code_destroy(table);
}

/* Sequences of scipy 1.10.1: max_len_seq(degree, state, length, taps). Tap t of scipy is tap degree
 * - t of pnradar. */
TEST(state_and_taps_are_those_of_max_len_seq)
{
    static const struct {
        size_t degree;
        const char *taps, *state, *bits;
    } all[] = {
        {5, "", "00001", "0000101011101100011111001101001"},
        {8, "8,7,2,1", "10110001", "1011000100011001100011100001100000111011"},
        {8, "", "01000000", "0100000001011000111101000011111111001000"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const keys k = {.degree = all[i].degree, .text = all[i].taps, .state = all[i].state};
        pnr_code *code = new_code(k);

        for (size_t chip = 0; all[i].bits[chip] != '\0'; chip++)
            assert_true(code->chips[chip][0] == (all[i].bits[chip] == '1' ? -1 : 1));
        assert_int_equal(code->is_m_sequence, 1);
        pnr_code_destroy(code);
    }
    pnr_code *code = new_code((keys){.degree = 5, .state = "00001"});

    assert_string_equal(code->name, "m-sequence n=5 state=00001 taps=5,2");
    pnr_code_destroy(code);
    expect_code_refused((keys){.degree = 5, .state = "0001"}, PNR_ECONFIG,
                        "code.state \"0001\": must be 5 digits");
    expect_code_refused((keys){.degree = 5, .state = "00012"}, PNR_ECONFIG, "0 or 1");
    expect_code_refused((keys){.degree = 5, .state = "00000"}, PNR_ECONFIG, "at least one 1");
}

TEST(state_belongs_to_m_sequences_alone)
{
    pnr_code *plain = new_code((keys){.type = PNR_CODE_GOLD, .degree = 5});
    pnr_code *code = new_code((keys){.type = PNR_CODE_GOLD, .degree = 5, .state = "00001"});

    assert_string_equal(code->name, plain->name);
    assert_memory_equal(code->chips, plain->chips, 31 * sizeof(sample));
    pnr_code_destroy(plain);
    pnr_code_destroy(code);
}

TEST(inverted_chips_have_the_other_sign)
{
    static const keys all[] = {
        {.type = PNR_CODE_M_SEQUENCE, .degree = 7},
        {.type = PNR_CODE_GPS_L1CA, .prn = 3},
        {.type = PNR_CODE_ZADOFF_CHU, .length = 63, .root = 2},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        keys k = all[i];
        pnr_code *plain = new_code(k), *code;

        k.invert = true;
        code = new_code(k);
        for (size_t chip = 0; chip < plain->n_chips; chip++) {
            assert_true(code->chips[chip][0] == -plain->chips[chip][0]);
            assert_true(code->chips[chip][1] == -plain->chips[chip][1]);
        }
        assert_int_equal(code->is_m_sequence, 0); /* the Walsh method would give c the wrong sign */
        assert_non_null(strstr(code->name, " inverted"));
        pnr_code_destroy(plain);
        pnr_code_destroy(code);
    }
}

TEST(wrong_taps_and_degrees_are_refused_with_the_reason)
{
    expect_code_refused((keys){.degree = 0}, PNR_ECONFIG, "code.degree 0: must be 2 to 24");
    expect_code_refused((keys){.degree = 1}, PNR_ECONFIG, "code.degree 1");
    expect_code_refused((keys){.degree = 25}, PNR_ECONFIG, "code.degree 25");
    expect_code_refused((keys){.degree = SIZE_MAX}, PNR_ECONFIG, "must be 2 to 24");
    /* The polynomial x^4 + x^3 + x^2 + x + 1 is irreducible, but its order is 5. */
    expect_code_refused((keys){.degree = 4, .text = "4,3,2,1"}, PNR_ECONFIG,
                        "after 5 chips, not 15");
    expect_code_refused((keys){.degree = 10, .text = "10,5"}, PNR_ECONFIG, "not primitive");
    expect_code_refused((keys){.degree = 10, .text = "10,5"}, PNR_ECONFIG, "10,3 would be right");
    expect_code_refused((keys){.degree = 24, .text = "24"}, PNR_ECONFIG, "repeats after 1 chips");
    expect_code_refused((keys){.degree = 10, .text = "9,4"}, PNR_ECONFIG,
                        "largest tap must be code.degree");
    expect_code_refused((keys){.degree = 10, .text = "11,2"}, PNR_ECONFIG,
                        "largest tap must be code.degree");
    expect_code_refused((keys){.degree = 10, .text = "10,3,3"}, PNR_ECONFIG,
                        "tap 3 is there twice");
    expect_code_refused((keys){.degree = 10, .text = "10,0"}, PNR_ECONFIG, "a tap must be 1 to 24");
    expect_code_refused((keys){.degree = 10, .text = "99999999999999999999"}, PNR_ECONFIG,
                        "1 to 24");
    expect_code_refused((keys){.degree = 10, .text = "10,3,"}, PNR_ECONFIG, "not a list");
    expect_code_refused((keys){.degree = 10, .text = "10;3"}, PNR_ECONFIG, "not a list");
    expect_code_refused((keys){.degree = 10, .text = "10,-3"}, PNR_ECONFIG, "not a list");
    expect_code_refused((keys){.degree = 10, .text = "ten"}, PNR_ECONFIG, "\"ten\": not a list");
}
