/* SPDX-License-Identifier: MIT */
/* The web server: serves the page, its data, and live events. It answers only GET and HEAD
 * requests, and reads no file. */
#ifndef VIEW_WEB_H
#define VIEW_WEB_H

#include "tools/view/store.h"

#include "base/error.h"

typedef struct view_web view_web;

typedef struct view_web_options {
    const char *listen; /* "127.0.0.1:8080", "[::1]:8080", "0.0.0.0:8080"; port 0: any */
    const char *token;  /* NULL: a random token if other machines can reach the address, else
                         * none */
} view_web_options;

enum { VIEW_MAX_CLIENTS = 128 }; /* connections at one time */

/* Starts the server in a separate thread. url: the address for the browser, with the token. PNR_OK;
 * PNR_EUSAGE: the address is malformed; PNR_EUNAVAILABLE: the address is in use, or belongs to
 * another machine; PNR_ENOMEMORY. */
int view_web_open(view_store *store, const view_web_options *options, view_web **out, char url[512],
                  pnr_error *error);
void view_web_close(view_web *web);
/* Wakes the clients that wait for events. Closes connections that send no request, and connections
 * that the client has closed. Call it after messages were stored, and at least ten times a second.
 * The caller must not hold the mutex of the store. */
void view_web_wake(view_web *web);

/* A file of the page. It is part of the program. */
typedef struct view_asset {
    const char *path; /* "/main.js" */
    const char *type; /* "text/javascript; charset=utf-8" */
    const unsigned char *bytes, *end;
} view_asset;
extern const view_asset view_assets[];
extern const size_t view_n_assets;

#endif
