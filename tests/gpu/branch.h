/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pipelines that play side by side and must bring the same pictures at the same times, whatever
 * memory these are in.  Knows the element under test by its name in the pipeline, "x", alone. */
#ifndef BRANCH_H
#define BRANCH_H

#include <gst/app/app.h>

#include "cudaframe.h"

/* A pipeline that is stuck for so long has failed. */
#define BRANCH_WAIT (30 * GST_SECOND)

/* A pipeline with an appsink "sink", and what is expected of its element "x". */
typedef struct
{
  const gchar *name;
  const gchar *memories;        /* of x's sink and source pad, 's' or 'c' each; NULL: any */
  GstElement *pipeline;
  GstAppSink *sink;
} Branch;

/* All gchar * that these return say what went wrong, for g_free(); NULL is success. */

/* line: as gst-launch has it.  context: the application's for the pipeline, or NULL.  The names
 * are not copied. */
gchar *branch_open (Branch * branch, const gchar * name, const gchar * memories,
    CudaContext * context, const gchar * line);

/* Also one that was not opened but zeroed. */
void branch_close (Branch * branch);

/* What went wrong as the bus has it, or the text given. */
gchar *branch_take_error (GstElement * pipeline, const gchar * otherwise);

/* Plays the branches to their end, compares each frame with the first branch's, and closes them. */
gchar *branches_compare (Branch * branches, guint n, guint frames);

#endif
