/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program busloop: a table of what the bus and the GPU allow, and of the plain loop with each
 * number of streams.  Needs a CUDA device and nothing else. */
#include <stdio.h>

#include "busloop.h"
#include "kernels/format.h"

static bool
measure (busloop *bus, const bench_options *options, const bench_size *size, const char *name,
    bench_report *report, char *text)
{
  const csfk_kernel *kernel = csfk_kernel_find (name);
  busloop_limits limits;
  csf_layout layout;
  bench_row row;

  bench_layout (size, &layout);
  if (!busloop_measure_limits (bus, &layout, kernel, options->quick, &limits, text))
    return false;
  bench_row_init (&row, limits.limit, limits.limit, "bus/%s/%dx%d/%s", name, size->width,
      size->height, size->format);
  bench_row_add_extra (&row, "upload-fps", limits.upload);
  bench_row_add_extra (&row, "download-fps", limits.download);
  bench_row_add_extra (&row, "upload-both-fps", limits.upload_both);
  bench_row_add_extra (&row, "download-both-fps", limits.download_both);
  bench_row_add_extra (&row, "both-fps", limits.both);
  bench_row_add_extra (&row, "kernel-fps", limits.kernel);
  snprintf (row.bound_by, sizeof row.bound_by, "%s", limits.limited_by);
  bench_report_add (report, &row);
  for (unsigned i = 0; i < options->n_streams; i++) {
    double fps;

    if (!busloop_measure_loop (bus, &layout, kernel, options->streams[i], options->quick, &fps,
            text))
      return false;
    bench_row_init (&row, fps, limits.limit, "plain-loop/%s/%dx%d/%s/streams=%u", name, size->width,
        size->height, size->format, options->streams[i]);
    bench_report_add (report, &row);
  }
  return true;
}

int
main (int argc, char **argv)
{
  bench_options options;
  bench_report report = { 0 };
  char text[256] = "";
  bool good = true;
  busloop *bus;

  bench_options_parse (&options, argc, argv,
      "Measures what bus and GPU allow for a frame size, and a plain CUDA loop of N streams.");
  bus = options.cpu ? NULL : busloop_open (text);
  if (bus == NULL) {
    fprintf (stderr, "busloop: %s\n", options.cpu ? "the CPU has no bus to measure" : text);
    return 1;
  }
  busloop_describe (bus, &report);
  for (const bench_size *size = bench_sizes; size->format != NULL && good; size++)
    for (unsigned k = 0; k < options.n_kernels && good; k++)
      if (bench_wants (&options, "bus/%s/%dx%d/%s", options.kernels[k], size->width, size->height,
              size->format))
        good = measure (bus, &options, size, options.kernels[k], &report, text);
  if (!good)
    fprintf (stderr, "busloop: %s\n", text);
  busloop_close (bus);
  good &= bench_report_finish (&report, &options);
  return good ? 0 : 1;
}
