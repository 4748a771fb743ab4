/* SPDX-License-Identifier: MIT */
/* Writes results, echoes and losses as JSON arrays. */
#ifndef VIEW_WRITE_H
#define VIEW_WRITE_H

#include "tools/view/buffer.h"
#include "tools/view/store.h"

/* The names of the values of an echo, in the order of view_add_echo: the names of the message
 * fields, then code_name. */
#define VIEW_FIELD_NAME(x, name) "\"" #name "\","
#define VIEW_FIELD_NAMES                                                                           \
    "[" PNR_ECHO_FIELDS(VIEW_FIELD_NAME, VIEW_FIELD_NAME, VIEW_FIELD_NAME,                         \
                        VIEW_FIELD_NAME, ) "\"code_name\"]"

/* Adds `[seq, time_s, lost, lost_before, latency_us, noise_db, [flag, ...], [`. The caller then
 * adds the echoes, and `]]`. */
void view_add_result(view_buffer *out, const view_result *result);
void view_add_echo(view_buffer *out, const view_echo *echo);
/* Adds [from_s, to_s, share, is_unseen]. */
void view_add_loss(view_buffer *out, const view_loss *loss);

#endif
