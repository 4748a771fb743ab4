/* SPDX-License-Identifier: MIT */
/* The whole pipeline with a linear correlation, whose windows overlap: ranges, the account, and
 * that a loss changes only the windows that contain it. */
#include "tests/fixture/pipeline_fixture.h"

/* A target at lag 40.03 of gates 20 .. 69; window 127 + 65 samples, the first at sample 20 - 8. */
static const char *const settings[] = {"window.correlation=linear", "radar.min_range_m=2998",
                                       "radar.max_range_m=10343", NULL};
enum { FIRST = 12, GATES = 50, BEHIND = GATES + 15 };

static void check_account(const stage *s, const outcome *o, size_t n_periods)
{
    const pnr_account wanted = wanted_linear_account(s, s->n_positions, FIRST, n_periods, BEHIND);

    assert_same_account(&o->account, &wanted);
}

/* The range is right for any chunk and batch; the last dwell is the last one whose windows are
 * complete. */
TEST(ranges_are_right)
{
    static const char *const also[][5] = {
        {"source.chunk=7", "engine.batch=1", NULL},
        {"source.chunk=1000", "ring.bytes=4K", NULL},
        {"source.pace=real-time", "engine.deadline=60", "ring.bytes=1M", NULL},
    };
    stage s;
    outcome o = {0}, other = {0};

    open_stage(&s, FIRST + 40 * N + BEHIND - 1, settings);
    save_stage(&s, 0);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.n, 39); /* the 40th misses one sample after its windows */
    assert_chain(&o, N);
    check_account(&s, &o, 1);
    for (size_t i = 0; i < o.n; i++) {
        assert_int_equal(o.reports[i].sample, FIRST + i * N);
        assert_true(o.reports[i].detection.n_echoes >= 1);
        assert_true(fabs(o.reports[i].detection.echoes[0].range_m - 6000) < 30); /* 0.2 samples */
    }
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++) {
        set_stage_all(&s, also[i]);
        run_stage(&s, &other);
        assert_same_reports(&o, &other);
    }
    close_stage(&s);
    forget_outcome(&o);
    forget_outcome(&other);
}

/* Dwells of two windows; losses lie in a window, in what only the dwell before reaches, and across
 * whole dwells. */
TEST(a_loss_stays_where_it_is)
{
    static const char *const losses[] = {"dwell.periods=2", "dwell.combine=incoherent",
                                         "source.lost=700+30, 1288+20, 3000+700, 5000+1", NULL};
    stage s;
    outcome clean = {0}, o = {0};
    size_t n_same = 0;

    open_stage(&s, FIRST + 40 * N + 200, settings);
    set_stage_all(&s, losses);
    s.config.source.n_lost = 0;
    save_stage(&s, 0);
    run_stage(&s, &clean);
    s.config.source.n_lost = 4;
    for (size_t r = 0; r < s.config.source.n_lost; r++)
        for (size_t i = 0; i < s.config.source.lost[r].count; i++)
            s.kinds[s.config.source.lost[r].first + i] = LOST;
    save_stage(&s, 0);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    check_account(&s, &o, 2);
    assert_chain(&o, 2 * N);
    assert_true(clean.n > o.n && o.n > 15);
    for (size_t i = 0; i < o.n; i++) {
        const pnr_report *a = &o.reports[i], *b = clean.reports;
        size_t lost = 0;

        while (b->sample != a->sample)
            b++;
        for (size_t at = 0; at < 2 * N + BEHIND; at++)
            lost += s.kinds[a->sample + at] == LOST;
        if (lost > 0)
            continue;
        assert_int_equal(memcmp(a->detection.echoes, b->detection.echoes,
                                b->detection.n_echoes * sizeof *b->detection.echoes),
                         0);
        n_same++;
    }
    assert_in_range(n_same, 8, o.n - 3);
    close_stage(&s);
    forget_outcome(&clean);
    forget_outcome(&o);
}
