/* SPDX-License-Identifier: MIT */
/* pnradar-bench: measures this machine: stages, the whole stream, the memoir's table, CPU against
 * GPU. */
#include "cli.h"
#include "tools/bench/bench.h"
#include "tools/common/gnuplot.h"
#include "tools/common/measure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char summary[] =
    "Measures this machine. chain: what each stage of a correlation takes. methods: every method "
    "at "
    "every length, its samples in place, every answer checked. maps: a range-Doppler dwell, and a "
    "search of codes and Doppler hypotheses. stream: the whole way from the ring "
    "to a subscriber, and the copying file source beside it. latency: paced windows, from the last "
    "sample in the ring to the message at a subscriber, and where the time goes. soak: the whole "
    "way for a long time, what is lost and what drifts. publish: what a result costs behind the "
    "engine. seed: the memoir's Tables 16 and 17 beside this machine in four manners. crossover: "
    "the CPU against the GPU. accuracy: the estimates' errors beside the Cramer-Rao bound. all: "
    "each of them but maps, soak and accuracy. serve: one measured correlation for each "
    "line on stdin.";
static const char examples[] = "pnradar-bench chain -n 2^13,2^20-1\n"
                               "pnradar-bench methods --check 2^28 --verbose\n"
                               "pnradar-bench stream --seconds 10 -s engine.name=cuda\n"
                               "pnradar-bench latency -n 2^13-1 --every 100us -s engine.wait=spin\n"
                               "pnradar-bench soak -n 2^20 --seconds 300 --pace 0.9\n"
                               "pnradar-bench --csv --plot seed.png seed\n"
                               "pnradar-bench crossover --runs 30 > crossover.txt";

enum { DEFAULT_RUNS = 20, MAX_RUNS = 1000000, MAX_LOG2_SIZE = 24, MAX_LOG2_CHECK = 40 };

static const struct part {
    const char *name;
    int (*run)(const bench *b, pnr_error *error);
    bool in_all;
} parts[] = {
    {"chain", bench_chain, true},     {"methods", bench_methods, true},
    {"maps", bench_maps, false},      {"stream", bench_stream, true},
    {"seed", bench_seed, true},       {"crossover", bench_crossover, true},
    {"latency", bench_latency, true}, {"soak", bench_soak, false},
    {"publish", bench_publish, true}, {"accuracy", bench_accuracy, false},
    {"serve", bench_serve, false},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

/* "8192", "2^16", "2^20-1", "2^20+1", up to 2^most. *end is behind it. 0: not a size. */
static size_t parse_size(const char *text, unsigned most, char **end)
{
    unsigned long long size, more;

    *end = (char *)(uintptr_t)text;
    if (*text < '0' || *text > '9')
        return 0;
    size = strtoull(text, end, 10);
    if (**end == '^' && size == 2 && (*end)[1] >= '0' && (*end)[1] <= '9') {
        const unsigned long long power = strtoull(*end + 1, end, 10);

        size = power <= most ? 1ULL << power : 0;
        if ((**end == '-' || **end == '+') && (*end)[1] >= '0' && (*end)[1] <= '9') {
            const bool less = **end == '-';

            more = strtoull(*end + 1, end, 10);
            if (more > size)
                return 0;
            size = less ? size - more : size + more;
        }
    }
    return size <= 1ULL << most ? (size_t)size : 0;
}

/* One size with nothing behind it. */
static int parse_count(const char *option, const char *text, unsigned most, size_t *out,
                       pnr_error *error)
{
    char *end;

    if (text == NULL)
        return PNR_OK;
    *out = parse_size(text, most, &end);
    if (*out == 0 || *end != '\0')
        return pnr_error_set(error, PNR_EUSAGE, "--%s %s: a number 1 .. 2^%u is needed", option,
                             text, most);
    return PNR_OK;
}

int bench_parse_sizes(const char *text, size_t **sizes, size_t *n_sizes, pnr_error *error)
{
    /* Every size takes two characters, its comma included. */
    size_t *list = calloc(strlen(text) / 2 + 1, sizeof *list);
    size_t n = 0;

    *sizes = NULL;
    *n_sizes = 0;
    if (list == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for sizes");
    for (const char *at = text;; at++) {
        char *end;

        list[n] = parse_size(at, MAX_LOG2_SIZE, &end);
        if (list[n] == 0 || (*end != ',' && *end != '\0')) {
            free(list);
            return pnr_error_set(error, PNR_EUSAGE,
                                 "-n %s: sizes 1 .. 2^24 are needed, as 8192,2^16,2^20-1", text);
        }
        n++;
        at = end;
        if (*at == '\0')
            break;
    }
    *sizes = list;
    *n_sizes = n;
    return PNR_OK;
}

int bench_prepare(const bench *b, size_t n_samples, size_t batch, pnr_setup **setup,
                  const pnr_engine_ops **ops, pnr_engine_choice *choice, pnr_error *error)
{
    pnr_config sized;
    int rc;

    pnr_measure_configure(b->config, n_samples, &sized);
    if (batch > 0)
        sized.engine.batch = batch;
    *setup = NULL;
    rc = pnr_config_check(&sized, error);
    if (rc == PNR_OK)
        rc = pnr_setup_create(&sized, sized.source.format, 1, setup, error);
    if (rc == PNR_OK)
        (*setup)->plan.method = b->config->engine.method; /* sized ends here */
    if (rc == PNR_OK)
        rc = pnr_engine_choose(sized.engine.name, &(*setup)->plan, ops, error);
    if (rc == PNR_OK)
        rc = (*ops)->describe(&(*setup)->plan, choice, error);
    if (rc != PNR_OK) {
        pnr_setup_destroy(*setup);
        *setup = NULL;
    }
    return rc;
}

void bench_print_machine(const bench *b)
{
    const char *comment = b->csv ? "# " : "";
    char text[256];

    printf("%spnradar %s\n", comment, PNR_VERSION);
    printf("%smachine: %s\n", comment, pnr_measure_machine(text, sizeof text));
    for (const char *const *name = pnr_engine_names(); *name != NULL; name++) {
        const size_t device = b->config->engine.device;
        const pnr_engine_ops *ops = NULL;
        const pnr_engine_bench *engine;
        pnr_error reason = {0};
        int rc = pnr_engine_find(*name, device, &ops, &reason);

        if (rc == PNR_OK && (rc = ops->probe(device, text, sizeof text)) != PNR_OK)
            snprintf(reason.text, sizeof reason.text, "%s", text);
        printf("%sengine %s: %s%s\n", comment, *name,
               rc == PNR_OK ? "" : "no: ", rc == PNR_OK ? text : reason.text);
        if (rc == PNR_OK && (engine = pnr_engine_get_bench(*name)) != NULL &&
            engine->resident != NULL &&
            engine->resident->describe(device, text, sizeof text) == PNR_OK)
            printf("%sengine %s: %s\n", comment, *name, text);
    }
    fflush(stdout);
}

/* "100us", "2ms", "0.5s", "0.5": seconds. */
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

/* A number with nothing behind it, low < value <= high. */
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

/* "all": each part draws its own picture, its name before the extension. */
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
        rc = parts[i].run(&one, error);
    }
    return rc;
}

static int run(const pnr_cli *cli, bench *b, pnr_error *error)
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
    if (part != NULL && part->run == bench_serve)
        return bench_serve(b, error);
    bench_print_machine(b);
    return part != NULL ? part->run(b, error) : run_all(b, error);
}

/* -n is --sizes. Words behind "--" are left alone; argv's own strings are not written. */
static void spell_out(int argc, char **argv)
{
    static char sizes[] = "--sizes";

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-n") == 0)
            argv[i] = sizes;
}

int main(int argc, char **argv)
{
    const char *sizes = NULL, *runs = NULL, *seconds = NULL, *pace = NULL, *csv = NULL;
    const char *points = NULL, *check = NULL, *verbose = NULL, *every = NULL;
    size_t n_check = 0;
    bool lost = false;
    bench b = {.lost = &lost};
    double n_runs = DEFAULT_RUNS;
    const pnr_cli_option options[] = {
        {"sizes", "SIZES", "Or -n: samples a period, as 8192,2^16,2^20-1.", &sizes},
        {"runs", "N", "Runs counted, at least 10; one more is discarded first.", &runs},
        {"seconds", "S", "How long each size runs (5; soak 300, publish 1).", &seconds},
        {"pace", "SHARE", "stream, soak: live at this share of the ceiling; a full ring drops.",
         &pace},
        {"every", "TIME", "latency: from window to window, as 100us (by the size).", &every},
        {"endpoint", "ADDRESS", "latency: where it is published, as tcp://127.0.0.1:5599 (ipc).",
         &b.endpoint},
        {"points", "N", "methods: samples a submit, about, as 2^24.", &points},
        {"check", "N", "methods: random samples checked at each size, as 2^28.", &check},
        {"verbose", NULL, "methods: registers, memory and occupancy of every kernel.", &verbose},
        {"csv", NULL, "Print comma-separated values.", &csv},
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
    pnr_config config;
    pnr_error error = {0};
    int rc;

    spell_out(argc, argv);
    rc = pnr_cli_parse(&cli, argc, argv, &config, &error);

    b.config = &config;
    b.csv = csv != NULL;
    b.verbose = verbose != NULL;
    if (rc == PNR_OK)
        rc = parse_number("runs", runs, PNR_MEASURE_MIN_RUNS - 0.5, MAX_RUNS, &n_runs, &error);
    if (rc == PNR_OK)
        rc = parse_number("seconds", seconds, 0, 86400, &b.seconds, &error);
    if (rc == PNR_OK)
        rc = parse_number("pace", pace, 0, 100, &b.pace, &error);
    if (rc == PNR_OK)
        rc = parse_time("every", every, &b.every_s, &error);
    if (rc == PNR_OK)
        rc = parse_count("points", points, MAX_LOG2_SIZE, &b.points, &error);
    if (rc == PNR_OK)
        rc = parse_count("check", check, MAX_LOG2_CHECK, &n_check, &error);
    if (rc == PNR_OK && sizes != NULL)
        rc = bench_parse_sizes(sizes, &b.sizes, &b.n_sizes, &error);
    b.runs = (int)n_runs;
    b.check = n_check;
    if (rc == PNR_OK) {
        pnr_cli_catch_signals();
        rc = run(&cli, &b, &error);
    }
    free(b.sizes);
    pnr_config_clear(&config);
    if (rc == PNR_EEND)
        return 0;
    if (rc == PNR_OK)
        return lost && cli.strict ? PNR_EXIT_LOST : 0;
    return pnr_cli_fail(&error);
}
