/* SPDX-License-Identifier: MIT */
/* The deadline: its default, which results are late, and one event about them. */
#include "pipeline/deadline.h"
#include "tests/fixture/test.h"

TEST(test_due)
{
    assert_int_equal(pnr_deadline_of(0, 1e-3, true).due_ns, 1000000);
    assert_int_equal(pnr_deadline_of(0, 1e-3, false).due_ns, 0);
    assert_int_equal(pnr_deadline_of(0.25, 1e-3, true).due_ns, 250000000);
    assert_int_equal(pnr_deadline_of(0.25, 1e-3, false).due_ns, 250000000);
    assert_int_equal(pnr_deadline_of(1e-12, 1, false).due_ns, 1); /* never none by rounding */
}

TEST(test_missed)
{
    pnr_deadline d = pnr_deadline_of(1e-3, 1, false), none = pnr_deadline_of(0, 1, false);

    assert_false(pnr_deadline_is_missed(&d, 0));
    assert_false(pnr_deadline_is_missed(&d, 1000000));
    assert_true(pnr_deadline_is_missed(&d, 1000001));
    assert_true(pnr_deadline_is_missed(&d, 3000000));
    assert_int_equal(d.n_results, 4);
    assert_int_equal(d.n_missed, 2);
    assert_int_equal(d.worst_ns, 3000000);
    assert_false(pnr_deadline_is_missed(&none, UINT64_MAX));
    assert_int_equal(none.n_missed, 0);
}

TEST(test_told)
{
    pnr_deadline d = pnr_deadline_of(1e-3, 1, false);
    pnr_events events;
    pnr_event event;

    pnr_events_begin(&events);
    pnr_deadline_tell(&d, &events);
    assert_false(pnr_event_take(&events, &event));
    for (uint64_t i = 0; i < 10; i++)
        (void)pnr_deadline_is_missed(&d, 900000 + 50000 * i);
    pnr_deadline_tell(&d, &events);
    assert_true(pnr_event_take(&events, &event) && event.kind == PNR_EVENT_OVERLOAD);
    assert_true(event.numbers[0] == 7 && event.numbers[1] == 1350);
    assert_string_equal(event.text, "7 results late, the worst after 1350 us where 1000 us are "
                                    "due; 7 of 10 since the start");
    pnr_deadline_tell(&d, &events);
    assert_false(pnr_event_take(&events, &event)); /* once */
    (void)pnr_deadline_is_missed(&d, 1100000);
    pnr_deadline_tell(&d, &events);
    assert_true(pnr_event_take(&events, &event));
    assert_non_null(strstr(event.text, "1 results late, the worst after 1100 us"));
    assert_non_null(strstr(event.text, "8 of 11 since"));
}
