/* SPDX-License-Identifier: MIT */
/* Endpoints: who may reach them, what is refused and in which words. */
#include "publisher/endpoint.h"
#include "tests/fixture/test.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

TEST(test_reach)
{
    static const struct {
        const char *endpoint, *bind; /* NULL: as it is */
        pnr_reach reach;
    } cases[] = {
        {"tcp://127.0.0.1:5555", NULL, PNR_REACH_LOOPBACK},
        {"tcp://127.255.0.9:*", NULL, PNR_REACH_LOOPBACK},
        {"tcp://[::1]:5555", NULL, PNR_REACH_LOOPBACK},
        {"tcp://[0:0:0:0:0:0:0:1]:5555", NULL, PNR_REACH_LOOPBACK},
        {"tcp://localhost:5555", "tcp://127.0.0.1:5555", PNR_REACH_LOOPBACK},
        {"tcp://lo:5797", "tcp://127.0.0.1:5797", PNR_REACH_LOOPBACK},
        {"ipc:///run/pnradar", NULL, PNR_REACH_LOOPBACK},
        {"inproc://results", NULL, PNR_REACH_LOOPBACK},
        {"tcp://*:5555", NULL, PNR_REACH_WIDER},
        {"tcp://0.0.0.0:5555", NULL, PNR_REACH_WIDER},
        {"tcp://128.0.0.1:5555", NULL, PNR_REACH_WIDER},
        {"tcp://12.7.0.0:127", NULL, PNR_REACH_WIDER},
        {"tcp://192.168.1.2:5555", NULL, PNR_REACH_WIDER},
        {"tcp://[::]:5555", NULL, PNR_REACH_WIDER},
        {"tcp://[::ffff:10.0.0.1]:5555", NULL, PNR_REACH_WIDER},
        {"tcp://eth0:5555", NULL, PNR_REACH_WIDER},
        {"tcp://localhost.example.org:5555", NULL, PNR_REACH_WIDER},
        {"tcp://127.0.0.1.example.org:5555", NULL, PNR_REACH_WIDER},
        {"tcp://127.0.0.1:80:5555", NULL, PNR_REACH_WIDER},
    };
    char bind[PNR_ENDPOINT_LEN];
    pnr_reach reach;
    pnr_error error;
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(pnr_endpoint_read("key = ", cases[i].endpoint, bind, &reach, &error),
                         PNR_OK);
        if (reach != cases[i].reach)
            fail_msg("%s: reach %d", cases[i].endpoint, reach);
        assert_string_equal(bind, cases[i].bind != NULL ? cases[i].bind : cases[i].endpoint);
    }
}

TEST(test_refused)
{
    static const char *const cases[] = {"tcp://127.0.0.1",
                                        "tcp://:5555",
                                        "tcp://127.0.0.1:",
                                        "tcp://127.0.0.1:65536",
                                        "tcp://127.0.0.1:-1",
                                        "tcp://127.0.0.1:80x",
                                        "tcp://127.0.0.1:1000000000000",
                                        "tcp://[::1:5555",
                                        "tcp://::1:5798",
                                        "tcp://",
                                        "ipc://",
                                        "inproc://",
                                        "udp://127.0.0.1:5555",
                                        "127.0.0.1:5555",
                                        "pgm://eth0;239.0.0.1:5555"};
    char bind[PNR_ENDPOINT_LEN], longest[2 * PNR_ENDPOINT_LEN];
    pnr_reach reach;
    pnr_error error;
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (pnr_endpoint_read("key = ", cases[i], bind, &reach, &error) != PNR_ECONFIG)
            fail_msg("%s was let in", cases[i]);
        assert_non_null(strstr(error.text, cases[i]));
    }
    memset(longest, 'a', sizeof longest - 1);
    memcpy(longest, "ipc://", 6);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(pnr_endpoint_read("key = ", longest, bind, &reach, &error), PNR_ECONFIG);
}

/* What a subscriber connects to. NULL: refused, with this word. */
TEST(test_find)
{
    static const struct {
        const char *endpoint, *address, *word;
    } cases[] = {
        {"tcp://127.0.0.1:5555", "tcp://127.0.0.1:5555", NULL},
        {"tcp://localhost:5555", "tcp://127.0.0.1:5555", NULL},
        {"tcp://*:5555", "tcp://127.0.0.1:5555", NULL},
        {"tcp://0.0.0.0:5555", "tcp://127.0.0.1:5555", NULL},
        {"tcp://[::]:5555", "tcp://[::1]:5555", NULL},
        {"tcp://[::1]:5555", "tcp://[::1]:5555", NULL},
        {"ipc:///run/pnradar", "ipc:///run/pnradar", NULL},
        {"tcp://127.0.0.1:*", NULL, "give the port"},
        {"tcp://127.0.0.1:0", NULL, "give the port"},
        {"tcp://127.0.0.1:70000", NULL, "PORT 0..65535"},
        {"tcp://nowhere.invalid:5555", NULL, "no address of host nowhere.invalid"},
        {"localhost:5555", NULL, "want tcp://ADDRESS:PORT"},
    };
    char address[PNR_ENDPOINT_LEN];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_error error = {0};
        const int code = pnr_endpoint_find("ENDPOINT ", cases[i].endpoint, address, &error);

        assert_int_equal(code == PNR_OK, cases[i].address != NULL);
        if (code == PNR_OK) {
            assert_string_equal(address, cases[i].address);
        } else {
            assert_ptr_equal(strstr(error.text, "ENDPOINT "), error.text);
            assert_non_null(strstr(error.text, cases[i].endpoint));
            assert_non_null(strstr(error.text, cases[i].word));
        }
    }
}

static void bind_to(const char *endpoint, bool expose, int want, const char *word)
{
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_XPUB);
    char bound[PNR_ENDPOINT_LEN];
    pnr_config config = {.publisher.expose = expose};
    pnr_error error = {0};
    int code;

    snprintf(config.publisher.endpoint, sizeof config.publisher.endpoint, "%s", endpoint);
    code = pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error);
    if (code != want)
        fail_msg("%s: %d instead of %d: %s", endpoint, code, want, error.text);
    if (strstr(want == PNR_OK ? bound : error.text, word) == NULL)
        fail_msg("%s is not in: %s", word, want == PNR_OK ? bound : error.text);
    zmq_close(socket);
    zmq_ctx_term(context);
}

TEST(test_bind)
{
    bind_to("tcp://127.0.0.1:*", false, PNR_OK, "tcp://127.0.0.1:");
    bind_to("tcp://localhost:*", false, PNR_OK, "tcp://127.0.0.1:");
    bind_to("tcp://*:*", false, PNR_ECONFIG, "publisher.expose");
    bind_to("tcp://*:*", true, PNR_OK, "tcp://");
    bind_to("tcp://203.0.113.7:5555", true, PNR_EUNAVAILABLE, "tcp://203.0.113.7:5555");
}

/* Other users cannot connect to an ipc socket, whatever the umask; the umask stays. */
TEST(test_ipc_is_private)
{
    static const mode_t masks[] = {0, 022, 077};
    char folder[] = "/tmp/pnradar-endpoint-XXXXXX", path[64];

    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < COUNT(masks); i++) {
        void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_XPUB);
        const mode_t saved = umask(masks[i]);
        char bound[PNR_ENDPOINT_LEN];
        pnr_config config = {0};
        struct stat status;
        pnr_error error;

        snprintf(path, sizeof path, "%s/s%zu", folder, i);
        snprintf(config.publisher.endpoint, sizeof config.publisher.endpoint, "ipc://%s", path);
        assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error),
                         PNR_OK);
        assert_int_equal(umask(saved), masks[i]);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0600);
        zmq_close(socket);
        zmq_ctx_term(context);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* A status says who may subscribe to results or vectors, the widest of both. */
TEST(test_access_is_that_of_both_addresses)
{
    static const struct {
        const char *results, *vectors, *clients, *access;
    } cases[] = {
        {"", "", "", "nobody"},
        {"ipc:///tmp/a", "", "", "local"},
        {"", "tcp://127.0.0.1:5557", "", "local"},
        {"tcp://127.0.0.1:5510", "tcp://*:5557", "", "everyone"},
        {"tcp://*:5510", "", "keys.d", "keys"},
        {"tcp://*:5510", "tcp://127.0.0.1:5557", "keys.d", "keys"},
        {"tcp://*:5510", "tcp://*:5557", "keys.d", "everyone"},
        {"tcp://*:5510", "ipc:///tmp/a", "", "everyone"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        pnr_config config = {0};

        strcpy(config.publisher.endpoint, cases[i].results);
        strcpy(config.publisher.gnuradio, cases[i].vectors);
        strcpy(config.publisher.curve_clients, cases[i].clients);
        assert_string_equal(pnr_endpoint_access(&config), cases[i].access);
    }
}

/* A file at an ipc path is neither removed nor taken over. */
TEST(test_ipc_in_the_way)
{
    char folder[] = "/tmp/pnradar-endpoint-XXXXXX", path[64], endpoint[80];
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_XPUB);
    char bound[PNR_ENDPOINT_LEN];
    pnr_config config = {0};
    pnr_error error;
    FILE *file;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    snprintf(endpoint, sizeof endpoint, "ipc://%s", path);

    file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    bind_to(endpoint, false, PNR_ECONFIG, "no socket");
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);

    strcpy(config.publisher.endpoint, endpoint);
    assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error), PNR_OK);
    bind_to(endpoint, false, PNR_EUNAVAILABLE, "in use");
    zmq_close(socket);
    zmq_ctx_term(context);
    bind_to(endpoint, false, PNR_OK, endpoint);
    unlink(path);
    rmdir(folder);
}

TEST(test_key_files)
{
    char path[] = "/tmp/pnradar-key-XXXXXX", bound[PNR_ENDPOINT_LEN], public[41], secret[41];
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_XPUB);
    pnr_config config = {.publisher.endpoint = "tcp://127.0.0.1:*"};
    const int handle = mkstemp(path);
    pnr_error error;

    assert_true(handle >= 0);
    snprintf(config.publisher.curve_secret_path, sizeof config.publisher.curve_secret_path, "%s",
             path);
    if (!zmq_has("curve"))
        skip();
    assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error),
                     PNR_EDATA); /* empty */
    assert_int_equal(pwrite(handle, "0123456789012345678901234567890123456789\n", 41, 0), 41);
    assert_int_equal(zmq_curve_keypair(public, secret), 0);
    secret[5] = '~'; /* not Z85 */
    assert_int_equal(pwrite(handle, secret, 40, 0), 40);
    assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error),
                     PNR_EDATA);
    assert_null(strstr(error.text, secret));
    assert_int_equal(zmq_curve_keypair(public, secret), 0);
    assert_int_equal(pwrite(handle, secret, 40, 0), 40);
    assert_int_equal(pwrite(handle, "trailing", 8, 40), 8);
    assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error),
                     PNR_EDATA);
    assert_int_equal(ftruncate(handle, 40), 0);
    assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error), PNR_OK);
    close(handle);
    unlink(path);
    assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error),
                     PNR_ENOINPUT);
    zmq_close(socket);
    zmq_ctx_term(context);
}

/* A key that others may read or write is refused, whatever is in it; so is what is no file. */
TEST(test_key_of_others)
{
    static const mode_t modes[] = {0640, 0604, 0660, 0666, 0620};
    char path[] = "/tmp/pnradar-key-XXXXXX", bound[PNR_ENDPOINT_LEN], public[41], secret[41];
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_XPUB);
    pnr_config config = {.publisher.endpoint = "tcp://127.0.0.1:*"};
    const int handle = mkstemp(path);
    pnr_error error;

    assert_true(handle >= 0);
    if (!zmq_has("curve"))
        skip();
    strcpy(config.publisher.curve_secret_path, path);
    assert_int_equal(zmq_curve_keypair(public, secret), 0);
    assert_int_equal(write(handle, secret, 40), 40);
    for (size_t i = 0; i < COUNT(modes); i++) {
        char mode[8];

        snprintf(mode, sizeof mode, "%04o", (unsigned)modes[i]);
        assert_int_equal(fchmod(handle, modes[i]), 0);
        assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error),
                         PNR_EPERMISSION);
        assert_non_null(strstr(error.text, mode));
        assert_non_null(strstr(error.text, "chmod 600"));
        assert_non_null(strstr(error.text, path));
        assert_null(strstr(error.text, secret));
    }
    close(handle);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pnr_endpoint_bind(socket, &config, PNR_BIND_RESULTS, bound, &error),
                     PNR_ENOINPUT);
    unlink(path);
    zmq_close(socket);
    zmq_ctx_term(context);
}

/* A child may open few files; only its soft limit can be raised. */
TEST(test_few_files)
{
    struct rlimit low = {32, 48};
    const pid_t child = fork();
    pnr_error error;
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        if (setrlimit(RLIMIT_NOFILE, &low) != 0)
            _exit(1);
        if (pnr_endpoint_enough_files(36, &error) != PNR_OK) /* the limit is raised */
            _exit(2);
        if (pnr_endpoint_enough_files(36, &error) != PNR_OK) /* none was kept */
            _exit(3);
        if (pnr_endpoint_enough_files(48, &error) != PNR_EUNAVAILABLE ||
            strstr(error.text, "48 free file descriptors") == NULL ||
            strstr(error.text, "ulimit -n") == NULL)
            _exit(4);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
