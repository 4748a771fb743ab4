/* SPDX-License-Identifier: MIT */
/* The parts of pnradar-bench: what is measured, and the tables and pictures it is shown in. */
#ifndef PNR_TOOLS_BENCH_H
#define PNR_TOOLS_BENCH_H

#include "base/error.h"
#include "config/config.h"
#include "correlator/engines.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the command line asks for. */
typedef struct bench {
    const pnr_config *config;
    size_t *sizes; /* [n_sizes]; NULL: each part's own */
    size_t n_sizes;
    int runs;       /* counted */
    double seconds; /* of each size (publish: of each pack); 0: each part's own */
    double pace;    /* stream: share of the ceiling; 0: as fast as the ring takes it */
    size_t points;  /* methods: samples a submit, about; 0: chosen */
    uint64_t check; /* methods: random samples checked, at least */
    bool verbose;   /* methods: what is launched too */
    bool csv;
    bool *lost;           /* set when stream lost anything */
    double every_s;       /* latency: from window to window; 0: chosen */
    const char *endpoint; /* latency: NULL: chosen */
    const char *plot;     /* PNG path; NULL: none */
    const char *dump;     /* serve: path for the code and the samples; NULL: none */
} bench;

/* "8192,2^16,2^20-1": sizes 1..2^24. Owner of *sizes: the caller. PNR_OK, PNR_EUSAGE,
 * PNR_ENOMEMORY. */
int bench_parse_sizes(const char *text, size_t **sizes, size_t *n_sizes, pnr_error *error);
/* The engine that engine.name chooses for N samples a period, with everything it is created from */
int bench_prepare(const bench *b, size_t n_samples, size_t batch, pnr_setup **setup,
                  const pnr_engine_ops **ops, pnr_engine_choice *choice, pnr_error *error);
/* The CPU, and what every engine's probe says; as comments before a CSV. */
void bench_print_machine(const bench *b);

int bench_chain(const bench *b, pnr_error *error);
int bench_stream(const bench *b, pnr_error *error);
int bench_seed(const bench *b, pnr_error *error);
int bench_crossover(const bench *b, pnr_error *error);
int bench_methods(const bench *b, pnr_error *error);
int bench_maps(const bench *b, pnr_error *error);
int bench_latency(const bench *b, pnr_error *error);
int bench_soak(const bench *b, pnr_error *error);
int bench_publish(const bench *b, pnr_error *error);
int bench_accuracy(const bench *b, pnr_error *error);
int bench_serve(const bench *b, pnr_error *error);

/* --- tables: cells in reading order --- */
typedef struct bench_column {
    const char *name; /* with its unit: "total_ms" */
    bool is_text;
} bench_column;

typedef struct bench_table bench_table;

/* columns stay the caller's. */
int bench_table_create(const char *title, const bench_column *columns, size_t n_columns,
                       bench_table **out, pnr_error *error);
void bench_table_destroy(bench_table *table);
/* The next cell. NaN is an empty one ("-", in CSV nothing). */
void bench_table_number(bench_table *table, double value);
void bench_table_text(bench_table *table, const char *value);
size_t bench_table_rows(const bench_table *table);

/* The first column across; y is logarithmic. */
typedef enum { BENCH_X_LOG2, BENCH_X_LOG10, BENCH_X_LINEAR } bench_x_scale;

/* One line for each y column, or for each value of the column `series`. */
typedef struct bench_picture {
    const char *y_label;
    const char *const *y;    /* column names, NULL at the end */
    const char *series;      /* column; NULL: none */
    const char *only_column; /* only rows where this text column reads only_text; NULL: all */
    const char *only_text;
    bench_x_scale x_scale;
} bench_picture;

/* Prints the table (aligned, or CSV) and draws the picture when asked; x is the first column.
 * PNR_OK; PNR_EUNAVAILABLE: no gnuplot; PNR_EIO; PNR_ENOMEMORY: a cell was lost. */
int bench_table_show(const bench *b, const bench_table *table, const bench_picture *picture,
                     pnr_error *error);

#endif
