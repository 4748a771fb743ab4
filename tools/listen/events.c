/* SPDX-License-Identifier: MIT */
/* Prints events as lines on stdout. */
#include "tools/listen/events.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>

static void print_line(FILE *stream, const pnr_event_summary *event)
{
    char time[PNR_TIME_LEN];

    fprintf(stream, "%.23sZ %s %s %" PRIu64 ": %s\n", pnr_time_format(event->utc_ns, time),
            event->stream, event->kind, event->count, event->text);
}

/* Prints a text in quotes. Doubles the quotes in the text, as CSV requires. */
static void print_quoted(FILE *stream, const char *text)
{
    putc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putc('"', stream);
        putc(*text, stream);
    }
    putc('"', stream);
}

/* Prints the header of CSV before the first event. */
static void begin_events(pnr_printer *printer)
{
    if (printer->print == PNR_PRINT_CSV && !printer->has_begun)
        fputs("time,stream,event,count,sample,text\n", printer->stream);
    printer->has_begun = true;
}

static void print_row(FILE *stream, const pnr_event_summary *event)
{
    char time[PNR_TIME_LEN];

    fprintf(stream, "%s,", pnr_time_format(event->utc_ns, time));
    print_quoted(stream, event->stream);
    fputc(',', stream);
    print_quoted(stream, event->kind);
    fprintf(stream, ",%" PRIu64 ",", event->count);
    if (event->sample != PNR_EVENT_NO_SAMPLE)
        fprintf(stream, "%" PRIu64, event->sample);
    fputc(',', stream);
    print_quoted(stream, event->text);
    fputc('\n', stream);
}

int listen_event_print(pnr_printer *printer, const pnr_event_summary *event, const char *raw,
                       size_t length, pnr_error *error)
{
    FILE *stream = printer->stream;

    if (pnr_text_find_control(raw, length) != NULL)
        return pnr_error_set(error, PNR_EDATA, "message: an event has control characters");
    begin_events(printer);
    if (printer->print == PNR_PRINT_TABLE)
        print_line(stream, event);
    else if (printer->print == PNR_PRINT_CSV)
        print_row(stream, event);
    else
        fprintf(stream, "%.*s\n", (int)length, raw);
    return ferror(stream) ? PNR_EIO : PNR_OK;
}

int listen_event_finish(pnr_printer *printer)
{
    begin_events(printer);
    return fflush(printer->stream) == 0 && !ferror(printer->stream) ? PNR_OK : PNR_EIO;
}
