/* SPDX-License-Identifier: MIT */
/* Compares every engine that works here with the reference: same cells, values and sums. The bits
 * must not depend on the submit. */
#include "setup/setup.h"
#include "tests/fixture/answer.h"
#include "tests/fixture/scenarios.h"

TEST(test_agreement)
{
    agree_all(plain_scenarios, 0);
}

TEST(test_powers_of_two)
{
    agree_all(powers_of_two, 1);
}

enum { LOOKS = 1, ROWS, CFAR };

/* Compares each plain scenario with one more axis, in at most two dwells. */
static void agree_with(int axis)
{
    scenario list[32] = {{.name = NULL}};
    size_t n = 0;

    for (size_t i = 0; plain_scenarios[i].name != NULL; i++) {
        scenario *s = &list[n++];

        *s = plain_scenarios[i];
        s->n_dwells = s->n_dwells < 2 ? s->n_dwells : 2;
        if (axis == LOOKS)
            s->n_looks = s->n_looks > 1 ? 2 * s->n_looks : 3;
        if (axis == ROWS) {
            static const int32_t quarters[] = {-5, 0, 2};

            for (size_t h = 0; h < COUNT(quarters); h++)
                s->hypotheses[h] = (pnr_hypothesis){quarters[h], 0, 1, 0};
        }
        if (axis == CFAR) {
            s->cfar = (pnr_cfar){PNR_CFAR_CA, PNR_CFAR_ALONG_LAGS, 1, 6, 1, NULL};
            s->factor = 0.6 * s->threshold;
            n -= s->n_samples < 32; /* no training cells remain in so short a window */
        }
    }
    list[n].name = NULL;
    agree_all(list, 1);
}

TEST(test_looks)
{
    agree_with(LOOKS);
}

TEST(test_rows)
{
    agree_with(ROWS);
}

TEST(test_cfar)
{
    agree_with(CFAR);
}

/* The reference takes seconds for N = 65535, so it computes this answer once for all engines. */
TEST(test_long_m_sequence)
{
    static const scenario s = S("m-sequence 65535", .n_samples = 65535, .code = M_SEQUENCE,
                                .echo = 0.05, .delay = 0.87, .threshold = 40);
    const pnr_engine_ops *reference = find_engine("reference");
    answer want;
    world w;

    world_create(&w, &s, reference);
    ask(reference, &w, PNR_WANT_COMPLEX, &want);
    for (size_t e = 1; engine_names[e] != NULL; e++) {
        const pnr_engine_ops *ops = find_engine(engine_names[e]);
        answer got;

        if (ops == NULL)
            continue;
        ask(ops, &w, PNR_WANT_COMPLEX, &got);
        compare_answers(&w, ops->name, &got, &want, 1);
        assert_int_equal(got.candidates[0].cell, (size_t)(0.87 * 65535));
        answer_destroy(&got);
    }
    answer_destroy(&want);
    world_destroy(&w, reference);
}

static void check_delay(const pnr_engine_ops *ops, size_t n, size_t delay)
{
    const scenario s =
        S("by hand", .n_samples = n, .code = ZADOFF_CHU, .format = PNR_FORMAT_CF32, .threshold = 3);
    answer got;
    world w;

    world_create(&w, &s, ops);
    for (size_t i = 0; i < n; i++) {
        const double *a = w.references[(i + n - delay) % n];
        const double x[2] = {0.25 * a[0], 0.25 * a[1]};

        (void)pnr_format_write(s.format, x, w.samples + 8 * i);
    }
    ask(ops, &w, PNR_WANT_COMPLEX, &got);
    assert_int_equal(got.dwells[0].n_candidates, 1);
    assert_int_equal(got.candidates[0].cell, delay);
    /* the Zadoff-Chu code has the correlation 0 at all other lags */
    for (size_t k = 0; k < n; k++) {
        const double peak = k == delay ? 0.25 * (double)n : 0;

        assert_true(fabs((double)got.profile[2 * k] - peak) < 1e-4);
        assert_true(fabs((double)got.profile[2 * k + 1]) < 1e-4);
    }
    answer_destroy(&got);
    world_destroy(&w, ops);
}

/* Checks samples without noise against values computed by hand. At the lag of the echo c is A
 * sum|a|^2, elsewhere c is the autocorrelation. This finds a wrong conjugate, an error of one lag
 * beyond N/2, and a missing 1/N. */
TEST(test_by_hand)
{

    for (size_t e = 0; engine_names[e] != NULL; e++) {
        const pnr_engine_ops *ops = find_engine(engine_names[e]);

        /* a length whose transform is direct, and a prime, whose period is extended */
        for (size_t i = 0; ops != NULL && i < 2; i++)
            for (size_t delay = 0; delay < (i == 0 ? 75 : 61); delay++)
                check_delay(ops, i == 0 ? 75 : 61, delay);
    }
}

/* Two equal echoes in exact samples give equal powers, and the echo at the lower lag is kept. */
TEST(test_tie)
{

    for (size_t e = 0; engine_names[e] != NULL; e++) {
        const pnr_engine_ops *ops = find_engine(engine_names[e]);
        const scenario s = S("a tie", .n_samples = 16, .format = PNR_FORMAT_CF32, .threshold = 2,
                             .max_candidates = 1);
        answer got;
        world w;

        if (ops == NULL)
            continue;
        world_create(&w, &s, ops);
        /* the code is an impulse, so that c = x */
        memset(w.references, 0, 16 * sizeof *w.references);
        w.references[0][0] = 1;
        float(*x)[2] = (float(*)[2])(void *)w.samples;
        memset(x, 0, 16 * sizeof *x);
        x[11][0] = 0.5f;
        x[4][1] = -0.5f;
        ask(ops, &w, PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_maxima, 2);
        assert_int_equal(got.dwells[0].n_candidates, 1);
        assert_int_equal(got.candidates[0].cell, 4);
        /* silence has no echo */
        answer_destroy(&got);
        memset(x, 0, 16 * sizeof *x);
        ask(ops, &w, PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_candidates, 0);
        assert_int_equal(got.dwells[0].n_above, 0);
        answer_destroy(&got);
        world_destroy(&w, ops);
    }
}

/* The bits of a dwell depend neither on the other dwells of its submit nor on the place at which
 * the view wraps. */
TEST(test_batches)
{
    static const size_t lengths[] = {512, 1023, 10000, 20000, 1024, 8192};
    static const pnr_format formats[] = {PNR_FORMAT_CI16, PNR_FORMAT_CF32};

    for (size_t i = 0; i < 3 * 6 * 2; i++) {
        const size_t e = i / 12, length = i / 2 % 6;
        const pnr_engine_ops *ops = find_engine(engine_names[e]);
        const size_t looks =
            /* the kernels of the cuda engine take windows one by one */
            e == 0 || length >= 4 ? 1 : 3;
        const scenario s =
            S("batches", .n_samples = lengths[length], .format = formats[i % 2], .n_looks = looks,
              .n_dwells = 7, .echo = 0.05, .delay = 0.8, .threshold = 3.2);
        answer all;
        world w;

        if (ops == NULL || (e == 0 && s.n_samples > 2000))
            continue;
        world_create(&w, &s, ops);
        world_wrap(&w, w.n_view);
        ask(ops, &w, PNR_WANT_NONE, &all);
        check_submits(ops, &w, &all, 3);
        answer_destroy(&all);
        world_destroy(&w, ops);
    }
}

/* An engine states in its error which part of a plan it does not support. */
TEST(test_words)
{

    for (size_t e = 0; engine_names[e] != NULL; e++) {
        const pnr_engine_ops *ops = find_engine(engine_names[e]);
        pnr_engine_choice choice;
        pnr_error error = {0};
        world w;

        if (ops == NULL)
            continue;
        world_create(&w, &(scenario)S("words", .n_samples = 255, .code = ZADOFF_CHU), ops);
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
        assert_true(choice.n_transform >= 255 && choice.method[0] != '\0');
        w.plan.reference = PNR_REFERENCE_CHANNEL;
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
        w.plan.reference = PNR_REFERENCE_STORED;
        w.plan.method = "magic";
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_ECONFIG);
        assert_non_null(strstr(error.text, "magic"));
        world_destroy(&w, ops);
    }

    const pnr_engine_ops *ops;
    pnr_error error = {0};

    assert_int_equal(pnr_engine_find("no-such-engine", 0, &ops, &error), PNR_EUNAVAILABLE);
    assert_non_null(strstr(error.text, "no-such-engine"));
    assert_null(ops);
}

/* A plan whose reference is not the m-sequence that it names is refused. */
TEST(test_m_sequence_plan)
{
    const pnr_engine_ops *ops = find_engine("reference");
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    world_create(&w, &plain_scenarios[0], ops);
    assert_int_equal(w.plan.m_degree, 10);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    w.references[700][0] = -w.references[700][0];
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    assert_non_null(strstr(error.text, "degree 10"));
    w.references[700][0] = -w.references[700][0];
    w.references[1][1] = 1e-9;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.references[1][1] = 0;
    w.plan.m_taps = primitive_taps(9);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.plan.m_taps = UINT64_C(1) << 9; /* x^10 + 1, whose period is not maximal */
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.plan.m_taps = primitive_taps(10);
    w.plan.m_degree = 25;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    world_destroy(&w, ops);

    scenario several = plain_scenarios[0];

    several.n_samples = 3 * 1023;
    world_create(&w, &several, ops);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    /* the second sample of a chip differs from the first */
    w.references[700][0] = -w.references[700][0];
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.references[700][0] = -w.references[700][0];
    w.plan.m_samples = 1;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    assert_non_null(strstr(error.text, "1 samples a chip"));
    w.plan.m_samples = 0;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    world_destroy(&w, ops);
}

/* The set-up names an m-sequence only if a chip has a whole number of samples. */
TEST(test_m_sequence_setup)
{
    static const struct {
        const char *rate, *degree;
        size_t n_samples, m_degree, m_samples;
    } cases[] = {
        {"source.rate_hz=1e6", "code.degree=7", 127, 7, 1},
        {"source.rate_hz=2e6", "code.degree=7", 254, 7, 2},
        {"source.rate_hz=10e6", "code.degree=7", 1270, 7, 10},
        {"source.rate_hz=1.2e6", "code.degree=8", 306, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pnr_engine_ops *ops = find_engine("reference");
        pnr_engine_choice choice;
        pnr_config config;
        pnr_setup *setup;
        pnr_error error = {0};

        pnr_config_init(&config);
        assert_int_equal(pnr_config_set(&config, cases[i].rate, &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, "code.type=m-sequence", &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, cases[i].degree, &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, "code.chip_rate_hz=1e6", &error), PNR_OK);
        if (pnr_setup_create(&config, PNR_FORMAT_CI16, 1, &setup, &error) != PNR_OK)
            fail_msg("%s", error.text);
        assert_int_equal(setup->plan.n_samples, cases[i].n_samples);
        assert_int_equal(setup->plan.m_degree, cases[i].m_degree);
        assert_int_equal(setup->plan.m_samples, cases[i].m_samples);
        assert_int_equal(ops->describe(&setup->plan, &choice, &error), PNR_OK);
        pnr_setup_destroy(setup);
        pnr_config_clear(&config);
    }
}

TEST(test_lengths)
{
    assert_true(pnr_plan_is_direct(4000));
    assert_int_equal(pnr_plan_transform_length(4000), 4000);
    assert_false(pnr_plan_is_direct(1023));
    assert_true(pnr_plan_transform_length(1023) >= 2045);
    assert_int_equal(pnr_plan_transform_length(1), 1);
}
