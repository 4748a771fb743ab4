/* SPDX-License-Identifier: MIT */
/* Reads the configuration from INI files and assignments. An unknown section, key or choice is
 * always an error. */
#include "config/config.h"

#include "base/text.h"
#include "config/keys.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    LINE_MAX_BYTES = 4096,
    FILE_MAX_BYTES = 16 << 20 /* a limit, because a file such as /dev/zero has no end */
};

/* The current file and line, for error messages. */
typedef struct place {
    const char *name; /* path of the file, or "-s" */
    size_t line;      /* number of the line; 0: no line */
    pnr_error *error;
} place;

static int refuse_at(const place *at, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse_at(const place *at, int code, const char *format, ...)
{
    char text[400];
    size_t length = strlen(at->name);
    const char *tail = length > 90 ? at->name + length - 87 : at->name;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (at->line > 0)
        return pnr_error_set(at->error, code, "%s%s:%zu: %s", tail == at->name ? "" : "...", tail,
                             at->line, text);
    return pnr_error_set(at->error, code, "%s%s: %s", tail == at->name ? "" : "...", tail, text);
}

/* --- names --- */

/* Returns the key for a synonym, as "fs" for rate_hz, or for a name without its unit, as "rate".
 * Searches one section, or all sections if `section` is NULL. Returns NULL if there is no such
 * key. */
static const pnr_key *guess_key(const char *section, const char *name)
{
    const size_t n = strlen(name);

    for (const pnr_section *s = pnr_config_sections; s->name && n > 0; s++) {
        const char *synonym = pnr_name_synonym(s->name, NULL, name);
        const pnr_key *key = synonym ? pnr_key_find(s->name, synonym) : NULL;

        if (section && strcmp(section, s->name) != 0)
            continue;
        while (!synonym && (key = pnr_key_next(s->name, key)) != NULL)
            if (strncmp(key->name, name, n) == 0 && key->name[n] == '_')
                break;
        if (key)
            return key;
    }
    return NULL;
}

/* Refuses an unknown key, and suggests a known key. title: the name of the section in the file;
 * section: the name of the same section in pnr_config_sections. */
static int refuse_key(const place *at, const char *title, const char *section, const char *name)
{
    const pnr_key *elsewhere = pnr_key_find(NULL, name), *best = guess_key(section, name);
    char there[PNR_SECTION_LEN];

    if (best)
        return refuse_at(at, PNR_ECONFIG, "unknown key \"%.80s\" in [%s]; did you mean %s.%s?",
                         name, title, title, best->name);
    if (elsewhere)
        return refuse_at(at, PNR_ECONFIG, "unknown key \"%s\" in [%s]: it belongs to [%s]", name,
                         title, pnr_section_title(pnr_section_of(elsewhere), 1, there));
    for (const pnr_key *key = NULL; (key = pnr_key_next(section, key)) != NULL;)
        if (!best || pnr_name_distance(name, key->name) < pnr_name_distance(name, best->name))
            best = key;
    if (!best || !pnr_name_is_near(name, best->name))
        return refuse_at(at, PNR_ECONFIG,
                         "unknown key \"%.80s\" in [%s]: see its keys in "
                         "pnradar.conf(5)",
                         name, title);
    return refuse_at(at, PNR_ECONFIG, "unknown key \"%.80s\" in [%s]; the nearest is \"%s\"", name,
                     title, best->name);
}

static int refuse_section(const place *at, const char *name)
{
    const char *synonym = pnr_name_synonym("", NULL, name);
    char candidate[PNR_SECTION_LEN], best[PNR_SECTION_LEN] = "";

    if (synonym)
        return refuse_at(at, PNR_ECONFIG, "unknown section [%.80s]; did you mean [%s]?", name,
                         synonym);
    for (const pnr_section *s = pnr_config_sections; s->name; s++) {
        pnr_section_title(s, 1, candidate);
        if (!*best || pnr_name_distance(name, candidate) < pnr_name_distance(name, best))
            memcpy(best, candidate, sizeof best);
    }
    if (!pnr_name_is_near(name, best))
        return refuse_at(at, PNR_ECONFIG, "unknown section [%.80s]: see pnradar.conf(5)", name);
    return refuse_at(at, PNR_ECONFIG, "unknown section [%.80s]; the nearest is [%s]", name, best);
}

/* --- sections --- */

/* A section as it is written in a file. */
typedef struct section {
    const pnr_section *table;
    size_t number; /* n of a numbered section, as in [target.<n>]; 0: the section is not numbered */
    size_t line;   /* line of the title in the file */
} section;

static int find_section(const place *at, const char *name, section *out)
{
    out->table = pnr_section_find(name, &out->number);
    out->line = 0;
    return out->table ? PNR_OK : refuse_section(at, name);
}

/* Sets the key. If the value is refused, the error message quotes it. */
static int assign_value(const place *at, pnr_config *config, const section *where,
                        const pnr_key *key, const char *value)
{
    char why[PNR_WHY_LEN], title[PNR_SECTION_LEN];
    void *base = config;
    int rc;

    pnr_section_title(where->table, where->number, title);
    if (where->number > 0)
        base = pnr_section_add(where->table, config, where->number);
    if (!base)
        return refuse_at(at, PNR_ENOMEMORY, "no memory for [%s]", title);
    rc = pnr_value_parse(key, value, base, why);
    if (rc != PNR_OK)
        return refuse_at(at, rc, "%s.%s = \"%.60s%s\": %s", title, key->name, value,
                         strlen(value) > 60 ? "..." : "", why);
    return PNR_OK;
}

/* --- one line --- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Refuses control characters, because they would appear in messages, printed texts and topics. The
 * error message does not quote the text, so that the message has one line. */
static int refuse_control(const place *at, const char *text)
{
    const char *end = text + strlen(text);

    for (; (text = pnr_text_find_control(text, (size_t)(end - text))) != NULL; text++)
        if (*text != '\t')
            return refuse_at(at, PNR_ECONFIG, "the control %s 0x%02x",
                             (unsigned char)*text == 0xc2 ? "character" : "byte",
                             (unsigned char)text[(unsigned char)*text == 0xc2]);
    return PNR_OK;
}

/* Removes white space at both ends, in place. */
static char *trim_space(char *text)
{
    size_t n;

    text += strspn(text, " \t");
    n = strlen(text);
    while (n > 0 && is_space(text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

/* Removes a comment. It begins with # or ; at the start of `text` or after white space. */
static void cut_comment(char *text)
{
    for (size_t i = 0; text[i]; i++)
        if ((text[i] == '#' || text[i] == ';') && (i == 0 || is_space(text[i - 1]))) {
            text[i] = '\0';
            return;
        }
}

/* Reads the value after "=" in place. A quoted value may contain the escapes \" and \\. A value
 * without quotes has no escapes. */
static int read_value(const place *at, char *text, bool has_comments, char **out)
{
    char *from, *to;

    text += strspn(text, " \t");
    if (*text != '"') {
        if (has_comments)
            cut_comment(text);
        *out = trim_space(text);
        if (strchr(*out, '"'))
            return refuse_at(
                at, PNR_ECONFIG,
                "a quote inside the value \"%.60s\": quote it whole, and write \\\" inside", *out);
        return PNR_OK;
    }
    for (from = to = ++text; *from && *from != '"'; from++) {
        if (*from == '\\') {
            from++;
            if (*from != '"' && *from != '\\')
                return refuse_at(at, PNR_ECONFIG,
                                 "a backslash in quotes goes before \" or \\ only");
        }
        *to++ = *from;
    }
    if (*from != '"')
        return refuse_at(at, PNR_ECONFIG, "the quote is not closed: \"%.60s", text);
    from++;
    *to = '\0';
    if (has_comments)
        cut_comment(from);
    from = trim_space(from);
    if (*from)
        return refuse_at(at, PNR_ECONFIG, "trailing junk after the closing quote: \"%.60s\"", from);
    *out = text;
    return PNR_OK;
}

/* --- a whole text --- */

/* The sections and keys that have been read from one text. A repeated section or key is refused. */
typedef struct reader {
    place at;
    pnr_config *config;
    section section;  /* the present section; table is NULL before the first title */
    size_t *key_line; /* [pnr_config_n_keys] line of each key of the section; 0: not set */
    section *seen;    /* [n_seen] sections read so far */
    size_t n_seen;
} reader;

static int enter_section(reader *r, const char *name)
{
    section found;
    int rc = find_section(&r->at, name, &found);

    if (rc != PNR_OK)
        return rc;
    for (size_t i = 0; i < r->n_seen; i++)
        if (r->seen[i].table == found.table && r->seen[i].number == found.number)
            return refuse_at(&r->at, PNR_ECONFIG, "section [%s] again: it is on line %zu already",
                             name, r->seen[i].line);

    section *seen = realloc(r->seen, (r->n_seen + 1) * sizeof *seen);
    if (seen)
        r->seen = seen;
    if (!seen || (found.number > 0 && !pnr_section_add(found.table, r->config, found.number)))
        return refuse_at(&r->at, PNR_ENOMEMORY, "no memory for section [%s]", name);
    found.line = r->at.line;
    r->seen[r->n_seen++] = found;
    r->section = found;
    memset(r->key_line, 0, pnr_config_n_keys * sizeof *r->key_line);
    return PNR_OK;
}

/* Reads "[name]". Only a comment may follow. */
static int read_section(reader *r, char *line)
{
    char *end = strchr(line, ']');

    if (!end)
        return refuse_at(&r->at, PNR_ECONFIG, "no ] after \"%.60s\"", line);
    *end = '\0';
    cut_comment(end + 1);
    char *rest = trim_space(end + 1);
    if (*rest)
        return refuse_at(&r->at, PNR_ECONFIG, "trailing junk after [%.60s]: \"%.60s\"", line + 1,
                         rest);
    return enter_section(r, line + 1);
}

static int read_assignment(reader *r, char *line)
{
    char *equals = strchr(line, '='), *value, *name, title[PNR_SECTION_LEN];
    const pnr_key *key;
    int rc;

    if (!equals)
        return refuse_at(&r->at, PNR_ECONFIG, "no \"key = value\" and no section: \"%.60s\"", line);
    *equals = '\0';
    name = trim_space(line);
    if (!r->section.table) {
        key = pnr_key_find(NULL, name);
        if (!key && (key = guess_key(NULL, name)) != NULL)
            return refuse_at(&r->at, PNR_ECONFIG,
                             "key \"%.60s\" before any section; did you mean %s of [%s]?", name,
                             key->name, key->section);
        return refuse_at(&r->at, PNR_ECONFIG, "key \"%.60s\" before any section: %s%s%s", name,
                         key ? "it belongs to [" : "begin with one, as [source]",
                         key ? key->section : "", key ? "]" : "");
    }
    key = pnr_key_find(r->section.table->name, name);
    if (!key)
        return refuse_key(&r->at, pnr_section_title(r->section.table, r->section.number, title),
                          r->section.table->name, name);

    size_t *line_before = &r->key_line[key - pnr_config_keys];
    if (*line_before > 0)
        return refuse_at(&r->at, PNR_ECONFIG, "key %s.%s again: it is on line %zu already",
                         pnr_section_title(r->section.table, r->section.number, title), name,
                         *line_before);
    *line_before = r->at.line;
    rc = read_value(&r->at, equals + 1, true, &value);
    return rc == PNR_OK ? assign_value(&r->at, r->config, &r->section, key, value) : rc;
}

/* Reads one line. It ends with a NUL at index `length`. Refuses an earlier NUL. */
static int read_line(reader *r, char *line, size_t length)
{
    if (strlen(line) != length)
        return refuse_at(&r->at, PNR_ECONFIG, "a NUL byte after \"%.60s\": is this a text file?",
                         line);
    int rc = refuse_control(&r->at, line);
    if (rc != PNR_OK)
        return rc;
    line = trim_space(line);
    if (*line == '\0' || *line == '#' || *line == ';')
        return PNR_OK;
    return *line == '[' ? read_section(r, line) : read_assignment(r, line);
}

int pnr_config_parse(pnr_config *config, const char *text, size_t length, const char *name,
                     pnr_error *error)
{
    reader r = {.at = {.name = name, .error = error}, .config = config};
    char line[LINE_MAX_BYTES + 1];
    size_t at = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* skips a BOM */
    int rc = PNR_OK;

    r.key_line = calloc(pnr_config_n_keys, sizeof *r.key_line);
    if (!r.key_line)
        return refuse_at(&r.at, PNR_ENOMEMORY, "no memory");
    while (rc == PNR_OK && at < length) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end ? (size_t)(end - text) - at : length - at;
        size_t next = at + n + (end != NULL);

        r.at.line++;
        if (end && n > 0 && text[at + n - 1] == '\r') /* the line ends with CR LF */
            n--;
        if (n > LINE_MAX_BYTES) {
            rc = refuse_at(&r.at, PNR_ECONFIG, "a line of %zu bytes: at most %d, please", n,
                           LINE_MAX_BYTES);
            break;
        }
        memcpy(line, text + at, n);
        line[n] = '\0';
        rc = read_line(&r, line, n);
        at = next;
    }
    free(r.key_line);
    free(r.seen);
    return rc;
}

/* Reads the whole file. The caller owns *text, also after an error. */
static int load_file(const place *at, FILE *file, char **text, size_t *length)
{
    *text = malloc(FILE_MAX_BYTES); /* the system allocates a page only when it is written */
    if (!*text)
        return refuse_at(at, PNR_ENOMEMORY, "no memory for a file of %d bytes", FILE_MAX_BYTES);
    *length = fread(*text, 1, FILE_MAX_BYTES, file);
    if (*length == FILE_MAX_BYTES)
        return refuse_at(at, PNR_ECONFIG, "over %d MiB: not a configuration", FILE_MAX_BYTES >> 20);
    return ferror(file) ? refuse_at(at, PNR_EIO, "cannot be read: %s", strerror(errno)) : PNR_OK;
}

int pnr_config_read(pnr_config *config, const char *path, pnr_error *error)
{
    const place at = {.name = path, .error = error};
    FILE *file = fopen(path, "re");
    struct stat status;
    char *text = NULL;
    size_t length = 0;
    int rc;

    if (!file)
        return pnr_error_file(error, PNR_ENOINPUT, "configuration", path, errno);
    if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode))
        rc = refuse_at(&at, PNR_ECONFIG, "is a directory: name a file in it");
    else
        rc = load_file(&at, file, &text, &length);
    if (rc == PNR_OK)
        rc = pnr_config_parse(config, text, length, path, error);
    free(text);
    fclose(file);
    return rc;
}

int pnr_config_set(pnr_config *config, const char *assignment, pnr_error *error)
{
    const place at = {.name = "-s", .error = error};
    const char *equals = strchr(assignment, '=');
    char *copy, *dot, *value, *name;
    const pnr_key *key = NULL;
    section where;
    int rc = refuse_control(&at, assignment);

    if (rc != PNR_OK)
        return rc;
    if (!equals)
        return refuse_at(&at, PNR_ECONFIG, "\"%.60s\" is not section.key=value", assignment);
    copy = strdup(assignment);
    if (!copy)
        return refuse_at(&at, PNR_ENOMEMORY, "no memory");
    copy[equals - assignment] = '\0';
    name = trim_space(copy);
    dot = strrchr(name, '.');
    if (!dot) {
        key = pnr_key_find(NULL, name);
        key = key ? key : guess_key(NULL, name);
        rc = refuse_at(&at, PNR_ECONFIG, "\"%.60s\" is not section.key=value%s%s%s%s", assignment,
                       key ? "; it may mean " : "", key ? key->section : "", key ? "." : "",
                       key ? key->name : "");
        goto done;
    }
    *dot = '\0';
    rc = find_section(&at, name, &where);
    if (rc == PNR_OK && !(key = pnr_key_find(where.table->name, dot + 1)))
        rc = refuse_key(&at, name, where.table->name, dot + 1);
    /* On a command line the value may have quotes, but no comment. */
    if (rc == PNR_OK)
        rc = read_value(&at, copy + (equals - assignment) + 1, false, &value);
    if (rc == PNR_OK)
        rc = assign_value(&at, config, &where, key, value);
done:
    free(copy);
    return rc;
}

void pnr_config_init(pnr_config *config)
{
    memset(config, 0, sizeof *config);
    pnr_section_reset(NULL, config);
}

void pnr_config_clear(pnr_config *config)
{
    free(config->source.lost);
    free(config->echo.slips);
    free(config->codes);
    free(config->targets);
    memset(config, 0, sizeof *config);
}
