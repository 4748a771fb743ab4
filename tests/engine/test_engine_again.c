/* SPDX-License-Identifier: MIT */
/* Tests search_without. For the reference, the judge is a search of samples from which the echoes
 * were subtracted beforehand. For the other engines, the judge is the reference. Submits in flight
 * and the collected result must not change. */
#include "tests/fixture/answer.h"

static const scenario scenarios[] = {
    S("plain", .n_samples = 127, .code = ZADOFF_CHU, .format = PNR_FORMAT_CF64, .n_dwells = 3,
      .oversample = 2, .echo = 0.5, .threshold = 15),
    S("plain, coherent, tuned and inverted, lost and not finite", .n_samples = 101,
      .code = ZADOFF_CHU, .format = PNR_FORMAT_CF64, .tune = {1, 3}, .conjugate = true,
      .n_periods = 4, .n_dwells = 4, .has_lost = true, .has_nonfinite = true, .echo = 0.3,
      .bins = 0.1, .threshold = 8),
    S("plain, 1024 samples", .n_samples = 1024, .code = ZADOFF_CHU, .format = PNR_FORMAT_CF32,
      .n_dwells = 3, .echo = 0.5, .threshold = 12),
    S("plain, the strongest outside of the gate", .n_samples = 1024, .code = ZADOFF_CHU,
      .n_dwells = 2, .gate_first = 700, .gate_count = 200, .has_outside = true, .echo = 0.5,
      .threshold = 12),
    S("plain, an m-sequence", .n_samples = 511, .code = M_SEQUENCE, .format = PNR_FORMAT_CF32,
      .n_dwells = 3, .echo = 0.5, .threshold = 11),
    S("Doppler, two codes, taper", .n_samples = 64, .code = ZADOFF_CHU, .n_codes = 2,
      .format = PNR_FORMAT_CF64, .n_periods = 8, .n_dwells = 3,
      .hypotheses = {{0, -4, 8, 0}, {4, -4, 8, 0}}, .has_taper = true, .exclusion_cells = 2,
      .exclusion_rows = 2, .echo = 0.3, .bins = 0.9, .threshold = 8),
    S("linear, no mean, lost and not finite", .n_samples = 75, .format = PNR_FORMAT_CF64,
      .tune = {-1, 7}, .n_periods = 6, .n_dwells = 4, .n_lags = 40, .hypotheses = {{0, -3, 6, 0}},
      .remove_mean = true, .has_lost = true, .has_nonfinite = true, .echo = 0.3, .bins = 0.4,
      .still = 0.2, .threshold = 8),
    S("two codes, 150 samples", .n_samples = 150, .n_codes = 2, .tune = {3, 17}, .conjugate = true,
      .n_dwells = 3, .echo = 0.4, .threshold = 9),
    S("no mean, 32 periods, lost and not finite", .n_samples = 150, .format = PNR_FORMAT_CF32,
      .n_periods = 32, .n_dwells = 2, .hypotheses = {{0, -16, 32, 0}}, .remove_mean = true,
      .has_lost = true, .has_nonfinite = true, .echo = 0.4, .bins = 0.1, .threshold = 9),
};
enum { N_REMOVALS = 2 };

/* Makes two removals: one is nearly the moving echo of dwell d, the other is a different signal. */
static void make_removals(const world *w, size_t d, float (*replica)[2], pnr_removal *out)
{
    const size_t n = w->s.n_samples, delay = world_delay(w, d);
    const size_t code = world_code(w, d) * w->plan.oversample;

    for (size_t i = 0; i < n; i++)
        for (int part = 0; part < 2; part++) {
            replica[i][part] = (float)w->references[code * n + (i + n - delay % n) % n][part];
            replica[n + i][part] = (float)(0.3 * gaussian());
        }
    out[0] = (pnr_removal){
        (const float(*)[2])replica, {w->s.echo * cos(1) + 0.01, w->s.echo * sin(1)}, w->s.bins};
    out[1] = (pnr_removal){(const float(*)[2])(replica + n), {-0.05, 0.08}, -3.3};
}

/* Subtracts peak replica[n mod N] exp(2 pi i F n / N) from the samples of a dwell that are neither
 * lost nor non-finite. Undoes tune and conjugation, because these samples are raw. */
static void take_out(world *w, size_t d, const pnr_removal *removals)
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

/* Searches dwell d twice with search_without. Checks that both results have the same bits, and that
 * neither the collected result nor the submit in flight has changed. */
static void ask_again(const pnr_engine_ops *ops, const world *w, size_t d,
                      const pnr_removal *removals, size_t n_removals, answer *out)
{
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_result first, result;
    answer before, after;

    plan.want_profile = PNR_WANT_COMPLEX;
    engine = create_engine(ops, &plan);
    for (uint64_t tag = 1; tag <= 2; tag++)
        assert_int_equal(ops->submit(engine, &(pnr_job){&w->windows, tag}), PNR_OK);
    assert_int_equal(ops->collect(engine, true, &first), PNR_OK);
    answer_keep(&plan, &first, &before);
    assert_int_equal(ops->search_without(engine, &w->windows, d, removals, n_removals, &result),
                     PNR_OK);
    assert_int_equal(result.n_dwells, 1);
    answer_keep(&plan, &result, out);
    answer_keep(&plan, &first, &after); /* checks that the collected result is unchanged */
    check_same_bits(&after, &before, 0);
    answer_destroy(&after);
    /* a second call gives the same bits */
    assert_int_equal(ops->search_without(engine, &w->windows, d, removals, n_removals, &result),
                     PNR_OK);
    answer_keep(&plan, &result, &after);
    check_same_bits(&after, out, 0);
    answer_destroy(&after);
    assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
    assert_int_equal(result.tag, 2);
    /* the submit in flight has the result of an ordinary search */
    answer_keep(&plan, &result, &after);
    check_same_bits(&after, &before, 0);
    answer_destroy(&after);
    answer_destroy(&before);
    ops->destroy(engine);
}

TEST(test_samples_without_echoes)
{
    const pnr_engine_ops *ops = find_engine("reference");

    for (size_t i = 0; i < COUNT(scenarios); i++) {
        const scenario *s = &scenarios[i];
        const size_t d = below(s->n_dwells);
        float(*replica)[2] = calloc(2 * s->n_samples, sizeof *replica);
        pnr_removal removals[N_REMOVALS];
        answer got, whole, wanted;
        world w;

        if (s->format != PNR_FORMAT_CF64) {
            free(replica);
            continue;
        }
        world_create(&w, s, ops);
        make_removals(&w, d, replica, removals);
        ask_again(ops, &w, d, removals, N_REMOVALS, &got);
        take_out(&w, d, removals);
        ask(ops, &w, PNR_WANT_COMPLEX, &whole);
        wanted = answer_dwell(&whole, d);
        compare_answers(&w, "reference", &got, &wanted, 0.3);
        answer_destroy(&got);
        answer_destroy(&whole);
        world_destroy(&w, ops);
        free(replica);
    }
}

/* Without removals the result is unchanged. When the echo of the dwell is removed, the echo is not
 * found. */
TEST(test_nothing_and_all)
{
    const pnr_engine_ops *ops = find_engine("reference");
    float replica[2 * 127][2];
    pnr_removal removals[N_REMOVALS];
    answer got, whole, same;
    world w;

    world_create(&w, &scenarios[0], ops);
    make_removals(&w, 1, replica, removals);
    ask(ops, &w, PNR_WANT_COMPLEX, &whole);
    ask_again(ops, &w, 1, NULL, 0, &got);
    same = answer_dwell(&whole, 1);
    check_same_bits(&got, &same, 0);
    answer_destroy(&got);
    assert_true(whole.dwells[1].n_candidates >= 1);
    /* undoes the deviation of make_removals, so that the removal is exact */
    removals[0].peak[0] -= 0.01;
    ask_again(ops, &w, 1, removals, 1, &got);
    assert_int_equal(got.dwells[0].n_candidates, 0);
    assert_true(got.dwells[0].energy < 0.1 * whole.dwells[1].energy);
    answer_destroy(&got);
    answer_destroy(&whole);
    world_destroy(&w, ops);
}

/* Compares every method of an engine with the reference, after the echoes of dwell d are removed.
 * The tolerance is that of dwell d with its echoes. */
static void agree_again(const pnr_engine_ops *ops, const scenario *s, size_t d)
{
    const pnr_engine_ops *reference = find_engine("reference");
    float(*replica)[2] = calloc(2 * s->n_samples, sizeof *replica);
    pnr_removal removals[N_REMOVALS];
    answer whole, wanted;
    world w;

    world_create(&w, s, ops);
    (void)is_able(ops, &w); /* prints the reason of a refusal */
    make_removals(&w, d, replica, removals);
    ask(reference, &w, PNR_WANT_NONE, &whole);
    ask_again(reference, &w, d, removals, N_REMOVALS, &wanted);

    const double slack = tolerance(&w, d, &whole.dwells[d]) / tolerance(&w, d, &wanted.dwells[0]);

    for (size_t i = 0; method_names[i] != NULL; i++) {
        pnr_engine_choice choice;
        answer got;

        w.plan.method = method_names[i];
        if (ops->describe(&w.plan, &choice, NULL) != PNR_OK)
            continue;
        ask_again(ops, &w, d, removals, N_REMOVALS, &got);
        compare_answers(&w, ops->name, &got, &wanted, slack);
        answer_destroy(&got);
    }
    answer_destroy(&whole);
    answer_destroy(&wanted);
    world_destroy(&w, ops);
    free(replica);
}

TEST(test_agreement)
{
    for (size_t e = 1; engine_names[e] != NULL; e++) {
        const pnr_engine_ops *ops = find_engine(engine_names[e]);

        if (ops != NULL && ops->search_without == NULL)
            print_message("skipped: engine %s: no dwell once more\n", engine_names[e]);
        for (size_t i = 0; ops != NULL && ops->search_without != NULL && i < COUNT(scenarios); i++)
            for (size_t d = 0; d < 2; d++)
                agree_again(ops, &scenarios[i], d * (scenarios[i].n_dwells - 1));
    }
}
