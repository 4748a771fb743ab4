/* SPDX-License-Identifier: MIT */
/* The service manager hears from the program while all its threads take turns, and not while one
 * hangs. */
#include "pipeline/watchdog.h"
#include "tests/fixture/pipeline_fixture.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The service manager: a socket with a name. */
static int manager;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static int set_up(void **state)
{
    (void)state;
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/pnradar-notify-%d", (int)getpid());
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "40000", 1);
    unsetenv("WATCHDOG_PID");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(manager);
    unlink(address.sun_path);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    return 0;
}

/* Returns the next message; "": there is none. */
static const char *heard(void)
{
    static char text[64];
    const ssize_t n = recv(manager, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

TEST_BETWEEN(environment, set_up, tear_down)
{
    char number[16];
    pnr_notify notify;

    pnr_notify_open(&notify);
    assert_true(notify.socket >= 0);
    assert_int_equal(notify.watchdog_ns, 40000000);
    pnr_notify_send(&notify, "READY=1");
    assert_string_equal(heard(), "READY=1");
    pnr_notify_close(&notify);
    pnr_notify_send(&notify, "READY=1");
    assert_string_equal(heard(), "");
    setenv("WATCHDOG_PID", "1", 1); /* of another process */
    pnr_notify_open(&notify);
    assert_int_equal(notify.watchdog_ns, 0);
    pnr_notify_close(&notify);
    snprintf(number, sizeof number, "%d", (int)getpid());
    setenv("WATCHDOG_PID", number, 1);
    pnr_notify_open(&notify);
    assert_int_equal(notify.watchdog_ns, 40000000);
    pnr_notify_close(&notify);
    setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
    pnr_notify_open(&notify);
    assert_int_equal(notify.socket, -1);
    unsetenv("NOTIFY_SOCKET");
    pnr_notify_open(&notify);
    assert_int_equal(notify.socket, -1);
    pnr_notify_send(NULL, "READY=1");
}

TEST_BETWEEN(a_hanging_thread, set_up, tear_down)
{
    pnr_turns threads[2] = {{0}};
    pnr_watchdog watchdog = {.threads = {&threads[0], &threads[1]}};
    pnr_notify notify;
    const uint64_t step = 10000000; /* a quarter of the 40 ms */
    uint64_t now = step;

    pnr_watchdog_feed(&watchdog, now); /* no service manager */
    pnr_notify_open(&notify);
    watchdog.notify = &notify;
    pnr_watchdog_feed(&watchdog, now);
    assert_string_equal(heard(), ""); /* no thread has begun */
    for (int i = 0; i < 3; i++, now += step) {
        pnr_turns_count(&threads[0]);
        pnr_turns_count(&threads[1]);
        pnr_watchdog_feed(&watchdog, now);
        assert_string_equal(heard(), "WATCHDOG=1");
        pnr_turns_count(&threads[0]);
        pnr_turns_count(&threads[1]);
        pnr_watchdog_feed(&watchdog, now + step - 1);
        assert_string_equal(heard(), ""); /* too soon */
        pnr_watchdog_feed(&watchdog, now + step);
        assert_string_equal(heard(), "WATCHDOG=1");
        now += step;
    }
    for (int hanging = 0; hanging < 2; hanging++) {
        for (int i = 0; i < 5; i++, now += step) {
            pnr_turns_count(&threads[1 - hanging]);
            pnr_watchdog_feed(&watchdog, now);
            assert_string_equal(heard(), "");
        }
        pnr_turns_count(&threads[hanging]); /* it goes on */
        pnr_watchdog_feed(&watchdog, now);
        assert_string_equal(heard(), "WATCHDOG=1");
    }
    atomic_store(&threads[0].is_over, true);
    pnr_turns_count(&threads[1]);
    pnr_watchdog_feed(&watchdog, now += step);
    assert_string_equal(heard(), "WATCHDOG=1");
    pnr_notify_close(&notify);
}

/* A source whose writer is silent is no hang. */
static volatile int stop;
static int n_heard;

static void *listen_to_run(void *argument)
{
    char text[64];
    int *is_ready = argument;

    while (n_heard < 5) {
        const ssize_t n = recv(manager, text, sizeof text - 1, 0);

        text[n > 0 ? n : 0] = '\0';
        *is_ready |= n_heard == 0 && strcmp(text, "READY=1") == 0;
        n_heard += strcmp(text, "WATCHDOG=1") == 0;
        if (n <= 0)
            usleep(1000);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    return NULL;
}

TEST_BETWEEN(a_silent_source, set_up, tear_down)
{
    static const char *const settings[] = {"publisher.endpoint=", NULL};
    pnr_pipeline_options options = {.stop = &stop};
    pnr_account account;
    pthread_t listener;
    pnr_notify notify;
    pnr_error error;
    char fifo[320];
    int is_ready = 0, writer;
    stage s;

    open_stage(&s, 1000, settings);
    snprintf(fifo, sizeof fifo, "%s/fifo", s.folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    writer = open(fifo, O_RDWR);
    snprintf(s.config.source.input, sizeof s.config.source.input, "%s", fifo);
    pnr_notify_open(&notify);
    options.service = &notify;
    assert_int_equal(pthread_create(&listener, NULL, listen_to_run, &is_ready), 0);
    if (pnr_pipeline_run(&s.config, &options, &account, &error) != PNR_OK)
        fail_msg("%s", error.text);
    pthread_join(listener, NULL);
    assert_true(is_ready && n_heard == 5);
    while (strcmp(heard(), "WATCHDOG=1") == 0)
        ;
    pnr_notify_close(&notify);
    close(writer);
    unlink(fifo);
    close_stage(&s);
}
