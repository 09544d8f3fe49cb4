/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects into the GstAnalyticsRelationMeta.  Knows libgstanalytics, nothing of devices. */
#include "gstcsfanalytics.h"

#include <gst/analytics/analytics.h>

#include "gstcsfmeta.h"

static GQuark
quark_of (const csfk_kernel * kernel, gint label)
{
  for (gint i = 0; kernel->labels != NULL && kernel->labels[i] != NULL; i++)
    if (i == label)
      return g_quark_from_string (kernel->labels[i]);
  return g_quark_from_string (kernel->record_name);
}

void
gst_csf_analytics_attach (GstBuffer * buffer, const csfk_kernel * kernel, const GstVideoInfo * info,
    const csfk_object * objects, guint n)
{
  GstAnalyticsRelationMeta *meta = gst_buffer_get_analytics_relation_meta (buffer);

  if (meta == NULL)
    meta = gst_buffer_add_analytics_relation_meta (buffer);
  for (guint i = 0; i < n; i++) {
    const csfk_object *object = &objects[i];
    GstAnalyticsTrackingMtd track;
    GstAnalyticsODMtd detection;
    GstVideoRectangle box;

    gst_csf_meta_round_box (object, info, &box);
    if (!gst_analytics_relation_meta_add_od_mtd (meta, quark_of (kernel, object->label), box.x, box.y,
            box.w, box.h, object->confidence >= 0 ? object->confidence : 0, &detection))
      return;
    if (object->track_id >= 0 && gst_analytics_relation_meta_add_tracking_mtd (meta,
            (guint64) object->track_id, GST_BUFFER_PTS (buffer), &track))
      gst_analytics_relation_meta_set_relation (meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, detection.id,
          track.id);
  }
}
