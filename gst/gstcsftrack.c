/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Association of boxes by intersection over union, the best pairs first.  Knows no buffers. */
#include "gstcsftrack.h"

#define LEAST_OVERLAP 0.3f
/* Frames that something may be out of sight and still be known again. */
#define MOST_MISSED 10
/* Pairs grow with the square of what is followed: more objects than these are no things that move. */
#define MOST_TRACKS 512

typedef struct
{
  csfk_object box;
  gint id;
  guint missed;
  gboolean taken;
} Track;

typedef struct
{
  gfloat overlap;
  guint track, object;
} Pair;

struct _GstCsfTracker
{
  GArray *tracks, *pairs;
  gint next_id;
};

GstCsfTracker *
gst_csf_tracker_new (void)
{
  GstCsfTracker *self = g_new0 (GstCsfTracker, 1);

  self->tracks = g_array_new (FALSE, FALSE, sizeof (Track));
  self->pairs = g_array_new (FALSE, FALSE, sizeof (Pair));
  return self;
}

void
gst_csf_tracker_free (GstCsfTracker * self)
{
  if (self == NULL)
    return;
  g_array_unref (self->tracks);
  g_array_unref (self->pairs);
  g_free (self);
}

void
gst_csf_tracker_reset (GstCsfTracker * self)
{
  g_array_set_size (self->tracks, 0);
}

static gfloat
overlap_of (const csfk_object * a, const csfk_object * b)
{
  gfloat width = MIN (a->x + a->width, b->x + b->width) - MAX (a->x, b->x);
  gfloat height = MIN (a->y + a->height, b->y + b->height) - MAX (a->y, b->y);
  gfloat common = width > 0 && height > 0 ? width * height : 0;

  return common <= 0 ? 0 : common / (a->width * a->height + b->width * b->height - common);
}

/* Larger overlaps first; equal ones in an order that does not depend on chance. */
static gint
compare_pairs (gconstpointer a, gconstpointer b)
{
  const Pair *x = a, *y = b;

  if (x->overlap != y->overlap)
    return x->overlap > y->overlap ? -1 : 1;
  if (x->track != y->track)
    return x->track < y->track ? -1 : 1;
  return x->object < y->object ? -1 : x->object > y->object;
}

static void
find_pairs (GstCsfTracker * self, const csfk_object * objects, guint n)
{
  g_array_set_size (self->pairs, 0);
  for (guint t = 0; t < self->tracks->len; t++) {
    const Track *track = &g_array_index (self->tracks, Track, t);

    for (guint o = 0; o < n; o++) {
      Pair pair = { 0, t, o };

      if (objects[o].track_id >= 0 || objects[o].label != track->box.label)
        continue;
      pair.overlap = overlap_of (&track->box, &objects[o]);
      if (pair.overlap >= LEAST_OVERLAP)
        g_array_append_val (self->pairs, pair);
    }
  }
  g_array_sort (self->pairs, compare_pairs);
}

static void
age_tracks (GstCsfTracker * self)
{
  for (guint t = self->tracks->len; t-- > 0;) {
    Track *track = &g_array_index (self->tracks, Track, t);

    if (!track->taken && ++track->missed > MOST_MISSED)
      g_array_remove_index (self->tracks, t);
  }
}

void
gst_csf_tracker_update (GstCsfTracker * self, csfk_object * objects, guint n)
{
  n = MIN (n, MOST_TRACKS);
  for (guint t = 0; t < self->tracks->len; t++)
    g_array_index (self->tracks, Track, t).taken = FALSE;
  /* Numbers that the kernel gave are not given again. */
  for (guint o = 0; o < n; o++)
    if (objects[o].track_id >= self->next_id)
      self->next_id = objects[o].track_id == G_MAXINT ? 0 : objects[o].track_id + 1;
  find_pairs (self, objects, n);
  for (guint p = 0; p < self->pairs->len; p++) {
    const Pair *pair = &g_array_index (self->pairs, Pair, p);
    Track *track = &g_array_index (self->tracks, Track, pair->track);

    if (track->taken || objects[pair->object].track_id >= 0)
      continue;
    track->taken = TRUE;
    track->missed = 0;
    track->box = objects[pair->object];
    objects[pair->object].track_id = track->id;
  }
  age_tracks (self);
  for (guint o = 0; o < n; o++)
    if (objects[o].track_id < 0 && self->tracks->len < 2 * MOST_TRACKS) {
      Track fresh = {.box = objects[o],.id = self->next_id,.taken = TRUE };

      self->next_id = self->next_id == G_MAXINT ? 0 : self->next_id + 1;
      objects[o].track_id = fresh.id;
      g_array_append_val (self->tracks, fresh);
    }
}
