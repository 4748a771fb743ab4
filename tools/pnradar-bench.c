/* SPDX-License-Identifier: MIT */
/* pnradar-bench: measures this machine: stages, methods, the whole stream, CPU against GPU. */
#include "cli.h"
#include "tools/bench/bench.h"
#include "tools/common/gnuplot.h"
#include "tools/common/measure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char summary[] =
    "Measures this machine. chain: the time of each stage of a correlation. methods: every method "
    "at every length, its samples in place, every answer checked. maps: a range-Doppler dwell, and "
    "a search of codes and Doppler hypotheses. stream: the whole way from the ring to a "
    "subscriber, and the copying file source. latency: paced windows, from the last sample in the "
    "ring to the message at a subscriber, stage by stage. soak: the whole way for a long time, "
    "with losses and drift. publish: the cost of a result after the engine. seed: this machine "
    "against the memoir's Tables 16 and 17, in four modes. crossover: the CPU against the GPU. "
    "accuracy: the estimates' errors against the Cramer-Rao bound. all: each of them but maps, "
    "soak and accuracy. serve: one measured correlation for each line on stdin.";
static const char examples[] = "pnradar-bench chain -n 2^13,2^20-1\n"
                               "pnradar-bench methods --check 2^28 --verbose\n"
                               "pnradar-bench stream --seconds 10 -s engine.name=cuda\n"
                               "pnradar-bench latency -n 2^13-1 --every 100us -s engine.wait=spin\n"
                               "pnradar-bench soak -n 2^20 --seconds 300 --pace 0.9\n"
                               "pnradar-bench --csv --plot seed.png seed\n"
                               "pnradar-bench crossover --runs 30 > crossover.txt";

enum { DEFAULT_RUNS = 20, MAX_RUNS = 1000000, MAX_LOG2_CHECK = 40 };

static const struct part {
    const char *name;
    int (*run)(const bench *b, pnr_error *error);
    bool in_all;
    /* if the command line names none */
    const char *sizes;
    double seconds, pace;
} parts[] = {
    {"chain", bench_chain, true, "2^10,2^13,2^16,2^18,2^20,2^22", 0, 0},
    {"methods", bench_methods, true, "2^10-1,2^10,2^13-1,2^13,2^16-1,2^16,2^20-1,2^20,2^22-1,2^22",
     0, 0},
    {"maps", bench_maps, false, "8192,4000", 0, 0},
    {"stream", bench_stream, true, "2^13-1,2^13,2^16,2^20-1,2^20,2^22-1,2^22", 5, 0},
    {"seed", bench_seed, true, "2^19,2^20,2^21,2^22", 0, 0},
    {"crossover", bench_crossover, true, "2^8,2^10,2^12,2^13,2^14,2^16,2^18,2^20,2^22", 0, 0},
    {"latency", bench_latency, true, "2^13-1,2^20-1", 5, 0},
    {"soak", bench_soak, false, "2^20", 300, 0.9},
    {"publish", bench_publish, true, "2^10-1", 1, 0},
    {"accuracy", bench_accuracy, false, "2^10-1", 0, 0},
    {"serve", bench_serve, false, NULL, 0, 0},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

/* Reads "100us", "2ms", "0.5s", "0.5" in seconds. */
static int parse_time(const char *option, const char *text, double *out, pnr_error *error)
{
    static const struct {
        const char *unit;
        double s;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 1}};
    char *end = NULL;
    const double value = text != NULL ? strtod(text, &end) : 0;

    if (text == NULL)
        return PNR_OK;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strspn(text, "0123456789.") != (size_t)(end - text) || end == text ||
            strcmp(end, units[i].unit) != 0 || !(value * units[i].s >= 1e-6 && value <= 1e6))
            continue;
        *out = value * units[i].s;
        return PNR_OK;
    }
    return pnr_error_set(error, PNR_EUSAGE, "--%s %s: a time is needed, as 100us, 2ms or 1s",
                         option, text);
}

/* Reads one number, low < value <= high. */
static int parse_number(const char *option, const char *text, double low, double high, double *out,
                        pnr_error *error)
{
    char *end = NULL;
    const double value = text != NULL ? strtod(text, &end) : *out;

    if (text == NULL)
        return PNR_OK;
    if (strspn(text, "0123456789.") != strlen(text) || end == text || *end != '\0' ||
        !(value > low && value <= high))
        return pnr_error_set(error, PNR_EUSAGE, "--%s %s: a number above %g up to %g is needed",
                             option, text, low, high);
    *out = value;
    return PNR_OK;
}

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
    if (b->sizes == NULL && part->sizes != NULL)
        rc = bench_parse_sizes(part->sizes, &one.sizes, &one.n_sizes, error);
    if (rc == PNR_OK)
        rc = part->run(&one, error);
    if (b->sizes == NULL)
        free(one.sizes);
    return rc;
}

/* Runs "all": each part draws its own picture, with its name before the extension. */
static int run_all(const bench *b, pnr_error *error)
{
    int rc = PNR_OK;

    for (size_t i = 0; i < N_PARTS && rc == PNR_OK && !pnr_stop; i++) {
        bench one = *b;
        char plot[4096];

        if (!parts[i].in_all)
            continue;
        if (b->plot != NULL) {
            const char *dot = strrchr(b->plot, '.');
            const size_t stem =
                dot != NULL && strchr(dot, '/') == NULL ? (size_t)(dot - b->plot) : strlen(b->plot);

            snprintf(plot, sizeof plot, "%.*s-%s%s", (int)stem, b->plot, parts[i].name,
                     b->plot + stem);
            one.plot = plot;
        }
        rc = run_part(&parts[i], &one, error);
    }
    return rc;
}

static int run_named(const pnr_cli *cli, bench *b, pnr_error *error)
{
    const char *name = cli->n_operands > 0 ? cli->operands[0] : "";
    const struct part *part = find_part(name);

    if (part == NULL && strcmp(name, "all") != 0)
        return pnr_error_set(error, PNR_EUSAGE,
                             "%s%s: one of chain, methods, stream, latency, soak, publish, "
                             "seed, crossover, accuracy, all, serve is needed",
                             *name ? "unknown part " : "no part given", name);
    if (b->plot != NULL && pnr_gnuplot_check(error) != PNR_OK)
        return error->code;
    if (part == NULL || part->run != bench_serve)
        bench_print_machine(b);
    return part != NULL ? run_part(part, b, error) : run_all(b, error);
}

/* Replaces -n by --sizes. Words after "--" stay unchanged. */
static void spell_out_sizes(int argc, char **argv)
{
    static char sizes[] = "--sizes";

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-n") == 0)
            argv[i] = sizes;
}

typedef struct arguments {
    const char *sizes, *runs, *seconds, *pace, *every, *points, *check, *verbose, *csv;
} arguments;

/* The caller frees b->sizes, also after an error. */
static int read_arguments(const arguments *a, bench *b, pnr_error *error)
{
    double n_runs = DEFAULT_RUNS;
    size_t n_check = 0;
    int rc;

    b->csv = a->csv != NULL;
    b->verbose = a->verbose != NULL;
    if ((rc = parse_number("runs", a->runs, PNR_MEASURE_MIN_RUNS - 0.5, MAX_RUNS, &n_runs,
                           error)) != PNR_OK ||
        (rc = parse_number("seconds", a->seconds, 0, 86400, &b->seconds, error)) != PNR_OK ||
        (rc = parse_number("pace", a->pace, 0, 100, &b->pace, error)) != PNR_OK ||
        (rc = parse_time("every", a->every, &b->every_s, error)) != PNR_OK ||
        (rc = bench_parse_count("points", a->points, BENCH_MAX_LOG2_SIZE, &b->points, error)) !=
            PNR_OK ||
        (rc = bench_parse_count("check", a->check, MAX_LOG2_CHECK, &n_check, error)) != PNR_OK)
        return rc;
    b->runs = (int)n_runs;
    b->check = n_check;
    return a->sizes != NULL ? bench_parse_sizes(a->sizes, &b->sizes, &b->n_sizes, error) : PNR_OK;
}

int main(int argc, char **argv)
{
    arguments a = {0};
    bool lost = false;
    pnr_config config;
    bench b = {.config = &config, .lost = &lost};
    const pnr_cli_option options[] = {
        {"sizes", "SIZES", "Or -n: samples a period, as 8192,2^16,2^20-1.", &a.sizes},
        {"runs", "N", "Runs counted, at least 10; one more is discarded first.", &a.runs},
        {"seconds", "S", "How long each size runs (5; soak 300, publish 1).", &a.seconds},
        {"pace", "SHARE", "stream, soak: live at this share of the ceiling; a full ring drops.",
         &a.pace},
        {"every", "TIME", "latency: from window to window, as 100us (by the size).", &a.every},
        {"endpoint", "ADDRESS", "latency: where it is published, as tcp://127.0.0.1:5599 (ipc).",
         &b.endpoint},
        {"points", "N", "methods: samples a submit, about, as 2^24.", &a.points},
        {"check", "N", "methods: random samples checked at each size, as 2^28.", &a.check},
        {"verbose", NULL, "methods: registers, memory and occupancy of every kernel.", &a.verbose},
        {"csv", NULL, "Print comma-separated values.", &a.csv},
        {"plot", "FILE.png", "Draw the table through gnuplot.", &b.plot},
        {"dump", "FILE", "serve: write the code (float64) and the samples.", &b.dump},
        {0},
    };
    pnr_cli cli = {
        .program = "pnradar-bench",
        .usage = "[OPTION]... "
                 "chain|methods|stream|latency|soak|publish|seed|crossover|accuracy|all|serve",
        .summary = summary,
        .examples = examples,
        .options = options,
        .max_operands = 1,
    };
    pnr_error error = {0};
    int rc;

    spell_out_sizes(argc, argv);
    rc = pnr_cli_parse(&cli, argc, argv, &config, &error);
    if (rc == PNR_OK)
        rc = read_arguments(&a, &b, &error);
    if (rc == PNR_OK) {
        pnr_cli_catch_signals();
        rc = run_named(&cli, &b, &error);
    }
    free(b.sizes);
    pnr_config_clear(&config);
    if (rc != PNR_OK)
        return pnr_cli_fail(&error);
    return lost && cli.strict ? PNR_EXIT_LOST : 0;
}
