/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a program's table of tests one by one and checks the fake driver's balance.  Knows
 * nothing of the engine. */
#include "harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A test that takes longer hangs, even under a sanitizer on a busy machine. */
#define MAX_SECONDS 120

const fake_cuda *fake;

static const char *running = "start";
static bool leak_expected;
static uint64_t seed;

void
check_failed (const char *file, int line, const char *format, ...)
{
  va_list args;

  fflush (stdout);
  fprintf (stderr, "%s:%d: %s (seed %llu): ", file, line, running, (unsigned long long) seed);
  va_start (args, format);
  vfprintf (stderr, format, args);
  va_end (args);
  fputc ('\n', stderr);
  abort ();
}

void
expect_leak (void)
{
  leak_expected = true;
}

uint64_t
test_now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

void
test_random_init (test_random *random, uint64_t stream)
{
  random->state = (seed * 0x9e3779b97f4a7c15ULL) ^ (stream * 0xbf58476d1ce4e5b9ULL) ^ 0x2545f491;
  if (random->state == 0)
    random->state = 1;
}

unsigned
test_random_below (test_random *random, unsigned limit)
{
  random->state ^= random->state << 13;
  random->state ^= random->state >> 7;
  random->state ^= random->state << 17;
  return (unsigned) (random->state >> 33) % limit;
}

fake_cuda_counters
fake_counters (void)
{
  fake_cuda_counters counters = { 0 };

  if (fake != NULL)
    fake->get_counters (&counters);
  return counters;
}

void
fake_setting (const char *name, long long value)
{
  if (fake != NULL)
    CHECK (fake->set (name, value));
}

static void
check_balance (void)
{
  fake_cuda_counters now = fake_counters ();

  CHECK_INT (now.misuse, 0);
  if (leak_expected)
    return;
  CHECK_INT (now.orphans, 0);
  CHECK_INT (now.device_bytes, 0);
  CHECK_INT (now.managed_bytes, 0);
  CHECK_INT (now.pinned_bytes, 0);
  CHECK_INT (now.streams, 0);
  CHECK_INT (now.events, 0);
  CHECK_INT (now.modules, 0);
  CHECK_INT (now.contexts, 0);
}

static bool
is_named (const char *name, int argc, char **argv)
{
  for (int i = 2; i < argc; i++)
    if (strcmp (argv[i], name) == 0)
      return true;
  return argc <= 2;
}

int
run_tests (int argc, char **argv, const test *tests)
{
  const char *wanted_seed = getenv ("CSF_TEST_SEED");

  seed = wanted_seed != NULL ? strtoull (wanted_seed, NULL, 0) : (uint64_t) time (NULL);
  printf ("seed %llu\n", (unsigned long long) seed);
  if (argc > 1 && strcmp (argv[1], "cuda") == 0) {
    fake = fake_cuda_find ();
    if (fake == NULL) {
      fprintf (stderr, "libcuda.so.1 is not the fake driver: set LD_LIBRARY_PATH to its folder\n");
      return 1;
    }
  }
  for (const test *t = tests; t->name != NULL; t++) {
    if (!is_named (t->name, argc, argv))
      continue;
    printf ("%s\n", t->name);
    fflush (stdout);
    running = t->name;
    leak_expected = false;
    if (fake != NULL)
      fake->reset ();
    fake_setting ("SEED", (long long) (seed & 0xffff));
    alarm (MAX_SECONDS);
    t->run ();
    alarm (0);
    check_balance ();
  }
  return 0;
}
