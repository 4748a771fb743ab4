/* SPDX-License-Identifier: MIT */
/* Submit after submit, as a live stream makes them: samples that are sent ahead, waiting awake,
 * submits of every size: the bits are those of one submit of all. */
#include "tests/fixture/engine_fixture.h"

enum { N_DWELLS = 23, BATCH = 5 };

/* A run over the world's dwells in submits of 1 .. BATCH. */
typedef struct run {
    const pnr_engine_ops *ops;
    const world *w;
    const answer *all;
    pnr_plan plan;
    pnr_engine *engine;
    size_t n_submitted, n_collected; /* dwells */
    size_t n_ahead;                  /* calls of advance that were taken */
} run;

/* A view from dwell `first` on, of n_samples samples, that wraps anywhere. */
static pnr_windows view(const run *r, size_t first, size_t n_samples)
{
    const size_t dwell = r->w->s.n_samples * r->w->s.n_periods;
    const size_t bytes = pnr_plan_sample_bytes(&r->plan);
    const size_t split = (size_t)(uniform() * (double)n_samples);
    const char *samples = r->w->samples + first * dwell * bytes;
    pnr_windows v = r->w->windows;

    v.first_sample += first * dwell;
    v.n_dwells = n_samples / dwell;
    v.lost += first * r->w->s.n_periods;
    v.spans[0] = (pnr_span){samples, split};
    v.spans[1] = (pnr_span){samples + split * bytes, n_samples - split};
    return v;
}

/* What has come of the next submit, more each time; now and then of a dwell that will never be
 * submitted, as when a ring refuses one. */
static void send_ahead(run *r, size_t n_next)
{
    const size_t next = n_next * r->w->s.n_samples * r->w->s.n_periods;
    size_t there = 0;

    if (r->ops->upload_ahead == NULL || uniform() < 0.2)
        return;
    if (r->n_submitted > 0 && uniform() < 0.3) {
        const pnr_windows other = view(r, r->n_submitted - 1, 1 + (size_t)(uniform() * 100));

        assert_int_equal(r->ops->upload_ahead(r->engine, &other), PNR_OK);
    }
    while (there < next && uniform() < 0.8) {
        pnr_windows part;

        there += 1 + (size_t)(uniform() * (double)(next - there));
        part = view(r, r->n_submitted, there);
        assert_int_equal(r->ops->upload_ahead(r->engine, &part), PNR_OK);
        r->n_ahead++;
    }
}

static void submit(run *r)
{
    const size_t left = N_DWELLS - r->n_submitted;
    const size_t size = 1 + (size_t)(uniform() * BATCH), n = size < left ? size : left;
    pnr_windows v;

    send_ahead(r, n);
    v = view(r, r->n_submitted, n * r->w->s.n_samples * r->w->s.n_periods);
    assert_int_equal(r->ops->submit(r->engine, &(pnr_job){&v, r->n_submitted}), PNR_OK);
    r->n_submitted += n;
}

/* The oldest: waited for, or asked for until it is there. */
static void collect(run *r)
{
    const size_t n = r->plan.max_candidates;
    const bool wait = uniform() < 0.5;
    pnr_result result;
    int code;

    while ((code = r->ops->collect(r->engine, wait, &result)) == PNR_EAGAIN)
        assert_false(wait);
    assert_int_equal(code, PNR_OK);
    assert_int_equal(result.tag, r->n_collected);
    for (size_t d = 0; d < result.n_dwells; d++, r->n_collected++) {
        const pnr_dwell *want = &r->all->dwells[r->n_collected];

        assert_memory_equal(&result.dwells[d], want, sizeof *want);
        assert_memory_equal(&result.candidates[d * n], &r->all->candidates[r->n_collected * n],
                            want->n_candidates * sizeof *result.candidates);
    }
}

static void check(const pnr_engine_ops *ops, const world *w, const answer *all, bool spin)
{
    run r = {.ops = ops, .w = w, .all = all, .plan = w->plan};
    size_t n_in_flight = 0;
    pnr_error error = {0};

    r.plan.batch = BATCH;
    r.plan.depth = 3;
    r.plan.spin = spin;
    if (ops->create(&r.plan, &r.engine, &error) != PNR_OK)
        fail_msg("%s", error.text);
    while (r.n_collected < N_DWELLS) {
        if (r.n_submitted < N_DWELLS && n_in_flight < r.plan.depth && uniform() < 0.6) {
            submit(&r);
            n_in_flight++;
        } else if (n_in_flight > 0) {
            if (n_in_flight == r.plan.depth && ops->upload_ahead != NULL) {
                const pnr_windows none = view(&r, 0, 1);

                assert_int_equal(ops->upload_ahead(r.engine, &none), PNR_EAGAIN);
            }
            collect(&r);
            n_in_flight--;
        }
    }
    assert_true(ops->upload_ahead == NULL || r.n_ahead > 0);
    ops->destroy(r.engine);
}

/* Every method of an engine at a length, wherever it applies. */
static void check_length(const pnr_engine_ops *ops, size_t n, code_kind code, pnr_dwell_kind dwell,
                         size_t n_periods)
{
    static const char *const methods[] = {"library", "fused", "walsh"};
    const scenario s = {.name = "stream",
                        .n_samples = n,
                        .code = code,
                        .format = PNR_FORMAT_CI16,
                        .dwell = dwell,
                        .n_periods = n_periods,
                        .n_dwells = N_DWELLS,
                        .oversample = 1,
                        .n_channels = 1,
                        .tune = {0, 1},
                        .echo = 0.3,
                        .threshold = 12,
                        .delay = uniform()};
    world w;

    world_create(&w, &s, ops);
    w.windows.spans[0] = (pnr_span){w.samples, n * n_periods * N_DWELLS};
    w.windows.spans[1] = (pnr_span){w.samples, 0};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        pnr_engine_choice choice;
        pnr_error error = {0};
        answer all;

        w.plan.method = methods[i];
        if (ops->describe(&w.plan, &choice, &error) != PNR_OK)
            continue;
        ask(ops, &w, PNR_WANT_NONE, &all);
        assert_true(all.dwells[N_DWELLS - 1].n_candidates > 0);
        check(ops, &w, &all, false);
        check(ops, &w, &all, true);
        answer_destroy(&all);
    }
    world_destroy(&w, ops);
}

TEST(test_stream)
{
    static const char *const names[] = {"cpu", "cuda"};

    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        if (ops == NULL)
            continue;
        check_length(ops, 1023, M_SEQUENCE, PNR_DWELL_SINGLE, 1);
        check_length(ops, 1024, ZADOFF_CHU, PNR_DWELL_SINGLE, 1);
        check_length(ops, 1000, RANDOM_PHASE, PNR_DWELL_COHERENT, 3);
        check_length(ops, 1023, M_SEQUENCE, PNR_DWELL_INCOHERENT, 4);
        check_length(ops, 8192, RANDOM_PHASE, PNR_DWELL_SINGLE, 1);
        check_length(ops, 16383, M_SEQUENCE, PNR_DWELL_SINGLE, 1);
        check_length(ops, 32768, ZADOFF_CHU, PNR_DWELL_SINGLE, 1);
    }
}
