/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A timeline of frames in a file, as Chrome's trace viewer and Perfetto read it (the "Trace Event Format", JSON
 * object form): one lane for each stream and stage, and one for each thing the host does.  The file is a whole
 * JSON object after every write, so what was written stays readable however the process ends.  Memory is
 * bounded by the frames in flight.
 *
 * Thread: one at a time.  Knows no devices. */
#ifndef CSF_TIMELINE_H
#define CSF_TIMELINE_H

#include "csf.h"

#define CSF_NO_PTS UINT64_MAX

typedef struct csf_timeline csf_timeline;

/* Begins the file anew; name: of the process that viewers show.  CSF_ERROR_ARGUMENT: it cannot be written, is
 * no regular file, or another timeline is being written to it. */
csf_status csf_timeline_open (const char *location, const char *name, csf_timeline ** timeline,
    csf_error * error);

/* What runs from now on; names lanes for that. */
void csf_timeline_set_engine (csf_timeline * timeline, const csf_device_info * info,
    const csfk_kernel * kernel, unsigned num_streams);

typedef struct csf_timeline_frame
{
  uint64_t frame;
  uint64_t pts;                 /* ns, or CSF_NO_PTS */
  csf_frame_times times;
  csf_span upstream, downstream;        /* the host waited for it, and pushed it on */
} csf_timeline_frame;

/* In the order of retiring.  A failure is told once: the file cannot be continued, and ends here as a whole
 * object; frames that follow are taken and not written. */
csf_status csf_timeline_add (csf_timeline * timeline, const csf_timeline_frame * frame,
    csf_error * error);

/* Nothing is in flight: writes what was held back.  Fails as csf_timeline_add does. */
csf_status csf_timeline_finish (csf_timeline * timeline, csf_error * error);

/* What was not finished is lost.  NULL is allowed. */
void csf_timeline_close (csf_timeline * timeline);

#endif
