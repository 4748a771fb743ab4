/* SPDX-License-Identifier: MIT */
/* Receives the messages of one publisher and stores them. */
#ifndef VIEW_FEED_H
#define VIEW_FEED_H

#include "tools/common/subscriber.h"
#include "tools/view/store.h"

typedef struct view_feed view_feed;

enum { VIEW_MAX_FEEDS = 8 };

/* Subscribes to all streams of a publisher. source must outlive *out. number: 0 ..
 * VIEW_MAX_FEEDS - 1, different for each feed of the context. Results and maps have separate
 * sockets, so that maps never fill the queue of the results. PNR_OK, PNR_ENOMEMORY, or an error
 * of pnr_subscriber_create. */
int view_feed_open(void *context, const pnr_subscriber_source *source, size_t number,
                   view_store *store, view_feed **out, pnr_error *error);
void view_feed_close(view_feed *feed);

enum { VIEW_FEED_ITEMS = 4 };
/* Fills the items for zmq_poll: the sockets and their monitors. */
void view_feed_poll(const view_feed *feed, zmq_pollitem_t items[VIEW_FEED_ITEMS]);
/* Stores the messages that have arrived, at most 500 from each socket. Never waits. Locks the mutex
 * of the store. */
void view_feed_take(view_feed *feed);

#endif
