/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every engine test program is made of: checks, a table of tests, a bound on their time,
 * and the balance of the fake driver after each.  Knows libc and the fake; no GLib, so that
 * ThreadSanitizer sees every lock. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fake/fake_cuda.h"

typedef struct test
{
  const char *name;             /* the behaviour it promises */
  void (*run) (void);
} test;

/* The fake driver where the backend under test is cuda, else NULL. */
extern const fake_cuda *fake;

/* Runs the tests, or those named in argv after the backend ("cpu" or "cuda"); ends the table with a
 * NULL name.  After each, nothing may be alive in the fake driver. */
int run_tests (int argc, char **argv, const test *tests);

/* Ends a test early as not for this backend. */
#define REQUIRE_FAKE() \
  do { \
    if (fake == NULL) \
      return; \
  } while (0)

/* What the running test leaves behind on purpose. */
void expect_leak (void);

void check_failed (const char *file, int line, const char *format, ...)
    __attribute__ ((format (printf, 3, 4), noreturn));

#define CHECK(condition) \
  do { \
    if (!(condition)) \
      check_failed (__FILE__, __LINE__, "%s", #condition); \
  } while (0)

/* For whole numbers, so that a failure shows both. */
#define CHECK_INT(actual, expected) \
  do { \
    long long check_actual = (long long) (actual), check_expected = (long long) (expected); \
    if (check_actual != check_expected) \
      check_failed (__FILE__, __LINE__, "%s is %lld, expected %s, %lld", #actual, check_actual, \
          #expected, check_expected); \
  } while (0)

#define CHECK_CONTAINS(text, part) \
  do { \
    if (strstr (text, part) == NULL) \
      check_failed (__FILE__, __LINE__, "\"%s\" does not contain \"%s\"", text, part); \
  } while (0)

uint64_t test_now_ns (void);

/* A sequence that a printed seed repeats (CSF_TEST_SEED); one state a thread. */
typedef struct test_random
{
  uint64_t state;
} test_random;

void test_random_init (test_random * random, uint64_t stream);
unsigned test_random_below (test_random * random, unsigned limit);

fake_cuda_counters fake_counters (void);
void fake_setting (const char *name, long long value);

#endif
