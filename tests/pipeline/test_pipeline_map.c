/* SPDX-License-Identifier: MIT */
/* Maps and profiles as they leave the pipeline: every axis that the header names is where the
 * target is. */
#include "tests/fixture/pipeline_fixture.h"

/* One target of 60 m/s at sample 40.03 after the zero delay: 400.3 Hz at 1 GHz. */
static const char *const moving[] = {"radar.carrier_hz=1e9",    "target.1.velocity_mps=60",
                                     "echo.noise_rms=0.02",     "radar.zero_delay_s=3.3e-6",
                                     "publisher.profile=power", NULL};
static const double light_mps = 299792458;

/* The last message, whole. */
typedef struct heard {
    const char *address;
    const char *prefix; /* "map/" */
    pthread_t thread;
    _Atomic int is_over; /* the run: nothing more comes */
    size_t n;
    bool has_end;
    pnr_report head;
    pnr_map_info map;
    float *cells;
    size_t bytes;
} heard;

static void *hear(void *argument)
{
    heard *h = argument;
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_SUB);
    const int patience_ms = 200;
    zmq_msg_t parts[3];
    pnr_error error;

    zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_connect(socket, h->address);
    for (int n_silent = 0; !h->has_end && n_silent < 300;) { /* at most a minute after the run */
        int n = 0, more = 1;

        for (; more && n < 3; n++) {
            zmq_msg_init(&parts[n]);
            if (zmq_msg_recv(&parts[n], socket, 0) < 0)
                break;
            more = zmq_msg_more(&parts[n]);
        }
        if (n == 0) {
            n_silent += atomic_load(&h->is_over);
            continue;
        }

        const char *topic = zmq_msg_data(&parts[0]);

        h->has_end = strncmp(topic, "end/", 4) == 0;
        if (strncmp(topic, h->prefix, strlen(h->prefix)) == 0 && n == 3) {
            const char *text = zmq_msg_data(&parts[1]);
            const size_t length = zmq_msg_size(&parts[1]);
            int code;

            h->bytes = zmq_msg_size(&parts[2]);
            h->cells = realloc(h->cells, h->bytes);
            memcpy(h->cells, zmq_msg_data(&parts[2]), h->bytes);
            if (strcmp(h->prefix, "map/") == 0) {
                code = pnr_message_read_map(text, length, h->bytes, &h->head, &h->map, &error);
            } else {
                h->map = (pnr_map_info){.n_codes = 1, .n_rows = 1, .n_runs = 1};
                h->map.runs[0].n_rows = 1;
                code =
                    pnr_message_read_profile(text, length, h->bytes, &h->head, &h->map.row, &error);
            }
            if (code == PNR_OK)
                h->n++;
            else
                fprintf(stderr, "%s\n", error.text);
        }
        for (int i = 0; i < n; i++)
            zmq_msg_close(&parts[i]);
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return NULL;
}

static double power_at(const heard *h, size_t cell)
{
    const float *at = h->cells + cell * (h->map.row.is_complex ? 2 : 1);

    return h->map.row.is_complex ? pow((double)at[0], 2) + pow((double)at[1], 2) : (double)at[0];
}

/* The strongest cell of the gate of one code: its Doppler and range. */
static double strongest(const heard *h, size_t code, double *doppler_hz, double *range_m)
{
    const pnr_profile_info *row = &h->map.row;
    double greatest = -1;

    for (size_t r = 0; r < h->map.n_rows; r++)
        for (size_t g = 0; g < row->n_gate; g++) {
            const size_t cell = (row->first_cell + g) % row->n_cells;
            const double power = power_at(h, (code * h->map.n_rows + r) * row->n_cells + cell);

            if (power > greatest) {
                greatest = power;
                *doppler_hz = pnr_map_doppler_hz(&h->map, r);
                *range_m = row->metres_per_second * (row->delay_s + (double)g * row->step_s);
            }
        }
    return greatest;
}

static void publish(stage *s, const char *const *settings, const char *prefix, size_t n_positions,
                    heard *h, outcome *o)
{
    const char *all[32];
    size_t n = 0;

    for (size_t i = 0; moving[i] != NULL; i++)
        all[n++] = moving[i];
    for (size_t i = 0; settings[i] != NULL; i++)
        all[n++] = settings[i];
    all[n] = NULL;
    open_stage(s, n_positions, all);
    save_stage(s, 0);
    set_stage(s, "publisher.wait_s=60");
    strcpy(s->config.publisher.endpoint, s->address);
    *h = (heard){.address = s->address, .prefix = prefix};
    *o = (outcome){0};
    assert_int_equal(pthread_create(&h->thread, NULL, hear, h), 0);
    run_stage(s, o);
    atomic_store(&h->is_over, 1);
    pthread_join(h->thread, NULL);
    if (o->code != PNR_OK)
        fail_msg("%s", o->error.text);
    assert_int_equal(h->n, o->n);
    assert_true(h->n > 0);
}

static void leave(stage *s, heard *h, outcome *o)
{
    free(h->cells);
    forget_outcome(o);
    close_stage(s);
}

/* In the middle of the last dwell. */
static double true_range_m(const outcome *o, size_t n_dwell)
{
    const double t = ((double)o->reports[o->n - 1].sample + (double)n_dwell / 2) * 1e-6;

    return 6000 - 60 * t;
}

static void check(const char *const *settings, size_t n_dwell, size_t n_rows, size_t n_runs,
                  double most_hz)
{
    double doppler_hz = NAN, range_m = NAN;
    stage s;
    heard h;
    outcome o;

    publish(&s, settings, "map/", 3 * n_dwell + 200, &h, &o);
    assert_int_equal(h.map.n_codes, 1);
    if (h.map.n_rows != n_rows || h.map.n_runs != n_runs)
        fail_msg("%s: %zu rows in %zu runs", settings[0], h.map.n_rows, h.map.n_runs);
    assert_true(h.map.row.dwell_samples == n_dwell);
    assert_true(h.head.sample == o.reports[o.n - 1].sample);
    assert_true(fabs(h.map.mps_per_hz - light_mps / 2e9) < 1e-9);

    const double power = strongest(&h, 0, &doppler_hz, &range_m);

    if (fabs(doppler_hz - 120e9 / light_mps) > most_hz ||
        fabs(range_m - true_range_m(&o, n_dwell)) > 0.6 * 149.9)
        fail_msg("%s: %.1f Hz, %.1f m", settings[0], doppler_hz, range_m);
    assert_true(power > 100 * h.map.row.floor);
    assert_true(isnan(h.map.row.threshold) || power > h.map.row.threshold);
    leave(&s, &h, &o);
}

TEST(test_axes)
{
    /* Rows of 1 / (16 Tr) = 492 Hz; the target's is the second one above 0, or nearly. */
    static const char *const doppler[] = {"dwell.periods=16", "dwell.combine=doppler", NULL};
    static const char *const looks[] = {"dwell.periods=16", "dwell.combine=doppler",
                                        "dwell.looks=2", "publisher.profile=complex", NULL};
    static const char *const linear[] = {"dwell.periods=16",          "dwell.combine=doppler",
                                         "window.correlation=linear", "radar.min_range_m=3000",
                                         "radar.max_range_m=9000",    NULL};
    static const char *const gate[] = {"dwell.periods=16",        "dwell.combine=doppler",
                                       "radar.min_range_m=-3000", "radar.max_range_m=9000",
                                       "detector.oversample=2",   NULL};
    /* Rotations by quarters of 1/Tr = 7874 Hz. */
    static const char *const single[] = {"dwell.periods=1", "doppler.min_hz=-8000",
                                         "doppler.max_hz=8000", "doppler.step=quarter", NULL};

    check(doppler, (size_t)N * 16, 16, 1, 250);
    check(looks, (size_t)N * 32, 16, 1, 250);
    check(linear, (size_t)N * 16, 16, 1, 250);
    check(gate, (size_t)N * 16, 16, 1, 250);
    check(single, (size_t)N, 11, 1, 1000);
}

/* Two codes in one stream: the target is in the plane of the one that is sent. */
TEST(test_codes)
{
    static const char *const settings[] = {"code.1.taps=7,3", "code.2.taps=7,1", "dwell.periods=4",
                                           "dwell.combine=coherent", NULL};
    double doppler_hz, range_m, power[2];
    stage s;
    heard h;
    outcome o;

    publish(&s, settings, "map/", 4 * 3 * N, &h, &o);
    assert_true(h.map.n_codes == 2 && h.map.n_rows == 1);
    assert_true(pnr_map_doppler_hz(&h.map, 0) == 0);
    for (size_t c = 0; c < 2; c++)
        power[c] = strongest(&h, c, &doppler_hz, &range_m);
    assert_true(power[0] > 10 * power[1] || power[1] > 10 * power[0]);
    leave(&s, &h, &o);
}

/* The zero delay drifts by 3 samples: the gate and its delays go with it, in profiles and maps. */
TEST(test_moving_zero)
{
    static const char *const kinds[][2] = {{"dwell.combine=none", NULL},
                                           {"dwell.periods=8", "dwell.combine=doppler"}};
    static const char *const settings[] = {
        "radar.carrier_hz=0",      "target.1.velocity_mps=0", "radar.zero=direct-path",
        "radar.min_range_m=3000",  "radar.max_range_m=9000",  "radar.zero_search_m=1500",
        "echo.leak_amplitude=0.1", "echo.clock_ppm=39.37",    NULL};
    double doppler_hz = NAN, range_m = NAN;
    stage s;
    heard h;
    outcome o;

    for (size_t k = 0; k < 2; k++) {
        const char *all[16] = {kinds[k][0], kinds[k][1]};

        memcpy(all + (kinds[k][1] != NULL ? 2 : 1), settings, sizeof settings);
        publish(&s, all, k == 0 ? "profile/" : "map/", (size_t)N * 600, &h, &o);
        if (!(fabs(o.reports[o.n - 1].zero.moved_s - 3e-6) < 0.1e-6))
            fail_msg("%s: moved by %g s, %zu echoes", all[0], o.reports[o.n - 1].zero.moved_s,
                     o.reports[o.n - 1].detection.n_echoes);
        (void)strongest(&h, 0, &doppler_hz, &range_m);
        if (fabs(range_m - 6000) > 0.51 * 149.9)
            fail_msg("the target is at %.1f m on the picture", range_m);
        /* The gate's edges are those of the wanted ranges, within a cell. */
        assert_true(fabs(h.map.row.delay_s * h.map.row.metres_per_second - 3000) < 150);
        assert_int_equal(h.map.row.n_gate, 40);
        leave(&s, &h, &o);
    }
}
