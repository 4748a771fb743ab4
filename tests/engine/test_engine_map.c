/* SPDX-License-Identifier: MIT */
/* Maps: the reference engine against the formulas written down once more, and every engine that
 * works here against the reference: same cells, same values, same sums, same bits. */
#include "tests/fixture/map_naive.h"
#include "tests/fixture/map_scenarios.h"

static const size_t n_scenarios = sizeof map_scenarios / sizeof *map_scenarios;
static const char *const engines[] = {"reference", "cpu", "cuda"};

TEST(test_formulas)
{
    const pnr_engine_ops *ops = find_engine("reference");
    size_t n_candidates = 0;

    for (size_t i = 0; i < n_scenarios; i++) {
        const pnr_want want = i % 2 ? PNR_WANT_POWER : PNR_WANT_COMPLEX;
        /* the kernel is tabulated: 5e-6 off between its rows */
        const double slack = strstr(map_scenarios[i].name, "time scale") != NULL ? 30 : 0.3;
        map_answer got, wanted;
        map_world w;

        map_world_create(&w, &map_scenarios[i], ops);
        assert_true(ask_map(ops, &w, want, &got));
        ask_naive(&w, want, &wanted);
        compare_maps(&w, "reference", &got, &wanted, want, slack);
        for (size_t d = 0; d < got.n_dwells; d++)
            n_candidates += got.dwells[d].n_candidates;
        map_answer_destroy(&got);
        map_answer_destroy(&wanted);
        map_world_destroy(&w, ops);
    }
    assert_true(n_candidates > 2 * n_scenarios); /* there was something to compare */
}

/* Whole maps, power and complex, candidates, patches, sums; the same bits in any submits and
 * whether the map is asked for or not. */
static bool agree_on_map(const pnr_engine_ops *ops, const map_scenario *s)
{
    const pnr_engine_ops *reference = find_engine("reference");
    bool is_there = true;
    map_world w;

    map_world_create(&w, s, ops);
    for (pnr_want want = PNR_WANT_POWER; want <= PNR_WANT_COMPLEX && is_there; want++) {
        map_answer wanted, got, quiet;

        if (!(is_there = ask_map(ops, &w, want, &got)))
            break;
        assert_true(ask_map(reference, &w, want, &wanted));
        assert_true(ask_map(ops, &w, PNR_WANT_NONE, &quiet));
        compare_maps(&w, ops->name, &got, &wanted, want, 1);
        check_same_bits(&quiet, &got, 0);
        check_map_submits(ops, &w, &quiet, 3);
        map_answer_destroy(&wanted);
        map_answer_destroy(&got);
        map_answer_destroy(&quiet);
    }
    map_world_destroy(&w, ops);
    return is_there;
}

static void agree_on_all(const map_scenario *list, size_t n, size_t first_engine)
{
    for (size_t e = first_engine; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(engines[e]);
        size_t n_agreed = 0;

        for (size_t i = 0; ops != NULL && i < n; i++)
            n_agreed += agree_on_map(ops, &list[i]);
        if (ops != NULL)
            print_message("%s: %zu of %zu scenarios agree with the reference\n", engines[e],
                          n_agreed, n);
    }
}

TEST(test_agreement)
{
    agree_on_all(map_scenarios, n_scenarios, 0);
}

TEST(test_long)
{
    agree_on_all(long_map_scenarios, sizeof long_map_scenarios / sizeof *long_map_scenarios, 1);
}
