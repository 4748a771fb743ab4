/* SPDX-License-Identifier: MIT */
/* Tests the codes of navigation satellites by the values that the interface documents print, and by
 * registers that step as the documents draw them. */
#include "tests/fixture/code_fixture.h"

#include "tests/golden/satellites.h"

static unsigned bit_of(const pnr_code *code, size_t chip)
{
    assert_true(fabs(code->chips[chip][0]) == 1 && code->chips[chip][1] == 0);
    return code->chips[chip][0] < 0;
}

static unsigned first_bits(const pnr_code *code, unsigned n)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < n; i++)
        bits = bits << 1 | bit_of(code, i);
    return bits;
}

static double sum_of(const pnr_code *code)
{
    double sum = 0;

    for (size_t i = 0; i < code->n_chips; i++)
        sum += code->chips[i][0];
    return sum;
}

/* A register whose stages are an array. Each string has a 1 for each stage that it selects. reset:
 * the state after which the register returns to its start, or NULL. */
typedef struct drawing {
    const char *start, *feedback, *output, *reset;
} drawing;

static void add_drawing(const drawing *d, uint8_t *bits, size_t n)
{
    const size_t degree = strlen(d->start);
    char stage[16];

    memcpy(stage, d->start, degree + 1);
    for (size_t i = 0; i < n; i++) {
        const bool is_last = d->reset != NULL && strcmp(stage, d->reset) == 0;
        unsigned fed = 0;

        for (size_t k = 0; k < degree; k++) {
            bits[i] ^= d->output[k] == '1' && stage[k] == '1';
            fed ^= d->feedback[k] == '1' && stage[k] == '1';
        }
        for (size_t k = degree; k-- > 1;)
            stage[k] = stage[k - 1];
        stage[0] = fed ? '1' : '0';
        if (is_last)
            memcpy(stage, d->start, degree);
    }
}

/* Checks that the code is the sum of one or two drawn registers. */
static void is_drawn(keys k, size_t n, const drawing *a, const drawing *b)
{
    pnr_code *code = new_code(k);
    uint8_t *bits = calloc(n, 1);

    assert_non_null(bits);
    assert_int_equal(code->n_chips, n);
    add_drawing(a, bits, n);
    if (b != NULL)
        add_drawing(b, bits, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(bit_of(code, i), bits[i]);
    free(bits);
    pnr_code_destroy(code);
}

/* Checks that no correlation of the two codes, and no sidelobe of either, exceeds `most`. */
static void is_apart(keys k, keys other, double most)
{
    pnr_code *a = new_code(k), *b = new_code(other);
    const size_t n = a->n_chips;
    sample *cross = correlate_periods((const sample *)a->chips, (const sample *)b->chips, n);
    sample *own = correlate_periods((const sample *)a->chips, (const sample *)a->chips, n);

    for (size_t lag = 0; lag < n; lag++) {
        assert_true(fabs(cross[lag][0]) < most);
        assert_true(lag == 0 || fabs(own[lag][0]) < most);
    }
    free(cross);
    free(own);
    pnr_code_destroy(a);
    pnr_code_destroy(b);
}

TEST(gps_l1ca_starts_as_published)
{
    for (size_t prn = 1; prn <= 210; prn++) {
        pnr_code *code = new_code((keys){.type = PNR_CODE_GPS_L1CA, .prn = prn});
        const unsigned first = first_bits(code, 10);
        const double sum = sum_of(code);

        assert_int_equal(code->n_chips, 1023);
        if (prn <= 37)
            assert_int_equal(first, golden_gps_chips[prn - 1]);
        if (prn >= 120 && prn <= 158)
            assert_int_equal(first, 01777 - golden_sbas_g2[prn - 120]);
        if (prn >= 193 && prn <= 202)
            assert_int_equal(first, 01777 - golden_qzss_g2[prn - 193]);
        /* a Gold code has 512, 480 or 544 ones */
        assert_true(sum == -1 || sum == 63 || sum == -65);
        pnr_code_destroy(code);
    }
}

static const drawing l5_xa = {"1111111111111", "0000000011011", "0000000000001", "1111111111101"};

TEST(gps_l5_is_drawn_from_the_published_starts)
{
    for (int component = 0; component < 2; component++) {
        for (size_t prn = 1; prn <= 37; prn++) {
            const drawing xb = {golden_l5_xb[component][prn - 1], "1011011100011", "0000000000001",
                                NULL};

            is_drawn((keys){.type = PNR_CODE_GPS_L5, .component = component, .prn = prn}, 10230,
                     &l5_xa, &xb);
        }
    }
}

TEST(gps_l5_codes_are_apart)
{
    const keys data = {.type = PNR_CODE_GPS_L5, .prn = 1};
    const keys pilot = {.type = PNR_CODE_GPS_L5, .prn = 1, .component = PNR_COMPONENT_PILOT};
    const keys last = {.type = PNR_CODE_GPS_L5, .prn = 210};
    pnr_code *code = new_code(pilot);

    assert_string_equal(code->name, "gps-l5 prn=1 pilot");
    pnr_code_destroy(code);
    is_apart(data, pilot, 600);
    is_apart(data, last, 600);
}

/* Runs the register backwards from the published last state, and checks every chip. The chips of
 * the other component must be 0. */
static void ends_as_published(int component, size_t at)
{
    const uint32_t feedback = 0445112474;
    const size_t prn = at < 63 ? at + 1 : at - 63 + 159;
    pnr_code *code = new_code((keys){.type = PNR_CODE_GPS_L2C, .component = component, .prn = prn});
    uint32_t state = golden_l2c_end[component][at];
    size_t n = component == PNR_COMPONENT_DATA ? 10230 : 767250;

    assert_int_equal(code->n_chips, 2 * n);
    while (n-- > 0) {
        const uint32_t fed = state >> 26;

        if (code->chips[2 * n + (size_t)component][0] != 1 - 2 * (double)(state & 1) ||
            code->chips[2 * n + 1 - (size_t)component][0] != 0)
            fail_msg("prn %zu: chip %zu", prn, n);
        state = (state ^ (fed ? feedback : 0)) << 1 | fed;
    }
    pnr_code_destroy(code);
}

TEST(gps_l2c_ends_as_published)
{
    for (size_t at = 0; at < 115; at++)
        ends_as_published(PNR_COMPONENT_DATA, at);
    for (size_t at = 0; at < 115; at++)
        ends_as_published(PNR_COMPONENT_PILOT, at);
}

TEST(bds_b1i_is_drawn)
{
    const drawing g1 = {"01010101010", "10000011111", "00000000001", NULL};
    const struct {
        size_t prn;
        const char *output; /* output stages of G2 */
    } all[] = {{1, "10100000000"},  {6, "10000000100"},  {9, "01000010000"},  {24, "00001001000"},
               {37, "00000000011"}, {38, "11000010000"}, {45, "10010000100"}, {53, "10000000101"},
               {58, "00110000100"}, {63, "00100100100"}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const drawing g2 = {"01010101010", "11111001101", all[i].output, NULL};

        is_drawn((keys){.type = PNR_CODE_BDS_B1I, .prn = all[i].prn}, 2046, &g1, &g2);
    }
    is_apart((keys){.type = PNR_CODE_BDS_B1I, .prn = 1},
             (keys){.type = PNR_CODE_BDS_B1I, .prn = 63}, 200);
}

/* The codes are Gold codes without the last chip. With the last chip the autocorrelation has the
 * three values of a preferred pair. */
TEST(bds_b1i_are_cut_gold_codes)
{
    const double values[] = {-1, 63, -65};

    for (size_t prn = 1; prn <= 63; prn++) {
        pnr_code *code = new_code((keys){.type = PNR_CODE_BDS_B1I, .prn = prn});
        sample whole[2047] = {{0}};
        int n_fitting = 0;

        memcpy(whole, code->chips, 2046 * sizeof whole[0]);
        for (int sign = -1; sign <= 1; sign += 2) {
            size_t n_good = 0;
            sample *own;

            whole[2046][0] = sign;
            own = correlate_periods((const sample *)whole, (const sample *)whole, 2047);
            for (size_t lag = 1; lag < 2047; lag++)
                n_good += (size_t)is_one_of(own[lag], values, 3);
            n_fitting += n_good == 2046;
            free(own);
        }
        assert_int_equal(n_fitting, 1);
        pnr_code_destroy(code);
    }
}

TEST(bds_b3i_is_drawn_from_the_published_starts)
{
    const drawing g1 = {"1111111111111", "1011000000001", "0000000000001", "1111111111100"};

    for (size_t prn = 1; prn <= 63; prn++) {
        const drawing g2 = {golden_b3i_g2[prn - 1], "1000111011011", "0000000000001", NULL};

        is_drawn((keys){.type = PNR_CODE_BDS_B3I, .prn = prn}, 10230, &g1, &g2);
    }
    is_apart((keys){.type = PNR_CODE_BDS_B3I, .prn = 1},
             (keys){.type = PNR_CODE_BDS_B3I, .prn = 63}, 600);
}

TEST(glonass_is_drawn_and_an_m_sequence)
{
    const drawing all = {"111111111", "000010001", "000000100", NULL};
    const double sidelobe[] = {-1};
    pnr_code *code = new_code((keys){.type = PNR_CODE_GLONASS});
    sample *own = correlate_periods((const sample *)code->chips, (const sample *)code->chips, 511);

    is_drawn((keys){.type = PNR_CODE_GLONASS}, 511, &all, NULL);
    assert_int_equal(first_bits(code, 12), 07740);
    for (size_t lag = 1; lag < 511; lag++)
        assert_true(is_one_of(own[lag], sidelobe, 1));
    assert_int_equal(code->is_m_sequence, 1);
    free(own);
    pnr_code_destroy(code);
}

/* The periods in a bit follow from the rates in the documents, see code.h. */
TEST(bits_are_those_of_the_signal)
{
    static const struct {
        int type, component;
        size_t prn, bits;
    } all[] = {
        {PNR_CODE_GPS_L1CA, PNR_COMPONENT_DATA, 1, 20},
        {PNR_CODE_GPS_L1CA, PNR_COMPONENT_DATA, 131, 2},
        {PNR_CODE_GPS_L1CA, PNR_COMPONENT_DATA, 193, 20},
        {PNR_CODE_GPS_L2C, PNR_COMPONENT_DATA, 1, 1},
        {PNR_CODE_GPS_L2C, PNR_COMPONENT_PILOT, 1, 0},
        {PNR_CODE_GPS_L5, PNR_COMPONENT_DATA, 1, 1},
        {PNR_CODE_GPS_L5, PNR_COMPONENT_PILOT, 1, 1},
        {PNR_CODE_GLONASS, PNR_COMPONENT_DATA, 1, 10},
        {PNR_CODE_BDS_B1I, PNR_COMPONENT_DATA, 6, 1},
        {PNR_CODE_BDS_B1I, PNR_COMPONENT_DATA, 5, 2},
        {PNR_CODE_BDS_B3I, PNR_COMPONENT_DATA, 60, 2},
        {PNR_CODE_M_SEQUENCE, PNR_COMPONENT_DATA, 1, 0},
    };
    pnr_config config;
    pnr_error error;
    pnr_code *code;

    pnr_config_init(&config);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        config.code.type = all[i].type;
        config.code.component = all[i].component;
        config.code.prn = all[i].prn;
        for (int given = 0; given < 2; given++) {
            config.code.has_bits = given;
            config.code.bits = 7;
            assert_int_equal(pnr_code_create(&config, &code, &error), PNR_OK);
            assert_int_equal(code->bits, given ? 7 : all[i].bits);
            pnr_code_destroy(code);
        }
    }
    pnr_config_clear(&config);
}

TEST(wrong_satellites_are_refused)
{
    static const struct {
        keys k;
        const char *reason;
    } all[] = {
        {{.type = PNR_CODE_GPS_L5, .prn = 211}, "code.prn 211: must be 1 to 210 for gps-l5"},
        {{.type = PNR_CODE_GPS_L2C, .prn = 64}, "must be 1 to 63 or 159 to 210 for gps-l2c"},
        {{.type = PNR_CODE_GPS_L2C, .prn = 158}, "code.prn 158"},
        {{.type = PNR_CODE_GPS_L2C, .prn = 211}, "code.prn 211"},
        {{.type = PNR_CODE_BDS_B1I, .prn = 64}, "code.prn 64: must be 1 to 63 for bds-b1i"},
        {{.type = PNR_CODE_BDS_B3I, .prn = 0}, "code.prn 0: must be 1 to 63 for bds-b3i"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_code_refused(all[i].k, PNR_ECONFIG, all[i].reason);
}
