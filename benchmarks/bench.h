/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the benchmark programs share: options, the four frame sizes, a meter that turns passing
 * frames into a rate, and the report in the one schema all results have.  Knows no GStreamer and no
 * driver. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/csf.h"

/* ---- frames -------------------------------------------------------------------------------- */

typedef struct bench_size
{
  const char *format;           /* GStreamer's name */
  int width, height;
} bench_size;

/* 1080p and 4K, NV12 and RGBA; ended by a NULL format. */
extern const bench_size bench_sizes[];

/* How such a frame lies in memory, without gaps, as GStreamer lays out these sizes too. */
void bench_layout (const bench_size * size, csf_layout * layout);

/* The picture in memory that begins at `base`. */
csfk_image bench_image (const csf_layout * layout, void *base);

/* Fills memory with noise: zeros move faster than real frames on some devices. */
void bench_fill (void *data, size_t bytes);

/* ---- options ------------------------------------------------------------------------------- */

#define BENCH_MAX_LIST 16

typedef struct bench_options
{
  bool quick;                   /* shorter measurements, fewer numbers of streams */
  bool check;                   /* host copies or pool growths of the element are failures */
  bool trace;                   /* the element again, with a trace of every frame */
  bool no_peers;                /* do not measure other elements */
  bool cpu;                     /* backend=cpu: no limit and no peers */
  unsigned source_buffers;      /* buffers the source takes in turn at least, 0: as negotiated */
  const char *match;            /* only cases whose name contains it, or NULL */
  const char *json;             /* file to write, or NULL */
  const char *commit, *driver;  /* recorded in the results */
  const char *kernels[BENCH_MAX_LIST];
  unsigned n_kernels;
  unsigned streams[BENCH_MAX_LIST];
  unsigned n_streams;
} bench_options;

/* Prints what is wrong, or the help, and ends the program; argv's texts are kept. */
void bench_options_parse (bench_options * options, int argc, char **argv, const char *summary);

/* ---- meter --------------------------------------------------------------------------------- */

#define BENCH_MAX_MARKS 16

typedef struct bench_mark
{
  uint64_t ns, cpu_ns, frames;
} bench_mark;

/* One thread ticks; read the results when it has ended.  The rate is the median of several
 * stretches of equal time, after a warm-up. */
typedef struct bench_meter
{
  uint64_t warm_ns, stretch_ns;
  unsigned warm_frames, stretches;
  uint64_t frames, next_ns;
  unsigned n_marks;
  bench_mark marks[BENCH_MAX_MARKS];
} bench_meter;

void bench_meter_init (bench_meter * meter, bool quick);

/* A frame came out.  True once there is nothing more to measure. */
bool bench_meter_tick (bench_meter * meter);

/* Frames a second; the slowest and fastest stretch go to *least and *most, which may be NULL. */
double bench_meter_rate (const bench_meter * meter, double *least, double *most);

/* Processor time of the whole process for one frame, in microseconds. */
double bench_meter_cpu_us (const bench_meter * meter);

uint64_t bench_now_ns (void);
double bench_median (double *values, unsigned n);       /* sorts them */

/* ---- report -------------------------------------------------------------------------------- */

#define BENCH_MAX_VALUES 24

typedef struct bench_value
{
  const char *name;             /* a literal */
  double value;
} bench_value;

typedef struct bench_row
{
  char name[96];
  double value;
  const char *unit;
  double limit;                 /* in the same unit; 0: not known */
  char bound_by[24];            /* "" where nobody says */
  bench_value peers[BENCH_MAX_VALUES];
  unsigned n_peers;
  bench_value extras[BENCH_MAX_VALUES];
  unsigned n_extras;
} bench_row;

void bench_row_init (bench_row * row, double value, double limit, const char *name_format, ...)
    __attribute__ ((format (printf, 4, 5)));
void bench_row_add_peer (bench_row * row, const char *name, double value);
void bench_row_add_extra (bench_row * row, const char *name, double value);

typedef struct bench_report
{
  char device[128], driver[64], cuda[32], gstreamer[32];
  bench_row *rows;
  unsigned n_rows;
} bench_report;

/* Copies the row and prints its line of the table (the table's head before the first). */
void bench_report_add (bench_report * report, const bench_row * row);

/* Writes options->json if it is set; false (and a message) when that fails.  Frees the rows. */
bool bench_report_finish (bench_report * report, const bench_options * options);

/* True when the case is wanted. */
bool bench_wants (const bench_options * options, const char *name_format, ...)
    __attribute__ ((format (printf, 2, 3)));

#endif
