/* SPDX-License-Identifier: MIT */
/* Tests that the echoes of one target become one track, whatever its motion, and that the echoes of
 * two targets become two tracks. */
#include "picture/state.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <math.h>
#include <stdlib.h>

enum { DWELL = 1000, N_DWELLS = 200 };
static const track_gate gate = {.range_m = 300, .doppler_hz = INFINITY, .samples = 10 * DWELL};

static pnr_picture *picture;
static track tracks[PNR_MAX_TRACKS];

static int begin(void **state)
{
    (void)state;
    if ((picture = calloc(1, sizeof *picture)) == NULL ||
        (picture->columns = calloc(PNR_MAX_COLUMNS, sizeof *picture->columns)) == NULL ||
        (picture->cells = calloc(1, sizeof *picture->cells)) == NULL)
        return -1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    pnr_picture_destroy(picture);
    return 0;
}

typedef struct target {
    double range_m, rate_m; /* at the first dwell; change from one dwell to the next */
    double snr_db, doppler_hz;
} target;

/* Adds one dwell with an echo of each target. The range of each echo has an error of `sigma_m`. */
static void add_dwell(uint64_t dwell, const target *targets, size_t n, double sigma_m)
{
    static pnr_report report;

    memset(&report, 0, sizeof report);
    strcpy(report.run, "0123456789abcdef");
    report.sample = dwell * DWELL;
    report.detection.n_echoes = n;
    for (size_t i = 0; i < n; i++)
        report.detection.echoes[i] =
            (pnr_echo){.range_m = targets[i].range_m + targets[i].rate_m * (double)dwell +
                                  sigma_m * (2 * uniform() - 1),
                       .snr_db = targets[i].snr_db + (dwell == 77 ? 10 : 0),
                       .doppler_hz = targets[i].doppler_hz};
    pnr_picture_result(picture, &report);
}

static size_t find(void)
{
    return pnr_tracks_find(picture, &gate, 0, tracks);
}

TEST_BETWEEN(test_still_and_moving, begin, end)
{
    /* The first target moves 60 km during the run, and crosses the other two. */
    const target targets[] = {{70000, -300, 20, NAN}, {40000, 0, 30, NAN}, {41000, 0, 10, NAN}};
    const double at[] = {70000 - 300 * 77, 40000, 41000};

    for (uint64_t dwell = 0; dwell < N_DWELLS; dwell++)
        add_dwell(dwell, targets, 3, 20);
    assert_int_equal(find(), 3);
    for (size_t i = 0; i < 3; i++) {
        const track *found = NULL;

        for (size_t t = 0; t < 3; t++)
            found = fabs(tracks[t].strongest.range_m - at[i]) < 30 ? &tracks[t] : found;
        assert_non_null(found);
        assert_int_equal(found->n_echoes, N_DWELLS);
        assert_true(found->strongest.sample == 77 * DWELL);
    }
}

TEST_BETWEEN(test_gaps, begin, end)
{
    const target one = {10000, 20, 20, NAN};

    for (uint64_t dwell = 0; dwell < N_DWELLS; dwell++)
        if (dwell % 20 < 12) /* gaps of 9 dwells, which the gate allows */
            add_dwell(dwell, &one, 1, 20);
    assert_int_equal(find(), 1);
    for (uint64_t dwell = N_DWELLS + 15; dwell < N_DWELLS + 20; dwell++)
        add_dwell(dwell, &one, 1, 20);
    assert_int_equal(find(), 2); /* after 23 dwells without echoes a new track begins */
}

TEST_BETWEEN(test_one_echo_of_a_dwell, begin, end)
{
    const target two[] = {{10000, 0, 20, NAN}, {10100, 0, 20, NAN}};

    for (uint64_t dwell = 0; dwell < N_DWELLS; dwell++)
        add_dwell(dwell, two, 2, 5);
    assert_int_equal(find(), 2);
    assert_true(tracks[0].n_echoes == N_DWELLS && tracks[1].n_echoes == N_DWELLS);
}

TEST_BETWEEN(test_doppler_separates, begin, end)
{
    const track_gate narrow = {300, 5, 10 * DWELL};
    const target two[] = {{10000, 0, 20, 100}, {10000, 0, 25, -100}};

    for (uint64_t dwell = 0; dwell < 5; dwell++)
        add_dwell(dwell, &two[dwell % 2], 1, 5);
    assert_int_equal(find(), 1);
    assert_int_equal(pnr_tracks_find(picture, &narrow, 0, tracks), 2);
    assert_int_equal(pnr_tracks_find(picture, &narrow, 4 * DWELL, tracks), 1);
    assert_true(tracks[0].strongest.doppler_hz == 100);
}

TEST_BETWEEN(test_columns_of_several_dwells, begin, end)
{
    const target targets[] = {{20000, 2, 20, NAN}, {40000, 0, 30, NAN}};
    const uint64_t n = 3 * PNR_MAX_COLUMNS;

    for (uint64_t dwell = 0; dwell < n; dwell++)
        add_dwell(dwell, targets, 2, 20);
    assert_true(picture->run.echo_time.width > DWELL);
    assert_int_equal(find(), 2);
    assert_true(tracks[0].n_echoes > n / 2 && tracks[1].n_echoes > n / 2);
}

TEST_BETWEEN(test_more_than_the_table, begin, end)
{
    target alarm = {0, 0, 10, NAN};

    for (uint64_t dwell = 0; dwell < PNR_MAX_TRACKS + 100; dwell++) {
        alarm.range_m = (double)(dwell * 100000);
        add_dwell(dwell, &alarm, 1, 0);
    }
    assert_int_equal(find(), PNR_MAX_TRACKS);
}

TEST_BETWEEN(test_one_code, begin, end)
{
    const target one = {10000, 0, 20, NAN};

    picture->options.code = 2; /* only code 2 is drawn, and the echoes have code 1 */
    add_dwell(0, &one, 1, 0);
    assert_int_equal(find(), 0);
    assert_true(picture->run.n_results == 1 && picture->run.n_echoes == 0);
}
