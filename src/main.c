/* SPDX-License-Identifier: MIT */
/* The program pnradar: reads an echo stream and publishes ranges. */
#include "base/file.h"
#include "base/log.h"
#include "cli.h"
#include "correlator/engines.h"
#include "picture/picture.h"
#include "pipeline/pipeline.h"
#include "pipeline/worker.h"
#include "publisher/cell_file.h"
#include "publisher/report.h"
#include "setup/setup.h"
#include "source/source.h"
#include "tasks.h"
#include "terminal/output.h"
#include "terminal/progress.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Prints the method that the engine chooses for this configuration, or the reason for its
 * refusal. */
static void print_choice(const pnr_engine_ops *ops, const pnr_setup *setup)
{
    pnr_engine_choice choice = {0};
    pnr_error error = {0};

    if (ops->describe(&setup->plan, &choice, &error) == PNR_OK)
        printf("%-10s would take  method %s: %s\n", ops->name, choice.method, choice.why);
    else
        printf("%-10s would not   %s\n", ops->name, error.text);
}

/* Prints the devices of an engine, if it has several. */
static void print_devices(const pnr_engine_ops *ops)
{
    const size_t n = ops->count != NULL ? ops->count() : 1;
    char text[256];

    for (size_t d = 0; n > 1 && d < n; d++)
        printf("%-10s device %-4zu %s%s\n", ops->name, d,
               ops->probe(d, text, sizeof text) == PNR_OK ? "" : "does not work: ", text);
}

/* Prints the engines, best first. Prints why an engine does not work here. With a configuration,
 * also prints the method that each engine chooses. The sample format is ci16 if neither
 * source.format nor the extension of the input defines it. */
static int list_engines(const pnr_config *config, pnr_error *error)
{
    pnr_setup *setup = NULL;

    if (config->source.rate_hz.num != 0) {
        pnr_format format = config->source.format;

        if (format == PNR_FORMAT_NONE)
            format = pnr_format_of_path(config->source.input);
        if (format == PNR_FORMAT_NONE)
            format = PNR_FORMAT_CI16;
        if (pnr_config_check(config, error) != PNR_OK ||
            pnr_setup_create(config, format, config->source.channels, &setup, error) != PNR_OK)
            return pnr_cli_fail(error);
    }
    for (const char *const *name = pnr_engine_names(); *name != NULL; name++) {
        const size_t device = config->engine.device.index[0];
        const pnr_engine_ops *ops;
        pnr_error reason = {0};
        char text[256];

        if (pnr_engine_find(*name, device, &ops, &reason) == PNR_OK) {
            (void)ops->probe(device, text, sizeof text);
            printf("%-10s works       %s: %s\n", *name, ops->title, text);
            print_devices(ops);
            if (setup != NULL)
                print_choice(ops, setup);
        } else {
            printf("%-10s not here    %s\n", *name, reason.text);
        }
    }
    pnr_setup_destroy(setup);
    return fflush(stdout) == 0 ? 0 : pnr_error_exit(PNR_EIO);
}

/* The state of printing on stdout. --print chooses the format. Without --print, a terminal gets a
 * table. */
typedef struct printing {
    pnr_printer printer;
    pnr_output output;
    FILE *stream; /* NULL: nothing is printed */
    pnr_progress_line progress;
    bool is_published; /* the publisher has an endpoint */
    bool is_left;      /* the reader has closed the pipe, and the run ends */
    int code;          /* error code of the first failed print; PNR_OK: none */
    bool is_live;      /* pnr_report.is_live of the last report */
} printing;

/* Returns the reason for the first failed write. */
static const char *write_reason(const printing *to)
{
    return to->output.failure == ETIMEDOUT ? "the reader has stopped"
                                           : strerror(to->output.failure);
}

/* Handles a failed write. EPIPE, as with `| head`, ends the run and is no error. Another failure
 * ends the run with its error. A live radar with a publisher continues, because its subscribers
 * still need the results. */
static void note_write(printing *to, int code, bool is_live)
{
    const bool goes_on = is_live && to->is_published;

    if (code == PNR_OK)
        return;
    to->is_left = to->output.failure == EPIPE && !goes_on;
    to->code = to->is_left ? PNR_OK : code;
    if (goes_on)
        pnr_log(PNR_LOG_WARN, "stdout: %s: no more results are printed", write_reason(to));
    else
        pnr_stop = 1;
}

static void print_report(printing *to, const pnr_report *report)
{
    if (to->is_left || to->code != PNR_OK)
        return;
    to->is_live = report->is_live;
    pnr_progress_hide(&to->progress);
    note_write(to, pnr_printer_print(&to->printer, report, NULL), report->is_live);
}

/* All outputs of results except the publisher. */
typedef struct outputs {
    printing printing;
    pnr_picture *picture; /* NULL: no picture */
    pnr_cell_file *cells; /* NULL: no array */
    const char *end;      /* file of --end; NULL: none */
    int cells_code;       /* error code of the first failed write to `cells`; PNR_OK: none */
    pnr_error cells_error;
} outputs;

static void take_report(void *context, const pnr_report *report)
{
    outputs *to = context;

    if (to->printing.stream != NULL)
        print_report(&to->printing, report);
    if (to->picture != NULL)
        pnr_picture_result(to->picture, report);
}

static void take_cells(void *context, const pnr_report *report, const pnr_map_info *info,
                       const float *cells)
{
    outputs *to = context;
    const pnr_map map = {*report, *info, cells};

    if (to->picture != NULL)
        pnr_picture_map(to->picture, &map);
    if (to->cells == NULL || to->cells_code != PNR_OK)
        return;
    to->cells_code = pnr_cell_file_write(to->cells, report, info, cells, &to->cells_error);
    if (to->cells_code != PNR_OK)
        pnr_stop = 1;
}

/* The publishing thread calls this when no further result waits. Flushes the printed results. */
static void flush_results(void *context)
{
    printing *to = &((outputs *)context)->printing;

    if (to->stream == NULL || to->code != PNR_OK || to->is_left)
        return;
    note_write(to, fflush(to->stream) == 0 ? PNR_OK : PNR_EIO, to->is_live);
    pnr_progress_show(&to->progress);
}

static const char end_option[] = "--end", end_mark[] = "{\"v\":";

/* Writes the end message to the file of --end. */
static int take_end(void *context, const pnr_status *status, int code, pnr_error *error)
{
    const char *path = ((outputs *)context)->end;
    char text[PNR_MESSAGE_MAX + 1];
    pnr_new_file file;
    pnr_error failure = {0};
    size_t length;
    int written;

    if (path == NULL)
        return code;
    length = pnr_message_write_status(status, text, sizeof text - 1);
    text[length] = '\n';
    if ((written = pnr_new_file_create(end_option, path, end_mark, &file, &failure)) == PNR_OK &&
        (written = pnr_new_file_write(&file, text, length + 1, &failure)) == PNR_OK)
        written = pnr_new_file_finish(&file, true, &failure);
    pnr_new_file_discard(&file);
    return code != PNR_OK || written == PNR_OK ? code
                                               : pnr_error_set(error, written, "%s", failure.text);
}

/* Finishes the printed results and the numpy array. Returns the first error. */
static int finish(void *context, int code, pnr_error *error)
{
    outputs *to = context;
    printing *printed = &to->printing;
    const int closed = pnr_cell_file_close(to->cells, code == PNR_OK, &to->cells_error);
    const int cells_code = to->cells_code != PNR_OK ? to->cells_code : closed;

    if (printed->stream != NULL && printed->code == PNR_OK && !printed->is_left)
        note_write(printed, pnr_printer_finish(&printed->printer), false);
    if (printed->stream != NULL)
        (void)fclose(printed->stream);
    if (code == PNR_OK && printed->code != PNR_OK)
        code = pnr_error_set(error, printed->code, "stdout: the results could not be written: %s",
                             write_reason(printed));
    if (code == PNR_OK && cells_code != PNR_OK)
        code = pnr_error_set(error, cells_code, "%s", to->cells_error.text);
    return code;
}

/* Opens stdout for results. print: NULL, or the argument of --print. */
static int open_printing(const pnr_config *config, const char *print, printing *to,
                         pnr_error *error)
{
    pnr_print kind;
    int code;

    if (print == NULL)
        return PNR_OK;
    if ((code = pnr_print_find("--print", print, &kind, error)) != PNR_OK)
        return code;
    to->output =
        (pnr_output){.fd = STDOUT_FILENO, .stop = &pnr_stop, .grace_s = config->publisher.linger_s};
    to->is_published = config->publisher.endpoint[0] != '\0';
    if ((to->stream = pnr_output_open(&to->output)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "stdout: out of memory");
    pnr_printer_init(&to->printer, to->stream, kind, false);
    return PNR_OK;
}

/* Paths from the command line; NULL: not given. */
typedef struct output_paths {
    const char *cells, *end;
} output_paths;

static const char summary[] =
    "Correlates an echo stream with its pseudo-random code, period by period, on a GPU or a CPU, "
    "and "
    "publishes the ranges of the echoes over ZeroMQ. INPUT overrides source.input; - is stdin.";

static int open_paths(const output_paths *paths, outputs *to, pnr_error *error)
{
    const int code =
        paths->end != NULL ? pnr_new_file_check(end_option, paths->end, end_mark, error) : PNR_OK;

    to->end = paths->end;
    return code == PNR_OK && paths->cells != NULL
               ? pnr_cell_file_create(paths->cells, &to->cells, error)
               : code;
}

/* Refuses --print together with --quiet. Chooses the table if neither is given and stdout is a
 * terminal. If *print is still NULL, nothing is printed. */
static int choose_print(const char **print, bool is_quiet, pnr_error *error)
{
    if (is_quiet && *print != NULL)
        return pnr_error_set(error, PNR_EUSAGE,
                             "--quiet prints nothing and --print prints %s: give one of them",
                             *print);
    if (!is_quiet && *print == NULL && isatty(STDOUT_FILENO))
        *print = "table";
    return PNR_OK;
}

/* Sets source.input to the operand INPUT. */
static int set_input(pnr_config *config, const char *input, pnr_error *error)
{
    const size_t size = sizeof config->source.input;

    if ((size_t)snprintf(config->source.input, size, "%s", input) >= size)
        return pnr_error_set(error, PNR_EUSAGE, "INPUT is longer than %zu bytes", size - 1);
    return PNR_OK;
}

/* The arguments and the options of the command line. */
typedef struct command {
    int argc;
    char **argv;
    const char *print;
    output_paths paths;
    bool lists, is_quiet, follows, is_strict;
    pnr_picture_options picture;
} command;

/* Reads the command line and the configuration files that it names. Adds values that the input
 * states itself, such as its rate and its format. */
static int read_command(command *c, pnr_config *config, pnr_error *error)
{
    const pnr_cli_option options[] = {
        {"print", "table|json|csv", "also write each result to stdout; a terminal gets the table",
         .value = &c->print},
        {"quiet", NULL, "write no results to stdout, not even to a terminal", .flag = &c->is_quiet},
        {"follow", NULL, "wait at the end of a recording that still grows, as source.follow = yes",
         .flag = &c->follows},
        PNR_PICTURE_CLI(c->picture),
        {"profile", "FILE.npy",
         "also write all cells of each result to a numpy array, and their axes to FILE.jsonl",
         .value = &c->paths.cells},
        {"end", "FILE.json", "write the end message, with the account of the run, to this file",
         .value = &c->paths.end},
        {"list-engines", NULL,
         "say which engines work here, how each would do this configuration, and why not",
         .flag = &c->lists},
        {0},
    };
    pnr_cli cli = {
        .program = "pnradar",
        .usage = "[OPTION]... [INPUT]",
        .summary = summary,
        .examples = "pnradar -c config/demo.conf echo.ci16\n"
                    "pnradar -c config/gnss.conf --print csv capture.cf32 > ranges.csv\n"
                    "pnradar -c config/demo.conf --plot ranges.png echo.ci16\n"
                    "receiver | pnradar -c my.conf -s source.format=ci16 -\n",
        .options = options,
        .max_operands = 1,
        .helps_alone = true,
    };
    int code = pnr_cli_parse(&cli, c->argc, c->argv, config, error);

    if (code == PNR_OK && cli.n_operands > 0)
        code = set_input(config, cli.operands[0], error);
    if (c->follows)
        config->source.follow = true;
    c->is_strict = cli.strict;
    return code == PNR_OK ? pnr_source_complete(config, error) : code;
}

/* Reads the configuration again. */
static int configure(void *context, pnr_config *config, pnr_error *error)
{
    const command *first = context;
    command again = {.argc = first->argc, .argv = first->argv};
    const int code = read_command(&again, config, error);

    return code == PNR_OK ? pnr_config_check(config, error) : code;
}

static int run(const pnr_config *config, command *c, pnr_error *error)
{
    static outputs to;
    pnr_account account;
    pnr_notify service;
    pnr_pipeline_options options = {.stop = &pnr_stop,
                                    .trigger = &pnr_trigger_signal,
                                    .reload = &pnr_reload_signal,
                                    .configure = configure,
                                    .configure_context = c,
                                    .can_isolate = true,
                                    .can_exit = true,
                                    .pause = flush_results,
                                    .finish = finish,
                                    .end = take_end,
                                    .tap_context = &to,
                                    .service = &service,
                                    .watch = pnr_progress_watch,
                                    .watch_context = &to.printing.progress};
    int code;

    memset(&to, 0, sizeof to);
    pnr_cli_catch_signals();
    pnr_cli_catch_trigger();
    pnr_cli_catch_reload();
    c->picture.n_codes = pnr_config_codes(config);
    if ((code = open_printing(config, c->print, &to.printing, error)) != PNR_OK ||
        (code = pnr_picture_create(&c->picture, &to.picture, error)) != PNR_OK ||
        (code = open_paths(&c->paths, &to, error)) != PNR_OK) {
        pnr_picture_destroy(to.picture);
        return pnr_cli_fail(error);
    }
    if (c->print != NULL || to.picture != NULL)
        options.tap = take_report;
    if (to.picture != NULL || to.cells != NULL)
        options.tap_cells = take_cells;
    pnr_progress_begin(&to.printing.progress);
    pnr_notify_open(&service);
    code = pnr_pipeline_run(config, &options, &account, error);
    pnr_notify_close(&service);
    if (to.picture != NULL)
        code = pnr_picture_finish(to.picture, code, error);
    pnr_picture_destroy(to.picture);
    if (code != PNR_OK)
        return pnr_cli_fail(error);
    return c->is_strict && (!pnr_account_lossless(&account) || account.windows == 0) ? PNR_EXIT_LOST
                                                                                     : 0;
}

static int run_command(int argc, char **argv)
{
    command c = {.argc = argc, .argv = argv};
    pnr_config config;
    pnr_error error = {0};
    int code = read_command(&c, &config, &error);
    int status;

    if (code == PNR_OK && !c.lists && (code = choose_print(&c.print, c.is_quiet, &error)) == PNR_OK)
        code = pnr_config_check(&config, &error);
    if (code != PNR_OK)
        status = pnr_cli_fail(&error);
    else if (c.lists)
        status = list_engines(&config, &error);
    else
        status = run(&config, &c, &error);
    pnr_config_clear(&config);
    return status;
}

int main(int argc, char **argv)
{
    pnr_worker_main(argc, argv);
    if (argc == 2 && strcmp(argv[1], PNR_TASKS_OPTION) == 0)
        return pnr_tasks_run(argv[0], run_command);
    return run_command(argc, argv);
}
