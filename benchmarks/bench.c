/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frame sizes, options, meter and report of the benchmark programs.  Knows no GStreamer and no
 * driver. */
#include "bench.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "kernels/format.h"

/* ---- frames -------------------------------------------------------------------------------- */

const bench_size bench_sizes[] = {
  {"NV12", 1920, 1080},
  {"RGBA", 1920, 1080},
  {"NV12", 3840, 2160},
  {"RGBA", 3840, 2160},
  {NULL, 0, 0}
};

void
bench_layout (const bench_size *size, csf_layout *layout)
{
  memset (layout, 0, sizeof *layout);
  csfk_image_init (&layout->image, csfk_format_from_name (size->format), size->width,
      size->height);
  for (int p = 0; p < layout->image.n_planes; p++) {
    csfk_plane *plane = &layout->image.plane[p];

    plane->stride = plane->row_bytes;
    layout->offset[p] = layout->size;
    layout->size += (size_t) plane->stride * (size_t) plane->rows;
  }
}

csfk_image
bench_image (const csf_layout *layout, void *base)
{
  csfk_image image = layout->image;

  for (int p = 0; p < image.n_planes; p++)
    image.plane[p].data = (unsigned char *) base + layout->offset[p];
  return image;
}

void
bench_fill (void *data, size_t bytes)
{
  static uint64_t state = 0x9e3779b97f4a7c15u;
  unsigned char *to = data;

  while (bytes > 0) {
    size_t part = bytes < sizeof state ? bytes : sizeof state;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    memcpy (to, &state, part);
    to += part;
    bytes -= part;
  }
}

/* ---- options ------------------------------------------------------------------------------- */

static void
usage (FILE *to, const char *program, const char *summary)
{
  fprintf (to, "usage: %s [OPTION ...]\n\n%s\n\n"
      "  --quick            shorter measurements, 1 and 3 streams only\n"
      "  --case TEXT        only cases whose name contains TEXT\n"
      "  --kernel NAME,...  kernels to run (default: copy)\n"
      "  --streams N,...    numbers of streams (default: 1,2,3,4,8)\n"
      "  --backend NAME     cuda (default) or cpu, which has no limit and no peers\n"
      "  --source-buffers N the source takes at least so many buffers in turn (default: 16, as many as\n"
      "                     a decoder keeps; 0: as many as downstream asks for)\n"
      "  --trace            measure each case of the element again, with a trace of every frame\n"
      "  --no-peers         do not measure other elements\n"
      "  --check            fail when the element copied a frame on the host or its pool grew\n"
      "  --json FILE        write the results there\n"
      "  --commit TEXT      recorded in the results\n"
      "  --driver TEXT      recorded in the results (default: as the kernel module says)\n",
      program, summary);
}

static void
refuse (const char *program, const char *what, const char *value)
{
  fprintf (stderr, "%s: %s '%s'; --help lists the options\n", program, what, value);
  exit (2);
}

static void
parse_kernels (bench_options *options, const char *program, char *list)
{
  char *rest = NULL;

  options->n_kernels = 0;
  for (char *name = strtok_r (list, ",", &rest); name != NULL; name = strtok_r (NULL, ",", &rest)) {
    if (csfk_kernel_find (name) == NULL)
      refuse (program, "there is no kernel", name);
    if (options->n_kernels == BENCH_MAX_LIST)
      refuse (program, "the list of kernels is too long at", name);
    options->kernels[options->n_kernels++] = name;
  }
}

static void
parse_streams (bench_options *options, const char *program, char *list)
{
  char *rest = NULL;

  options->n_streams = 0;
  for (char *text = strtok_r (list, ",", &rest); text != NULL; text = strtok_r (NULL, ",", &rest)) {
    char *end;
    unsigned long n = strtoul (text, &end, 10);

    if (*end != '\0' || n < 1 || n > CSF_MAX_STREAMS || options->n_streams == BENCH_MAX_LIST)
      refuse (program, "expected numbers of streams from 1 to 64, got", text);
    options->streams[options->n_streams++] = (unsigned) n;
  }
}

static void
set_defaults (bench_options *options)
{
  static const unsigned all[] = { 1, 2, 3, 4, 8 }, few[] = { 1, 3 };
  const unsigned *streams = options->quick ? few : all;

  if (options->n_kernels == 0)
    options->kernels[options->n_kernels++] = "copy";
  if (options->n_streams == 0) {
    options->n_streams = options->quick ? sizeof few / sizeof few[0] : sizeof all / sizeof all[0];
    memcpy (options->streams, streams, options->n_streams * sizeof *streams);
  }
}

void
bench_options_parse (bench_options *options, int argc, char **argv, const char *summary)
{
  static const struct option known[] = {
    {"quick", no_argument, NULL, 'q'}, {"case", required_argument, NULL, 'c'},
    {"kernel", required_argument, NULL, 'k'}, {"streams", required_argument, NULL, 's'},
    {"backend", required_argument, NULL, 'b'}, {"no-peers", no_argument, NULL, 'p'},
    {"source-buffers", required_argument, NULL, 'n'}, {"trace", no_argument, NULL, 't'},
    {"check", no_argument, NULL, 'x'}, {"json", required_argument, NULL, 'j'},
    {"commit", required_argument, NULL, 'm'}, {"driver", required_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}
  };
  int option;

  memset (options, 0, sizeof *options);
  options->commit = "unknown";
  options->source_buffers = 16;
  while ((option = getopt_long (argc, argv, "h", known, NULL)) != -1) {
    switch (option) {
      case 'q': options->quick = true; break;
      case 'n': options->source_buffers = (unsigned) strtoul (optarg, NULL, 10); break;
      case 'p': options->no_peers = true; break;
      case 't': options->trace = true; break;
      case 'x': options->check = true; break;
      case 'c': options->match = optarg; break;
      case 'j': options->json = optarg; break;
      case 'm': options->commit = optarg; break;
      case 'd': options->driver = optarg; break;
      case 'k': parse_kernels (options, argv[0], optarg); break;
      case 's': parse_streams (options, argv[0], optarg); break;
      case 'b':
        options->cpu = strcmp (optarg, "cpu") == 0;
        if (!options->cpu && strcmp (optarg, "cuda") != 0)
          refuse (argv[0], "expected the backend cuda or cpu, got", optarg);
        break;
      case 'h':
        usage (stdout, argv[0], summary);
        exit (0);
      default:
        usage (stderr, argv[0], summary);
        exit (2);
    }
  }
  if (optind < argc)
    refuse (argv[0], "unexpected argument", argv[optind]);
  set_defaults (options);
}

bool
bench_wants (const bench_options *options, const char *name_format, ...)
{
  char name[96];
  va_list args;

  va_start (args, name_format);
  vsnprintf (name, sizeof name, name_format, args);
  va_end (args);
  return options->match == NULL || strstr (name, options->match) != NULL;
}

/* ---- meter --------------------------------------------------------------------------------- */

uint64_t
bench_now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static uint64_t
cpu_now_ns (void)
{
  struct rusage use;

  getrusage (RUSAGE_SELF, &use);
  return (uint64_t) (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000u
      + (uint64_t) (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000u;
}

void
bench_meter_init (bench_meter *meter, bool quick)
{
  memset (meter, 0, sizeof *meter);
  meter->warm_frames = quick ? 16 : 32;
  meter->warm_ns = quick ? 100000000u : 300000000u;
  meter->stretches = quick ? 3 : 7;
  meter->stretch_ns = quick ? 120000000u : 200000000u;
}

bool
bench_meter_tick (bench_meter *meter)
{
  uint64_t now = bench_now_ns ();
  bench_mark *mark = &meter->marks[meter->n_marks];

  if (meter->n_marks > meter->stretches)
    return true;
  if (meter->frames++ == 0)
    meter->next_ns = now + meter->warm_ns;
  if (now < meter->next_ns || meter->frames < meter->warm_frames)
    return false;
  mark->ns = now;
  mark->cpu_ns = cpu_now_ns ();
  mark->frames = meter->frames;
  meter->next_ns = now + meter->stretch_ns;
  return ++meter->n_marks > meter->stretches;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

double
bench_median (double *values, unsigned n)
{
  qsort (values, n, sizeof *values, compare);
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double
bench_meter_rate (const bench_meter *meter, double *least, double *most)
{
  double rates[BENCH_MAX_MARKS] = { 0 };
  unsigned n = 0;
  double median;

  for (unsigned i = 1; i < meter->n_marks; i++) {
    const bench_mark *from = &meter->marks[i - 1], *to = &meter->marks[i];

    rates[n++] = (double) (to->frames - from->frames) * 1e9 / (double) (to->ns - from->ns);
  }
  median = bench_median (rates, n);
  if (least != NULL)
    *least = rates[0];
  if (most != NULL)
    *most = rates[n > 0 ? n - 1 : 0];
  return median;
}

double
bench_meter_cpu_us (const bench_meter *meter)
{
  const bench_mark *from = &meter->marks[0], *to;

  if (meter->n_marks < 2)
    return 0;
  to = &meter->marks[meter->n_marks - 1];
  return (double) (to->cpu_ns - from->cpu_ns) / 1e3 / (double) (to->frames - from->frames);
}

/* ---- report -------------------------------------------------------------------------------- */

void
bench_row_init (bench_row *row, double value, double limit, const char *name_format, ...)
{
  va_list args;

  memset (row, 0, sizeof *row);
  va_start (args, name_format);
  vsnprintf (row->name, sizeof row->name, name_format, args);
  va_end (args);
  row->value = value;
  row->unit = "fps";
  row->limit = limit;
}

static void
add_value (bench_value *values, unsigned *n, const char *name, double value)
{
  if (*n < BENCH_MAX_VALUES)
    values[(*n)++] = (bench_value) { name, value };
}

void
bench_row_add_peer (bench_row *row, const char *name, double value)
{
  if (value > 0)
    add_value (row->peers, &row->n_peers, name, value);
}

void
bench_row_add_extra (bench_row *row, const char *name, double value)
{
  add_value (row->extras, &row->n_extras, name, value);
}

static void
print_row (const bench_row *row)
{
  printf ("%-52s %10.1f", row->name, row->value);
  if (row->limit > 0)
    printf (" %10.1f %6.1f %%", row->limit, 100 * row->value / row->limit);
  else
    printf (" %10s %8s", "-", "-");
  if (row->n_peers > 0)
    printf ("\n    peers:");
  for (unsigned i = 0; i < row->n_peers; i++)
    printf ("%s %s %.1f", i > 0 ? "," : "", row->peers[i].name, row->peers[i].value);
  if (row->n_extras > 0)
    printf ("\n    ");
  for (unsigned i = 0; i < row->n_extras; i++)
    printf ("%s%s %.6g", i > 0 ? ", " : "", row->extras[i].name, row->extras[i].value);
  if (row->bound_by[0] != '\0')
    printf (", bound-by %s", row->bound_by);
  printf ("\n");
  fflush (stdout);
}

void
bench_report_add (bench_report *report, const bench_row *row)
{
  bench_row *rows = realloc (report->rows, (report->n_rows + 1) * sizeof *rows);

  if (rows == NULL)
    abort ();
  if (report->n_rows == 0)
    printf ("%-52s %10s %10s %8s\n", "case", "fps", "limit", "of it");
  report->rows = rows;
  rows[report->n_rows++] = *row;
  print_row (row);
}

static void
write_text (FILE *file, const char *text)
{
  fputc ('"', file);
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\')
      fputc ('\\', file);
    if ((unsigned char) *text >= ' ')
      fputc (*text, file);
  }
  fputc ('"', file);
}

static void
write_field (FILE *file, const char *name, const char *text)
{
  fprintf (file, "  \"%s\": ", name);
  write_text (file, text);
  fputs (",\n", file);
}

static void
write_row (FILE *file, const bench_row *row)
{
  fputs ("    {\"case\": ", file);
  write_text (file, row->name);
  fprintf (file, ", \"value\": %.1f, \"unit\": \"%s\"", row->value, row->unit);
  if (row->limit > 0)
    fprintf (file, ", \"limit\": %.1f, \"ratio\": %.4f", row->limit, row->value / row->limit);
  else
    fputs (", \"limit\": null, \"ratio\": null", file);
  fputs (", \"peers\": {", file);
  for (unsigned i = 0; i < row->n_peers; i++) {
    fputs (i > 0 ? ", " : "", file);
    write_text (file, row->peers[i].name);
    fprintf (file, ": %.1f", row->peers[i].value);
  }
  fputc ('}', file);
  for (unsigned i = 0; i < row->n_extras; i++)
    fprintf (file, ", \"%s\": %.9g", row->extras[i].name, row->extras[i].value);
  if (row->bound_by[0] != '\0') {
    fputs (", \"bound-by\": ", file);
    write_text (file, row->bound_by);
  }
  fputc ('}', file);
}

static bool
write_json (const bench_report *report, const bench_options *options)
{
  FILE *file = fopen (options->json, "w");
  time_t now = time (NULL);
  struct tm utc;
  char date[32];

  if (file == NULL) {
    fprintf (stderr, "cannot write the results: ");
    perror (options->json);
    return false;
  }
  strftime (date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r (&now, &utc));
  fputs ("{\n", file);
  write_field (file, "device", report->device);
  write_field (file, "driver", options->driver != NULL ? options->driver : report->driver);
  write_field (file, "cuda", report->cuda);
  write_field (file, "gstreamer", report->gstreamer);
  write_field (file, "date", date);
  write_field (file, "commit", options->commit);
  fputs ("  \"rows\": [\n", file);
  for (unsigned i = 0; i < report->n_rows; i++) {
    write_row (file, &report->rows[i]);
    fputs (i + 1 < report->n_rows ? ",\n" : "\n", file);
  }
  fputs ("  ]\n}\n", file);
  if (fclose (file) != 0) {
    perror (options->json);
    return false;
  }
  return true;
}

bool
bench_report_finish (bench_report *report, const bench_options *options)
{
  bool written = options->json == NULL || write_json (report, options);

  if (report->n_rows == 0)
    fprintf (stderr, "no case was measured\n");
  written &= report->n_rows > 0;
  free (report->rows);
  report->rows = NULL;
  report->n_rows = 0;
  return written;
}
