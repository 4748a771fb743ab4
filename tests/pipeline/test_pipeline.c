/* SPDX-License-Identifier: MIT */
/* The pipeline's account of faulty streams: cut, empty, shifted, spoilt, with gaps, stopped. */
#include "tests/fixture/pipeline_fixture.h"

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A stage, saved, run to its end, and its account as the definition has it. */
static void run_whole(stage *s, outcome *o, size_t first, size_t n_periods)
{
    const pnr_account wanted = wanted_account(s, s->n_positions, first, n_periods);

    run_stage(s, o);
    assert_int_equal(o->code, PNR_OK);
    assert_same_account(&o->account, &wanted);
    assert_chain(o, N * n_periods);
}

/* --- what is there --- */

TEST(test_clean)
{
    stage s;
    outcome o = {0};

    open_stage(&s, 20 * N, NULL);
    save_stage(&s, 0);
    run_whole(&s, &o, 0, 1);
    assert_int_equal(o.n, 20);
    assert_true(pnr_account_lossless(&o.account));
    for (size_t i = 0; i < o.n; i++) {
        const pnr_report *r = &o.reports[i];

        assert_true(r->sample == i * N);
        assert_int_equal(r->lost, 0);
        assert_int_equal(r->lost_before, 0);
        assert_int_equal(r->flags, 0);
        assert_int_equal(r->detection.n_echoes, 1);
        assert_true(fabs(r->detection.echoes[0].range_m - 6000) < 30); /* sigma is 2.6 m */
        assert_string_equal(r->engine, "reference/sum");
        assert_int_equal(r->time_source, PNR_TIME_NONE);
    }
    forget_outcome(&o);
    close_stage(&s);
}

TEST(test_start_time)
{
    stage s;
    outcome o = {0};

    open_stage(&s, 3 * N, SETTINGS("source.start_time=2026-11-21T02:40:12Z"));
    save_stage(&s, 0);
    run_whole(&s, &o, 0, 1);
    for (size_t i = 0; i < o.n; i++) {
        assert_int_equal(o.reports[i].time_source, PNR_TIME_FILE);
        assert_true(o.reports[i].time_ns - o.reports[0].time_ns == (int64_t)i * N * 1000);
    }
    forget_outcome(&o);
    close_stage(&s);
}

/* An incomplete dwell is the tail; bytes of an incomplete sample do not count. */
TEST(test_cut)
{
    for (size_t n = 3 * N; n < 9 * N; n += 61) {
        stage s;
        outcome o = {0};

        open_stage(&s, n, SETTINGS("dwell.periods=3", "dwell.combine=incoherent"));
        save_stage(&s, n % 4);
        run_whole(&s, &o, 0, 3);
        assert_int_equal(o.n, n / (3 * N));
        assert_int_equal(o.account.skipped_tail, n % (3 * N));
        forget_outcome(&o);
        close_stage(&s);
    }
}

/* A file of fewer samples than a dwell is refused before its first sample is read. */
TEST(test_shorter_than_a_dwell)
{
    for (size_t n = 1; n < 3 * N; n += 76) {
        stage s;
        outcome o = {0};
        char samples[64];

        open_stage(&s, n, SETTINGS("dwell.periods=3", "dwell.combine=incoherent"));
        save_stage(&s, n % 4);
        run_stage(&s, &o);
        snprintf(samples, sizeof samples, "echo.raw: %zu samples ", n);
        assert_int_equal(o.code, PNR_EDATA);
        assert_int_equal(o.account.positions, 0);
        assert_non_null(strstr(o.error.text, samples));
        assert_non_null(strstr(o.error.text, " 381 samples "));
        forget_outcome(&o);
        close_stage(&s);
    }
}

TEST(test_empty)
{
    stage s;
    outcome o = {0};

    open_stage(&s, 0, NULL);
    for (size_t n_more = 0; n_more < 4; n_more++) { /* a sample has four bytes */
        save_stage(&s, n_more);
        run_stage(&s, &o);
        assert_int_equal(o.code, PNR_EDATA);
        assert_int_equal(o.account.positions, 0);
        assert_non_null(strstr(o.error.text, "echo.raw"));
    }
    unlink(s.path);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_ENOINPUT);
    forget_outcome(&o);
    close_stage(&s);
}

TEST(test_epoch)
{
    static const struct {
        const char *setting;
        size_t first; /* where the first window starts */
    } cases[] = {{"code.epoch=0", 0},     {"code.epoch=1", 1},
                 {"code.epoch=126", 126}, {"code.epoch=127", 0},
                 {"code.epoch=300", 46},  {"code.epoch=-1", 126},
                 {"code.epoch=-200", 54}, {"code.epoch=1000000007", 1000000007 % N}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        outcome o = {0};

        open_stage(&s, 10 * N + 5, SETTINGS(cases[i].setting));
        save_stage(&s, 0);
        run_whole(&s, &o, cases[i].first, 1);
        assert_int_equal(o.account.skipped_alignment, cases[i].first);
        assert_true(o.n >= 9);
        for (size_t r = 0; r < o.n; r++) /* the delay counts from the epoch, so it does not
                                          * change */
            assert_true(fabs(o.reports[r].detection.echoes[0].range_m - 6000) < 30);
        forget_outcome(&o);
        close_stage(&s);
    }
}

/* Fewer samples than there are before the first window. */
TEST(test_epoch_beyond_the_end)
{
    stage s;
    outcome o = {0};

    open_stage(&s, 50, SETTINGS("code.epoch=100"));
    save_stage(&s, 0);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_EDATA);
    assert_non_null(strstr(o.error.text, " 227 samples "));
    assert_int_equal(o.n, 0);
    forget_outcome(&o);
    close_stage(&s);
}

/* --- what is not there --- */

/* The result at `sample`, or NULL. */
static const pnr_report *result_at(const outcome *o, uint64_t sample)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->reports[i].sample == sample)
            return &o->reports[i];
    return NULL;
}

/* The results of both runs at a window have the same bits, but for their seq. */
static void assert_same_window(const outcome *clean, const outcome *o, size_t window)
{
    const pnr_report *a = result_at(clean, window * N), *b = result_at(o, window * N);

    assert_non_null(a);
    assert_non_null(b);

    pnr_report moved = *b;

    moved.seq = a->seq;
    moved.lost_before = a->lost_before;
    assert_true(is_same_report(a, &moved));
}

/* Opens a stage of nine windows of floats, and runs it. If the engine does not work here, closes
 * the stage and returns false. */
static bool run_floats(stage *s, const char *engine, outcome *clean)
{
    open_stage(s, 9 * N, SETTINGS("source.format=cf32", engine));
    save_stage(s, 0);
    run_stage(s, clean);
    if (clean->code == PNR_EUNAVAILABLE) {
        print_message("skipped: %s\n", clean->error.text);
        close_stage(s);
        return false;
    }
    assert_int_equal(clean->code, PNR_OK);
    return true;
}

/* false: the engine does not work here. */
static bool spoil_window(const char *engine, size_t count, float value)
{
    enum { K = 4, FIRST = K * N + 30 };
    stage s;
    outcome clean = {0}, o = {0};

    if (!run_floats(&s, engine, &clean))
        return false;
    spoil_samples(&s, FIRST, count, value);
    save_stage(&s, 0);
    run_whole(&s, &o, 0, 1);
    assert_int_equal(o.account.n_nonfinite, count);
    for (size_t w = 0; w < 9; w++)
        if (w != K)
            assert_same_window(&clean, &o, w);

    const pnr_report *r = result_at(&o, K * N);

    if (count > N / 2) {
        assert_null(r);
        assert_int_equal(o.account.refused_too_much_lost, 1);
        assert_int_equal(o.account.skipped_refused, N - count);
        assert_int_equal(result_at(&o, (K + 1) * N)->lost_before, N);
    } else {
        const pnr_echo *echo = &r->detection.echoes[0];
        const double used = (double)(N - count) / N;

        assert_int_equal(r->lost, count);
        assert_int_equal(r->flags & PNR_FLAG_NONFINITE, PNR_FLAG_NONFINITE);
        assert_int_equal(r->flags & PNR_FLAG_LOST, 0);
        assert_int_equal(r->detection.n_echoes, 1);
        /* Renormalised: still 0.1, to 6 sigma of noise and the holes' own sidelobes. */
        assert_true(fabs(echo->amplitude - 0.1) < 6 * 0.05 / sqrt(N * used));
        assert_true(fabs(echo->range_m - 6000) < 60);
    }
    forget_outcome(&clean);
    forget_outcome(&o);
    close_stage(&s);
    return true;
}

static void nonfinite(const char *engine)
{
    if (!spoil_window(engine, 1, NAN))
        return;
    spoil_window(engine, 2, INFINITY);
    spoil_window(engine, 20, -INFINITY);
    spoil_window(engine, N / 2, NAN); /* 63 of 127: not more than half */
    spoil_window(engine, N / 2 + 1, NAN);
    spoil_window(engine, N - 30, NAN); /* to the window's last sample */
}

/* One finite sample of this value flags its window if it can come from no receiver, and no
 * other. */
static bool spoil_hugely(const char *engine, float value, bool is_flagged)
{
    enum { K = 4 };
    stage s;
    outcome clean = {0}, o = {0};

    if (!run_floats(&s, engine, &clean))
        return false;
    spoil_samples(&s, K * N + 30, 1, value);
    save_stage(&s, 0);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.account.n_nonfinite, 0);
    assert_int_equal(o.n, 9);
    for (size_t w = 0; w < 9; w++) {
        const bool has_flag = (o.reports[w].flags & PNR_FLAG_HUGE_SAMPLES) != 0;

        if (has_flag != (w == K && is_flagged))
            fail_msg("%s, %g: window %zu", engine, (double)value, w);
        if (w != K)
            assert_same_window(&clean, &o, w);
    }
    forget_outcome(&clean);
    forget_outcome(&o);
    close_stage(&s);
    return true;
}

TEST(test_huge)
{
    static const char *const engines[] = {"engine.name=reference", "engine.name=cpu"};

    for (size_t e = 0; e < COUNT(engines); e++) {
        if (!spoil_hugely(engines[e], 1e9f, false))
            continue;
        spoil_hugely(engines[e], 1e13f, true);
        spoil_hugely(engines[e], -1e20f, true);
        spoil_hugely(engines[e], 3e38f, true);
    }
}

TEST(test_nonfinite_reference)
{
    nonfinite("engine.name=reference");
}

TEST(test_nonfinite_cpu)
{
    nonfinite("engine.name=cpu");
}

TEST(test_nonfinite_cuda)
{
    nonfinite("engine.name=cuda");
}

TEST(test_all_nonfinite)
{
    stage s;
    outcome o = {0};

    open_stage(&s, 6 * N,
               SETTINGS("source.format=cf32", "dwell.periods=2", "dwell.combine=coherent"));
    spoil_samples(&s, 0, 6 * N, NAN);
    save_stage(&s, 0);
    run_whole(&s, &o, 0, 2);
    assert_int_equal(o.n, 0);
    assert_int_equal(o.account.refused_too_much_lost, 6);
    forget_outcome(&o);
    close_stage(&s);
}

/* Runs that the recorder lost: short, a whole window, several dwells, at the start and at the end,
 * and across. */
TEST(test_lost)
{
    static const char *const runs[] = {
        "source.lost=300+1",
        "source.lost=300+20, 330+2, 500+63",
        "source.lost=508+64",   /* more than half of window 4 */
        "source.lost=508+127",  /* all of it */
        "source.lost=500+144",  /* and of its neighbours' ends */
        "source.lost=400+1300", /* several dwells */
        "source.lost=0+1",
        "source.lost=0+127",
        "source.lost=0+700",
        "source.lost=2530+10", /* the last sample is 2539 */
        "source.lost=2400+140",
        "source.lost=2540+1000", /* begins where the recording ends */
        "source.lost=0+2540",    /* only the samples after it were recorded */
        "source.lost=10+5, 700+254, 1000+900, 2400+140",
    };
    static const char *const dwells[][2] = {{"dwell.periods=1", "dwell.combine=none"},
                                            {"dwell.periods=3", "dwell.combine=incoherent"},
                                            {"dwell.periods=2", "dwell.combine=coherent"}};
    static const size_t n_periods[] = {1, 3, 2};

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (size_t d = 0; d < 3; d++)
            for (size_t first = 0; first < N; first += 50) {
                char epoch[32];
                stage s;
                outcome o = {0};
                const bool is_longer = strstr(runs[i], "2540") != NULL;

                snprintf(epoch, sizeof epoch, "code.epoch=%zu", first);
                open_stage(&s, (is_longer ? 3540 : 20 * N),
                           SETTINGS(runs[i], dwells[d][0], dwells[d][1], epoch));
                save_stage(&s, 0);
                run_whole(&s, &o, first, n_periods[d]);
                forget_outcome(&o);
                close_stage(&s);
            }
}

/* A window with a gap reports it, and its echo is still right; the windows next to it do not
 * change. */
TEST(test_lost_neighbours)
{
    stage s;
    outcome clean = {0}, o = {0};

    open_stage(&s, 9 * N, NULL);
    save_stage(&s, 0);
    run_stage(&s, &clean);
    set_stage(&s, "source.lost=520+30");
    for (size_t i = 520; i < 550; i++)
        s.kinds[i] = LOST;
    save_stage(&s, 0);
    run_whole(&s, &o, 0, 1);
    for (size_t w = 0; w < 9; w++)
        if (w != 4)
            assert_same_window(&clean, &o, w);

    const pnr_report *holed = result_at(&o, 4 * N), *whole = result_at(&clean, 4 * N);
    const pnr_echo *echo = &holed->detection.echoes[0];

    assert_int_equal(holed->lost, 30);
    assert_int_equal(holed->flags & PNR_FLAG_LOST, PNR_FLAG_LOST);
    assert_true(fabs(echo->amplitude - 0.1) < 6 * 0.05 / sqrt(97));
    assert_true(echo->delay_sigma_s > whole->detection.echoes[0].delay_sigma_s);
    forget_outcome(&clean);
    forget_outcome(&o);
    close_stage(&s);
}

/* The queue of 1 MiB before publishing has no space for so many results. So the reader is not at
 * the end of the file when the first result is published, even if the publishing thread is slow. */
enum { MORE_THAN_THE_QUEUE = 10000 };

/* The file grows shorter while it is read. */
static void cut_the_file(void *context, size_t n)
{
    const stage *s = context;

    if (n == 1)
        assert_int_equal(truncate(s->path, 0), 0);
}

TEST(test_cut_while_read)
{
    stage s;
    outcome o = {.also = cut_the_file, .also_context = &s};

    open_stage(&s, MORE_THAN_THE_QUEUE * N,
               SETTINGS("ring.bytes=2032", "source.chunk=64", "engine.batch=1"));
    save_stage(&s, 0);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_EDATA);
    assert_non_null(strstr(o.error.text, "cut short"));
    assert_true(o.n >= 1 && o.n < MORE_THAN_THE_QUEUE);
    assert_true(o.account.positions == o.n * N + o.account.skipped_tail);
    forget_outcome(&o);
    close_stage(&s);
}

/* --- gates, and the stop --- */

TEST(test_gates)
{
    static const struct {
        const char *min, *max;
        size_t n_echoes;
        double ranges[2]; /* in any order */
    } cases[] = {
        {"radar.min_range_m=0", "radar.max_range_m=0", 2, {6000, 12000}},
        {"radar.min_range_m=0", "radar.max_range_m=9000", 1, {6000, 0}},
        {"radar.min_range_m=9000", "radar.max_range_m=0", 2, {12000, 6000 + 19036.82}},
        {"radar.min_range_m=9000", "radar.max_range_m=15000", 1, {12000, 0}},
        {"radar.min_range_m=7000", "radar.max_range_m=11000", 0, {0, 0}},
        {"radar.min_range_m=-14000", "radar.max_range_m=0", 2, {12000 - 19036.82, 6000 - 19036.82}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        outcome o = {0};

        open_stage(&s, 5 * N,
                   SETTINGS("target.2.range_m=12000", "target.2.amplitude=0.1", cases[i].min,
                            cases[i].max));
        save_stage(&s, 0);
        run_whole(&s, &o, 0, 1);
        for (size_t r = 0; r < o.n; r++) {
            const pnr_detection *found = &o.reports[r].detection;

            assert_int_equal(found->n_echoes, cases[i].n_echoes);
            for (size_t w = 0; w < cases[i].n_echoes; w++) {
                bool is_there = false;

                for (size_t e = 0; e < found->n_echoes; e++)
                    is_there |= fabs(found->echoes[e].range_m - cases[i].ranges[w]) < 40;
                assert_true(is_there);
            }
        }
        forget_outcome(&o);
        close_stage(&s);
    }
}

/* Samples read before the stop are processed; `end` says why. */
TEST(test_stop)
{
    static const char *const paces[] = {"source.pace=fast", "source.pace=real-time"};

    for (size_t i = 0; i < 2; i++) {
        stage s;
        outcome o = {.stop_at = 7};
        subscriber heard;

        open_stage(&s, 20000 * N, SETTINGS("ring.bytes=4064", "engine.batch=1", paces[i]));
        save_stage(&s, 0);
        subscribe(&s, &heard, 100000);
        run_stage(&s, &o);
        assert_int_equal(o.code, PNR_OK);
        assert_true(o.n >= 7 && o.n < 10000); /* the ring holds 8 dwells */
        assert_true(o.account.processed == o.n);
        assert_int_equal(o.account.dropped_shutdown, 0);
        assert_int_equal(o.account.dropped_engine_error, 0);
        assert_true(o.account.used == o.n * N);
        assert_chain(&o, N);
        assert_end(&heard, &o);
        assert_string_equal(heard.end.reason, "stopped");
        assert_true(heard.n_results == o.n);
        forget_outcome(&o);
        close_stage(&s);
    }
}

/* The set-up ends before the engine is opened. */
TEST(test_stopped_before)
{
    stage s;
    outcome o = {.stop = 1};

    open_stage(&s, 20 * N, NULL);
    save_stage(&s, 0);
    set_stage(&s, "engine.name=no-such-engine");
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.account.positions, 0);
    assert_int_equal(o.n, 0);
    forget_outcome(&o);
    close_stage(&s);
}
