/* SPDX-License-Identifier: MIT */
/* Writes results as rows of an SQLite database, with the columns of CSV. Other programs can read
 * the database while it grows: the journal is a write-ahead log, and each sync ends a
 * transaction. */
#include "base/clock.h"
#include "base/text.h"
#include "recorder/result_file.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { APPLICATION_ID = 0x706e7261, BUSY_MS = 5000 };

static const char key[] = "recorder.results";

#define TEXT_COLUMN(x, name) #name " INTEGER," #name "_name TEXT,"
#define COUNT_COLUMN(x, name) #name " INTEGER,"
#define REAL_COLUMN(x, name) #name " REAL,"
#define ZERO_COLUMN(x, name) "zero_" #name " REAL,"
#define COLUMN(x, name) ",?"
#define TWO_COLUMNS(x, name) ",?,?"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS results(run TEXT,stream TEXT,seq INTEGER,sample INTEGER,time TEXT,"
    "periods INTEGER,lost INTEGER,lost_before INTEGER,slip INTEGER,flags TEXT,noise_db REAL,"
    "pfa_cell REAL,cells_above INTEGER,latency_us REAL,echo INTEGER," PNR_ECHO_FIELDS(
        TEXT_COLUMN, COUNT_COLUMN, REAL_COLUMN, REAL_COLUMN, )
        PNR_ZERO_FIELDS(ZERO_COLUMN, ZERO_COLUMN, ZERO_COLUMN, ) "engine TEXT)";
static const char insertion[] =
    "INSERT INTO results VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?" PNR_ECHO_FIELDS(
        TWO_COLUMNS, COLUMN, COLUMN, COLUMN, ) PNR_ZERO_FIELDS(COLUMN, COLUMN, COLUMN, ) ",?)";

typedef struct database {
    sqlite3 *db;
    sqlite3_stmt *insert;
    const char *path;
    bool is_open; /* a transaction is open */
} database;

static int explain(const database *d, pnr_error *error)
{
    return pnr_error_set(error, PNR_EIO, "%s %.300s: %s", key, d->path, sqlite3_errmsg(d->db));
}

static int run(const database *d, const char *sql, pnr_error *error)
{
    return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK ? PNR_OK : explain(d, error);
}

/* Returns the integer in the first row of a statement, or -1 if the statement fails. */
static int number_of(const database *d, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int number = -1;

    if (sqlite3_prepare_v2(d->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

/* Refuses a database of another program. */
static int check_owner(const database *d, pnr_error *error)
{
    const int id = number_of(d, "PRAGMA application_id");

    if (id == APPLICATION_ID ||
        (id == 0 && number_of(d, "SELECT count(*) FROM sqlite_schema") == 0))
        return PNR_OK;
    return pnr_refuse(error,
                      "%s %.300s: it is no database of this program (%s), and is not "
                      "changed: choose another name",
                      key, d->path, id < 0 ? sqlite3_errmsg(d->db) : "another application_id");
}

static int database_close(void *state, pnr_error *error)
{
    database *d = state;
    int code = PNR_OK;

    if (d == NULL)
        return PNR_OK;
    sqlite3_finalize(d->insert);
    if (d->db != NULL && sqlite3_close(d->db) != SQLITE_OK)
        code = explain(d, error);
    free(d);
    return code;
}

static int database_open(const char *path, void **state, pnr_error *error)
{
    database *d = calloc(1, sizeof *d);
    char pragma[64];
    int code;

    *state = d;
    if (d == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
    d->path = path;
    if (sqlite3_open_v2(path, &d->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW,
                        NULL) != SQLITE_OK)
        return explain(d, error);
    sqlite3_busy_timeout(d->db, BUSY_MS);
    snprintf(pragma, sizeof pragma, "PRAGMA application_id=%d", APPLICATION_ID);
    if ((code = check_owner(d, error)) != PNR_OK ||
        (code = run(d, "PRAGMA journal_mode=WAL", error)) != PNR_OK ||
        (code = run(d, pragma, error)) != PNR_OK || (code = run(d, schema, error)) != PNR_OK)
        return code;
    if (sqlite3_prepare_v2(d->db, insertion, -1, &d->insert, NULL) != SQLITE_OK)
        return pnr_refuse(error,
                          "%s %.300s: its columns are of another version (%s): choose "
                          "another name",
                          key, path, sqlite3_errmsg(d->db));
    return PNR_OK;
}

/* --- a row --- */

typedef struct row {
    sqlite3_stmt *to;
    int column; /* number of the last bound column, from 1 */
} row;

static void bind_text(row *r, const char *text)
{
    (void)sqlite3_bind_text(r->to, ++r->column, text, -1, SQLITE_TRANSIENT);
}

static void bind_count(row *r, uint64_t value)
{
    (void)sqlite3_bind_int64(r->to, ++r->column, (sqlite3_int64)value);
}

/* Binds a number, or NULL for a NaN or an infinity. */
static void bind_real(row *r, double value)
{
    (void)sqlite3_bind_double(r->to, ++r->column, isfinite(value) ? value : (double)NAN);
}

static void bind_flags(row *r, unsigned flags)
{
    char words[512] = "";

    for (size_t i = 0; i < PNR_N_FLAGS; i++)
        if (flags & 1u << i) {
            strcat(words, words[0] != '\0' ? " " : "");
            strcat(words, pnr_flag_words[i]);
        }
    bind_text(r, words);
}

static void bind_dwell(row *r, const pnr_report *report)
{
    const double noise = report->detection.noise_power;
    char time[PNR_TIME_LEN];

    bind_text(r, report->run);
    bind_text(r, report->stream);
    bind_count(r, report->seq);
    bind_count(r, report->sample);
    if (report->has_time)
        bind_text(r, pnr_time_format(report->time_ns, time));
    else
        r->column++;
    bind_count(r, report->periods);
    bind_count(r, report->lost);
    bind_count(r, report->lost_before);
    bind_count(r, report->slip);
    bind_flags(r, report->flags);
    bind_real(r, noise > 0 ? 10 * log10(noise) : (double)NAN);
    bind_real(r, report->pfa_cell);
    bind_count(r, report->cells_above);
    bind_real(r, report->latency_us);
}

#define BIND_CODE(from, name)                                                                      \
    bind_count(r, (from)->name + (uint64_t)1);                                                     \
    bind_text(r, (from)->name##_name.text);
#define BIND_COUNT(from, name) bind_count(r, (from)->name);
#define BIND_REAL(from, name) bind_real(r, (from)->name);
#define SKIP_ONE(from, name) r->column++;
#define SKIP_TWO(from, name) r->column += 2;

/* Binds echo i, or NULLs if the dwell has no echo. Also binds the zero delay and the engine. */
static void bind_echo(row *r, const pnr_report *report, size_t i)
{
    if (i < report->detection.n_echoes) {
        bind_count(r, i + 1);
        PNR_ECHO_FIELDS(BIND_CODE, BIND_COUNT, BIND_REAL, BIND_REAL, &report->detection.echoes[i])
    } else {
        r->column++;
        PNR_ECHO_FIELDS(SKIP_TWO, SKIP_ONE, SKIP_ONE, SKIP_ONE, )
    }
    if (report->zero.is_tracked) {
        PNR_ZERO_FIELDS(BIND_REAL, BIND_REAL, BIND_REAL, &report->zero)
    } else {
        PNR_ZERO_FIELDS(SKIP_ONE, SKIP_ONE, SKIP_ONE, )
    }
    bind_text(r, report->engine);
}

/* Cancels the transaction: its rows are lost. */
static int undo(database *d, pnr_error *error)
{
    const int code = explain(d, error);

    (void)sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
    d->is_open = false;
    return code;
}

static int database_add(void *state, const pnr_report *report, pnr_error *error)
{
    database *d = state;

    if (!d->is_open && run(d, "BEGIN IMMEDIATE", error) != PNR_OK)
        return PNR_EIO;
    d->is_open = true;
    for (size_t i = 0; i < report->detection.n_echoes || i == 0; i++) {
        row r = {.to = d->insert};

        (void)sqlite3_clear_bindings(d->insert);
        bind_dwell(&r, report);
        bind_echo(&r, report, i);
        if (sqlite3_step(d->insert) != SQLITE_DONE) {
            (void)sqlite3_reset(d->insert);
            return undo(d, error);
        }
        (void)sqlite3_reset(d->insert);
    }
    return PNR_OK;
}

static int database_sync(void *state, pnr_error *error)
{
    database *d = state;

    if (run(d, "COMMIT", error) != PNR_OK)
        return undo(d, error);
    d->is_open = false;
    return PNR_OK;
}

__attribute__((visibility("default"))) const pnr_result_file *pnr_result_file_get(void);

const pnr_result_file *pnr_result_file_get(void)
{
    static const pnr_result_file file = {.is_block = true,
                                         .open = database_open,
                                         .add = database_add,
                                         .sync = database_sync,
                                         .close = database_close};

    return &file;
}
