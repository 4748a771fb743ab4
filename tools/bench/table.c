/* SPDX-License-Identifier: MIT */
/* Prints the tables of pnradar-bench, aligned or as CSV. Draws their pictures with gnuplot. */
#include "tools/bench/bench.h"

#include "cli.h"
#include "picture/gnuplot.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_LEN = 64, NAME_LEN = 32, MAX_COLUMNS = 32 };

typedef struct cell {
    double number;
    char text[CELL_LEN]; /* the value, if the column has texts */
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
    bool lost; /* a cell is missing: there was no memory */
};

/* Copies the first word of `text`. Spaces separate the words. Returns the start of the next word.
 * NULL: there is no word. */
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

/* Writes a cell as text. A whole number has no fraction. Any other number has at least `digits`
 * significant digits, and never an exponent. Returns out. */
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

/* Returns the width of a column: the length of its longest text or of its heading. */
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
    for (size_t row = 0; row <= bench_table_rows(table); row++) { /* row 0: the headings */
        for (size_t column = 0; column < table->n_columns; column++) {
            const heading *head = &table->columns[column];
            int width = csv ? 0 : measure_column(table, column);

            if (row == 0)
                snprintf(text, sizeof text, "%s", head->name);
            else if (*format_cell(table, row - 1, column, csv ? 9 : 4, text) == '\0' && !csv)
                snprintf(text, sizeof text, "-");
            if (head->is_text) /* texts are aligned left; a text in the last column is not padded */
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

/* The least and the greatest value on an axis. */
typedef struct extent {
    double low, high;
} extent;

static void extend(extent *e, double value)
{
    e->low = fmin(e->low, value);
    e->high = fmax(e->high, value);
}

/* A curve of a picture: the numbers of column y in the rows of one series. series "": all rows. */
typedef struct curve {
    const bench_table *table;
    const bench_picture *picture;
    size_t x, y;
    const char *series;
    extent *x_extent, *y_extent; /* the extents over all curves */
} curve;

/* Writes the gnuplot data block $d<index> with x and y of the rows of one curve. A value that is 0
 * has no place on the logarithmic axis: an empty line breaks the curve. A value that is not known
 * is left out. Returns the number of rows that are drawn. */
static size_t print_block(FILE *to, const curve *c, size_t index)
{
    const size_t by = find_column(c->table, c->picture->series);
    const size_t only = find_column(c->table, c->picture->only_column);
    char text[CELL_LEN];
    size_t n = 0;

    fprintf(to, "$d%zu << end_of_block\n", index);
    for (size_t row = 0; row < bench_table_rows(c->table); row++) {
        const double value = cell_at(c->table, row, c->y)->number;

        if (!isfinite(value))
            continue;
        if (only != SIZE_MAX &&
            strcmp(cell_at(c->table, row, only)->text, c->picture->only_text) != 0)
            continue;
        if (by != SIZE_MAX && strcmp(format_cell(c->table, row, by, 9, text), c->series) != 0)
            continue;
        if (value <= 0) {
            fputc('\n', to);
            continue;
        }
        fprintf(to, "%.9g %.9g\n", cell_at(c->table, row, c->x)->number, value);
        extend(c->x_extent, cell_at(c->table, row, c->x)->number);
        extend(c->y_extent, value);
        n++;
    }
    fputs("end_of_block\n", to);
    return n;
}

/* True if an earlier row has the same text in this column. */
static bool is_repeated(const bench_table *table, size_t row, size_t column)
{
    char text[CELL_LEN], other[CELL_LEN];

    format_cell(table, row, column, 9, text);
    for (size_t r = 0; r < row; r++)
        if (strcmp(text, format_cell(table, r, column, 9, other)) == 0)
            return true;
    return false;
}

/* Sets the range of an axis if all its values are equal. Without a range gnuplot prints a
 * warning. */
static void print_extent(FILE *to, char name, const extent *e, bool is_linear)
{
    if (e->low == e->high)
        fprintf(to, "set %crange [%.9g:%.9g]\n", name, is_linear ? e->low - 1 : e->low / 2,
                is_linear ? e->high + 1 : e->high * 2);
}

/* Sets one form for all ticks of the logarithmic axis y, if the axis may end beyond 10^5 or below
 * 10^-3. There gnuplot writes some ticks with an exponent and some without. */
static void print_y_format(FILE *to, const extent *e)
{
    if (e->high > 1e5 || e->low < 1e-3)
        fputs("set format y '%.0l·10^{%L}'\n", to);
}

/* Writes all data blocks to `to`, and the plot command to `plot`. The command draws every block
 * with at least one point. Returns the number of drawn blocks. */
static size_t print_curves(FILE *to, FILE *plot, const bench_table *table,
                           const bench_picture *picture)
{
    extent x_extent = {INFINITY, -INFINITY}, y_extent = x_extent;
    const size_t by = find_column(table, picture->series);
    const size_t x = picture->x != NULL ? find_column(table, picture->x) : 0;
    const size_t n_values = by != SIZE_MAX ? bench_table_rows(table) : 1;
    size_t n_curves = 0, index = 0;
    char series[CELL_LEN] = "", label[3 * CELL_LEN];

    for (const struct bench_curve *named = picture->curves; named->column != NULL; named++) {
        for (size_t row = 0; row < n_values; row++) {
            const curve c = {table,  picture,   x,        find_column(table, named->column),
                             series, &x_extent, &y_extent};

            if (by != SIZE_MAX && is_repeated(table, row, by))
                continue;
            if (by != SIZE_MAX)
                format_cell(table, row, by, 9, series);
            if (print_block(to, &c, ++index) == 0)
                continue;
            snprintf(label, sizeof label, "%s%s%s%s", named->label,
                     by != SIZE_MAX && *named->label ? ", " : "",
                     by != SIZE_MAX ? picture->series_label : "", series);
            fprintf(plot, "%s $d%zu using 1:2 with %s linetype %zu title ",
                    n_curves == 0 ? "plot" : ",", index, named->is_line ? "lines" : "linespoints",
                    n_curves + 1);
            pnr_gnuplot_quote(plot, label);
            n_curves++;
        }
    }
    print_extent(to, 'x', &x_extent, picture->x_scale == BENCH_X_LINEAR);
    print_extent(to, 'y', &y_extent, false);
    print_y_format(to, &y_extent);
    return n_curves;
}

static const char *const x_scales[] = {
    [BENCH_X_LOG2] = "set logscale x 2\nset format x '2^{%L}'\n",
    [BENCH_X_LOG10] = "set logscale x 10\n",
    [BENCH_X_LINEAR] = "",
};

static void print_axes(FILE *to, const bench_picture *picture)
{
    fputs("set xlabel ", to);
    pnr_gnuplot_quote(to, picture->x_label);
    fputs(" noenhanced\nset ylabel ", to);
    pnr_gnuplot_quote(to, picture->y_label);
    fprintf(to,
            " noenhanced\n%sset logscale y\nset key outside right top Left reverse noenhanced\n"
            "set offsets graph 0.03, graph 0.03, 0, 0\nset grid\n",
            x_scales[picture->x_scale]);
}

static int draw_picture(const char *path, const bench_table *table, const bench_picture *picture,
                        pnr_error *error)
{
    const pnr_sheet sheet = {
        .path = path, .title = {picture->title, table->title}, .width = 1100, .height = 700};
    char *curves = NULL, *command = NULL;
    size_t curves_bytes, command_bytes, n_curves = 0;
    FILE *blocks = open_memstream(&curves, &curves_bytes);
    FILE *plot = open_memstream(&command, &command_bytes);
    pnr_gnuplot gnuplot;
    bool is_written = blocks != NULL && plot != NULL;
    int code;

    if (is_written)
        n_curves = print_curves(blocks, plot, table, picture);
    is_written = (blocks == NULL || fclose(blocks) == 0) && is_written;
    is_written = (plot == NULL || fclose(plot) == 0) && is_written;
    if (!is_written)
        code = pnr_error_set(error, PNR_ENOMEMORY, "--plot %s: out of memory", path);
    else if (n_curves == 0)
        code = pnr_error_set(error, PNR_EDATA, "--plot %s: nothing was measured to draw", path);
    else if ((code = pnr_gnuplot_open(&sheet, &gnuplot, error)) == PNR_OK) {
        print_axes(gnuplot.to, picture);
        fprintf(gnuplot.to, "%s%s\n", curves, command);
        code = pnr_gnuplot_close(&gnuplot, error);
    }
    free(curves);
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
