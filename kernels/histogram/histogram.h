/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What histogram's host and device code share, and what a user of its records reads: the record, the
 * parameter structure, the layouts of state and workspace, and the launch shape.  Valid as C and as CUDA
 * C++. */
#ifndef CSFK_HISTOGRAM_H
#define CSFK_HISTOGRAM_H

#include "../kernel.h"

#define CSFK_HISTOGRAM_CHANNELS 3
#define CSFK_HISTOGRAM_BINS 256

/* One a frame.  Channels are Y, U and V; or R, G and B in this order, whatever the format's; or luma alone.
 * Shares are of the channel's samples.  What the format has no channel for is 0. */
typedef struct csfk_histogram_record
{
  unsigned n_channels;          /* 1 or 3 */
  unsigned scene_change;        /* 1: `change` is at least scene-threshold; never in a first frame */
  float change;                 /* share of the samples that are not where the last frame's were, 0 to 1 */
  unsigned samples[CSFK_HISTOGRAM_CHANNELS];
  float mean[CSFK_HISTOGRAM_CHANNELS];  /* 0 to 255, in steps of 1/256 */
  /* At or beyond the ends of the nominal range: 0 and 255, or 16 and 235, of chroma 16 and 240. */
  float clipped_low[CSFK_HISTOGRAM_CHANNELS], clipped_high[CSFK_HISTOGRAM_CHANNELS];
  unsigned bins[CSFK_HISTOGRAM_CHANNELS][CSFK_HISTOGRAM_BINS];
} csfk_histogram_record;

typedef struct csfk_histogram_params
{
  float scene_threshold;
  unsigned threshold;           /* derived: in 65536ths */
} csfk_histogram_params;

/* For `change` neighbouring bins count as one, so that a little noise or light changes little. */
#define CSFK_HISTOGRAM_GROUP 8

typedef struct csfk_histogram_counts
{
  unsigned bins[CSFK_HISTOGRAM_CHANNELS][CSFK_HISTOGRAM_BINS];
} csfk_histogram_counts;

/* The state is three of these: frame n adds to number n % 3, which is zero by then, reads the one before and
 * zeroes the one after. */
#define CSFK_HISTOGRAM_STATES 3

/* The workspace begins so.  On the device one csfk_histogram_counts for each block follows, of which a block
 * writes only the channels of its plane. */
typedef struct csfk_histogram_work
{
  csfk_histogram_counts now, before;
} csfk_histogram_work;

enum
{
  CSFK_HISTOGRAM_THREADS = 384,
  /* Bytes that a thread loads at a time. */
  CSFK_HISTOGRAM_UNIT = 16,
  /* Three to each multiprocessor of an H100; more only where a counter of 16 bits might overflow. */
  CSFK_HISTOGRAM_BLOCKS = 396,
  /* Units of a thread.  A counter serves 12 threads, so it reaches at most 12 * 16 * 129. */
  CSFK_HISTOGRAM_MOST_UNITS = 128,
  /* Counters of a channel: two bins' in a word, for each lane of a warp its own. */
  CSFK_HISTOGRAM_CHANNEL_WORDS = CSFK_HISTOGRAM_BINS / 2 * 32,
  /* The pass that sums: so many bins across, so many parts of the blocks. */
  CSFK_HISTOGRAM_SUM_X = 32,
  CSFK_HISTOGRAM_SUM_Y = 16,
  /* The pass that appends: a warp for each channel. */
  CSFK_HISTOGRAM_EMIT_X = 32
};

typedef struct csfk_histogram_args
{
  csfk_frame frame;
  csfk_histogram_params params;
  /* Blocks first_block[i] to first_block[i + 1] - 1 work on plane i. */
  unsigned first_block[CSFK_MAX_PLANES + 1];
  /* Of plane i: units of a row that are aligned and hold nothing that is not to be counted; and 2^32 / that,
   * rounded down. */
  unsigned whole_units[CSFK_MAX_PLANES], reciprocal[CSFK_MAX_PLANES];
} csfk_histogram_args;

#endif
