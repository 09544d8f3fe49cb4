/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program engineloop: a table of the stream engine's throughput without GStreamer, beside what
 * the bus allows and the plain loop reaches with as many streams in the same run. */
#include <stdio.h>

#include "busloop.h"
#include "engineloop.h"
#include "kernels/format.h"

static bool
measure (csf_device *device, busloop *bus, const bench_options *options, const bench_size *size,
    const char *name, bench_report *report)
{
  const csfk_kernel *kernel = csfk_kernel_find (name);
  busloop_limits limits = { 0 };
  csf_layout layout;
  char text[256] = "";

  bench_layout (size, &layout);
  if (bus != NULL
      && !busloop_measure_limits (bus, &layout, kernel, options->quick, &limits, text)) {
    fprintf (stderr, "engineloop: %s\n", text);
    return false;
  }
  for (unsigned i = 0; i < options->n_streams; i++) {
    unsigned streams = options->streams[i];
    engineloop_result result;
    double plain = 0;
    csf_error error;
    bench_row row;

    if (!bench_wants (options, "engine/%s/%dx%d/%s/streams=%u", name, size->width, size->height,
            size->format, streams))
      continue;
    const engineloop_setup setup = {
      .device = device,
      .layout = &layout,
      .kernel = kernel,
      .streams = streams,
      .quick = options->quick,
    };

    if (engineloop_measure (&setup, &result, &error) != CSF_OK) {
      fprintf (stderr, "engineloop: %s\n", error.text);
      return false;
    }
    if (bus != NULL
        && !busloop_measure_loop (bus, &layout, kernel, streams, options->quick, &plain, text)) {
      fprintf (stderr, "engineloop: %s\n", text);
      return false;
    }
    bench_row_init (&row, result.fps, limits.limit, "engine/%s/%dx%d/%s/streams=%u", name,
        size->width, size->height, size->format, streams);
    bench_row_add_peer (&row, "plain loop", plain);
    bench_row_add_extra (&row, "cpu-us", result.cpu_us);
    bench_row_add_extra (&row, "host-copies", (double) result.stats.host_copies);
    bench_row_add_extra (&row, "upload-us", (double) result.stats.part[CSF_PART_UPLOAD].mean_ns / 1e3);
    bench_row_add_extra (&row, "kernel-us", (double) result.stats.part[CSF_PART_KERNEL].mean_ns / 1e3);
    bench_row_add_extra (&row, "download-us", (double) result.stats.part[CSF_PART_DOWNLOAD].mean_ns / 1e3);
    bench_report_add (report, &row);
  }
  return true;
}

int
main (int argc, char **argv)
{
  bench_options options;
  bench_report report = { 0 };
  csf_device *device;
  csf_error error;
  busloop *bus = NULL;
  char text[256] = "";
  bool good = true;

  bench_options_parse (&options, argc, argv,
      "Measures the stream engine between two threads, without GStreamer.");
  if (csf_device_open (options.cpu ? CSF_BACKEND_CPU : CSF_BACKEND_CUDA, -1, &device, &error)
      != CSF_OK) {
    fprintf (stderr, "engineloop: %s\n", error.text);
    return 1;
  }
  snprintf (report.device, sizeof report.device, "%s", csf_device_get_info (device)->name);
  if (!options.cpu) {
    bus = busloop_open (text);
    if (bus == NULL) {
      fprintf (stderr, "engineloop: %s\n", text);
      return 1;
    }
    busloop_describe (bus, &report);
  }
  for (const bench_size *size = bench_sizes; size->format != NULL && good; size++)
    for (unsigned k = 0; k < options.n_kernels && good; k++) {
      bool wanted = false;

      for (unsigned i = 0; i < options.n_streams; i++)
        wanted |= bench_wants (&options, "engine/%s/%dx%d/%s/streams=%u", options.kernels[k],
            size->width, size->height, size->format, options.streams[i]);
      if (wanted)
        good = measure (device, bus, &options, size, options.kernels[k], &report);
    }
  busloop_close (bus);
  csf_device_unref (device);
  good &= bench_report_finish (&report, &options);
  return good ? 0 : 1;
}
