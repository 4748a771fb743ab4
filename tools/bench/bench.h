/* SPDX-License-Identifier: MIT */
/* The measurements of pnradar-bench, which the comments call parts, and the tables and pictures of
 * their results. */
#ifndef PNR_TOOLS_BENCH_H
#define PNR_TOOLS_BENCH_H

#include "base/error.h"
#include "config/config.h"
#include "correlator/engines.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_MAX_LOG2_SIZE = 24, BENCH_MAX_SIZES = 64 };

/* The options of the command line. An option that is not given keeps the default of the part. */
typedef struct bench {
    const pnr_config *config;
    size_t sizes[BENCH_MAX_SIZES], n_sizes; /* lengths of the period, in samples; n_sizes 0: the
                                             * default sizes of the part */
    size_t runs;                            /* number of measured runs */
    double seconds;                         /* stream, scene, latency, soak: duration of a run of
                                             * the pipeline; publish: duration of the measurement of
                                             * one pack size */
    double pace;   /* stream, soak: rate of the live run / measured ceiling; 0: stream has no live
                    * run */
    size_t points; /* methods: approximate number of samples in a submit; 0: the part chooses */
    size_t check;  /* methods: each method must be right on at least this number of samples with
                    * random content */
    bool verbose;  /* methods: also list the kernels */
    bool csv;
    bool *lost;           /* becomes true if a part loses samples, windows or results */
    double every_s;       /* latency: time between two windows; 0: the part chooses */
    const char *endpoint; /* latency: address; NULL: the part chooses */
    size_t echoes;        /* stream, latency, soak, publish: number of echoes in each window */
    const char *only;     /* scene: measures only scenes whose names contain this text; NULL: all */
    const char *plot;     /* path of a picture; NULL: none */
    const char *dump;     /* serve: path for the code and the samples; NULL: none */
} bench;

/* Reads "8192,2^16,2^20-1": sizes 1..2^24. PNR_OK or PNR_EUSAGE. */
int bench_parse_sizes(const char *text, bench *b, pnr_error *error);

/* One size to measure: its plan, and the engine that is chosen for the plan. */
typedef struct bench_subject {
    pnr_setup *setup; /* the caller destroys it; NULL after an error */
    const pnr_engine_ops *ops;
    pnr_engine_choice choice;
    char engine[64]; /* such as "cuda/fused" */
} bench_subject;

/* Prepares one size. n_samples 0: config has the code and the rate; else pnr_measure_configure
 * chooses the code. batch: dwells of a submit; 0: as configured. config must outlive *out. */
int bench_prepare(const pnr_config *config, size_t n_samples, size_t batch, bench_subject *out,
                  pnr_error *error);
/* Sets publisher.endpoint to an ipc address of this process. */
void bench_set_endpoint(pnr_config *config);
/* Prints the CPU, and for each engine the device that it uses, or the reason why it cannot work.
 * With --csv the lines are comments. */
void bench_print_machine(const bench *b);
/* Prints the largest memory size of this process so far. With --csv the line is a comment. */
void bench_print_memory(const bench *b);

int bench_chain(const bench *b, pnr_error *error);
int bench_stream(const bench *b, pnr_error *error);
int bench_seed(const bench *b, pnr_error *error);
int bench_crossover(const bench *b, pnr_error *error);
int bench_methods(const bench *b, pnr_error *error);
int bench_maps(const bench *b, pnr_error *error);
int bench_scene(const bench *b, pnr_error *error);
int bench_latency(const bench *b, pnr_error *error);
int bench_soak(const bench *b, pnr_error *error);
int bench_publish(const bench *b, pnr_error *error);
int bench_accuracy(const bench *b, pnr_error *error);
int bench_serve(const bench *b, pnr_error *error);

/* --- tables: cells are added row by row --- */
typedef struct bench_table bench_table;

/* columns: the names, with units, separated by spaces. A column whose name ends in ':' has texts.
 * Other columns have numbers. PNR_OK, PNR_ENOMEMORY. */
int bench_table_create(const char *title, const char *columns, bench_table **out, pnr_error *error);
void bench_table_destroy(bench_table *table);
/* Adds the next cells. The format has "%g", "%zu" and "%s", separated by spaces. NaN is printed as
 * an empty cell ("-", in CSV nothing). */
void bench_table_add(bench_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
size_t bench_table_rows(const bench_table *table);

/* The scale of the x axis. The y axis is logarithmic. */
typedef enum { BENCH_X_LOG2, BENCH_X_LOG10, BENCH_X_LINEAR } bench_x_scale;

enum { BENCH_MAX_CURVES = 8 };

/* A picture has one curve for each member of `curves`. If `series` names a column, each value in
 * that column has its own curves. */
typedef struct bench_picture {
    const char *title;
    const char *x; /* name of the column for x; NULL: the first column */
    const char *x_label, *y_label;
    struct bench_curve {
        const char *column, *label; /* if the label is "", the value of the series is the label */
        bool is_line;               /* a line without points, for computed values */
    } curves[BENCH_MAX_CURVES + 1]; /* a curve without a column ends the list */
    const char *series;       /* column with the values of the series; NULL: there is one series */
    const char *series_label; /* text before the value of the series, for example "batch " */
    const char *only_column;  /* draws only rows with only_text in this column of texts; NULL: all
                               * rows */
    const char *only_text;
    bench_x_scale x_scale;
} bench_picture;

/* Prints the table (aligned, or CSV), and draws the picture if the user wants a picture. picture
 * NULL: the part has no picture. PNR_OK; PNR_EUNAVAILABLE: no gnuplot; PNR_EDATA: no points to
 * draw; PNR_EIO; PNR_ENOMEMORY: a cell is missing. */
int bench_table_show(const bench *b, const bench_table *table, const bench_picture *picture,
                     pnr_error *error);

/* A measurement that fills one table, size by size. */
typedef struct bench_sweep {
    const char *columns;          /* `columns` of bench_table_create */
    const bench_picture *picture; /* NULL: no picture */
    /* Adds the rows of one size. */
    int (*measure)(const bench *b, void *context, size_t n_samples, bench_table *table,
                   pnr_error *error);
} bench_sweep;

/* Measures every size, and shows the measured rows. A signal or an error ends the measurement.
 * title: the format of the table's title. Returns the first error. */
int bench_sweep_run(const bench *b, const bench_sweep *sweep, void *context, pnr_error *error,
                    const char *title, ...) __attribute__((format(printf, 5, 6)));

#endif
