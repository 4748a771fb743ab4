/* SPDX-License-Identifier: MIT */
/* The queue of the correlator when devices are lost one after the other. The engine of this test
 * returns the tags of its jobs, and loses a device at a chosen call. */
#include "correlator/correlator.h"
#include "tests/fixture/test.h"

#include <stdlib.h>

enum { DEVICES = 3, DEPTH = 2 };

struct pnr_engine {
    size_t device;
    uint64_t tags[DEPTH]; /* the oldest first */
    size_t n_in_flight;
};

static size_t n_submits[DEVICES];   /* calls of submit so far */
static size_t last_submit[DEVICES]; /* the device is lost at the submit after this one */
static bool is_lost_in_search[DEVICES];

static size_t count_devices(void)
{
    return DEVICES;
}

static int create_engine(const pnr_plan *plan, pnr_engine **engine, pnr_error *error)
{
    (void)error;
    *engine = calloc(1, sizeof **engine);
    assert_non_null(*engine);
    (*engine)->device = plan->device;
    return PNR_OK;
}

static void destroy_engine(pnr_engine *engine)
{
    free(engine);
}

static int submit_job(pnr_engine *engine, const pnr_job *job)
{
    if (++n_submits[engine->device] > last_submit[engine->device])
        return PNR_ELOST;
    if (engine->n_in_flight == DEPTH)
        return PNR_EAGAIN;
    engine->tags[engine->n_in_flight++] = job->tag;
    return PNR_OK;
}

static int collect_result(pnr_engine *engine, bool wait, pnr_result *result)
{
    (void)wait;
    if (engine->n_in_flight == 0)
        return PNR_EAGAIN;
    *result = (pnr_result){.tag = engine->tags[0]};
    engine->tags[0] = engine->tags[1];
    engine->n_in_flight--;
    return PNR_OK;
}

static int search_again(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                        const pnr_removal *removals, size_t n_removals, pnr_result *result)
{
    (void)windows, (void)dwell, (void)removals, (void)n_removals;
    *result = (pnr_result){0};
    return is_lost_in_search[engine->device] ? PNR_ELOST : PNR_OK;
}

static const pnr_engine_ops ops = {.abi = PNR_ENGINE_ABI,
                                   .name = "test",
                                   .count = count_devices,
                                   .create = create_engine,
                                   .destroy = destroy_engine,
                                   .submit = submit_job,
                                   .collect = collect_result,
                                   .search_without = search_again};

static pnr_correlator *open_correlator(void)
{
    const pnr_plan plan = {.depth = DEPTH};
    const pnr_engine_choice choice = {.method = "tags"};
    const pnr_devices devices = {.n = DEVICES, .index = {0, 1, 2}};
    pnr_correlator *correlator;
    pnr_error error;

    for (size_t d = 0; d < DEVICES; d++) {
        n_submits[d] = 0;
        last_submit[d] = SIZE_MAX;
        is_lost_in_search[d] = false;
    }
    assert_int_equal(
        pnr_correlator_create(&ops, &plan, &choice, &devices, NULL, &correlator, &error), PNR_OK);
    return correlator;
}

static int submit(pnr_correlator *correlator, uint64_t sample)
{
    return pnr_correlator_submit(correlator, &(pnr_windows){.first_sample = sample});
}

static void collect(pnr_correlator *correlator, uint64_t sample)
{
    pnr_windows windows;
    pnr_result result;

    assert_int_equal(pnr_correlator_collect(correlator, true, &windows, &result), PNR_OK);
    assert_int_equal(windows.first_sample, sample);
}

/* Loses device 0 in a search while the jobs 1 and 2 are in flight. Device 2 is lost when they are
 * submitted again. */
static pnr_correlator *lose_two(void)
{
    pnr_correlator *correlator = open_correlator();
    pnr_result found;

    is_lost_in_search[0] = true;
    last_submit[2] = 1;
    for (uint64_t sample = 0; sample < DEVICES; sample++)
        assert_int_equal(submit(correlator, sample), PNR_OK);
    collect(correlator, 0);
    assert_int_equal(
        pnr_correlator_search_without(correlator, &(pnr_windows){0}, 0, NULL, 0, &found), PNR_OK);
    return correlator;
}

/* A job that the caller may submit is kept, also if the loss of a device leaves less room. */
TEST(test_loss_leaves_no_room)
{
    pnr_correlator *correlator = lose_two();

    assert_true(pnr_correlator_has_room(correlator));
    assert_int_equal(submit(correlator, 3), PNR_OK);
    assert_false(pnr_correlator_has_room(correlator));
    assert_int_equal(submit(correlator, 4), PNR_EAGAIN);
    for (uint64_t sample = 1; sample <= 3; sample++)
        collect(correlator, sample);
    assert_int_equal(submit(correlator, 4), PNR_OK);
    collect(correlator, 4);
    pnr_correlator_destroy(correlator);
}

TEST(test_last_device_is_lost)
{
    pnr_correlator *correlator = lose_two();

    last_submit[1] = 2;
    assert_int_equal(submit(correlator, 3), PNR_ELOST);
    assert_int_equal(submit(correlator, 4), PNR_ELOST);
    pnr_correlator_destroy(correlator);
}
