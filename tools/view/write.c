/* SPDX-License-Identifier: MIT */
/* Writes results, echoes and losses as JSON arrays. */
#include "tools/view/write.h"

#include <inttypes.h>

void view_add_result(view_buffer *out, const view_result *r)
{
    const char *comma = "";

    view_addf(out, "[%" PRIu64 ",", r->seq);
    view_add_number(out, r->time_s, 15);
    view_addf(out, ",%" PRIu64 ",%" PRIu64 ",", r->lost, r->lost_before);
    view_add_number(out, r->latency_us, 6);
    view_add(out, ",");
    view_add_number(out, r->noise_db, 6);
    view_add(out, ",[");
    for (size_t bit = 0; bit < PNR_N_FLAGS; bit++)
        if (r->flags >> bit & 1) {
            view_addf(out, "%s\"%s\"", comma, pnr_flag_words[bit]);
            comma = ",";
        }
    view_add(out, "],[");
}

void view_add_echo(view_buffer *out, const view_echo *echo)
{
    view_add(out, "[");
    view_addf(out, "%u,", echo->code + 1); /* in messages, codes count from 1 */
#define ADD_COUNT(x, name) view_addf(out, "%u,", echo->name);
#define ADD_WIDE(x, name)                                                                          \
    view_add_number(out, echo->name, 12);                                                          \
    view_add(out, ",");
#define ADD_NARROW(x, name)                                                                        \
    view_add_number(out, (double)echo->name, 7);                                                   \
    view_add(out, ",");
#define ADD_NOTHING(x, name)
    PNR_ECHO_FIELDS(ADD_NOTHING, ADD_COUNT, ADD_WIDE, ADD_NARROW, )
#undef ADD_NOTHING
#undef ADD_NARROW
#undef ADD_WIDE
#undef ADD_COUNT
    view_add_string(out, echo->code_name.text);
    view_add(out, "]");
}

void view_add_loss(view_buffer *out, const view_loss *loss)
{
    view_add(out, "[");
    view_add_number(out, loss->from_s, 15);
    view_add(out, ",");
    view_add_number(out, loss->to_s, 15);
    view_add(out, ",");
    view_add_number(out, loss->share, 4);
    view_add(out, loss->is_unseen ? ",true]" : ",false]");
}
