/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What NVML says of the device arrives, what it does not say is missing by itself, and nobody waits for
 * it.  Runs with the fake NVML ("cuda"), with one that lacks a function (its name and file), and with none
 * ("absent"). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/gpuload.h"
#include "fixture.h"
#include "tests/fake/fake_nvml.h"

/* Queries of one sample: utilization, memory and two clocks. */
#define QUERIES 4
#define NOT_SUPPORTED 3

static const fake_nvml *nvml;

static fake_nvml_counters
nvml_counters (void)
{
  fake_nvml_counters counters;

  nvml->get_counters (&counters);
  return counters;
}

static void
nvml_setting (const char *name, long long value)
{
  CHECK (nvml->set (name, value));
}

static csf_gpuload *
open_load (csf_device *device)
{
  csf_gpuload *load = csf_gpuload_create (device);

  CHECK (load != NULL);
  return load;
}

/* All that was begun is over.  The settings are the initial ones again. */
static void
finish (void)
{
  fake_nvml_counters now = nvml_counters ();

  CHECK_INT (now.references, 0);
  CHECK_INT (now.misuse, 0);
  CHECK_INT (now.begun, now.ended);
  nvml->reset ();
}

/* A sample taken after the call.  Each turn begins at least one query, and of so many in a row the last
 * belongs to a sample whose predecessor was taken as a whole since, and kept. */
static csf_gpuload_sample
next_sample (csf_gpuload *load)
{
  csf_gpuload_sample sample;

  for (unsigned i = 0; i < 2 * QUERIES + 1; i++) {
    uint64_t begun = nvml_counters ().begun;

    csf_gpuload_get (load, &sample);
    nvml->wait_begun (begun + 1);
  }
  CHECK (csf_gpuload_get (load, &sample));
  return sample;
}

static void
check_sample (const csf_gpuload_sample *sample, const char *missing)
{
  bool utilization = strcmp (missing, "UTILIZATION") != 0, memory = strcmp (missing, "MEMORY") != 0;
  bool clock = strcmp (missing, "CLOCK") != 0, memory_clock = strcmp (missing, "MEMORY_CLOCK") != 0;

  CHECK_INT (sample->has_utilization, utilization);
  CHECK_INT (sample->utilization, utilization ? 37 : 0);
  CHECK_INT (sample->has_memory, memory);
  CHECK_INT (sample->memory_used, memory ? 3LL << 30 : 0);
  CHECK_INT (sample->memory_total, memory ? 8LL << 30 : 0);
  CHECK_INT (sample->has_clock, clock);
  CHECK_INT (sample->clock, clock ? 1500 : 0);
  CHECK_INT (sample->has_memory_clock, memory_clock);
  CHECK_INT (sample->memory_clock, memory_clock ? 7000 : 0);
}

static void
what_nvml_says_arrives (void)
{
  csf_device *device = open_device ();
  csf_gpuload *load = open_load (device);
  csf_gpuload_sample sample = next_sample (load);

  check_sample (&sample, "");
  nvml_setting ("UTILIZATION", 100);
  nvml_setting ("MEMORY_USED", 5LL << 30);
  nvml_setting ("CLOCK", 210);
  sample = next_sample (load);
  CHECK_INT (sample.utilization, 100);
  CHECK_INT (sample.memory_used, 5LL << 30);
  CHECK_INT (sample.clock, 210);
  CHECK_INT (sample.memory_clock, 7000);
  /* It needs the device no longer. */
  csf_device_unref (device);
  CHECK_INT (next_sample (load).utilization, 100);
  csf_gpuload_destroy (load);
  finish ();
}

static void
the_first_sample_is_asked_for_by_create (void)
{
  csf_device *device = open_device ();
  csf_gpuload *load = open_load (device);
  csf_gpuload_sample sample;

  nvml->wait_begun (QUERIES);
  /* Nothing asks for a second one but the first get. */
  while (!csf_gpuload_get (load, &sample))
    ;
  check_sample (&sample, "");
  csf_gpuload_destroy (load);
  csf_device_unref (device);
  finish ();
}

static void
a_query_that_is_refused_loses_its_field_only (void)
{
  static const char *const queries[] = { "UTILIZATION", "MEMORY", "CLOCK", "MEMORY_CLOCK" };
  csf_device *device = open_device ();
  csf_gpuload *load = open_load (device);
  csf_gpuload_sample sample;

  for (unsigned i = 0; i < QUERIES; i++) {
    char code[32];

    snprintf (code, sizeof code, "%s_CODE", queries[i]);
    nvml_setting (code, NOT_SUPPORTED);
    sample = next_sample (load);
    check_sample (&sample, queries[i]);
    nvml_setting (code, 0);
  }
  sample = next_sample (load);
  check_sample (&sample, "");
  csf_gpuload_destroy (load);
  csf_device_unref (device);
  finish ();
}

static void
a_device_that_tells_nothing_gives_no_sample (void)
{
  csf_device *device = open_device ();
  csf_gpuload *load;
  csf_gpuload_sample sample;

  nvml_setting ("UTILIZATION_CODE", NOT_SUPPORTED);
  nvml_setting ("MEMORY_CODE", NOT_SUPPORTED);
  nvml_setting ("CLOCK_CODE", NOT_SUPPORTED);
  nvml_setting ("MEMORY_CLOCK_CODE", NOT_SUPPORTED);
  load = open_load (device);
  for (unsigned i = 1; i <= 4; i++) {
    memset (&sample, 0xff, sizeof sample);
    CHECK (!csf_gpuload_get (load, &sample));
    CHECK (!sample.has_utilization && sample.memory_total == 0);
    nvml->wait_begun (i * QUERIES);
  }
  csf_gpuload_destroy (load);
  csf_device_unref (device);
  finish ();
}

static void
get_never_waits_for_nvml (void)
{
  csf_device *device = open_device ();
  csf_gpuload *load = open_load (device);
  csf_gpuload_sample sample = next_sample (load);
  uint64_t begun;

  nvml_setting ("UTILIZATION", 99);
  nvml_setting ("HOLD", 1);
  /* One query may have begun before; then the thread is held in the next. */
  begun = nvml_counters ().begun;
  csf_gpuload_get (load, &sample);
  nvml->wait_begun (begun + 1);
  for (unsigned i = 0; i < 1000; i++) {
    CHECK (csf_gpuload_get (load, &sample));
    CHECK_INT (sample.clock, 1500);
  }
  CHECK (nvml_counters ().ended < nvml_counters ().begun);
  nvml_setting ("HOLD", 0);
  CHECK_INT (next_sample (load).utilization, 99);

  /* The same by the clock: the queries take 300 ms each. */
  nvml_setting ("DELAY_MS", 300);
  begun = nvml_counters ().begun;
  csf_gpuload_get (load, &sample);
  nvml->wait_begun (begun + 1);
  {
    uint64_t start = test_now_ns ();

    for (unsigned i = 0; i < 100; i++)
      CHECK (csf_gpuload_get (load, &sample));
    CHECK (test_now_ns () - start < UINT64_C (250000000));
  }
  csf_gpuload_destroy (load);
  csf_device_unref (device);
  finish ();
}

static void
destroy_waits_for_the_query_under_way (void)
{
  csf_device *device = open_device ();
  csf_gpuload *load;

  nvml_setting ("DELAY_MS", 300);
  load = open_load (device);
  nvml->wait_begun (1);
  csf_gpuload_destroy (load);
  finish ();
  /* Also before the thread has come to its first. */
  for (unsigned i = 0; i < 50; i++)
    csf_gpuload_destroy (open_load (device));
  csf_gpuload_destroy (NULL);
  csf_device_unref (device);
  finish ();
}

static void
users_share_one_start_of_nvml (void)
{
  csf_device *device = open_device (), *again = open_device ();
  csf_gpuload *first = open_load (device), *second = open_load (again);
  csf_gpuload_sample sample;

  CHECK_INT (nvml_counters ().inits, 1);
  sample = next_sample (first);
  check_sample (&sample, "");
  csf_gpuload_destroy (first);
  CHECK_INT (nvml_counters ().references, 1);
  sample = next_sample (second);
  check_sample (&sample, "");
  csf_gpuload_destroy (second);
  CHECK_INT (nvml_counters ().references, 0);
  first = open_load (device);
  CHECK_INT (nvml_counters ().inits, 2);
  csf_gpuload_destroy (first);
  csf_device_unref (device);
  csf_device_unref (again);
  finish ();
}

static void *
use_load (void *argument)
{
  csf_device *device = argument;

  for (unsigned i = 0; i < 50; i++) {
    csf_gpuload *load = open_load (device);
    csf_gpuload_sample sample;

    for (unsigned j = 0; j < i; j++)
      if (csf_gpuload_get (load, &sample))
        check_sample (&sample, "");
    csf_gpuload_destroy (load);
  }
  return NULL;
}

static void *
read_load (void *argument)
{
  csf_gpuload_sample sample;

  for (unsigned i = 0; i < 1000; i++)
    if (csf_gpuload_get (argument, &sample))
      check_sample (&sample, "");
  return NULL;
}

static void
any_thread_may_use_it (void)
{
  csf_device *device = open_device ();
  csf_gpuload *load = open_load (device);
  pthread_t threads[6];

  for (unsigned i = 0; i < 6; i++)
    CHECK_INT (pthread_create (&threads[i], NULL, i % 2 == 0 ? use_load : read_load,
            i % 2 == 0 ? (void *) device : (void *) load), 0);
  for (unsigned i = 0; i < 6; i++)
    pthread_join (threads[i], NULL);
  csf_gpuload_destroy (load);
  csf_device_unref (device);
  finish ();
}

/* There is nothing to be had, and nothing is printed. */
static void
expect_none (csf_device *device)
{
  FILE *said = tmpfile ();
  int kept = dup (STDERR_FILENO);
  csf_gpuload *load;

  CHECK (said != NULL && kept >= 0);
  fflush (stderr);
  dup2 (fileno (said), STDERR_FILENO);
  load = csf_gpuload_create (device);
  dup2 (kept, STDERR_FILENO);
  close (kept);
  CHECK (load == NULL);
  CHECK_INT (lseek (fileno (said), 0, SEEK_END), 0);
  fclose (said);
}

static void
a_start_that_fails_leaves_none_until_one_succeeds (void)
{
  csf_device *device = open_device ();

  nvml_setting ("INIT_CODE", 9);
  expect_none (device);
  expect_none (device);
  CHECK_INT (nvml_counters ().references, 0);
  nvml_setting ("INIT_CODE", 0);
  csf_gpuload_destroy (open_load (device));
  csf_device_unref (device);
  finish ();
}

static void
a_device_that_nvml_does_not_find_has_none (void)
{
  csf_device *device = open_device ();
  csf_gpuload *load;

  nvml_setting ("DEVICE_CODE", 6);
  expect_none (device);
  CHECK_INT (nvml_counters ().references, 0);
  nvml_setting ("DEVICE_CODE", 0);
  load = open_load (device);
  nvml_setting ("DEVICE_CODE", 4);
  expect_none (device);
  CHECK_INT (nvml_counters ().references, 1);
  csf_gpuload_destroy (load);
  csf_device_unref (device);
  finish ();
}

static void
a_device_without_a_bus_id_has_none (void)
{
  csf_device *device;

  CHECK_INT (csf_device_open (CSF_BACKEND_CPU, -1, &device, NULL), CSF_OK);
  expect_none (device);
  csf_device_unref (device);
  fake->set_fail_call ("cuDeviceGetPCIBusId");
  device = open_device ();
  expect_none (device);
  csf_device_unref (device);
  CHECK_INT (nvml_counters ().inits, 0);
  finish ();
}

/* ---- with a library that lacks a function, or without one -------------------------------------- */

static const char *lacking;     /* as check_sample has it */

static void
a_missing_function_loses_its_field_only (void)
{
  csf_device *device = open_device ();
  csf_gpuload *load = open_load (device);
  csf_gpuload_sample sample = next_sample (load);

  if (strcmp (lacking, "CLOCK") == 0) {
    CHECK (!sample.has_memory_clock && sample.memory_clock == 0);
    sample.has_memory_clock = true;
    sample.memory_clock = 7000;
  }
  check_sample (&sample, lacking);
  csf_gpuload_destroy (load);
  csf_device_unref (device);
  finish ();
}

static void
without_nvml_there_is_none (void)
{
  csf_device *device = open_device ();

  expect_none (device);
  expect_none (device);
  csf_device_unref (device);
}

static void
without_a_start_there_is_none (void)
{
  without_nvml_there_is_none ();
  CHECK_INT (nvml_counters ().misuse, 0);
}

int
main (int argc, char **argv)
{
  static const test whole[] = {
    {"what_nvml_says_arrives", what_nvml_says_arrives},
    {"the_first_sample_is_asked_for_by_create", the_first_sample_is_asked_for_by_create},
    {"a_query_that_is_refused_loses_its_field_only",
        a_query_that_is_refused_loses_its_field_only},
    {"a_device_that_tells_nothing_gives_no_sample", a_device_that_tells_nothing_gives_no_sample},
    {"get_never_waits_for_nvml", get_never_waits_for_nvml},
    {"destroy_waits_for_the_query_under_way", destroy_waits_for_the_query_under_way},
    {"users_share_one_start_of_nvml", users_share_one_start_of_nvml},
    {"any_thread_may_use_it", any_thread_may_use_it},
    {"a_start_that_fails_leaves_none_until_one_succeeds",
        a_start_that_fails_leaves_none_until_one_succeeds},
    {"a_device_that_nvml_does_not_find_has_none", a_device_that_nvml_does_not_find_has_none},
    {"a_device_without_a_bus_id_has_none", a_device_without_a_bus_id_has_none},
    {NULL, NULL}
  };
  static const test absent[] = {
    {"without_nvml_there_is_none", without_nvml_there_is_none},
    {NULL, NULL}
  };
  static const test no_start[] = {
    {"without_a_start_there_is_none", without_a_start_there_is_none},
    {NULL, NULL}
  };
  static const test part[] = {
    {"a_missing_function_loses_its_field_only", a_missing_function_loses_its_field_only},
    {NULL, NULL}
  };
  static char cuda[] = "cuda";
  char *own[] = { argv[0], cuda };

  if (argc > 1 && strcmp (argv[1], "absent") == 0)
    return run_tests (2, own, absent);
  if (argc > 2 && argv[2][0] == '/') {
    lacking = argv[1];
    CHECK (dlopen (argv[2], RTLD_NOW | RTLD_LOCAL) != NULL);
  }
  nvml = fake_nvml_find ();
  if (nvml == NULL) {
    fprintf (stderr, "libnvidia-ml.so.1 is not the fake: set LD_LIBRARY_PATH to its folder\n");
    return 1;
  }
  if (lacking == NULL)
    return run_tests (argc, argv, whole);
  return run_tests (2, own, strcmp (lacking, "INIT") == 0 ? no_start : part);
}
