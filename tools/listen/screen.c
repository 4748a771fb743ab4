/* SPDX-License-Identifier: MIT */
/* Draws frames on the whole terminal. Each frame replaces the previous one. Restores the terminal
 * when the program ends, also after a signal. */
#include "tools/listen/screen.h"

#include "base/text.h"
#include "cli.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

enum { MAX_WIDTH = 400, MAX_HEIGHT = 120, GLYPH_LEN = 5, ESCAPE_LEN = 16 };

/* enter: selects the alternate screen, without cursor and line wrapping. leave: reverses this. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";
static const char *const styles[] = {
    [LISTEN_PLAIN] = "\033[0m",
    [LISTEN_BOLD] = "\033[0;1m",
    [LISTEN_FAINT] = "\033[0;2m",
    [LISTEN_GREEN] = "\033[0;32m",
    [LISTEN_YELLOW] = "\033[0;33m",
    [LISTEN_CYAN] = "\033[0;36m",
    [LISTEN_RED] = "\033[0;1;31m",
    /* Colours of the 256-colour palette, as in the pictures: blue, green, yellow. */
    [LISTEN_HEAT] = "\033[0m",
    [LISTEN_HEAT + 1] = "\033[0;38;5;61m",
    [LISTEN_HEAT + 2] = "\033[0;38;5;67m",
    [LISTEN_HEAT + 3] = "\033[0;38;5;37m",
    [LISTEN_HEAT + 4] = "\033[0;38;5;36m",
    [LISTEN_HEAT + 5] = "\033[0;38;5;77m",
    [LISTEN_HEAT + 6] = "\033[0;38;5;155m",
    [LISTEN_HEAT + 7] = "\033[0;38;5;226m",
};
static const int stopping[] = {SIGINT, SIGTERM, SIGHUP};
static const int fatal[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

typedef struct cell {
    char glyph[GLYPH_LEN]; /* one character of UTF-8 with its NUL; "": a space */
    listen_style style;
} cell;

struct listen_screen {
    listen_size size;
    bool is_utf8;
    locale_t locale; /* locale of the user; 0: none */
    int keys;        /* file descriptor of the keyboard; -1: none */
    cell cells[MAX_HEIGHT][MAX_WIDTH];
    char frame[MAX_HEIGHT * (MAX_WIDTH * (GLYPH_LEN + ESCAPE_LEN) + 2 * ESCAPE_LEN)];
};

/* Global variables, because signal handlers need them. */
static struct termios before;
static volatile sig_atomic_t is_taken, has_termios;

/* Writes all bytes. Returns early if a signal sets *stop and interrupts the write. So the program
 * can end while Ctrl-S stops the terminal. stop may be NULL. PNR_OK, PNR_EIO. */
static int write_all(const char *data, size_t bytes, const volatile int *stop)
{
    while (bytes > 0) {
        const ssize_t n = write(STDOUT_FILENO, data, bytes);

        if (n < 0 && errno == EINTR && stop != NULL && *stop)
            return PNR_OK;
        if (n < 0 && errno != EINTR)
            return PNR_EIO;
        data += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return PNR_OK;
}

/* Restores the terminal. Calls only functions that a signal handler may call. */
static void give_back(void)
{
    if (!is_taken)
        return;
    is_taken = 0;
    (void)write_all(leave, sizeof leave - 1, NULL);
    if (has_termios)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void stop(int number)
{
    if (__atomic_exchange_n(&pnr_stop, 1, __ATOMIC_SEQ_CST) == 0)
        return;
    give_back();
    _exit(128 + number);
}

/* Restores the terminal, then raises the signal again. SA_RESETHAND has removed this handler, so
 * the signal has its default effect. */
static void die(int number)
{
    give_back();
    raise(number);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop};
    size_t i;

    sigemptyset(&action.sa_mask);
    for (i = 0; i < sizeof stopping / sizeof stopping[0]; i++)
        sigaction(stopping[i], &action, NULL);
    action.sa_handler = die;
    action.sa_flags = (int)SA_RESETHAND;
    for (i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        sigaction(fatal[i], &action, NULL);
}

/* Sets the terminal so that each key arrives at once and is not shown. Ctrl-C still sends a signal.
 * Ctrl-Z sends no signal, because it would stop the program before the terminal is restored.
 * Returns the file descriptor of the keyboard, or -1. */
static int take_keyboard(void)
{
    struct termios now;

    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
        return -1;
    now = before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    has_termios = 1;
    return tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0 ? STDIN_FILENO : -1;
}

int listen_screen_check(pnr_error *error)
{
    const char *term = getenv("TERM");

    if (!isatty(STDOUT_FILENO))
        return pnr_error_set(error, PNR_EUSAGE,
                             "--live draws on a terminal, and standard output is none");
    if (term != NULL && strcmp(term, "dumb") == 0)
        return pnr_error_set(error, PNR_EUSAGE,
                             "--live: a terminal of TERM=dumb cannot be redrawn");
    return PNR_OK;
}

int listen_screen_open(listen_screen **out, pnr_error *error)
{
    const int code = listen_screen_check(error);
    listen_screen *s;

    *out = NULL;
    if (code != PNR_OK)
        return code;
    if ((s = calloc(1, sizeof *s)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--live: out of memory");
    s->locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    (void)uselocale(s->locale); /* sets the locale of this thread only */
    s->is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    is_taken = 1;
    catch_signals();
    s->keys = take_keyboard();
    (void)write_all(enter, sizeof enter - 1, NULL);
    *out = s;
    return PNR_OK;
}

/* Writes the row without the spaces at its end. Returns the end of the text. */
static char *write_row(const listen_screen *s, int y, bool has_styles, char *at)
{
    listen_style style = LISTEN_PLAIN;
    int length = s->size.width;

    while (length > 0 && s->cells[y][length - 1].glyph[0] == '\0')
        length--;
    for (const cell *c = s->cells[y]; c < s->cells[y] + length; c++) {
        if (has_styles && c->style != style)
            at = stpcpy(at, styles[style = c->style]);
        at = stpcpy(at, c->glyph[0] != '\0' ? c->glyph : " ");
    }
    return at;
}

/* Prints the frame without the empty rows at its end. */
static void leave_frame(listen_screen *s)
{
    char *at = s->frame, *end = at;

    for (int y = 0; y < s->size.height; y++) {
        char *row = at;

        at = write_row(s, y, false, row);
        at = stpcpy(at, "\n");
        end = at > row + 1 ? at : end;
    }
    fwrite(s->frame, 1, (size_t)(end - s->frame), stdout);
    fflush(stdout);
}

void listen_screen_close(listen_screen *s)
{
    if (s != NULL) {
        give_back();
        leave_frame(s);
        (void)uselocale(LC_GLOBAL_LOCALE);
        if (s->locale != (locale_t)0)
            freelocale(s->locale);
    }
    free(s);
}

/* --- frames --- */

static listen_size get_size(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return (listen_size){80, 24};
    return (listen_size){size.ws_col < MAX_WIDTH ? size.ws_col : MAX_WIDTH,
                         size.ws_row < MAX_HEIGHT ? size.ws_row : MAX_HEIGHT};
}

bool listen_screen_resized(const listen_screen *s)
{
    const listen_size now = get_size();

    return now.width != s->size.width || now.height != s->size.height;
}

void listen_screen_begin(listen_screen *s)
{
    s->size = get_size();
    memset(s->cells, 0, sizeof s->cells);
}

listen_size listen_screen_size(const listen_screen *s)
{
    return s->size;
}

void listen_screen_put(listen_screen *s, int x, int y, listen_style style, const char *glyph,
                       char ascii)
{
    cell *c;

    if (x < 0 || y < 0 || x >= s->size.width || y >= s->size.height)
        return;
    c = &s->cells[y][x];
    c->style = style;
    if (s->is_utf8)
        snprintf(c->glyph, sizeof c->glyph, "%s", glyph);
    else
        snprintf(c->glyph, sizeof c->glyph, "%c", ascii);
}

void listen_screen_text(listen_screen *s, int x, int y, listen_style style, const char *format, ...)
{
    char text[1024], glyph[GLYPH_LEN];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (const char *at = text; *at != '\0'; x++) {
        mbstate_t state = {0};
        wchar_t wide;
        size_t n = mbrtowc(&wide, at, GLYPH_LEN - 1, &state); /* n >= GLYPH_LEN: an error */
        const bool is_good = n < GLYPH_LEN && iswprint((wint_t)wide);

        n = n < GLYPH_LEN ? n : 1;
        snprintf(glyph, sizeof glyph, "%.*s", (int)n, is_good ? at : "?");
        listen_screen_put(s, x, y, style, glyph, n == 1 ? glyph[0] : '?');
        at += n;
    }
}

/* Returns the number of bytes of the next row of `text`: whole fields, or a part of a long
 * field. */
static size_t row_bytes(const listen_screen *s, const char *text)
{
    const char *at = text, *end = text;

    for (int columns = 0; *at != '\0' && columns <= s->size.width; columns++) {
        const size_t n = pnr_text_character(at);

        if (strncmp(at, "  ", 2) == 0)
            end = at;
        if (columns == s->size.width)
            return (size_t)((end > text ? end : at) - text);
        at += n > 0 ? n : 1;
    }
    return (size_t)(at - text);
}

int listen_screen_fields(listen_screen *s, int y, listen_style style, const char *text)
{
    int rows = 0;

    while (*text != '\0') {
        const size_t n = row_bytes(s, text);

        if (y >= 0)
            listen_screen_text(s, 0, y + rows, style, "%.*s", (int)n, text);
        text += n;
        text += strspn(text, " ");
        rows++;
    }
    return rows;
}

void listen_screen_bar(listen_screen *s, int x, int bottom, int eighths, listen_style style)
{
    static const char *const blocks[] = {"", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

    for (; eighths > 0; eighths -= 8, bottom--) {
        const int n = eighths < 8 ? eighths : 8;

        if (n >= 4 || s->is_utf8)
            listen_screen_put(s, x, bottom, style, blocks[n], '#');
    }
}

int listen_screen_show(listen_screen *s)
{
    char *at = s->frame;

    /* The row is erased before it is written: after a full row the cursor is on the last cell, and
     * would erase it. */
    for (int y = 0; y < s->size.height; y++) {
        at += sprintf(at, "\033[%d;1H%s\033[K", y + 1, styles[LISTEN_PLAIN]);
        at = stpcpy(write_row(s, y, true, at), styles[LISTEN_PLAIN]);
    }
    return write_all(s->frame, (size_t)(at - s->frame), &pnr_stop);
}

/* --- keys --- */

bool listen_screen_quits(listen_screen *s)
{
    struct pollfd item = {.fd = s->keys, .events = POLLIN};
    char keys[64];
    ssize_t n;

    if (s->keys < 0 || poll(&item, 1, 0) <= 0)
        return false;
    n = read(s->keys, keys, sizeof keys);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        s->keys = -1; /* no more keys can be read */
    return n > 0 && (memchr(keys, 'q', (size_t)n) != NULL || memchr(keys, 'Q', (size_t)n) != NULL);
}
