/* SPDX-License-Identifier: MIT */
/* pnradar-bench: measures the stages, the methods and the whole pipeline on this machine, and
 * compares the CPU with the GPU. */
#include "cli.h"
#include "picture/gnuplot.h"
#include "pipeline/worker.h"
#include "tools/bench/bench.h"
#include "tools/bench/planted.h"
#include "tools/common/measure.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char summary[] =
    "Measures this machine. chain: the time of each stage of a correlation. methods: every method "
    "at every length, its samples in place, every answer checked. maps: a range-Doppler dwell, and "
    "a search of codes and Doppler hypotheses. stream: the whole way from the ring to a "
    "subscriber, and the copying file source. scene: 1 to 32 echoes and a leak in eleven kinds of "
    "dwells, real and complex, in white and filtered noise: times, echoes found, errors. latency: "
    "paced windows, from the last sample in the "
    "ring to the message at a subscriber, stage by stage. soak: the whole way for a long time, "
    "with losses and drift. publish: the cost of a result after the engine. seed: this machine "
    "against Tables 16 and 17 of the memoir (Paoletti, 2013), in four modes. crossover: the CPU "
    "against the GPU. "
    "accuracy: the estimates' errors against the Cramer-Rao bound. all: each of them but maps, "
    "scene, soak and accuracy. serve: one measured correlation for each line on stdin.";
static const char examples[] = "pnradar-bench chain -n 2^13,2^20-1\n"
                               "pnradar-bench methods --check 2^28 --verbose\n"
                               "pnradar-bench stream --seconds 10 -s engine.name=cuda\n"
                               "pnradar-bench scene -n 8 --only 'doppler-1024 complex'\n"
                               "pnradar-bench latency -n 2^13-1 --every 100us -s engine.wait=spin\n"
                               "pnradar-bench soak -n 2^20 --seconds 300 --pace 0.9\n"
                               "pnradar-bench --csv --plot seed.png seed\n"
                               "pnradar-bench crossover --runs 30 > crossover.txt";

static const struct part {
    const char *name;
    int (*run)(const bench *b, pnr_error *error);
    bool in_all, draws; /* in_all: `all` includes the part; draws: --plot can draw the part */
    /* the defaults of --sizes, --seconds and --pace for this part */
    const char *sizes;
    double seconds, pace;
} parts[] = {
    {"chain", bench_chain, true, true, "2^10,2^13,2^16,2^18,2^20,2^22", 0, 0},
    {"methods", bench_methods, true, true,
     "2^10-1,2^10,2^13-1,2^13,2^16-1,2^16,2^20-1,2^20,2^22-1,2^22", 0, 0},
    {"maps", bench_maps, false, false, "8192,4000", 0, 0},
    {"stream", bench_stream, true, true, "2^13-1,2^13,2^16,2^20-1,2^20,2^22-1,2^22", 5, 0},
    {"scene", bench_scene, false, false, "1,2,4,8,16,32", 1, 0},
    {"seed", bench_seed, true, true, "2^19,2^20,2^21,2^22", 0, 0},
    {"crossover", bench_crossover, true, true, "2^8,2^10,2^12,2^13,2^14,2^16,2^18,2^20,2^22", 0, 0},
    {"latency", bench_latency, true, true, "2^13-1,2^20-1", 5, 0},
    {"soak", bench_soak, false, true, "2^20", 300, 0.9},
    {"publish", bench_publish, true, true, "2^10-1", 1, 0},
    {"accuracy", bench_accuracy, false, true, "2^10-1", 0, 0},
    {"serve", bench_serve, false, false, NULL, 0, 0},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

static const struct part *find_part(const char *name)
{
    for (size_t i = 0; i < N_PARTS; i++)
        if (strcmp(parts[i].name, name) == 0)
            return &parts[i];
    return NULL;
}

static int run_part(const struct part *part, const bench *b, pnr_error *error)
{
    bench one = *b;
    int rc = PNR_OK;

    if (one.seconds == 0)
        one.seconds = part->seconds;
    if (one.pace == 0)
        one.pace = part->pace;
    if (one.n_sizes == 0 && part->sizes != NULL)
        rc = bench_parse_sizes(part->sizes, &one, error);
    return rc == PNR_OK ? part->run(&one, error) : rc;
}

/* Writes the path of the picture of a part in a run of "all": the name of the part is before the
 * extension. */
static void name_picture(const bench *b, const struct part *part, char out[PATH_MAX])
{
    const char *dot = strrchr(b->plot, '.');
    const size_t stem =
        dot != NULL && strchr(dot, '/') == NULL ? (size_t)(dot - b->plot) : strlen(b->plot);

    snprintf(out, PATH_MAX, "%.*s-%s%s", (int)stem, b->plot, part->name, b->plot + stem);
}

static int run_all(const bench *b, pnr_error *error)
{
    int rc = PNR_OK;

    for (size_t i = 0; i < N_PARTS && rc == PNR_OK && !pnr_stop; i++) {
        bench one = *b;
        char plot[PATH_MAX];

        if (!parts[i].in_all)
            continue;
        if (b->plot != NULL) {
            name_picture(b, &parts[i], plot);
            one.plot = plot;
        }
        rc = run_part(&parts[i], &one, error);
    }
    return rc;
}

/* Checks the path of the picture before anything is measured. part: NULL for "all". */
static int check_pictures(const bench *b, const struct part *part, pnr_error *error)
{
    char plot[PATH_MAX];
    int rc = PNR_OK;

    if (b->plot == NULL)
        return PNR_OK;
    if (part != NULL && !part->draws)
        return pnr_error_set(error, PNR_EUSAGE, "--plot: %s has no picture", part->name);
    if (part != NULL)
        return pnr_gnuplot_check(b->plot, error);
    for (size_t i = 0; i < N_PARTS && rc == PNR_OK; i++) {
        name_picture(b, &parts[i], plot);
        rc = parts[i].in_all ? pnr_gnuplot_check(plot, error) : PNR_OK;
    }
    return rc;
}

static int run_named(const pnr_cli *cli, bench *b, pnr_error *error)
{
    const char *name = cli->n_operands > 0 ? cli->operands[0] : "";
    const struct part *part = find_part(name);

    if (part == NULL && strcmp(name, "all") != 0)
        return pnr_error_set(error, PNR_EUSAGE,
                             "%s%s: one of chain, methods, maps, stream, scene, latency, soak, "
                             "publish, seed, crossover, accuracy, all, serve is needed",
                             *name ? "unknown part " : "no part given", name);
    if (check_pictures(b, part, error) != PNR_OK)
        return error->code;
    if (part != NULL && part->run == bench_serve)
        return run_part(part, b, error);
    bench_print_machine(b);

    const int code = part != NULL ? run_part(part, b, error) : run_all(b, error);

    if (code == PNR_OK)
        bench_print_memory(b);
    return code;
}

int main(int argc, char **argv)
{
    pnr_worker_main(argc, argv);

    const char *sizes = NULL;
    bool lost = false;
    pnr_config config;
    bench b = {.config = &config, .runs = 20, .echoes = 8, .lost = &lost};
    const pnr_cli_option options[] = {
        {"sizes", "SIZES", "Samples a period, as 8192,2^16,2^20-1; scene: echoes.", &sizes,
         .letter = 'n'},
        {"runs", "N", "Runs counted, at least 10; one more is discarded first.", .count = &b.runs,
         .min = PNR_MEASURE_MIN_RUNS, .max = 1e6},
        {"seconds", "S", "How long each size runs (5; soak 300, publish and scene 1).",
         .number = &b.seconds, .unit = "s", .min = 1e-6, .max = 86400},
        {"pace", "SHARE", "stream, soak: live at this share of the ceiling; a full ring drops.",
         .number = &b.pace, .min = 1e-6, .max = 100},
        {"every", "TIME", "latency: from window to window, as 100us (by the size).",
         .seconds = &b.every_s, .min = 1e-6, .max = 1e6},
        {"endpoint", "ADDRESS", "latency: where it is published, as tcp://127.0.0.1:5599 (ipc).",
         .value = &b.endpoint},
        {"points", "N", "methods: samples a submit, about, as 2^24.", .count = &b.points, .min = 1,
         .max = 1 << BENCH_MAX_LOG2_SIZE},
        {"check", "N", "methods: random samples checked at each size, as 2^28.", .count = &b.check,
         .min = 1, .max = 0x1p40},
        {"verbose", NULL, "methods: registers, memory and occupancy of every kernel.",
         .flag = &b.verbose},
        {"echoes", "N", "stream, latency, soak, publish: echoes of each window (8).",
         .count = &b.echoes, .min = 1, .max = PLANTED_MAX},
        {"only", "TEXT", "scene: those with this in their name, as \"gps real\".",
         .value = &b.only},
        {"csv", NULL, "Print comma-separated values.", .flag = &b.csv},
        {"plot", "FILE", "Draw the table (gnuplot) as .png, .svg or .pdf.", .value = &b.plot},
        {"dump", "FILE", "serve: write the code (float64) and the samples.", .value = &b.dump},
        {0},
    };
    pnr_cli cli = {
        .program = "pnradar-bench",
        .usage = "[OPTION]... "
                 "chain|methods|maps|stream|scene|latency|soak|publish|seed|crossover|accuracy|all|"
                 "serve",
        .summary = summary,
        .examples = examples,
        .options = options,
        .max_operands = 1,
    };
    pnr_error error = {0};
    int rc = pnr_cli_parse(&cli, argc, argv, &config, &error);
    if (rc == PNR_OK && sizes != NULL)
        rc = bench_parse_sizes(sizes, &b, &error);
    if (rc == PNR_OK) {
        pnr_cli_catch_signals();
        rc = run_named(&cli, &b, &error);
    }
    pnr_config_clear(&config);
    if (rc != PNR_OK)
        return pnr_cli_fail(&error);
    return lost && cli.strict ? PNR_EXIT_LOST : 0;
}
