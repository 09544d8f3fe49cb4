/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What opening a device says when it cannot: each message names what is wrong and what to do.  Runs
 * with the fake driver ("cuda"), with an old one ("old") and with none ("absent"). */
#include <stdlib.h>
#include <string.h>

#include "engine/csf.h"
#include "harness.h"

static void
refuse (int id, csf_status expected, csf_error *error)
{
  csf_device *device = (csf_device *) error;
  csf_error probed = { 0 };

  memset (error, 0, sizeof *error);
  CHECK_INT (csf_device_open (CSF_BACKEND_CUDA, id, &device, error), expected);
  CHECK (device == NULL);
  CHECK_INT (error->status, expected);
  CHECK_INT (error->stage, CSF_STAGE_OPEN);
  CHECK (error->frame == CSF_NO_FRAME);
  CHECK (error->text[0] != '\0');
  /* The error is optional. */
  CHECK_INT (csf_device_open (CSF_BACKEND_CUDA, id, &device, NULL), expected);
  if (csf_device_probe (CSF_BACKEND_CUDA, id, &probed) != CSF_OK)
    CHECK (strcmp (probed.text, error->text) == 0);
}

static const csf_device_info *
open_expecting (int id, int expected, csf_device **device)
{
  csf_error error = { 0 };

  CHECK_INT (csf_device_probe (CSF_BACKEND_CUDA, id, NULL), CSF_OK);
  CHECK_INT (fake_counters ().contexts, 0);
  if (csf_device_open (CSF_BACKEND_CUDA, id, device, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "device %d: %s", id, error.text);
  CHECK_INT (csf_device_get_info (*device)->id, expected);
  CHECK_INT (csf_device_get_info (*device)->backend, CSF_BACKEND_CUDA);
  return csf_device_get_info (*device);
}

static void
a_device_tells_what_it_is (void)
{
  const csf_device_info *info;
  csf_device *device;

  fake_setting ("DEVICES", 2);
  info = open_expecting (1, 1, &device);
  CHECK (strcmp (info->name, "Fake GPU 1") == 0);
  CHECK (strcmp (info->backend_name, "cuda") == 0);
  CHECK (strcmp (info->pci_bus_id, "0000:02:00.0") == 0);
  CHECK (info->pins);
  CHECK (info->default_streams >= 1);
  csf_device_unref (csf_device_ref (device));
  CHECK_INT (fake_counters ().contexts, 1);
  csf_device_unref (device);
}

static void
several_opens_share_the_primary_context (void)
{
  csf_device *devices[3];

  fake_setting ("DEVICES", 2);
  open_expecting (0, 0, &devices[0]);
  CHECK_INT (csf_device_open (CSF_BACKEND_CUDA, 0, &devices[1], NULL), CSF_OK);
  CHECK_INT (fake_counters ().contexts, 1);
  CHECK_INT (csf_device_open (CSF_BACKEND_CUDA, 1, &devices[2], NULL), CSF_OK);
  CHECK_INT (fake_counters ().contexts, 2);
  for (unsigned i = 0; i < 3; i++)
    csf_device_unref (devices[i]);
  CHECK_INT (fake_counters ().contexts, 0);
}

static void
a_number_out_of_range_is_told_how_many_there_are (void)
{
  csf_error error;

  fake_setting ("DEVICES", 2);
  refuse (2, CSF_ERROR_NO_DEVICE, &error);
  CHECK_CONTAINS (error.text, "0 to 1");
  CHECK_CONTAINS (error.text, "2 devices");
  refuse (-2, CSF_ERROR_NO_DEVICE, &error);
  CHECK_CONTAINS (error.text, "-2");
  fake_setting ("DEVICES", 1);
  refuse (7, CSF_ERROR_NO_DEVICE, &error);
  CHECK_CONTAINS (error.text, "7");
  CHECK_CONTAINS (error.text, "1 device");
}

static void
no_device_is_no_device (void)
{
  csf_error error;

  fake_setting ("DEVICES", 0);
  refuse (-1, CSF_ERROR_NO_DEVICE, &error);
  refuse (0, CSF_ERROR_NO_DEVICE, &error);
}

static void
an_old_driver_is_told_its_version_and_the_one_needed (void)
{
  csf_error error;

  fake_setting ("DRIVER_VERSION", 11080);
  refuse (-1, CSF_ERROR_DRIVER, &error);
  CHECK_CONTAINS (error.text, "11.8");
  CHECK_CONTAINS (error.text, "12");
}

static void
a_prohibited_device_is_passed_over_unless_asked_for (void)
{
  csf_error error;
  csf_device *device;

  fake_setting ("DEVICES", 3);
  fake_setting ("DEVICE_0_ATTRIBUTE_20", 2);
  refuse (0, CSF_ERROR_NO_DEVICE, &error);
  CHECK_CONTAINS (error.text, "prohibited");
  open_expecting (-1, 1, &device);
  csf_device_unref (device);
  fake_setting ("ATTRIBUTE_20", 2);
  refuse (-1, CSF_ERROR_NO_DEVICE, &error);
  CHECK_CONTAINS (error.text, "prohibited");
}

static void
a_call_that_fails_is_named_with_its_code (void)
{
  static const char *const calls[] = {
    "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute",
    "cuDeviceGetName", "cuDevicePrimaryCtxRetain"
  };

  for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    csf_error error;

    fake->reset ();
    fake_setting ("FAIL_CODE", 999);
    fake_setting ("FAIL_COUNT", 0);
    fake->set_fail_call (calls[i]);
    refuse (0, CSF_ERROR_DEVICE, &error);
    CHECK_CONTAINS (error.text, calls[i]);
    CHECK_CONTAINS (error.text, "999");
    CHECK_INT (error.driver_code, 999);
  }
  fake->reset ();
  fake_setting ("FAIL_CODE", 803);
  fake_setting ("FAIL_COUNT", 0);
  fake->set_fail_call ("cuInit");
  {
    csf_error error;

    refuse (0, CSF_ERROR_DRIVER, &error);
    CHECK_INT (error.driver_code, 803);
  }
}

static void
a_driver_that_does_not_say_the_bus_is_no_failure (void)
{
  csf_device *device;

  fake->set_fail_call ("cuDeviceGetPCIBusId");
  CHECK (open_expecting (0, 0, &device)->pci_bus_id[0] == '\0');
  CHECK_INT (fake_counters ().injected, 1);
  csf_device_unref (device);
}

static void
the_cpu_is_always_there (void)
{
  csf_device *device;
  const csf_device_info *info;

  CHECK_INT (csf_device_probe (CSF_BACKEND_CPU, -1, NULL), CSF_OK);
  CHECK_INT (csf_device_open (CSF_BACKEND_CPU, -1, &device, NULL), CSF_OK);
  info = csf_device_get_info (device);
  CHECK_INT (info->backend, CSF_BACKEND_CPU);
  CHECK (strcmp (info->backend_name, "cpu") == 0);
  CHECK (!info->pins);
  CHECK (info->pci_bus_id[0] == '\0');
  CHECK (info->name[0] != '\0');
  CHECK (info->default_streams >= 1 && info->default_streams <= CSF_MAX_STREAMS);
  csf_device_unref (device);
}

static void
an_absent_driver_is_named (void)
{
  csf_error error;

  refuse (-1, CSF_ERROR_DRIVER, &error);
  CHECK_CONTAINS (error.text, "libcuda.so.1");
  CHECK_CONTAINS (error.text, "driver");
  refuse (0, CSF_ERROR_DRIVER, &error);
}

static void
a_missing_function_is_named (void)
{
  csf_error error;

  refuse (-1, CSF_ERROR_DRIVER, &error);
  CHECK_CONTAINS (error.text, "cuMemHostRegister_v2");
}

int
main (int argc, char **argv)
{
  static const test cuda[] = {
    {"a_device_tells_what_it_is", a_device_tells_what_it_is},
    {"several_opens_share_the_primary_context", several_opens_share_the_primary_context},
    {"a_number_out_of_range_is_told_how_many_there_are",
        a_number_out_of_range_is_told_how_many_there_are},
    {"no_device_is_no_device", no_device_is_no_device},
    {"an_old_driver_is_told_its_version_and_the_one_needed",
        an_old_driver_is_told_its_version_and_the_one_needed},
    {"a_prohibited_device_is_passed_over_unless_asked_for",
        a_prohibited_device_is_passed_over_unless_asked_for},
    {"a_call_that_fails_is_named_with_its_code", a_call_that_fails_is_named_with_its_code},
    {"a_driver_that_does_not_say_the_bus_is_no_failure",
        a_driver_that_does_not_say_the_bus_is_no_failure},
    {NULL}
  };
  static const test absent[] = {
    {"an_absent_driver_is_named", an_absent_driver_is_named},
    {"the_cpu_is_always_there", the_cpu_is_always_there},
    {NULL}
  };
  static const test old[] = {
    {"a_missing_function_is_named", a_missing_function_is_named},
    {"the_cpu_is_always_there", the_cpu_is_always_there},
    {NULL}
  };
  const char *driver = argc > 1 ? argv[1] : "";

  if (strcmp (driver, "absent") == 0)
    return run_tests (argc, argv, absent);
  if (strcmp (driver, "old") == 0)
    return run_tests (argc, argv, old);
  return run_tests (argc, argv, cuda);
}
