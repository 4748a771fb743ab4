/* SPDX-License-Identifier: MIT */
/* Draws the power of a profile or map on the terminal. Range increases to the right. A profile is
 * drawn as bars. In a map, Doppler increases upwards, and colours show the power. */
#include "tools/listen/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LEVELS = LISTEN_HEAT_LEVELS,
    AXIS_EVERY = 3,     /* approximate least distance of two labels of the axis, in rows */
    UNIT_COLUMNS = 4,   /* width of the text of the unit at the lower left, with a space */
    KILO_FROM = 100000, /* from this value (Hz or m/s) on, the axis is in kHz or km/s */
    BOTTOM_DB = -5      /* lowest level of a profile's scale; 0 is the noise floor */
};

/* Characters for the levels, from noise to the strongest power, in UTF-8 and in ASCII. With them, a
 * terminal without colours also shows the levels. */
static const char *const glyphs[LEVELS] = {" ", "·", "░", "░", "▒", "▒", "▓", "█"};
static const char ascii[] = " .:-=+%#";

static bool is_map(const listen_graph *g)
{
    return g->info.n_rows > 1;
}

static double power_db(float power)
{
    return power > 0 ? 10 * log10((double)power) : -INFINITY;
}

/* Chooses the top of the scale. The top rises at once. It falls only if the new top is more than 10
 * dB lower. */
static void choose_scale(listen_graph *g)
{
    double greatest_db = 0;
    int top;

    for (size_t b = 0; b < g->doppler.n_bins; b++)
        for (size_t c = 0; c < g->n_columns; c++)
            greatest_db = fmax(greatest_db, power_db(g->power[b][c]));
    top = 10 * (int)ceil((greatest_db + 2) / 10);
    top = top > 20 ? top : 20;
    if (top > g->top_db || top < g->top_db - 10)
        g->top_db = top;
}

void listen_graph_fill(listen_graph *g, const pnr_map *profile, const listen_place *at)
{
    const size_t rows = (size_t)at->rows, columns = (size_t)at->columns;
    size_t first_row;

    g->info = profile->info;
    g->doppler =
        pnr_doppler_bins_of(&profile->info, rows < LISTEN_GRAPH_ROWS ? rows : LISTEN_GRAPH_ROWS);
    g->n_columns = columns < LISTEN_GRAPH_COLUMNS ? columns : LISTEN_GRAPH_COLUMNS;
    for (size_t b = 0; b < g->doppler.n_bins; b++) {
        const size_t n_rows = pnr_doppler_bins_rows(&g->doppler, &profile->info, b, &first_row);

        pnr_map_reduce(profile, 0, first_row, n_rows,
                       (double)g->info.row.n_gate / (double)g->n_columns, g->n_columns,
                       g->power[b]);
    }
}

/* Returns the power at column x, `up` rows above the bottom. */
static float power_at(const listen_graph *g, const listen_place *at, int x, int up)
{
    const size_t bin = is_map(g) ? (size_t)up * g->doppler.n_bins / (size_t)at->rows : 0;

    return g->power[bin][(size_t)x * g->n_columns / (size_t)at->columns];
}

/* --- a map --- */

/* Returns the level of a power. One character shows the greatest power of several cells, so noise
 * alone is a few dB above the floor. Level 0 includes such noise. */
static int level_of(double db, int top_db)
{
    const double level = floor(db / top_db * LEVELS);

    return !(level > 0) ? 0 : level < LEVELS - 1 ? (int)level : LEVELS - 1;
}

static void draw_scale(listen_screen *screen, const listen_place *at, int top_db)
{
    char top[16];
    const int n = snprintf(top, sizeof top, " %d dB", top_db);
    int x = at->left + at->columns - n - LEVELS - 3;

    listen_screen_text(screen, x, at->scale, LISTEN_PLAIN, " 0 ");
    x += 3;
    for (int level = 0; level < LEVELS; level++)
        listen_screen_put(screen, x++, at->scale, LISTEN_HEAT + level, glyphs[level], ascii[level]);
    listen_screen_text(screen, x, at->scale, LISTEN_PLAIN, "%s", top);
}

/* Returns the screen row of a Doppler; -1: outside the map. */
static int doppler_row(const listen_graph *g, const listen_place *at, double doppler_hz)
{
    const double bin = (doppler_hz - g->doppler.first_hz) / g->doppler.step_hz + 0.5;
    const double up = floor(bin / (double)g->doppler.n_bins * at->rows);

    return up >= 0 && up < at->rows ? at->bottom - (int)up : -1;
}

/* Writes round values of the velocity or of the Doppler at the left edge. Two values are at least
 * about AXIS_EVERY rows apart. */
static void draw_doppler_axis(const listen_graph *g, listen_screen *screen, const listen_place *at)
{
    const bool is_velocity = isfinite(g->info.mps_per_hz);
    const double span_hz = (double)g->doppler.n_bins * g->doppler.step_hz;
    const double greatest_hz = fmax(fabs(g->doppler.first_hz), fabs(g->doppler.first_hz + span_hz));
    const double unit = is_velocity ? g->info.mps_per_hz : 1;
    const double scale = greatest_hz * unit >= KILO_FROM ? unit / 1e3 : unit;
    const double step = pnr_round_step(span_hz * scale * AXIS_EVERY / at->rows);
    const double first = floor(g->doppler.first_hz * scale / step);
    int y, last = at->bottom + AXIS_EVERY;

    for (int i = 0; i <= at->rows; i++) {
        const double value = (first + i) * step;

        y = doppler_row(g, at, value / scale);
        if (y < 0 || last - y < 2) /* rounding may put two values on neighbouring rows */
            continue;
        last = y;
        listen_screen_text(screen, 0, y, LISTEN_PLAIN, "%*.5g", at->left - 1,
                           fabs(value) < step / 2 ? 0 : value);
        listen_screen_put(screen, at->left - 1, y, LISTEN_PLAIN, "┤", '+');
    }
    listen_screen_text(screen, 0, at->bottom + 1, LISTEN_PLAIN, "%s%s", scale < unit ? "k" : "",
                       is_velocity ? "m/s" : "Hz");
}

static void draw_map(const listen_graph *g, listen_screen *screen, const listen_place *at)
{
    for (int up = 0; up < at->rows; up++) {
        for (int x = 0; x < at->columns; x++) {
            const int level = level_of(power_db(power_at(g, at, x, up)), g->top_db);

            listen_screen_put(screen, at->left + x, at->bottom - up, LISTEN_HEAT + level,
                              glyphs[level], ascii[level]);
        }
    }
    draw_doppler_axis(g, screen, at);
    draw_scale(screen, at, g->top_db);
}

/* --- a profile --- */

/* Returns the height of a power above the bottom, in eighths of a row. */
static int height_of(const listen_graph *g, const listen_place *at, double db)
{
    const double share = (db - BOTTOM_DB) / (g->top_db - BOTTOM_DB);

    return (int)lrint(fmin(fmax(share, 0), 1) * 8 * at->rows);
}

static int row_of(const listen_graph *g, const listen_place *at, double db)
{
    const int up = height_of(g, at, db) / 8;

    return at->bottom - (up < at->rows ? up : at->rows - 1);
}

/* A level in the graph of a profile, with its line and its name. */
typedef struct level {
    double db;
    const char *glyph;
    char plain;
    listen_style style;
    char name[32];
} level;

static bool is_shown(const listen_graph *g, const level *l)
{
    return isfinite(l->db) && l->db >= BOTTOM_DB && l->db <= g->top_db;
}

static void draw_line(const listen_graph *g, listen_screen *screen, const listen_place *at,
                      const level *l)
{
    for (int x = 0; is_shown(g, l) && x < at->columns; x++)
        listen_screen_put(screen, at->left + x, row_of(g, at, l->db), l->style, l->glyph, l->plain);
}

static void draw_name(const listen_graph *g, listen_screen *screen, const listen_place *at,
                      const level *l)
{
    if (is_shown(g, l))
        listen_screen_text(screen, at->left + at->columns - (int)strlen(l->name) - 2,
                           row_of(g, at, l->db), l->style, " %s ", l->name);
}

static void draw_power_axis(const listen_graph *g, listen_screen *screen, const listen_place *at)
{
    const int step = at->rows * 10 >= 2 * (g->top_db - BOTTOM_DB) ? 10 : 20;
    int db;

    for (db = 0; db <= g->top_db; db += step) {
        const int y = row_of(g, at, db);

        listen_screen_text(screen, 0, y, LISTEN_PLAIN, "%3d dB", db);
        listen_screen_put(screen, at->left - 1, y, LISTEN_PLAIN, "┤", '+');
    }
}

/* Draws the names of the lines last, so that no bar hides them. */
static void draw_profile(const listen_graph *g, listen_screen *screen, const listen_place *at)
{
    const level floor_level = {0, "─", '-', LISTEN_CYAN, "noise floor"};
    level threshold = {10 * log10(g->info.row.threshold / g->info.row.floor), "╌", '=',
                       LISTEN_YELLOW, ""};

    snprintf(threshold.name, sizeof threshold.name, "threshold %.1f dB", threshold.db);
    draw_line(g, screen, at, &floor_level);
    draw_line(g, screen, at, &threshold);
    for (int x = 0; x < at->columns; x++)
        listen_screen_bar(screen, at->left + x, at->bottom,
                          height_of(g, at, power_db(power_at(g, at, x, 0))), LISTEN_GREEN);
    draw_name(g, screen, at, &floor_level);
    draw_name(g, screen, at, &threshold);
    draw_power_axis(g, screen, at);
}

/* --- profiles and maps --- */

/* Returns the column of a range. -1: outside the profile. A cell is one range step wide. Its range
 * is at the middle of the cell. */
static int column_of(const listen_graph *g, const listen_place *at, double range_m)
{
    const double first_m = pnr_map_range_m(&g->info.row, -0.5);
    const double span_m = pnr_map_range_m(&g->info.row, (double)g->info.row.n_gate - 0.5) - first_m;
    const double x = floor((range_m - first_m) / span_m * at->columns);

    return x >= 0 && x < at->columns ? (int)x : -1;
}

/* Returns the first column of a label. The label is centred at column x, but is shifted if it would
 * cross the right edge or cover the unit. */
static int place_label(const listen_place *at, int x, int length)
{
    const int right = at->left + at->columns - length, middle = at->left + x - length / 2;

    return middle > right ? right : middle > UNIT_COLUMNS ? middle : UNIT_COLUMNS;
}

static void draw_range_axis(const listen_graph *g, listen_screen *screen, const listen_place *at)
{
    const double first_m = pnr_map_range_m(&g->info.row, 0),
                 last_m = pnr_map_range_m(&g->info.row, (double)g->info.row.n_gate - 1);
    const bool is_km = pnr_map_is_km(&g->info.row);
    const double unit_m = is_km ? 1e3 : 1;
    const double step =
        pnr_round_step(fmax(last_m - first_m, g->info.row.step_s * g->info.row.metres_per_second) /
                       unit_m / at->columns * 12);
    const double first_tick = ceil(first_m / unit_m / step) * step;
    char label[32];
    int x, i;

    for (x = 0; x < at->columns; x++)
        listen_screen_put(screen, at->left + x, at->bottom + 1, LISTEN_PLAIN, "─", '-');
    for (i = 0; i < at->columns; i++) {
        const double tick = first_tick + i * step;

        x = column_of(g, at, tick * unit_m);
        if (x < 0)
            break;
        listen_screen_put(screen, at->left + x, at->bottom + 1, LISTEN_PLAIN, "┴", '+');
        snprintf(label, sizeof label, "%.10g", fabs(tick) < step / 2 ? 0 : tick);
        x = place_label(at, x, (int)strlen(label));
        listen_screen_text(screen, x, at->bottom + 2, LISTEN_PLAIN, "%s", label);
    }
    listen_screen_text(screen, 0, at->bottom + 2, LISTEN_PLAIN, "%s", is_km ? "km" : "m");
}

char listen_graph_mark(size_t echo, char many)
{
    static const char marks[] = "123456789abcdefghijklmnopqrstuvwxyz";

    return echo < sizeof marks - 1 ? marks[echo] : many;
}

/* Returns the row for the mark of echo e at column x. On a map this is the row of the echo's
 * Doppler; -1: outside the map. On a profile it is the row above the power at x. */
static int mark_row(const listen_graph *g, const listen_place *at, int x, const pnr_echo *e)
{
    const int top = at->bottom - at->rows + 1;
    int above;

    if (is_map(g))
        return isfinite(e->doppler_hz) ? doppler_row(g, at, e->doppler_hz) : -1;
    above = row_of(g, at, power_db(power_at(g, at, x, 0))) - 1;
    return above > top ? above : top;
}

void listen_graph_draw(listen_graph *g, listen_screen *screen, const listen_place *at,
                       const pnr_detection *detection)
{
    choose_scale(g);
    (is_map(g) ? draw_map : draw_profile)(g, screen, at);
    draw_range_axis(g, screen, at);
    for (size_t i = detection->n_echoes; i-- > 0;) { /* draws the strongest echo last, over all
                                                      * others */
        const pnr_echo *e = &detection->echoes[i];
        const int x = isfinite(e->range_m) ? column_of(g, at, e->range_m) : -1;
        const char mark = listen_graph_mark(i, 'v');

        if (x >= 0)
            listen_screen_put(screen, at->left + x, mark_row(g, at, x, e), LISTEN_RED,
                              (char[2]){mark, '\0'}, mark);
    }
}
