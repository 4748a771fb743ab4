/* SPDX-License-Identifier: MIT */
/* Prints the tables of pnradar-bench, aligned or as CSV. Draws their pictures with gnuplot. */
#include "tools/bench/bench.h"

#include "cli.h"
#include "tools/common/gnuplot.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_LEN = 64, NAME_LEN = 32, MAX_COLUMNS = 32 };

typedef struct cell {
    double number;
    char text[CELL_LEN]; /* of a text column */
} cell;

typedef struct heading {
    char name[NAME_LEN];
    bool is_text;
} heading;

struct bench_table {
    const char *title;
    heading columns[MAX_COLUMNS];
    size_t n_columns;
    cell *cells; /* [n_cells], row by row */
    size_t n_cells, capacity;
    bool lost; /* there was no memory for a cell */
};

/* Copies the first word of `text`. Spaces separate the words. Returns the text from the next word
 * on; NULL: there is no word. */
static const char *next_word(const char *text, char out[NAME_LEN])
{
    const size_t length = strcspn(text, " ");

    if (*text == '\0')
        return NULL;
    snprintf(out, NAME_LEN, "%.*s", (int)length, text);
    return text + length + strspn(text + length, " ");
}

int bench_table_create(const char *title, const char *columns, bench_table **out, pnr_error *error)
{
    bench_table *table = calloc(1, sizeof *table);

    *out = table;
    if (table == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a table");
    table->title = title;
    while (table->n_columns < MAX_COLUMNS) {
        heading *c = &table->columns[table->n_columns];
        char *mark;

        if ((columns = next_word(columns, c->name)) == NULL)
            break;
        if ((mark = strchr(c->name, ':')) != NULL)
            *mark = '\0';
        c->is_text = mark != NULL;
        table->n_columns++;
    }
    return PNR_OK;
}

void bench_table_destroy(bench_table *table)
{
    if (table == NULL)
        return;
    free(table->cells);
    free(table);
}

static cell *next_cell(bench_table *table)
{
    if (table->n_cells == table->capacity) {
        const size_t capacity = table->capacity > 0 ? 2 * table->capacity : 256;
        cell *cells = realloc(table->cells, capacity * sizeof *cells);

        if (cells == NULL) {
            table->lost = true;
            return NULL;
        }
        table->cells = cells;
        table->capacity = capacity;
    }
    memset(&table->cells[table->n_cells], 0, sizeof *table->cells);
    return &table->cells[table->n_cells++];
}

void bench_table_add(bench_table *table, const char *format, ...)
{
    va_list values;
    cell *next;

    va_start(values, format);
    for (; *format != '\0' && (next = next_cell(table)) != NULL; format += strspn(format, " ")) {
        if (format[1] == 's')
            snprintf(next->text, sizeof next->text, "%s", va_arg(values, const char *));
        else
            next->number =
                format[1] == 'z' ? (double)va_arg(values, size_t) : va_arg(values, double);
        format += strcspn(format, " ");
    }
    va_end(values);
}

size_t bench_table_rows(const bench_table *table)
{
    return table->n_cells / table->n_columns;
}

static const cell *cell_at(const bench_table *table, size_t row, size_t column)
{
    return &table->cells[row * table->n_columns + column];
}

/* Writes a cell as text. A whole number has no fraction. Another number has `digits` significant
 * digits or more, and never an exponent. Returns out. */
static const char *format_cell(const bench_table *table, size_t row, size_t column, int digits,
                               char out[CELL_LEN])
{
    const cell *c = cell_at(table, row, column);

    if (table->columns[column].is_text) {
        snprintf(out, CELL_LEN, "%s", c->text);
    } else if (!isfinite(c->number)) {
        out[0] = '\0';
    } else if (c->number == rint(c->number) && fabs(c->number) < 1e15) {
        snprintf(out, CELL_LEN, "%.0f", c->number);
    } else {
        const int before = (int)floor(log10(fabs(c->number))) + 1;
        const int after = digits - before;

        snprintf(out, CELL_LEN, "%.*f", after > 0 ? after : 0, c->number);
    }
    return out;
}

/* Returns the length of the longest text of a column, including its head. */
static int measure_column(const bench_table *table, size_t column)
{
    size_t width = strlen(table->columns[column].name);
    char text[CELL_LEN];

    for (size_t row = 0; row < bench_table_rows(table); row++) {
        const size_t length = strlen(format_cell(table, row, column, 4, text));

        width = length > width ? length : width;
    }
    return (int)width;
}

static void print_table(const bench_table *table, bool csv)
{
    char text[CELL_LEN];

    printf(csv ? "# %s\n" : "\n%s\n", table->title);
    for (size_t row = 0; row <= bench_table_rows(table); row++) { /* row 0 is the head */
        for (size_t column = 0; column < table->n_columns; column++) {
            const heading *head = &table->columns[column];
            int width = csv ? 0 : measure_column(table, column);

            if (row == 0)
                snprintf(text, sizeof text, "%s", head->name);
            else if (*format_cell(table, row - 1, column, csv ? 9 : 4, text) == '\0' && !csv)
                snprintf(text, sizeof text, "-");
            if (head->is_text) /* texts are aligned left; the last column is not padded */
                width = column + 1 < table->n_columns ? -width : 0;
            printf("%s%*s", column == 0 ? "" : csv ? "," : "  ", width, text);
        }
        putchar('\n');
    }
}

/* --- pictures --- */

static size_t find_column(const bench_table *table, const char *name)
{
    for (size_t column = 0; name != NULL && column < table->n_columns; column++)
        if (strcmp(table->columns[column].name, name) == 0)
            return column;
    return SIZE_MAX;
}

/* Writes the data block $d<index>: x and y of the rows of one curve. Returns the number of rows. */
static size_t print_block(FILE *to, const bench_table *table, const bench_picture *picture,
                          size_t index, size_t y, const char *series)
{
    const size_t by = find_column(table, picture->series);
    const size_t only = find_column(table, picture->only_column);
    char text[CELL_LEN];
    size_t n = 0;

    fprintf(to, "$d%zu << end_of_block\n", index);
    for (size_t row = 0; row < bench_table_rows(table); row++) {
        const double value = cell_at(table, row, y)->number;

        if (!(isfinite(value) && value > 0))
            continue;
        if (only != SIZE_MAX && strcmp(cell_at(table, row, only)->text, picture->only_text) != 0)
            continue;
        if (by != SIZE_MAX && strcmp(format_cell(table, row, by, 9, text), series) != 0)
            continue;
        fprintf(to, "%.9g %.9g\n", cell_at(table, row, 0)->number, value);
        n++;
    }
    fputs("end_of_block\n", to);
    return n;
}

/* Writes all data blocks to `to`. Writes to `plot` the command that draws the blocks that have a
 * point. Returns the number of these blocks. */
static size_t print_curves(FILE *to, FILE *plot, const bench_table *table,
                           const bench_picture *picture)
{
    const size_t by = find_column(table, picture->series);
    const char *names = picture->y;
    size_t n_curves = 0, index = 0;
    char name[NAME_LEN], label[2 * CELL_LEN];

    while ((names = next_word(names, name)) != NULL) {
        snprintf(label, sizeof label, "%s", name);
        for (size_t row = 0; row < bench_table_rows(table); row++) {
            char series[CELL_LEN] = "", text[CELL_LEN];
            bool seen = by == SIZE_MAX && row > 0;

            if (by != SIZE_MAX) {
                format_cell(table, row, by, 9, series);
                snprintf(label, sizeof label, "%s, %s %s", name, picture->series, series);
            }
            for (size_t r = 0; by != SIZE_MAX && r < row; r++)
                seen = seen || strcmp(series, format_cell(table, r, by, 9, text)) == 0;
            if (seen ||
                print_block(to, table, picture, ++index, find_column(table, name), series) == 0)
                continue;
            fprintf(plot, "%s $d%zu using 1:2 with linespoints title ",
                    n_curves++ == 0 ? "plot" : ",", index);
            pnr_gnuplot_quote(plot, label);
        }
    }
    return n_curves;
}

static const char *const x_scales[] = {
    [BENCH_X_LOG2] = "set logscale x 2\nset format x '2^{%L}'\n",
    [BENCH_X_LOG10] = "set logscale x 10\n",
    [BENCH_X_LINEAR] = "",
};

static int draw_picture(const char *path, const bench_table *table, const bench_picture *picture,
                        pnr_error *error)
{
    char *command = NULL;
    size_t n_bytes, n_curves;
    FILE *plot = open_memstream(&command, &n_bytes), *to = NULL;
    int code = plot != NULL ? pnr_gnuplot_open(path, table->title, 1100, 700, &to, error)
                            : pnr_error_set(error, PNR_ENOMEMORY, "--plot %s: out of memory", path);

    if (code == PNR_OK) {
        fputs("set xlabel ", to);
        pnr_gnuplot_quote(to, table->columns[0].name);
        fputs(" noenhanced\nset ylabel ", to);
        pnr_gnuplot_quote(to, picture->y_label);
        fprintf(to, " noenhanced\n%sset logscale y\nset key outside right noenhanced\nset grid\n",
                x_scales[picture->x_scale]);
        n_curves = print_curves(to, plot, table, picture);
        fflush(plot);
        fprintf(to, "%s\n", command);
        code = pnr_gnuplot_close(to, path, error);
        if (n_curves == 0)
            code = pnr_error_set(error, PNR_EDATA, "--plot %s: nothing was measured to draw", path);
    }
    if (plot != NULL)
        fclose(plot);
    free(command);
    return code;
}

int bench_table_show(const bench *b, const bench_table *table, const bench_picture *picture,
                     pnr_error *error)
{
    if (table->lost)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for the table");
    print_table(table, b->csv);
    if (fflush(stdout) != 0)
        return pnr_error_set(error, PNR_EIO, "cannot write to stdout");
    return b->plot != NULL && picture != NULL ? draw_picture(b->plot, table, picture, error)
                                              : PNR_OK;
}

int bench_sweep_run(const bench *b, const bench_sweep *sweep, void *context, pnr_error *error,
                    const char *title, ...)
{
    bench_table *table = NULL;
    pnr_error unshown = {0};
    char text[192];
    va_list values;
    int rc, shown;

    va_start(values, title);
    vsnprintf(text, sizeof text, title, values);
    va_end(values);
    rc = bench_table_create(text, sweep->columns, &table, error);
    for (size_t i = 0; i < b->n_sizes && rc == PNR_OK && !pnr_stop; i++)
        rc = sweep->measure(b, context, b->sizes[i], table, error);
    if (table != NULL && bench_table_rows(table) > 0) {
        shown = bench_table_show(b, table, sweep->picture, &unshown);
        if (rc == PNR_OK && (rc = shown) != PNR_OK)
            *error = unshown;
    }
    bench_table_destroy(table);
    return rc;
}
