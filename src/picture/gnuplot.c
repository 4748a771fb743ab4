/* SPDX-License-Identifier: MIT */
/* Draws pictures with gnuplot, a program on the PATH. Gnuplot reads commands from memory and writes
 * the picture to a pipe. This program writes the file, so gnuplot does not know its name. */
#include "picture/gnuplot.h"

#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MIN_WIDTH = 400, MIN_HEIGHT = 300, MOST = 10000, BASE_WIDTH = 1100, BASE_HEIGHT = 620 };
static const double base_font_px = 16, least_scale = 0.6;
static const char option[] = "--plot"; /* option for error messages about the file */
static const double title_share = 0.9; /* widest title line / width of the sheet */

/* The formats of pictures. signature: the first bytes of a file of this format. terminal: the
 * terminal of gnuplot. Its size is in units of unit_px pixels, and its font size in units of
 * font_unit_px pixels. line, point: `lw` of a line and `ps` of a point at scale 1. grows: the
 * terminal enlarges points together with the text. */
static const struct format {
    const char *extension, *signature, *terminal, *font;
    double unit_px, font_unit_px, line, point;
    bool grows;
} formats[] = {
    {".png", "\x89PNG", "pngcairo fontscale 1", "Sans", 1, 96.0 / 72, 1, 1, false},
    {".svg", "<?xml", "svg background 'white'", "sans-serif", 1, 1, 1, 0.56, true},
    {".pdf", "%PDF", "pdfcairo fontscale 1", "Sans", 96, 128.0 / 72, 1.5, 1, false},
};

int pnr_gnuplot_read_size(const char *text, int *width, int *height, pnr_error *error)
{
    char after;

    if (strspn(text, "0123456789x") == strlen(text) &&
        sscanf(text, "%5dx%5d%c", width, height, &after) == 2 && *width >= MIN_WIDTH &&
        *width <= MOST && *height >= MIN_HEIGHT && *height <= MOST)
        return PNR_OK;
    return pnr_error_set(error, PNR_EUSAGE,
                         "--size %.60s: want WIDTHxHEIGHT in pixels, %dx%d to %dx%d", text,
                         MIN_WIDTH, MIN_HEIGHT, MOST, MOST);
}

/* --- the file --- */

/* Returns the format for the extension of a path. NULL: the extension is unknown. */
static const struct format *find_format(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot != NULL && i < sizeof formats / sizeof formats[0]; i++)
        if (strcasecmp(dot, formats[i].extension) == 0)
            return &formats[i];
    return NULL;
}

/* Writes all bytes from the pipe of gnuplot to the file. Returns PNR_OK or PNR_EIO. */
static int copy_picture(int from, const pnr_new_file *file, size_t *n_bytes, pnr_error *error)
{
    char bytes[1 << 16];
    int code = PNR_OK;
    ssize_t n;

    *n_bytes = 0;
    while (code == PNR_OK && (n = read(from, bytes, sizeof bytes)) != 0) {
        if (n > 0)
            code = pnr_new_file_write(file, bytes, (size_t)n, error);
        else if (errno != EINTR)
            code = pnr_error_file(error, PNR_EIO, option, file->path, errno);
        *n_bytes += n > 0 ? (size_t)n : 0;
    }
    return code;
}

/* --- gnuplot --- */

/* Returns the environment of this program with a UTF-8 locale, because in other locales gnuplot
 * refuses the degree sign. NULL: out of memory. The caller frees the array, but not its strings. */
static char **make_environment(void)
{
    static char locale[] = "LC_ALL=C.UTF-8";
    size_t n = 0, n_kept = 0;

    while (environ[n] != NULL)
        n++;

    char **kept = calloc(n + 2, sizeof *kept);

    for (size_t i = 0; kept != NULL && i < n; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0)
            kept[n_kept++] = environ[i];
    if (kept != NULL)
        kept[n_kept] = locale;
    return kept;
}

/* Starts gnuplot without the settings of the user. input, output: its standard streams. Returns 0
 * or an errno. */
static int start_gnuplot(int input, int output, bool is_quiet, pid_t *out)
{
    char name[] = "gnuplot", default_settings[] = "-d";
    char *const arguments[] = {name, default_settings, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t pipe_signal; /* SIGPIPE ends gnuplot if this program stops reading */
    char **environment;
    int code;

    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    if ((code = posix_spawn_file_actions_init(&actions)) != 0)
        return code;
    if ((environment = make_environment()) == NULL)
        code = ENOMEM;
    else if ((code = posix_spawnattr_init(&attributes)) == 0) {
        if ((code = posix_spawnattr_setsigdefault(&attributes, &pipe_signal)) == 0 &&
            (code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF)) == 0 &&
            (code = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)) == 0 &&
            (code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)) == 0 &&
            (code = posix_spawn_file_actions_adddup2(&actions, is_quiet ? output : STDERR_FILENO,
                                                     STDERR_FILENO)) == 0)
            code = posix_spawnp(out, name, &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    free(environment);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static int refuse_start(const char *path, int code, pnr_error *error)
{
    return code == ENOENT
               ? pnr_error_set(error, PNR_EUNAVAILABLE,
                               "--plot %s needs gnuplot, which is not on the PATH (Debian's "
                               "package: gnuplot-nox)",
                               path)
               : pnr_error_set(error, PNR_EUNAVAILABLE, "--plot %s: gnuplot: %s", path,
                               strerror(code));
}

/* Returns the exit status of gnuplot, or -1 after a signal. */
static int wait_for(pid_t process)
{
    int status = -1;

    while (waitpid(process, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Opens a file in memory for the commands. */
static int open_commands(const char *path, FILE **out, pnr_error *error)
{
    const int file = memfd_create("gnuplot", MFD_CLOEXEC);

    *out = file >= 0 ? fdopen(file, "w") : NULL;
    if (*out != NULL)
        return PNR_OK;
    if (file >= 0)
        close(file);
    return pnr_error_set(error, PNR_EIO, "--plot %s: %s", path, strerror(errno));
}

/* Starts gnuplot with the commands, and closes the file of the commands. *from: the pipe with the
 * picture; the caller closes it. is_quiet: gnuplot writes its messages to the same pipe. */
static int run_commands(const char *path, FILE *commands, bool is_quiet, int *from, pid_t *process,
                        pnr_error *error)
{
    const bool is_whole = fflush(commands) == 0 && !ferror(commands);
    int ends[2], failed;

    if (!is_whole || lseek(fileno(commands), 0, SEEK_SET) != 0 || pipe2(ends, O_CLOEXEC) != 0) {
        pnr_error_set(error, PNR_EIO, "--plot %s: %s", path, strerror(errno));
        fclose(commands);
        return PNR_EIO;
    }
    failed = start_gnuplot(fileno(commands), ends[1], is_quiet, process);
    fclose(commands);
    close(ends[1]);
    *from = ends[0];
    if (failed == 0)
        return PNR_OK;
    close(ends[0]);
    return refuse_start(path, failed, error);
}

int pnr_gnuplot_check(const char *path, pnr_error *error)
{
    const struct format *format = find_format(path);
    FILE *commands;
    char bytes[256];
    pid_t process;
    int from, code;

    if (format == NULL)
        return pnr_error_set(error, PNR_EUSAGE,
                             "--plot %s: the name must end in .png, .svg or .pdf", path);
    if ((code = pnr_new_file_check(option, path, format->signature, error)) != PNR_OK ||
        (code = open_commands(path, &commands, error)) != PNR_OK)
        return code;
    fprintf(commands, "set terminal %s\n", format->terminal);
    if ((code = run_commands(path, commands, true, &from, &process, error)) != PNR_OK)
        return code;
    while (read(from, bytes, sizeof bytes) > 0)
        ;
    close(from);
    return wait_for(process) == 0 ? PNR_OK
                                  : pnr_error_set(error, PNR_EUNAVAILABLE,
                                                  "--plot %s: this gnuplot cannot draw %s "
                                                  "(Debian's package gnuplot-nox can)",
                                                  path, format->extension);
}

/* --- text --- */

/* Writes at most n_characters characters of the text as a literal of gnuplot. Returns the rest of
 * the text. */
static const char *quote(FILE *to, const char *text, size_t n_characters)
{
    fputc('\'', to);
    while (*text != '\0' && n_characters-- > 0) {
        const size_t n = pnr_text_character(text);

        if (n == 0 || pnr_text_find_control(text, n) != NULL)
            fputc('?', to);
        else if (*text == '\'')
            fputs("''", to);
        else
            fwrite(text, 1, n, to);
        text += n > 0 ? n : 1;
    }
    fputc('\'', to);
    return text;
}

void pnr_gnuplot_quote(FILE *to, const char *text)
{
    (void)quote(to, text, SIZE_MAX);
}

/* Returns an upper limit of the width of a character of n bytes, divided by the height of the text.
 * The limit is the width in DejaVu Sans, a wide font. */
static double width_em(const char *at, size_t n)
{
    if (n > 1)
        return n > 2 ? 1 : 0.85;
    if (strchr("mwMW@%", *at) != NULL)
        return 1;
    if (strchr("fijlrtI .,:;'!|()[]-/", *at) != NULL)
        return 0.42;
    return *at >= 'A' && *at <= 'Z' ? 0.79 : 0.65;
}

/* Returns the number of characters of `text` in the next line. most_em: greatest width of the line.
 * A text that is too long breaks at a space, or inside a word that is longer than the line. */
static size_t line_length(const char *text, double most_em)
{
    size_t n = 0, to_space = 0;

    while (*text != '\0') {
        const size_t bytes = pnr_text_character(text);

        most_em -= width_em(text, bytes);
        if (*text == ' ')
            to_space = n;
        if (most_em < 0 && n > 0)
            return to_space > 0 ? to_space : n;
        text += bytes > 0 ? bytes : 1;
        n++;
    }
    return n;
}

/* Writes the title as one literal of gnuplot for each line. The concatenation operator (a dot)
 * joins the literals and the line breaks "\n". Only the title has line breaks. */
static void print_title(const pnr_sheet *sheet, const pnr_gnuplot *g)
{
    const double most_em = title_share * sheet->width / g->font_px;
    const char *between = "";

    fputs("set title ", g->to);
    for (size_t i = 0; i < PNR_GNUPLOT_LINES && sheet->title[i] != NULL; i++) {
        for (const char *at = sheet->title[i]; *at != '\0'; at += strspn(at, " ")) {
            fputs(between, g->to);
            at = quote(g->to, at, line_length(at, most_em));
            between = ".\"\\n\".";
        }
    }
    fputs(*between != '\0' ? " offset 0,0.6 noenhanced\n" : "''\n", g->to);
}

/* Sets the line types. The colours are the colours of Okabe and Ito without yellow, which is hardly
 * visible on white. When a colour is used again, its lines are dashed. */
static void print_line_types(const pnr_gnuplot *g)
{
    static const char *const colours[] = {"0072B2", "D55E00", "009E73", "CC79A7",
                                          "E69F00", "56B4E9", "000000"};
    enum { N = sizeof colours / sizeof colours[0], ROUNDS = 3 };

    for (int i = 0; i < N * ROUNDS; i++)
        fprintf(g->to, "set linetype %d lc rgb '#%s' lw 2 dt %d pt %d ps %.3g\n", i + 1,
                colours[i % N], i / N + 1, 4 + (i % N + i / N) % 10, g->point);
    fprintf(g->to, "set linetype cycle %d\n", N * ROUNDS);
}

int pnr_gnuplot_open(const pnr_sheet *sheet, pnr_gnuplot *out, pnr_error *error)
{
    const struct format *format = find_format(sheet->path);
    const double by_width = (double)sheet->width / BASE_WIDTH,
                 by_height = (double)sheet->height / BASE_HEIGHT;
    int code;

    if (format == NULL || (code = open_commands(sheet->path, &out->to, error)) != PNR_OK)
        return format == NULL ? pnr_gnuplot_check(sheet->path, error) : code;
    out->path = sheet->path;
    out->scale = by_width < by_height ? by_width : by_height;
    out->scale = out->scale > least_scale ? out->scale : least_scale;
    out->font_px = base_font_px * out->scale;
    out->point = format->point * (format->grows ? 1 : out->scale);
    fprintf(out->to,
            "set encoding utf8\n"
            "set terminal %s size %.9g,%.9g font '%s,%.4g' linewidth %.3g\n",
            format->terminal, sheet->width / format->unit_px, sheet->height / format->unit_px,
            format->font, out->font_px / format->font_unit_px, format->line * out->scale);
    fputs("set format '%h'\nset tics out nomirror\n", out->to);
    print_title(sheet, out);
    print_line_types(out);
    return PNR_OK;
}

/* Writes the picture from the pipe to a new file. If gnuplot succeeds, the new file replaces the
 * file at the path. */
static int write_picture(const char *path, int from, pid_t process, pnr_error *error)
{
    pnr_new_file file;
    size_t n_bytes = 0;
    int code = pnr_new_file_create(option, path, find_format(path)->signature, &file, error);
    int status;

    if (code == PNR_OK)
        code = copy_picture(from, &file, &n_bytes, error);
    close(from);
    status = wait_for(process);
    if (code == PNR_OK && (status != 0 || n_bytes == 0))
        code = pnr_error_set(error, PNR_EIO, "--plot %s: gnuplot failed (status %d)", path, status);
    if (code == PNR_OK)
        return pnr_new_file_finish(&file, true, error);
    pnr_new_file_discard(&file);
    return code;
}

int pnr_gnuplot_close(pnr_gnuplot *g, pnr_error *error)
{
    pid_t process;
    int from;
    const int code = run_commands(g->path, g->to, false, &from, &process, error);

    return code == PNR_OK ? write_picture(g->path, from, process, error) : code;
}
