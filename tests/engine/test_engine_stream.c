/* SPDX-License-Identifier: MIT */
/* Submits one submit after the other, as a live stream does: samples that are uploaded ahead,
 * spinning waits, submits of every size. The bits must be those of a single submit. */
#include "tests/fixture/answer.h"

enum { N_DWELLS = 23, BATCH = 5 };

/* The state of a run: submits of 1 to BATCH dwells of a world. */
typedef struct run {
    const pnr_engine_ops *ops;
    const world *w;
    const answer *all;
    pnr_plan plan;
    pnr_engine *engine;
    size_t n_submitted, n_collected; /* dwells */
    size_t n_ahead;                  /* calls of upload_ahead that were accepted */
} run;

/* Returns a view of n_samples samples from dwell `first` on, which wraps at a random sample. */
static pnr_windows view(const run *r, size_t first, size_t n_samples)
{
    const size_t dwell = world_dwell(r->w);
    const size_t bytes = pnr_plan_sample_bytes(&r->plan);
    const size_t split = below(n_samples);
    const char *samples = r->w->samples + first * dwell * bytes;
    pnr_windows v = r->w->windows;

    v.first_sample += first * dwell;
    v.n_dwells = n_samples / dwell;
    v.lost += first * pnr_plan_windows(&r->plan);
    v.spans[0] = (pnr_span){samples, split};
    v.spans[1] = (pnr_span){samples + split * bytes, n_samples - split};
    return v;
}

/* Uploads a growing part of the next submit. Sometimes first uploads a part of another dwell, as
 * happens when the ring refuses a dwell. */
static void send_ahead(run *r, size_t n_next)
{
    const size_t next = n_next * world_dwell(r->w);
    size_t there = 0;

    if (r->ops->upload_ahead == NULL || uniform() < 0.2)
        return;
    if (r->n_submitted > 0 && uniform() < 0.3) {
        const pnr_windows other = view(r, r->n_submitted - 1, 1 + below(100));

        assert_int_equal(r->ops->upload_ahead(r->engine, &other), PNR_OK);
    }
    while (there < next && uniform() < 0.8) {
        pnr_windows part;

        there += 1 + below(next - there);
        part = view(r, r->n_submitted, there);
        assert_int_equal(r->ops->upload_ahead(r->engine, &part), PNR_OK);
        r->n_ahead++;
    }
}

static void submit(run *r)
{
    const size_t left = N_DWELLS - r->n_submitted;
    const size_t size = 1 + below(BATCH), n = size < left ? size : left;
    pnr_windows v;

    send_ahead(r, n);
    v = view(r, r->n_submitted, n * world_dwell(r->w));
    assert_int_equal(r->ops->submit(r->engine, &(pnr_job){&v, r->n_submitted}), PNR_OK);
    r->n_submitted += n;
}

/* Collects the oldest result, either by waiting or by polling. */
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

    r.plan.batch = BATCH;
    r.plan.depth = 3;
    r.plan.spin = spin;
    r.engine = create_engine(ops, &r.plan);
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

/* Checks every method of an engine that suits the scenario. */
static void check_scenario(const pnr_engine_ops *ops, scenario s)
{
    world w;

    s.n_dwells = N_DWELLS;
    s.delay = uniform();
    world_create(&w, &s, ops);
    world_wrap(&w, w.n_view);
    for (size_t i = 1; method_names[i] != NULL; i++) {
        pnr_engine_choice choice;
        answer all;

        w.plan.method = method_names[i];
        if (ops->describe(&w.plan, &choice, NULL) != PNR_OK)
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
    static const scenario list[] = {
        S("1023", .n_samples = 1023, .code = M_SEQUENCE, .echo = 0.3, .threshold = 12),
        S("1024", .n_samples = 1024, .code = ZADOFF_CHU, .echo = 0.3, .threshold = 12),
        S("coherent", .n_samples = 1000, .n_periods = 3, .echo = 0.3, .threshold = 12),
        S("looks", .n_samples = 1023, .code = M_SEQUENCE, .n_looks = 4, .echo = 0.3,
          .threshold = 12),
        S("8192", .n_samples = 8192, .echo = 0.3, .threshold = 12),
        S("16383", .n_samples = 16383, .code = M_SEQUENCE, .echo = 0.3, .threshold = 12),
        S("32768", .n_samples = 32768, .code = ZADOFF_CHU, .echo = 0.3, .threshold = 12),
    };

    for (size_t e = 1; engine_names[e] != NULL; e++) {
        const pnr_engine_ops *ops = find_engine(engine_names[e]);

        for (size_t i = 0; ops != NULL && i < COUNT(list); i++)
            check_scenario(ops, list[i]);
    }
}
