/* SPDX-License-Identifier: MIT */
/* Tests the strongest candidate outside of the gate on every method of the cuda engine. The search
 * of the CPU judges the places: it searches the powers that the method returns. The reference, or
 * method library at greater lengths, judges the values. */
#include "engine/search.h"
#include "tests/fixture/answer.h"

enum { LONGEST = 1100 /* greatest number of samples for the reference */ };

/* --- paths --- */

/* An echo in every window: its lag after the first lag of the gate, plus `gates` times the length
 * of the gate. */
typedef struct path {
    double amplitude;
    int gates, lag;
} path;

/* The strongest path is at the first lag of the gate. The strongest path outside is one lag before
 * it, so the box of this path reaches into the gate, where a stronger cell is. The next path
 * outside is the candidate. The last path is in the gate, and too weak for the first search. With
 * half lags there is no path before the gate: its cell would not be in the box of the strongest
 * path, and the half lag before the strongest path is. */
static const path paths[] = {{0.3, 0, 0}, {0.25, 0, -1}, {0.2, 1, 20}, {0.03, 0, 30}};
enum { AT_GATE, BEFORE_GATE, FAR_OUTSIDE };

static bool has_path(const world *w, size_t i)
{
    return i != BEFORE_GATE || w->plan.oversample == 1;
}

static size_t lag_of(const world *w, const path *of)
{
    const long n = (long)w->plan.n_lags;
    const long lag = (long)w->plan.gate_first + of->gates * (long)w->plan.gate_count + of->lag;

    return (size_t)(((lag % n) + n) % n);
}

static void add_path(world *w, const path *added)
{
    const size_t n = w->s.n_samples, bytes = pnr_format_get(w->s.format)->bytes;
    const size_t delay = lag_of(w, added);

    for (size_t i = 0; i < w->n_view; i++) {
        const double *a = w->references[(i % n + n - delay) % n];
        double x[2];

        (void)pnr_format_read(w->s.format, w->samples + i * bytes, x);
        x[0] += added->amplitude * a[0];
        x[1] += added->amplitude * a[1];
        (void)pnr_format_write(w->s.format, x, w->samples + i * bytes);
    }
}

/* --- judges --- */

static bool is_outside(const world *w, const pnr_candidate *candidate)
{
    return !pnr_plan_is_in_gate(&w->plan, candidate->cell / w->plan.oversample);
}

/* Checks that each dwell has one candidate outside of the gate. wanted: its path, or NULL for any
 * place. */
static void check_outside(const world *w, const answer *got, const path *wanted)
{
    for (size_t d = 0; d < got->n_dwells; d++) {
        const pnr_candidate *c = answer_candidates(got, d);
        size_t n_outside = 0;

        for (uint32_t i = 0; i < got->dwells[d].n_candidates; i++) {
            if (!is_outside(w, &c[i]))
                continue;
            n_outside++;
            if (wanted != NULL)
                assert_int_equal(c[i].cell / w->plan.oversample, lag_of(w, wanted));
        }
        if (n_outside != 1)
            fail_msg("%s, N = %zu, %s: %zu candidates outside of the gate", w->s.name,
                     w->s.n_samples, got->method, n_outside);
    }
}

/* Searches the returned powers of each dwell, and compares the places. The judge adds the noise in
 * another order, so a later search may decide differently about few cells at the threshold. */
static void check_places(const world *w, const answer *got)
{
    const double code_energy = pnr_plan_code_energy(&w->plan);

    for (size_t d = 0; d < got->n_dwells; d++) {
        const pnr_dwell *sums = &got->dwells[d];
        const pnr_candidate *c = answer_candidates(got, d);
        pnr_candidate list[PNR_MAX_CANDIDATES];
        pnr_dwell want = {.energy = sums->energy,
                          .n_periods = sums->n_periods,
                          .floor = sums->energy * code_energy / (double)w->s.n_samples};

        pnr_search_dwell(&w->plan, code_energy, got->profile + d * got->n_values, sums->n_periods,
                         NULL, NULL, &want, list);
        if (sums->n_above != want.n_above || sums->n_candidates != want.n_candidates ||
            labs((long)sums->n_maxima - (long)want.n_maxima) > 1 + (long)want.n_maxima / 1000)
            fail_msg("%s, N = %zu, %s: above %u, not %u; maxima %u, not %u; candidates %u, not %u",
                     w->s.name, w->s.n_samples, got->method, sums->n_above, want.n_above,
                     sums->n_maxima, want.n_maxima, sums->n_candidates, want.n_candidates);
        for (uint32_t i = 0; i < want.n_candidates; i++)
            if (c[i].code != list[i].code || c[i].row != list[i].row || c[i].cell != list[i].cell ||
                c[i].power != list[i].power)
                fail_msg("%s, N = %zu, %s: candidate %u is at code %u, row %u, cell %u, not %u, "
                         "%u, %u",
                         w->s.name, w->s.n_samples, got->method, i, c[i].code, c[i].row, c[i].cell,
                         list[i].code, list[i].row, list[i].cell);
    }
}

/* Compares the values with those of the reference or of library. */
static void check_values(const pnr_engine_ops *ops, world *w, const answer *got)
{
    answer want;

    if (w->s.n_samples <= LONGEST) {
        w->plan.method = "auto";
        ask(find_engine("reference"), w, PNR_WANT_POWER, &want);
    } else {
        ask_method(ops, w, "library", PNR_WANT_POWER, &want);
    }
    compare_answers(w, got->method, got, &want, 1);
    w->plan.method = got->method;
    answer_destroy(&want);
}

/* --- worlds --- */

/* The kinds of a world: where the gate is, the number of candidates, and whether there are paths or
 * noise alone, with many cells above a low threshold. */
static const struct {
    bool wraps, has_paths;
    size_t max_candidates;
} kinds[] = {{false, true, 16}, {true, true, 2}, {true, false, 64}, {false, false, 2}};

static void create_kind(world *w, const scenario *of, size_t kind, const pnr_engine_ops *ops)
{
    const size_t n = of->n_samples;
    scenario s = *of;

    s.has_outside = true;
    s.gate_first = kinds[kind].wraps ? n - n / 10 : n / 2;
    s.gate_count = kinds[kind].wraps ? n / 3 : n / 4;
    s.max_candidates = kinds[kind].max_candidates;
    s.threshold = kinds[kind].has_paths ? 13 : 1.5;
    world_create(w, &s, ops);
    for (size_t i = 0; kinds[kind].has_paths && i < COUNT(paths); i++)
        if (has_path(w, i))
            add_path(w, &paths[i]);
}

static void check(const pnr_engine_ops *ops, const char *method, const scenario *s, size_t kind)
{
    answer got, quiet;
    world w;

    create_kind(&w, s, kind, ops);
    ask_method(ops, &w, method, PNR_WANT_POWER, &got);
    ask_method(ops, &w, method, PNR_WANT_NONE, &quiet);
    check_same_bits(&quiet, &got, 0);
    check_outside(&w, &got, kinds[kind].has_paths ? &paths[FAR_OUTSIDE] : NULL);
    check_places(&w, &got);
    check_values(ops, &w, &got);
    if (w.s.n_dwells > 3)
        check_submits(ops, &w, &quiet, 3);
    answer_destroy(&got);
    answer_destroy(&quiet);
    world_destroy(&w, ops);
}

static void check_all(const char *method, const scenario *list, size_t n)
{
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t i = 0; i < n; i++)
        for (size_t kind = 0; kind < COUNT(kinds); kind++)
            check(ops, method, &list[i], kind);
}

/* --- the methods --- */

static const scenario fused[] = {
    S("a warp for each window", .n_samples = 1024, .code = ZADOFF_CHU, .n_dwells = 40),
    S("extended to 2048", .n_samples = 1023, .code = ZADOFF_CHU, .n_dwells = 5),
    S("half lags", .n_samples = 600, .code = ZADOFF_CHU, .n_dwells = 5, .oversample = 2),
    S("2048 points", .n_samples = 2048, .code = ZADOFF_CHU, .format = PNR_FORMAT_CF32,
      .n_dwells = 3),
    S("4096 points", .n_samples = 4096, .code = ZADOFF_CHU, .format = PNR_FORMAT_CI8,
      .n_dwells = 3),
    S("8192 points", .n_samples = 8192, .code = ZADOFF_CHU, .n_dwells = 3),
    S("16384 points", .n_samples = 16384, .code = ZADOFF_CHU, .n_dwells = 2),
    S("looks", .n_samples = 1023, .code = ZADOFF_CHU, .n_looks = 4, .n_dwells = 5),
    S("coherent, half lags, lost", .n_samples = 500, .code = ZADOFF_CHU, .n_periods = 3,
      .n_dwells = 4, .oversample = 2, .has_lost = true),
};

static const scenario fused_long[] = {
    S("2^15 points", .n_samples = 32768, .code = ZADOFF_CHU, .n_dwells = 5),
    S("extended to 2^16", .n_samples = 20000, .code = ZADOFF_CHU, .n_dwells = 2),
    S("2^16 points, two streams", .n_samples = 65536, .code = ZADOFF_CHU, .n_dwells = 70),
    S("2^20 points", .n_samples = 1 << 20, .code = ZADOFF_CHU, .n_dwells = 2),
    S("long looks", .n_samples = 9000, .code = ZADOFF_CHU, .n_looks = 3, .n_dwells = 2),
};

static const scenario walsh[] = {
    S("four windows in a warp", .n_samples = 255, .code = M_SEQUENCE, .n_dwells = 11),
    S("a window in a warp", .n_samples = 1023, .code = M_SEQUENCE, .n_dwells = 5),
    S("degree 13", .n_samples = 8191, .code = M_SEQUENCE, .n_dwells = 3),
    S("coherent", .n_samples = 511, .code = M_SEQUENCE, .n_periods = 3, .n_dwells = 4),
    S("incoherent", .n_samples = 2047, .code = M_SEQUENCE, .n_looks = 4, .n_dwells = 3),
    S("degree 14", .n_samples = 16383, .code = M_SEQUENCE, .format = PNR_FORMAT_CF32,
      .n_dwells = 2),
    S("degree 16", .n_samples = 65535, .code = M_SEQUENCE, .n_dwells = 5),
    S("degree 20", .n_samples = (1 << 20) - 1, .code = M_SEQUENCE, .n_dwells = 2),
};

/* Small maps and large ones; dwells of one line, which the kernel of the lines searches. */
static const scenario map_fused[] = {
    S("one line of 1024, boxes", .n_samples = 1024, .n_dwells = 20, .exclusion_cells = 3),
    S("one line of 8192, boxes", .n_samples = 8192, .n_dwells = 2, .exclusion_cells = 5),
    S("one line, extended to 4096, boxes", .n_samples = 1500, .n_dwells = 3, .exclusion_cells = 2),
    S("two codes, rows, half lags, small", .n_samples = 257, .n_codes = 2, .n_dwells = 4,
      .oversample = 2, .hypotheses = {{0, 0, 1, 0}, {3, 0, 1, 0}}, .exclusion_cells = 2),
    S("two codes, looks", .n_samples = 600, .n_codes = 2, .n_looks = 3, .n_dwells = 3),
    S("rows of periods, large", .n_samples = 509, .n_codes = 2, .n_periods = 32, .n_dwells = 4,
      .hypotheses = {{0, -8, 16, 0}, {2, -8, 16, 0}}, .exclusion_cells = 2, .exclusion_rows = 2),
};

static const scenario map_long[] = {
    S("long, boxes", .n_samples = 65536, .n_dwells = 4, .exclusion_cells = 3),
    S("long, extended, boxes", .n_samples = 20000, .n_dwells = 2, .exclusion_cells = 2),
};

static const scenario library[] = {
    S("plain", .n_samples = 1000, .code = ZADOFF_CHU, .n_dwells = 5),
    S("plain, half lags", .n_samples = 255, .code = ZADOFF_CHU, .n_dwells = 5, .oversample = 2),
    S("plain looks", .n_samples = 1000, .code = ZADOFF_CHU, .n_looks = 3, .n_dwells = 4),
    S("two codes, rows, boxes, small", .n_samples = 250, .n_codes = 2, .n_periods = 4,
      .n_dwells = 4, .hypotheses = {{0, -2, 4, 0}, {4, -2, 4, 0}}, .exclusion_cells = 3,
      .exclusion_rows = 2),
    S("two codes, rows, boxes, large", .n_samples = 1000, .n_codes = 2, .n_periods = 8,
      .n_dwells = 2, .hypotheses = {{0, -4, 8, 0}, {4, -4, 8, 0}}, .exclusion_cells = 3,
      .exclusion_rows = 2),
};

TEST(test_fused)
{
    check_all("fused", fused, COUNT(fused));
}

TEST(test_long)
{
    check_all("fused", fused_long, COUNT(fused_long));
}

TEST(test_walsh)
{
    check_all("walsh", walsh, COUNT(walsh));
}

TEST(test_map_fused)
{
    check_all("fused", map_fused, COUNT(map_fused));
}

TEST(test_map_long)
{
    check_all("fused", map_long, COUNT(map_long));
}

TEST(test_library)
{
    check_all("library", library, COUNT(library));
}

/* --- the second search --- */

/* Without the path at the first lag of the gate, the path before the gate is the candidate. */
static void check_again(const pnr_engine_ops *ops, const scenario *s)
{
    const size_t n = s->n_samples;
    float(*replica)[2] = calloc(n, sizeof *replica);
    pnr_removal removal = {.replica = (const float(*)[2])replica,
                           .peak = {paths[AT_GATE].amplitude}};
    pnr_engine *engine;
    pnr_result result;
    answer got;
    world w;

    assert_non_null(replica);
    create_kind(&w, s, 0, ops);
    w.plan.want_profile = PNR_WANT_POWER;
    for (size_t i = 0; i < n; i++)
        for (size_t part = 0; part < 2; part++)
            replica[i][part] = (float)w.references[(i + n - lag_of(&w, &paths[AT_GATE])) % n][part];
    engine = create_engine(ops, &w.plan);
    for (size_t d = 0; d < w.s.n_dwells; d += w.s.n_dwells - 1) {
        assert_int_equal(ops->search_without(engine, &w.windows, d, &removal, 1, &result), PNR_OK);
        answer_keep(&w.plan, &result, &got);
        check_outside(&w, &got, &paths[has_path(&w, BEFORE_GATE) ? BEFORE_GATE : FAR_OUTSIDE]);
        check_places(&w, &got);
        answer_destroy(&got);
    }
    ops->destroy(engine);
    world_destroy(&w, ops);
    free(replica);
}

TEST(test_again)
{
    static const struct {
        const scenario *list;
        size_t n;
    } lists[] = {{fused, COUNT(fused)},       {fused_long, COUNT(fused_long)},
                 {walsh, COUNT(walsh)},       {map_fused, COUNT(map_fused)},
                 {map_long, COUNT(map_long)}, {library, COUNT(library)}};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t l = 0; l < COUNT(lists); l++)
        for (size_t i = 0; i < lists[l].n; i++)
            if (lists[l].list[i].n_looks <= 1)
                check_again(ops, &lists[l].list[i]);
}

/* --- ties --- */

/* The code is an impulse, so the powers are those of the samples. Of two equal cells outside of the
 * gate the first is kept. With two codes that are the same, all cells of both are equal, and the
 * first code counts. */
static void check_tie(const pnr_engine_ops *ops, const char *method, size_t n, size_t n_codes)
{
    const scenario s = {.name = "a tie",
                        .n_samples = n,
                        .n_codes = n_codes,
                        .format = PNR_FORMAT_CF32,
                        .n_dwells = 1,
                        .gate_first = n / 4,
                        .gate_count = n / 8,
                        .has_outside = true,
                        .max_candidates = 2,
                        .threshold = 2};
    answer got;
    world w;

    world_create(&w, &s, ops);
    memset(w.references, 0, n_codes * n * sizeof *w.references);
    for (size_t code = 0; code < n_codes; code++)
        w.references[code * n][0] = 1;
    float(*x)[2] = (float(*)[2])(void *)w.samples;
    memset(x, 0, n * sizeof *x);
    x[7][0] = x[n / 2 + 7][0] = 0.5f;
    ask_method(ops, &w, method, PNR_WANT_POWER, &got);
    assert_true(got.profile[7] == got.profile[n / 2 + 7]);
    assert_true(got.profile[7] == got.profile[(n_codes - 1) * n + 7]);
    check_places(&w, &got);
    assert_int_equal(got.dwells[0].n_above, 0);
    assert_int_equal(got.dwells[0].n_maxima, 0);
    assert_int_equal(got.dwells[0].n_candidates, 1);
    assert_int_equal(got.candidates[0].cell, 7);
    assert_int_equal(got.candidates[0].code, 0);
    answer_destroy(&got);
    world_destroy(&w, ops);
}

TEST(test_ties)
{
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t n = 1024; n <= 1 << 18; n *= 2) {
        check_tie(ops, "fused", n, 1);
        if (n <= 8192)
            check_tie(ops, "fused", n, 2);
    }
    check_tie(ops, "library", 1024, 1);
    check_tie(ops, "library", 4096, 2);
    check_tie(ops, "library", 16384, 2);
}
