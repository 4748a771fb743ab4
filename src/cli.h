/* SPDX-License-Identifier: MIT */
/* The command line that all programs share. */
#ifndef PNR_CLI_H
#define PNR_CLI_H

#include "base/error.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>

/* An option of one program. An array of options ends with a NULL name. Exactly one of the pointers
 * value, flag, count, number and seconds is set. */
typedef struct pnr_cli_option {
    const char *name;     /* "truth" for --truth */
    const char *argument; /* name of the argument, as "FILE"; NULL: no argument */
    const char *help;     /* one sentence for --help */
    const char **value;   /* the argument, a pointer into argv */
    bool *flag;           /* set to true if the option is given */
    size_t *count;        /* a whole number from min to max, read by pnr_cli_read_count */
    double *number;       /* a number from min to max: digits, with or without a point */
    const char *unit;     /* of `number`, may follow it: "dB"; "s" as well as ms, us and ns */
    double *seconds;      /* a time from min to max, with the unit ns, us, ms or s, such as 62ms */
    double min, max;
    char letter; /* 'n' for -n; '\0': no letter */
} pnr_cli_option;

typedef struct pnr_cli {
    const char *program;  /* "pnradar-echo" */
    const char *usage;    /* "[OPTION]... [OUTPUT]" */
    const char *summary;  /* a short paragraph for --help */
    const char *examples; /* complete command lines for --help, each on its own line */
    const pnr_cli_option *options;
    int max_operands;
    bool helps_alone; /* true: prints the help if there is no argument */
    /* set by pnr_cli_parse: */
    const char *operands[8];
    int n_operands;
    bool strict; /* --strict was given */
} pnr_cli;

/*
 * Reads the command line. Common options: -c FILE, --config FILE (repeatable), -s KEY=VALUE, --set
 * (repeatable), --print-config, --strict, -h, --help, -V, --version. "--" ends the options; "-" is
 * an operand. Reads all files of -c, then all settings of -s, each in order. Always initialises
 * config, so call pnr_config_clear at the end. The program calls pnr_config_check after it has read
 * its operands. PNR_OK: the program continues. PNR_EEND: help, version or configuration was
 * printed, and the program ends. Other codes, such as PNR_EUSAGE, PNR_ECONFIG or PNR_ENOINPUT, are
 * errors.
 */
int pnr_cli_parse(pnr_cli *cli, int argc, char **argv, pnr_config *config, pnr_error *error);

/* Reads a number such as "8192", "2^16", "2^20-1" or "2^20+1". *end: the text after the number, or
 * `text` if there is no number. Returns 0 if 2^n is too large. */
size_t pnr_cli_read_count(const char *text, const char **end);

/* Logs the error, with "try --help" for PNR_EUSAGE; does not log PNR_EEND. Returns the exit status
 * of the error. */
int pnr_cli_fail(const pnr_error *error);

/* The flags of signals, the only global variables. pnr_stop is 1 after the first SIGINT, SIGTERM or
 * SIGHUP. A second signal ends the process at once with status 128 + signal. SIGPIPE and SIGXFSZ
 * are ignored, so a write to a closed pipe or beyond the size limit returns an error. */
extern volatile int pnr_stop;
void pnr_cli_catch_signals(void);
/* pnr_trigger_signal is 1 after a SIGUSR1, if pnr_cli_catch_trigger was called before. */
extern volatile int pnr_trigger_signal;
void pnr_cli_catch_trigger(void);
/* pnr_reload_signal is 1 after a SIGHUP, if pnr_cli_catch_reload was called before. If the terminal
 * of this process has been closed since that call, SIGHUP sets pnr_stop instead. Call
 * pnr_cli_catch_reload after pnr_cli_catch_signals. A SIGHUP that is ignored, as by nohup, stays
 * ignored. */
extern volatile int pnr_reload_signal;
void pnr_cli_catch_reload(void);

#endif
