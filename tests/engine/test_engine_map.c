/* SPDX-License-Identifier: MIT */
/* Tests maps. Compares the reference engine with the formulas of plan.h, and every engine that
 * works here with the reference. */
#include "tests/fixture/answer.h"
#include "tests/fixture/naive.h"
#include "tests/fixture/scenarios.h"

/* Compares the reference with the formulas. Returns the number of candidates. */
static size_t check_formulas(const scenario *s, pnr_want want)
{
    const pnr_engine_ops *ops = find_engine("reference");
    /* the engine interpolates a table of weights, with errors of 5e-6 */
    const double slack = strstr(s->name, "time scale") != NULL ? 30 : 0.3;
    size_t n_candidates = 0;
    answer got, wanted;
    world w;

    world_create(&w, s, ops);
    ask(ops, &w, want, &got);
    ask_naive(&w, want, &wanted);
    compare_answers(&w, "reference", &got, &wanted, slack);
    for (size_t d = 0; d < got.n_dwells; d++)
        n_candidates += got.dwells[d].n_candidates;
    answer_destroy(&got);
    answer_destroy(&wanted);
    world_destroy(&w, ops);
    return n_candidates;
}

TEST(test_formulas)
{
    const scenario *const lists[] = {map_scenarios, plain_scenarios};
    size_t n_scenarios = 0, n_candidates = 0;

    for (size_t l = 0; l < 2; l++)
        for (const scenario *s = lists[l]; s->name != NULL; s++)
            if (s->n_samples <= 1024)
                /* several looks are compared by their powers */
                n_candidates +=
                    check_formulas(s, n_scenarios++ % 2 == 0 && s->n_looks <= 1 ? PNR_WANT_COMPLEX
                                                                                : PNR_WANT_POWER);
    assert_true(n_candidates > 2 * n_scenarios); /* there were candidates to compare */
}

TEST(test_agreement)
{
    agree_all(map_scenarios, 0);
}

TEST(test_long)
{
    agree_all(long_map_scenarios, 1);
}
