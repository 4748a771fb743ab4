/* SPDX-License-Identifier: MIT */
/* The deadline: its default, which results are late, and one line about them. */
#include "pipeline/deadline.h"
#include "tests/fixture/test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Standard error of a call. */
static const char *told(pnr_deadline *d, char text[512])
{
    const int saved = dup(STDERR_FILENO);
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    dup2(pair[1], STDERR_FILENO);
    pnr_deadline_log(d);
    dup2(saved, STDERR_FILENO);

    const ssize_t n = recv(pair[0], text, 511, MSG_DONTWAIT);

    text[n > 0 ? n : 0] = '\0';
    close(pair[0]);
    close(pair[1]);
    close(saved);
    return text;
}

TEST(test_told)
{
    pnr_deadline d = pnr_deadline_of(1e-3, 1, false);
    char text[512];

    setenv("PNR_LOG", "info", 1);
    assert_string_equal(told(&d, text), "");
    for (uint64_t i = 0; i < 10; i++)
        (void)pnr_deadline_is_missed(&d, 900000 + 50000 * i);
    assert_non_null(strstr(told(&d, text), "warning: 7 results late, the worst after 1350 us where "
                                           "1000 us are due; 7 of 10 since the start\n"));
    assert_string_equal(told(&d, text), ""); /* once */
    (void)pnr_deadline_is_missed(&d, 1100000);
    assert_non_null(strstr(told(&d, text), "1 results late, the worst after 1100 us"));
    assert_non_null(strstr(text, "8 of 11 since"));
}

/* Standard error has no reader and its pipe is full: the line waits for the next time. */
TEST(test_not_told_to_a_full_pipe)
{
    pnr_deadline d = pnr_deadline_of(1e-3, 1, false);
    const int saved = dup(STDERR_FILENO);
    int ends[2];
    char byte = 0;

    setenv("PNR_LOG", "info", 1);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], &byte, 1) == 1) /* its size depends on the pipes of other programs */
        ;
    dup2(ends[1], STDERR_FILENO);
    (void)pnr_deadline_is_missed(&d, 2000000);
    pnr_deadline_log(&d);
    dup2(saved, STDERR_FILENO);
    assert_int_equal(d.n_unlogged, 1);
    close(ends[0]);
    close(ends[1]);
    close(saved);
}
