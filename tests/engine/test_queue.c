/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the ordered queue promises: order, what a flush drops and what it keeps, and that nobody is
 * left waiting.  Knows queue.h only. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/queue.h"
#include "harness.h"

enum
{ KEPT = 1, DROPPABLE, AWAITED };

static void *
number (uintptr_t n)
{
  return (void *) n;
}

static void
expect_item (csf_queue *queue, int kind, uintptr_t n)
{
  csf_item item = { 0 };

  CHECK_INT (csf_queue_take (queue, &item), CSF_OK);
  CHECK_INT (item.kind, kind);
  CHECK_INT ((uintptr_t) item.data, n);
}

typedef struct dropped
{
  unsigned count;
  uintptr_t items[64];
} dropped;

static void
drop (void *context, csf_item item)
{
  dropped *self = context;

  CHECK_INT (item.kind, DROPPABLE);
  CHECK (self->count < 64);
  self->items[self->count++] = (uintptr_t) item.data;
}

static void
items_leave_in_the_order_they_came (void)
{
  csf_queue *queue = csf_queue_create ();

  for (uintptr_t i = 0; i < 10; i++) {
    if (i % 3 == 0)
      CHECK_INT (csf_queue_push (queue, DROPPABLE, number (i)), CSF_OK);
    else
      CHECK_INT (csf_queue_push_kept (queue, KEPT, number (i)), CSF_OK);
    CHECK_INT (csf_queue_get_length (queue), i + 1);
  }
  for (uintptr_t i = 0; i < 10; i++) {
    expect_item (queue, i % 3 == 0 ? DROPPABLE : KEPT, i);
    CHECK_INT (csf_queue_get_length (queue), 10 - i);
    csf_queue_finish (queue, 0);
  }
  CHECK_INT (csf_queue_get_length (queue), 0);
  csf_queue_destroy (queue);
}

static void
a_flush_drops_what_may_go_and_keeps_the_rest (void)
{
  csf_queue *queue = csf_queue_create ();
  dropped seen = { 0 };
  csf_item item;

  for (uintptr_t i = 0; i < 9; i++) {
    if (i % 3 == 1)
      CHECK_INT (csf_queue_push_kept (queue, KEPT, number (i)), CSF_OK);
    else
      CHECK_INT (csf_queue_push (queue, DROPPABLE, number (i)), CSF_OK);
  }
  csf_queue_set_flushing (queue, true);
  CHECK_INT (csf_queue_take (queue, &item), CSF_INTERRUPTED);
  CHECK_INT (csf_queue_push (queue, DROPPABLE, number (99)), CSF_INTERRUPTED);
  CHECK_INT (csf_queue_push_wait (queue, AWAITED, number (98), NULL), CSF_INTERRUPTED);
  csf_queue_flush (queue, drop, &seen);
  CHECK_INT (seen.count, 6);
  for (unsigned i = 0; i < 6; i++)
    CHECK_INT (seen.items[i], i / 2 * 3 + (i % 2 == 0 ? 0 : 2));
  CHECK_INT (csf_queue_get_length (queue), 3);
  CHECK_INT (csf_queue_push_kept (queue, KEPT, number (10)), CSF_OK);
  csf_queue_set_flushing (queue, false);
  CHECK_INT (csf_queue_push (queue, DROPPABLE, number (11)), CSF_OK);
  for (uintptr_t i = 1; i <= 10; i += 3) {
    expect_item (queue, KEPT, i);
    csf_queue_finish (queue, 0);
  }
  expect_item (queue, DROPPABLE, 11);
  csf_queue_finish (queue, 0);
  csf_queue_destroy (queue);
}

static void
a_held_item_survives_a_flush (void)
{
  csf_queue *queue = csf_queue_create ();
  dropped seen = { 0 };

  CHECK_INT (csf_queue_push (queue, DROPPABLE, number (1)), CSF_OK);
  CHECK_INT (csf_queue_push (queue, DROPPABLE, number (2)), CSF_OK);
  expect_item (queue, DROPPABLE, 1);
  csf_queue_set_flushing (queue, true);
  csf_queue_flush (queue, drop, &seen);
  CHECK_INT (seen.count, 1);
  CHECK_INT (seen.items[0], 2);
  CHECK_INT (csf_queue_get_length (queue), 1);
  csf_queue_finish (queue, 0);
  CHECK_INT (csf_queue_get_length (queue), 0);
  csf_queue_set_flushing (queue, false);
  CHECK_INT (csf_queue_push (queue, DROPPABLE, number (3)), CSF_OK);
  expect_item (queue, DROPPABLE, 3);
  csf_queue_finish (queue, 0);
  csf_queue_destroy (queue);
}

static void
an_item_put_back_is_the_next_one (void)
{
  csf_queue *queue = csf_queue_create ();

  CHECK_INT (csf_queue_push_kept (queue, KEPT, number (1)), CSF_OK);
  CHECK_INT (csf_queue_push_kept (queue, KEPT, number (2)), CSF_OK);
  expect_item (queue, KEPT, 1);
  csf_queue_set_flushing (queue, true);
  csf_queue_put_back (queue);
  csf_queue_set_flushing (queue, false);
  CHECK_INT (csf_queue_get_length (queue), 2);
  expect_item (queue, KEPT, 1);
  csf_queue_finish (queue, 0);
  expect_item (queue, KEPT, 2);
  csf_queue_finish (queue, 0);
  csf_queue_destroy (queue);
}

/* ---- with waiters ---------------------------------------------------------------------------- */

typedef struct caller
{
  pthread_t thread;
  csf_queue *queue;
  csf_status status;
  int result;
  atomic_bool returned;
} caller;

static void *
push_wait_main (void *data)
{
  caller *self = data;

  self->status = csf_queue_push_wait (self->queue, AWAITED, self, &self->result);
  atomic_store (&self->returned, true);
  return NULL;
}

static void *
take_main (void *data)
{
  caller *self = data;
  csf_item item;

  self->status = csf_queue_take (self->queue, &item);
  atomic_store (&self->returned, true);
  return NULL;
}

static void
start_caller (caller *self, csf_queue *queue, void *(*run) (void *))
{
  memset (self, 0, sizeof *self);
  self->queue = queue;
  self->result = -1;
  CHECK (pthread_create (&self->thread, NULL, run, self) == 0);
}

static void
wait_for_length (csf_queue *queue, unsigned length)
{
  while (csf_queue_get_length (queue) < length)
    sched_yield ();
}

static void
an_awaited_item_brings_its_result_back (void)
{
  csf_queue *queue = csf_queue_create ();
  caller callers[3];

  CHECK_INT (csf_queue_push_kept (queue, KEPT, number (7)), CSF_OK);
  for (unsigned i = 0; i < 3; i++) {
    start_caller (&callers[i], queue, push_wait_main);
    wait_for_length (queue, i + 2);
  }
  expect_item (queue, KEPT, 7);
  csf_queue_finish (queue, 55);
  for (unsigned i = 0; i < 3; i++) {
    expect_item (queue, AWAITED, (uintptr_t) &callers[i]);
    CHECK (!atomic_load (&callers[i].returned));
    csf_queue_finish (queue, 100 + (int) i);
    pthread_join (callers[i].thread, NULL);
    CHECK_INT (callers[i].status, CSF_OK);
    CHECK_INT (callers[i].result, 100 + i);
  }
  csf_queue_destroy (queue);
}

static void
a_flush_sends_waiters_home (void)
{
  csf_queue *queue = csf_queue_create ();
  caller callers[3];

  CHECK_INT (csf_queue_push_kept (queue, KEPT, number (7)), CSF_OK);
  for (unsigned i = 0; i < 3; i++)
    start_caller (&callers[i], queue, push_wait_main);
  wait_for_length (queue, 4);
  csf_queue_set_flushing (queue, true);
  for (unsigned i = 0; i < 3; i++) {
    pthread_join (callers[i].thread, NULL);
    CHECK_INT (callers[i].status, CSF_INTERRUPTED);
  }
  CHECK_INT (csf_queue_get_length (queue), 1);
  csf_queue_set_flushing (queue, false);
  expect_item (queue, KEPT, 7);
  csf_queue_finish (queue, 0);
  csf_queue_destroy (queue);
}

static void
an_awaited_item_that_is_held_is_waited_for (void)
{
  csf_queue *queue = csf_queue_create ();
  caller waiter;

  start_caller (&waiter, queue, push_wait_main);
  expect_item (queue, AWAITED, (uintptr_t) &waiter);
  csf_queue_set_flushing (queue, true);
  for (unsigned i = 0; i < 1000; i++)
    sched_yield ();
  CHECK (!atomic_load (&waiter.returned));
  csf_queue_finish (queue, 3);
  pthread_join (waiter.thread, NULL);
  CHECK_INT (waiter.status, CSF_OK);
  CHECK_INT (waiter.result, 3);
  csf_queue_destroy (queue);
}

static void
a_flush_wakes_the_consumer (void)
{
  csf_queue *queue = csf_queue_create ();

  for (unsigned round = 0; round < 50; round++) {
    caller consumer;

    start_caller (&consumer, queue, take_main);
    for (unsigned i = 0; i < round; i++)
      sched_yield ();
    csf_queue_set_flushing (queue, true);
    pthread_join (consumer.thread, NULL);
    CHECK_INT (consumer.status, CSF_INTERRUPTED);
    csf_queue_set_flushing (queue, false);
  }
  csf_queue_destroy (queue);
}

/* ---- all at once ----------------------------------------------------------------------------- */

enum
{ STRESS_ITEMS = 3000 };

/* Every item pushed is counted out once: finished, dropped or refused. */
typedef struct stress
{
  csf_queue *queue;
  atomic_uint pushed, finished, dropped;
  atomic_bool done;
} stress;

static void
count_dropped (void *context, csf_item item)
{
  atomic_fetch_add ((atomic_uint *) context, 1);
}

static void *
stress_producer (void *data)
{
  stress *self = data;
  test_random random;

  test_random_init (&random, 1);
  for (uintptr_t i = 1; i <= STRESS_ITEMS; i++) {
    unsigned kind = test_random_below (&random, 10);
    int result = -1;

    if (kind < 6) {
      CHECK_INT (csf_queue_push_kept (self->queue, KEPT, number (i)), CSF_OK);
      atomic_fetch_add (&self->pushed, 1);
    } else if (kind < 9) {
      if (csf_queue_push (self->queue, DROPPABLE, number (i)) == CSF_OK)
        atomic_fetch_add (&self->pushed, 1);
    } else if (csf_queue_push_wait (self->queue, AWAITED, number (i), &result) == CSF_OK) {
      CHECK_INT (result, (int) (i & 0xffff));
      atomic_fetch_add (&self->pushed, 1);
    }
  }
  return NULL;
}

static void *
stress_consumer (void *data)
{
  stress *self = data;
  uintptr_t last = 0;
  test_random random;

  test_random_init (&random, 2);
  while (!atomic_load (&self->done) || csf_queue_get_length (self->queue) > 0) {
    csf_item item;

    if (csf_queue_take (self->queue, &item) != CSF_OK) {
      sched_yield ();
      continue;
    }
    if (item.data == NULL) {
      csf_queue_finish (self->queue, 0);
      continue;
    }
    CHECK ((uintptr_t) item.data > last);
    if (item.kind == KEPT && test_random_below (&random, 8) == 0) {
      csf_queue_put_back (self->queue);
      continue;
    }
    last = (uintptr_t) item.data;
    atomic_fetch_add (&self->finished, 1);
    csf_queue_finish (self->queue, (int) (last & 0xffff));
  }
  return NULL;
}

static void *
stress_flusher (void *data)
{
  stress *self = data;
  test_random random;

  test_random_init (&random, 3);
  while (!atomic_load (&self->done)) {
    for (unsigned n = test_random_below (&random, 50); n > 0; n--)
      sched_yield ();
    csf_queue_set_flushing (self->queue, true);
    if (test_random_below (&random, 2) == 0)
      csf_queue_flush (self->queue, count_dropped, &self->dropped);
    csf_queue_set_flushing (self->queue, false);
  }
  return NULL;
}

static void
nothing_is_lost_or_served_twice_under_stress (void)
{
  stress self = {.queue = csf_queue_create () };
  pthread_t producer, consumer, flusher;

  CHECK (pthread_create (&consumer, NULL, stress_consumer, &self) == 0);
  CHECK (pthread_create (&flusher, NULL, stress_flusher, &self) == 0);
  CHECK (pthread_create (&producer, NULL, stress_producer, &self) == 0);
  pthread_join (producer, NULL);
  atomic_store (&self.done, true);
  pthread_join (flusher, NULL);
  /* Wakes a consumer that took the last real one before done was set. */
  CHECK_INT (csf_queue_push_kept (self.queue, KEPT, NULL), CSF_OK);
  pthread_join (consumer, NULL);
  CHECK_INT (atomic_load (&self.finished) + atomic_load (&self.dropped),
      atomic_load (&self.pushed));
  csf_queue_destroy (self.queue);
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"items_leave_in_the_order_they_came", items_leave_in_the_order_they_came},
    {"a_flush_drops_what_may_go_and_keeps_the_rest",
        a_flush_drops_what_may_go_and_keeps_the_rest},
    {"a_held_item_survives_a_flush", a_held_item_survives_a_flush},
    {"an_item_put_back_is_the_next_one", an_item_put_back_is_the_next_one},
    {"an_awaited_item_brings_its_result_back", an_awaited_item_brings_its_result_back},
    {"a_flush_sends_waiters_home", a_flush_sends_waiters_home},
    {"an_awaited_item_that_is_held_is_waited_for", an_awaited_item_that_is_held_is_waited_for},
    {"a_flush_wakes_the_consumer", a_flush_wakes_the_consumer},
    {"nothing_is_lost_or_served_twice_under_stress",
        nothing_is_lost_or_served_twice_under_stress},
    {NULL}
  };

  return run_tests (argc, argv, tests);
}
