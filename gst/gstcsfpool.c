/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Host pool blocks wrapped as plain system memory, marked by qdata on the memory, so that any instance
 * of the element recognises them wherever they travel.  Makes no driver calls. */
#include "gstcsfpool.h"

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

/* How often one element must see a memory before it is worth registering: a frame that is repeated to
 * raise the rate brings it two or three times, and a tee brings it once to each of several elements. */
#define SIGHTINGS 4

/* What is known of a memory, kept with it until it dies. */
typedef enum
{
  MEMORY_SEEN,                  /* may be a passer-by */
  MEMORY_PINNED,
  MEMORY_REFUSED,               /* or being registered at this moment */
} MemoryState;

typedef struct
{
  MemoryState state;
  gconstpointer seen_by;        /* the host pool that counts: compared, never followed */
  guint sightings;
  csf_hostblock *block;         /* of a registration, else NULL */
} MemoryMark;

static GQuark
mark_quark (void)
{
  return g_quark_from_static_string ("GstCsfMemoryMark");
}

/* Two elements behind a tee may look at one memory at the same time. */
static GMutex mark_lock;

static void
mark_free (gpointer data)
{
  MemoryMark *mark = data;

  csf_hostblock_unref (mark->block);
  g_free (mark);
}

static MemoryMark *
mark_get (GstMemory * memory)
{
  return gst_mini_object_get_qdata (GST_MINI_OBJECT_CAST (memory), mark_quark ());
}

static MemoryMark *
mark_set (GstMemory * memory, MemoryState state)
{
  MemoryMark *mark = g_new0 (MemoryMark, 1);

  mark->state = state;
  gst_mini_object_set_qdata (GST_MINI_OBJECT_CAST (memory), mark_quark (), mark, mark_free);
  return mark;
}

/* ---- allocator --------------------------------------------------------------------------------- */

#define GST_TYPE_CSF_ALLOCATOR (gst_csf_allocator_get_type ())
G_DECLARE_FINAL_TYPE (GstCsfAllocator, gst_csf_allocator, GST, CSF_ALLOCATOR, GstAllocator)

struct _GstCsfAllocator
{
  GstAllocator parent;
  csf_hostpool *hostpool;
};

G_DEFINE_TYPE (GstCsfAllocator, gst_csf_allocator, GST_TYPE_ALLOCATOR)

static void
unref_block (gpointer data)
{
  csf_hostblock_unref (data);
}

static GstMemory *
gst_csf_allocator_alloc (GstAllocator * allocator, gsize size, GstAllocationParams * params)
{
  GstCsfAllocator *self = GST_CSF_ALLOCATOR (allocator);
  gsize prefix = params->prefix, maxsize, aligned = 0;
  csf_hostblock *block;
  GstMemory *memory;
  guint8 *data;

  if (!g_size_checked_add (&maxsize, size, prefix)
      || !g_size_checked_add (&maxsize, maxsize, params->padding)
      || !g_size_checked_add (&aligned, maxsize, params->align))
    return NULL;
  block = csf_hostpool_alloc (self->hostpool, aligned);
  if (block == NULL)
    return NULL;
  data = csf_hostblock_data (block);
  /* Blocks begin on a page; only a wider alignment moves the start. */
  data = (guint8 *) (((guintptr) data + params->align) & ~(guintptr) params->align);
  memory = gst_memory_new_wrapped (params->flags, data, maxsize, prefix, size, block, unref_block);
  if (csf_hostblock_is_pinned (block))
    mark_set (memory, MEMORY_PINNED);
  return memory;
}

static void
gst_csf_allocator_free (GstAllocator * allocator, GstMemory * memory)
{
  /* Our memories belong to the system allocator that wraps them. */
  g_assert_not_reached ();
}

static void
gst_csf_allocator_finalize (GObject * object)
{
  GstCsfAllocator *self = GST_CSF_ALLOCATOR (object);

  csf_hostpool_unref (self->hostpool);
  G_OBJECT_CLASS (gst_csf_allocator_parent_class)->finalize (object);
}

static void
gst_csf_allocator_class_init (GstCsfAllocatorClass * klass)
{
  GstAllocatorClass *allocator_class = GST_ALLOCATOR_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gst_csf_allocator_finalize;
  allocator_class->alloc = gst_csf_allocator_alloc;
  allocator_class->free = gst_csf_allocator_free;
}

static void
gst_csf_allocator_init (GstCsfAllocator * self)
{
  GST_ALLOCATOR (self)->mem_type = GST_ALLOCATOR_SYSMEM;
}

GstAllocator *
gst_csf_allocator_new (csf_hostpool * hostpool)
{
  GstCsfAllocator *self = g_object_new (GST_TYPE_CSF_ALLOCATOR, NULL);

  self->hostpool = csf_hostpool_ref (hostpool);
  return gst_object_ref_sink (self);
}

GstBufferPool *
gst_csf_pool_new (GstAllocator * allocator, GstCaps * caps, guint size, guint min_buffers,
    gboolean video_meta)
{
  GstBufferPool *pool = gst_video_buffer_pool_new ();
  GstStructure *config = gst_buffer_pool_get_config (pool);

  /* No upper limit: a pool that runs dry behind a tee waits for itself. */
  gst_buffer_pool_config_set_params (config, caps, size, min_buffers, 0);
  gst_buffer_pool_config_set_allocator (config, allocator, NULL);
  if (video_meta)
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config)) {
    GST_WARNING ("no pool for %u bytes of %" GST_PTR_FORMAT, size, caps);
    gst_clear_object (&pool);
  }
  return pool;
}

/* ---- registration ------------------------------------------------------------------------------ */

static csf_hostblock *
register_memory (GstMemory * memory, csf_hostpool * hostpool)
{
  csf_hostblock *block;
  GstMapInfo map;

  if (!gst_memory_map (memory, &map, GST_MAP_READ))
    return NULL;
  block = csf_hostpool_register (hostpool, map.data - memory->offset, memory->maxsize);
  gst_memory_unmap (memory, &map);
  GST_DEBUG ("memory %p of %" G_GSIZE_FORMAT " bytes %s", memory, memory->maxsize,
      block != NULL ? "registered" : "cannot be registered, staged from now on");
  return block;
}

/* Under the lock: whether this sighting is the one to register at. */
static gboolean
count_sighting (GstMemory * memory, MemoryMark * mark, csf_hostpool * hostpool)
{
  if (mark == NULL)
    mark = mark_set (memory, MEMORY_SEEN);
  if (mark->state != MEMORY_SEEN)
    return FALSE;
  if (mark->sightings == 0)
    mark->seen_by = hostpool;
  if (mark->seen_by != hostpool || ++mark->sightings < SIGHTINGS)
    return FALSE;
  mark->state = MEMORY_REFUSED;
  return TRUE;
}

static gboolean
memory_is_pinned (GstMemory * memory, csf_hostpool * hostpool)
{
  GstMemory *root = memory;
  csf_hostblock *block;
  MemoryMark *mark;
  gboolean pinned, worth = FALSE;

  while (root->parent != NULL)
    root = root->parent;
  g_mutex_lock (&mark_lock);
  mark = mark_get (root);
  pinned = mark != NULL && mark->state == MEMORY_PINNED;
  if (!pinned && root == memory && gst_memory_is_type (memory, GST_ALLOCATOR_SYSMEM))
    worth = count_sighting (memory, mark, hostpool);
  g_mutex_unlock (&mark_lock);
  if (!worth)
    return pinned;

  /* This takes a millisecond or two: nobody else is kept waiting. */
  block = register_memory (memory, hostpool);
  if (block == NULL)
    return FALSE;
  g_mutex_lock (&mark_lock);
  mark = mark_get (memory);
  mark->block = block;
  mark->state = MEMORY_PINNED;
  g_mutex_unlock (&mark_lock);
  return TRUE;
}

gboolean
gst_csf_video_frame_is_pinned (const GstVideoFrame * frame, csf_hostpool * hostpool)
{
  /* Without a meta one mapping holds all planes. */
  guint n = frame->meta != NULL ? GST_VIDEO_FRAME_N_PLANES (frame) : 1;
  gboolean pinned = TRUE;

  for (guint i = 0; i < n; i++)
    if (i == 0 || frame->map[i].memory != frame->map[i - 1].memory)
      pinned &= memory_is_pinned (frame->map[i].memory, hostpool);
  return pinned;
}
