/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ordered queue: a list under one mutex.  Knows nothing of what its items mean. */
#include "queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

typedef enum node_state
{
  NODE_WAITING = 0,
  NODE_TAKEN,                   /* held by the consumer; still first in the list */
  NODE_FINISHED,                /* out of the list */
  NODE_REFUSED                  /* out of the list by a flush, unseen by the consumer */
} node_state;

typedef enum node_type
{
  NODE_KEPT,
  NODE_DROPPABLE,
  NODE_AWAITED                  /* owned by the thread in csf_queue_push_wait */
} node_type;

typedef struct node
{
  struct node *next;
  csf_item item;
  node_type type;
  node_state state;
  int result;
} node;

/* All fields: any thread, under the lock. */
struct csf_queue
{
  pthread_mutex_t lock;
  pthread_cond_t arrived;       /* the consumer waits */
  pthread_cond_t answered;      /* push_wait waits */
  node *first, **end;
  unsigned length;
  bool flushing;
};

csf_queue *
csf_queue_create (void)
{
  csf_queue *queue = calloc (1, sizeof *queue);

  if (queue == NULL)
    return NULL;
  pthread_mutex_init (&queue->lock, NULL);
  pthread_cond_init (&queue->arrived, NULL);
  pthread_cond_init (&queue->answered, NULL);
  queue->end = &queue->first;
  return queue;
}

void
csf_queue_destroy (csf_queue *queue)
{
  if (queue == NULL)
    return;
  while (queue->first != NULL) {
    node *n = queue->first;

    assert (n->type != NODE_AWAITED);
    queue->first = n->next;
    free (n);
  }
  pthread_cond_destroy (&queue->answered);
  pthread_cond_destroy (&queue->arrived);
  pthread_mutex_destroy (&queue->lock);
  free (queue);
}

static void
append_locked (csf_queue *queue, node *n)
{
  n->next = NULL;
  *queue->end = n;
  queue->end = &n->next;
  queue->length++;
  pthread_cond_signal (&queue->arrived);
}

static void
remove_first_locked (csf_queue *queue)
{
  node *n = queue->first;

  queue->first = n->next;
  if (queue->first == NULL)
    queue->end = &queue->first;
  queue->length--;
}

static csf_status
push_node (csf_queue *queue, node_type type, int kind, void *data)
{
  node *n = calloc (1, sizeof *n);
  bool refused;

  if (n == NULL)
    return CSF_ERROR_MEMORY;
  n->item.kind = kind;
  n->item.data = data;
  n->type = type;
  pthread_mutex_lock (&queue->lock);
  refused = type == NODE_DROPPABLE && queue->flushing;
  if (!refused)
    append_locked (queue, n);
  pthread_mutex_unlock (&queue->lock);
  if (refused)
    free (n);
  return refused ? CSF_INTERRUPTED : CSF_OK;
}

csf_status
csf_queue_push_kept (csf_queue *queue, int kind, void *data)
{
  return push_node (queue, NODE_KEPT, kind, data);
}

csf_status
csf_queue_push (csf_queue *queue, int kind, void *data)
{
  return push_node (queue, NODE_DROPPABLE, kind, data);
}

csf_status
csf_queue_push_wait (csf_queue *queue, int kind, void *data, int *result)
{
  node n = {.item = {.kind = kind,.data = data},.type = NODE_AWAITED };

  pthread_mutex_lock (&queue->lock);
  if (queue->flushing) {
    n.state = NODE_REFUSED;
  } else {
    append_locked (queue, &n);
    while (n.state == NODE_WAITING || n.state == NODE_TAKEN)
      pthread_cond_wait (&queue->answered, &queue->lock);
  }
  pthread_mutex_unlock (&queue->lock);
  if (n.state == NODE_REFUSED)
    return CSF_INTERRUPTED;
  if (result != NULL)
    *result = n.result;
  return CSF_OK;
}

csf_status
csf_queue_take (csf_queue *queue, csf_item *item)
{
  csf_status status = CSF_OK;

  pthread_mutex_lock (&queue->lock);
  while (!queue->flushing && queue->first == NULL)
    pthread_cond_wait (&queue->arrived, &queue->lock);
  if (queue->flushing) {
    status = CSF_INTERRUPTED;
  } else {
    assert (queue->first->state == NODE_WAITING);
    queue->first->state = NODE_TAKEN;
    *item = queue->first->item;
  }
  pthread_mutex_unlock (&queue->lock);
  return status;
}

void
csf_queue_finish (csf_queue *queue, int result)
{
  node *n, *owned = NULL;

  pthread_mutex_lock (&queue->lock);
  n = queue->first;
  assert (n != NULL && n->state == NODE_TAKEN);
  remove_first_locked (queue);
  if (n->type == NODE_AWAITED) {
    n->result = result;
    n->state = NODE_FINISHED;
    pthread_cond_broadcast (&queue->answered);
  } else {
    owned = n;
  }
  pthread_mutex_unlock (&queue->lock);
  free (owned);
}

/* Waiters whose items the consumer has not seen go home at once: they may hold up the very thread that
 * is to end the flush. */
static void
refuse_awaited_locked (csf_queue *queue)
{
  node **link = &queue->first;

  while (*link != NULL) {
    node *n = *link;

    if (n->type == NODE_AWAITED && n->state == NODE_WAITING) {
      *link = n->next;
      n->state = NODE_REFUSED;
      queue->length--;
    } else {
      link = &n->next;
    }
  }
  queue->end = link;
  pthread_cond_broadcast (&queue->answered);
}

void
csf_queue_put_back (csf_queue *queue)
{
  pthread_mutex_lock (&queue->lock);
  assert (queue->first != NULL && queue->first->state == NODE_TAKEN);
  queue->first->state = NODE_WAITING;
  if (queue->flushing)
    refuse_awaited_locked (queue);
  pthread_cond_signal (&queue->arrived);
  pthread_mutex_unlock (&queue->lock);
}

void
csf_queue_set_flushing (csf_queue *queue, bool flushing)
{
  pthread_mutex_lock (&queue->lock);
  queue->flushing = flushing;
  if (flushing)
    refuse_awaited_locked (queue);
  pthread_cond_broadcast (&queue->arrived);
  pthread_mutex_unlock (&queue->lock);
}

void
csf_queue_flush (csf_queue *queue, void (*drop) (void *context, csf_item item), void *context)
{
  node *dropped = NULL, **dropped_end = &dropped, **link;

  pthread_mutex_lock (&queue->lock);
  assert (queue->flushing);
  link = &queue->first;
  while (*link != NULL) {
    node *n = *link;

    if (n->type == NODE_DROPPABLE && n->state == NODE_WAITING) {
      *link = n->next;
      n->next = NULL;
      *dropped_end = n;
      dropped_end = &n->next;
      queue->length--;
    } else {
      link = &n->next;
    }
  }
  queue->end = link;
  pthread_mutex_unlock (&queue->lock);

  while (dropped != NULL) {
    node *n = dropped;

    dropped = n->next;
    drop (context, n->item);
    free (n);
  }
}

unsigned
csf_queue_get_length (csf_queue *queue)
{
  unsigned length;

  pthread_mutex_lock (&queue->lock);
  length = queue->length;
  pthread_mutex_unlock (&queue->lock);
  return length;
}
