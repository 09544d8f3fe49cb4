/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ordered queue between the thread that feeds and the thread that pushes on.  Whatever goes in
 * comes out in that order.  Two kinds of items: those that must be taken out by the consumer even
 * through a flush (frames in flight), and those a flush may drop (events, queries).
 *
 * Built on pthreads alone, so that ThreadSanitizer can prove it. */
#ifndef CSF_QUEUE_H
#define CSF_QUEUE_H

#include "csf.h"

typedef struct csf_queue csf_queue;

typedef struct csf_item
{
  int kind;                     /* the user's */
  void *data;                   /* the user's */
} csf_item;

csf_queue *csf_queue_create (void);     /* NULL when memory is exhausted */

/* The queue must be empty of items that someone waits for: flush first.  NULL is allowed. */
void csf_queue_destroy (csf_queue * queue);

/* Appends an item that survives a flush.  Never blocks and never refuses: its number is bounded by
 * what it stands for (slots).  CSF_ERROR_MEMORY only. */
csf_status csf_queue_push_kept (csf_queue * queue, int kind, void *data);

/* Appends an item a flush may drop.  CSF_INTERRUPTED while flushing: the data stays the caller's. */
csf_status csf_queue_push (csf_queue * queue, int kind, void *data);

/* Appends an item and blocks until the consumer finished it; *result is what the consumer said.
 * CSF_INTERRUPTED: the queue flushes and the consumer has not seen the item; the data stays the
 * caller's in either case.  An item that the consumer holds is always waited for, so the data may
 * live on the caller's stack: whoever flushes makes sure that the consumer comes back. */
csf_status csf_queue_push_wait (csf_queue * queue, int kind, void *data, int *result);

/* Consumer: blocks for the oldest item and holds it; it stays first until csf_queue_finish or
 * csf_queue_put_back.  CSF_INTERRUPTED while flushing. */
csf_status csf_queue_take (csf_queue * queue, csf_item * item);

/* Consumer: the held item is done with. */
void csf_queue_finish (csf_queue * queue, int result);

/* Consumer: the held item becomes the oldest waiting one again.  During a flush a kept item stays so and
 * one that somebody waits for is refused. */
void csf_queue_put_back (csf_queue * queue);

/* Flushing: pushes are refused, waiters of items not yet taken and the consumer wake.  */
void csf_queue_set_flushing (csf_queue * queue, bool flushing);

/* Drops what may be dropped and nobody waits for; `drop` is called for each, without a lock held.
 * Only while flushing. */
void csf_queue_flush (csf_queue * queue, void (*drop) (void *context, csf_item item), void *context);

/* Items now in the queue, a held one included. */
unsigned csf_queue_get_length (csf_queue * queue);

#endif
