/* SPDX-License-Identifier: MIT */
/* The command line that all five programs share. */
#ifndef PNR_CLI_H
#define PNR_CLI_H

#include "base/error.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>

/* One option of a program's own; a const array of these ends with a NULL name. */
typedef struct pnr_cli_option {
    const char *name;     /* "truth" for --truth */
    const char *argument; /* "FILE"; NULL: a flag */
    const char *help;     /* one sentence */
    const char **value;   /* where the argument goes (points into argv); for a flag: any non-NULL */
} pnr_cli_option;

typedef struct pnr_cli {
    const char *program;  /* "pnradar-echo" */
    const char *usage;    /* "[OPTION]... [OUTPUT]" */
    const char *summary;  /* a short paragraph for --help */
    const char *examples; /* complete command lines for --help, one a line */
    const pnr_cli_option *options;
    int max_operands;
    /* out: */
    const char *operands[8];
    int n_operands;
    bool strict; /* --strict */
} pnr_cli;

/*
 * Common: -c FILE, --config FILE (repeatable), -s KEY=VALUE, --set (repeatable), --print-config,
 * --strict, --help, --version; files first, then settings, in order. Fills config (initialised
 * here, whatever comes back: pnr_config_clear it; pnr_config_check is left to the program, after
 * its operands). Returns PNR_OK to go on; PNR_EEND when the program's work is done (help, version
 * or configuration printed to stdout); else the error (PNR_EUSAGE, PNR_ECONFIG, PNR_ENOINPUT),
 * explained. "--" ends the options; "-" is an operand.
 */
int pnr_cli_parse(pnr_cli *cli, int argc, char **argv, pnr_config *config, pnr_error *error);

/* Prints an explained error to stderr (and "try --help" for usage) and returns its exit status. */
int pnr_cli_fail(const pnr_error *error);

/* The stop flag, the one global: 0, 1 after the first SIGINT or SIGTERM (drain and close), and a
 * second signal exits the process at once with status 128 + signal. SIGPIPE is ignored. */
extern volatile int pnr_stop;
void pnr_cli_catch_signals(void);

#endif
