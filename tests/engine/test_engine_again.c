/* SPDX-License-Identifier: MIT */
/* A dwell once more without its echoes: the reference against samples from which they were taken
 * beforehand, every engine against the reference; what is in flight and what was collected stay. */
#include "tests/fixture/map_answer.h"

static const map_scenario again_scenarios[] = {
    {.name = "plain",
     .n_samples = 127,
     .code = ZADOFF_CHU,
     .format = PNR_FORMAT_CF64,
     .n_dwells = 3,
     .oversample = 2,
     .echo = 0.5,
     .threshold = 15},
    {.name = "plain, coherent, tuned and inverted, lost and not finite",
     .n_samples = 101,
     .code = ZADOFF_CHU,
     .format = PNR_FORMAT_CF64,
     .dwell = PNR_DWELL_COHERENT,
     .n_periods = 4,
     .n_dwells = 4,
     .tune = {1, 3},
     .conjugate = true,
     .has_lost = true,
     .has_nonfinite = true,
     .echo = 0.3,
     .bins = 0.1,
     .threshold = 8},
    {.name = "plain, 1024 samples",
     .n_samples = 1024,
     .code = ZADOFF_CHU,
     .format = PNR_FORMAT_CF32,
     .n_dwells = 3,
     .echo = 0.5,
     .threshold = 12},
    {.name = "plain, an m-sequence",
     .n_samples = 511,
     .code = M_SEQUENCE,
     .format = PNR_FORMAT_CF32,
     .n_dwells = 3,
     .echo = 0.5,
     .threshold = 11},
    {.name = "Doppler, two codes, taper",
     .n_samples = 64,
     .code = ZADOFF_CHU,
     .n_codes = 2,
     .format = PNR_FORMAT_CF64,
     .dwell = PNR_DWELL_DOPPLER,
     .n_periods = 8,
     .n_dwells = 3,
     .n_hypotheses = 2,
     .hypotheses = {{0, -4, 8, 0}, {4, -4, 8, 0}},
     .has_taper = true,
     .exclusion_cells = 2,
     .exclusion_rows = 2,
     .echo = 0.3,
     .bins = 0.9,
     .threshold = 8},
    {.name = "linear, no mean, lost and not finite",
     .n_samples = 75,
     .code = RANDOM_PHASE,
     .format = PNR_FORMAT_CF64,
     .dwell = PNR_DWELL_DOPPLER,
     .n_periods = 6,
     .n_dwells = 4,
     .n_lags = 40,
     .n_hypotheses = 1,
     .hypotheses = {{0, -3, 6, 0}},
     .remove_mean = true,
     .tune = {-1, 7},
     .has_lost = true,
     .has_nonfinite = true,
     .echo = 0.3,
     .bins = 0.4,
     .still = 0.2,
     .threshold = 8},
};
static const size_t n_scenarios = sizeof again_scenarios / sizeof *again_scenarios;

enum { N_REMOVALS = 2 };

/* The moving echo of dwell d, nearly, and something else. */
static void make_removals(const map_world *w, size_t d, float (*replica)[2], pnr_removal *out)
{
    const size_t n = w->s.n_samples, lags = w->plan.n_lags;
    const size_t code = d % w->plan.n_codes * w->plan.oversample, delay = lags * 2 / 5 + d % 3;

    for (size_t i = 0; i < n; i++)
        for (int part = 0; part < 2; part++) {
            replica[i][part] = (float)w->references[code * n + (i + n - delay) % n][part];
            replica[n + i][part] = (float)(0.3 * gaussian());
        }
    out[0] = (pnr_removal){
        (const float(*)[2])replica, {w->s.echo * cos(1) + 0.01, w->s.echo * sin(1)}, w->s.bins};
    out[1] = (pnr_removal){(const float(*)[2])(replica + n), {-0.05, 0.08}, -3.3};
}

/* Takes peak replica[n mod N] exp(2 pi i F n / N) out of a dwell's samples, before tune and
 * conjugation, where they are neither lost nor not finite. */
static void take_out(map_world *w, size_t d, const pnr_removal *removals)
{
    const size_t n = w->s.n_samples, dwell = n * pnr_plan_windows(&w->plan);
    const size_t tail = w->plan.linear ? w->plan.n_lags - 1 : 0;

    assert_int_equal(w->s.format, PNR_FORMAT_CF64);
    for (size_t i = 0; i < dwell + tail; i++) {
        const size_t at = d * dwell + i;
        double *x = (double *)(void *)w->samples + 2 * at;
        const double mixed =
            ldexp((double)pnr_rational_phase(w->s.tune, w->windows.first_sample + at), -64);

        if (w->is_lost[at] || !isfinite(x[0]) || !isfinite(x[1]))
            continue;
        for (size_t r = 0; r < N_REMOVALS; r++) {
            const double angle = 2 * M_PI * (removals[r].bins * (double)i / (double)n + mixed);
            const double c = cos(angle), s = sin(angle);
            const double *p = removals[r].peak;
            const double re = (double)removals[r].replica[i % n][0] * p[0] -
                              (double)removals[r].replica[i % n][1] * p[1];
            const double im = (double)removals[r].replica[i % n][0] * p[1] +
                              (double)removals[r].replica[i % n][1] * p[0];

            x[0] -= re * c - im * s;
            x[1] -= (re * s + im * c) * (w->s.conjugate ? -1 : 1);
        }
    }
}

/* Asks for all dwells, twice; then for dwell d again, and checks that nothing else moved. */
static void ask_again(const pnr_engine_ops *ops, const map_world *w, size_t d,
                      const pnr_removal *removals, size_t n_removals, map_answer *out)
{
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};
    pnr_result first, result;
    map_answer before, after;

    plan.want_profile = PNR_WANT_COMPLEX;
    if (ops->create(&plan, &engine, &error) != PNR_OK)
        fail_msg("%s, %s: %s", ops->name, w->s.name, error.text);
    for (uint64_t tag = 1; tag <= 2; tag++)
        assert_int_equal(ops->submit(engine, &(pnr_job){&w->windows, tag}), PNR_OK);
    assert_int_equal(ops->collect(engine, true, &first), PNR_OK);
    keep_map(&plan, &first, &before);
    assert_int_equal(ops->search_without(engine, &w->windows, d, removals, n_removals, &result),
                     PNR_OK);
    assert_int_equal(result.n_dwells, 1);
    keep_map(&plan, &result, out);
    keep_map(&plan, &first, &after); /* it stays */
    check_same_bits(&after, &before, 0);
    map_answer_destroy(&after);
    /* and once more: the same bits */
    assert_int_equal(ops->search_without(engine, &w->windows, d, removals, n_removals, &result),
                     PNR_OK);
    keep_map(&plan, &result, &after);
    check_same_bits(&after, out, 0);
    map_answer_destroy(&after);
    assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
    assert_int_equal(result.tag, 2);
    keep_map(&plan, &result, &after); /* what was in flight is what it would have been */
    check_same_bits(&after, &before, 0);
    map_answer_destroy(&after);
    map_answer_destroy(&before);
    ops->destroy(engine);
}

/* Dwell d of an answer, as an answer of its own; the arrays stay the other's. */
static map_answer dwell_of(const map_answer *all, size_t d)
{
    map_answer one = *all;

    one.n_dwells = 1;
    one.dwells += d;
    one.candidates += d * all->max_candidates;
    one.nonfinite += d * all->n_windows;
    one.profile += d * all->n_values;
    one.patches =
        all->patches != NULL ? all->patches + d * all->max_candidates * all->n_patch : NULL;
    return one;
}

TEST(test_samples_without_echoes)
{
    const pnr_engine_ops *ops = find_engine("reference");

    for (size_t i = 0; i < n_scenarios; i++) {
        const map_scenario *s = &again_scenarios[i];
        const size_t d = (size_t)(uniform() * (double)s->n_dwells);
        float(*replica)[2] = calloc(2 * s->n_samples, sizeof *replica);
        pnr_removal removals[N_REMOVALS];
        map_answer got, whole, wanted;
        map_world w;

        if (s->format != PNR_FORMAT_CF64) {
            free(replica);
            continue;
        }
        map_world_create(&w, s, ops);
        make_removals(&w, d, replica, removals);
        ask_again(ops, &w, d, removals, N_REMOVALS, &got);
        take_out(&w, d, removals);
        assert_true(ask_map(ops, &w, PNR_WANT_COMPLEX, &whole));
        wanted = dwell_of(&whole, d);
        compare_maps(&w, "reference", &got, &wanted, PNR_WANT_COMPLEX, 0.3);
        map_answer_destroy(&got);
        map_answer_destroy(&whole);
        map_world_destroy(&w, ops);
        free(replica);
    }
}

/* Nothing to take out: the dwell as it was; its echo: gone. */
TEST(test_nothing_and_all)
{
    const pnr_engine_ops *ops = find_engine("reference");
    float replica[2 * 127][2];
    pnr_removal removals[N_REMOVALS];
    map_answer got, whole, same;
    map_world w;

    map_world_create(&w, &again_scenarios[0], ops);
    make_removals(&w, 1, replica, removals);
    assert_true(ask_map(ops, &w, PNR_WANT_COMPLEX, &whole));
    ask_again(ops, &w, 1, NULL, 0, &got);
    same = dwell_of(&whole, 1);
    check_same_bits(&got, &same, 0);
    map_answer_destroy(&got);
    assert_true(whole.dwells[1].n_candidates >= 1);
    removals[0].peak[0] -= 0.01; /* exact now */
    ask_again(ops, &w, 1, removals, 1, &got);
    assert_int_equal(got.dwells[0].n_candidates, 0);
    assert_true(got.dwells[0].energy < 0.1 * whole.dwells[1].energy);
    map_answer_destroy(&got);
    map_answer_destroy(&whole);
    map_world_destroy(&w, ops);
}

/* Every method of every engine that works here, in the tolerance of the dwell with its echoes. */
static void agree_again(const pnr_engine_ops *ops, const map_scenario *s)
{
    static const char *const methods[] = {"auto", "library", "fused", "walsh"};
    const pnr_engine_ops *reference = find_engine("reference");
    float(*replica)[2] = calloc(2 * s->n_samples, sizeof *replica);
    pnr_removal removals[N_REMOVALS];
    map_answer wanted;
    map_world w;

    map_world_create(&w, s, ops);
    make_removals(&w, 0, replica, removals);
    ask_again(reference, &w, 0, removals, N_REMOVALS, &wanted);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        pnr_engine_choice choice;
        pnr_error error = {0};
        map_answer got;

        w.plan.method = methods[i];
        if (ops->describe(&w.plan, &choice, &error) != PNR_OK) {
            if (i == 0)
                print_message("skipped: %s\n", error.text);
            continue;
        }
        ask_again(ops, &w, 0, removals, N_REMOVALS, &got);
        compare_maps(&w, ops->name, &got, &wanted, PNR_WANT_COMPLEX, 1);
        map_answer_destroy(&got);
    }
    map_answer_destroy(&wanted);
    map_world_destroy(&w, ops);
    free(replica);
}

TEST(test_agreement)
{
    static const char *const names[] = {"cpu", "cuda"};

    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        if (ops != NULL && ops->search_without == NULL)
            print_message("skipped: engine %s: no dwell once more\n", names[e]);
        for (size_t i = 0; ops != NULL && ops->search_without != NULL && i < n_scenarios; i++)
            agree_again(ops, &again_scenarios[i]);
    }
}
