/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a frame's spans as events, sorted by their begin.  Frames are retired in order, but their spans
 * lie across one another: a span is held back until no later frame can have one before it. */
#include "timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend.h"
#include "clock.h"

/* Written when so much has gathered, or so much time has passed. */
#define BLOCK_BYTES 65536u
#define BLOCK_NS 500000000u
#define SPANS 10u               /* of a frame, at most */

enum
{
  LANE_UPSTREAM = 1,
  LANE_STAGING,
  LANE_SUBMIT,
  LANE_DOWNSTREAM,
  LANE_WAKE,
  LANE_FINISH,
  LANE_STREAM = 10,             /* and STREAM_LANES for each stream, in the order of the parts */
  STREAM_LANES = 4,
  N_LANES = LANE_STREAM + STREAM_LANES * CSF_MAX_STREAMS
};

/* Room for all that can be held back: spans of as many frames as can be in flight, and one more. */
#define MAX_HELD (SPANS * (CSF_MAX_STREAMS + 1))

typedef struct event
{
  unsigned lane;
  const char *name;
  csf_span span;
  uint64_t frame, pts;
} event;

typedef struct text
{
  char *data;
  size_t length, room;
} text;

struct csf_timeline
{
  char *location, *name;
  int fd;
  bool failed;                  /* and said so */
  bool no_memory;               /* to be said with the next write */
  off_t end, safe_end;          /* of the events in the file, now and a block ago */
  text block;                   /* events to be written */
  text tail;                    /* what makes the file whole behind them */
  uint64_t written_ns;          /* when the last block was */

  uint64_t epoch;               /* the first event's begin, 0: there was none */
  unsigned n_held;
  event held[MAX_HELD];         /* sorted by their begin */
  uint64_t last_begin;          /* of what went into the block */
  uint64_t lane_end[N_LANES];
  bool lane_named[N_LANES];
  bool has_records;
};

/* ---- text -------------------------------------------------------------------------------------- */

static void
append_bytes (csf_timeline *timeline, text *to, const char *bytes, size_t n)
{
  if (to->length + n > to->room) {
    size_t room = 2 * (to->length + n);
    char *larger = realloc (to->data, room);

    if (larger == NULL) {
      timeline->no_memory = true;
      return;
    }
    to->data = larger;
    to->room = room;
  }
  memcpy (to->data + to->length, bytes, n);
  to->length += n;
}

static void append (csf_timeline * timeline, text * to, const char *format, ...)
  __attribute__ ((format (printf, 3, 4)));

/* No text of ours is longer than the buffer but what users named, which append_string takes. */
static void
append (csf_timeline *timeline, text *to, const char *format, ...)
{
  char buffer[512];
  va_list values;
  int n;

  va_start (values, format);
  n = vsnprintf (buffer, sizeof buffer, format, values);
  va_end (values);
  append_bytes (timeline, to, buffer, n < (int) sizeof buffer ? (size_t) n : sizeof buffer - 1);
}

/* Bytes of the UTF-8 character that begins here, 0: there is none (RFC 3629). */
static size_t
character_length (const unsigned char *c)
{
  const size_t length = *c < 0x80 ? 1 : *c >= 0xc2 && *c < 0xe0 ? 2 : (*c & 0xf0) == 0xe0 ? 3
      : *c >= 0xf0 && *c < 0xf5 ? 4 : 0;

  for (size_t i = 1; i < length; i++)
    if ((c[i] & 0xc0) != 0x80)
      return 0;
  if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] >= 0xa0) || (*c == 0xf0 && c[1] < 0x90)
      || (*c == 0xf4 && c[1] >= 0x90))
    return 0;
  return length;
}

static void
append_string (csf_timeline *timeline, text *to, const char *string)
{
  const unsigned char *c = (const unsigned char *) string;

  append (timeline, to, "\"");
  while (*c != '\0') {
    size_t length = character_length (c);

    if (*c == '"' || *c == '\\')
      append (timeline, to, "\\%c", *c);
    else if (*c < ' ')
      append (timeline, to, "\\u%04x", *c);
    else if (length == 0)
      append (timeline, to, "\\ufffd");
    else
      append_bytes (timeline, to, (const char *) c, length);
    c += length > 0 ? length : 1;
  }
  append (timeline, to, "\"");
}

/* ---- file -------------------------------------------------------------------------------------- */

/* A file beyond what the process may write is a failed write here, and not the signal that ends it. */
static ssize_t
write_some (int fd, const char *data, size_t size, off_t offset)
{
  const struct timespec at_once = { 0 };
  sigset_t too_large, pending, before;
  ssize_t n;
  int reason;

  sigemptyset (&too_large);
  sigaddset (&too_large, SIGXFSZ);
  sigpending (&pending);
  pthread_sigmask (SIG_BLOCK, &too_large, &before);
  n = pwrite (fd, data, size, offset);
  reason = errno;
  if (n < 0 && reason == EFBIG && !sigismember (&pending, SIGXFSZ))
    sigtimedwait (&too_large, NULL, &at_once);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  errno = reason;
  return n;
}

static bool
write_at (int fd, const text *from, off_t offset)
{
  size_t done = 0;

  while (done < from->length) {
    ssize_t n = write_some (fd, from->data + done, from->length - done, offset + (off_t) done);

    if (n < 0 && errno == EINTR)
      continue;
    if (n == 0)
      errno = ENOSPC;
    if (n <= 0)
      return false;
    done += (size_t) n;
  }
  return true;
}

/* The block goes over the end that the file has, and gets an end of its own.  When it cannot, the file becomes
 * what it was a block ago: what is cut off makes room for the end. */
static csf_status
flush (csf_timeline *timeline, csf_error *error)
{
  const size_t bytes = timeline->block.length;
  int reason = ENOMEM;

  if (timeline->failed || bytes == 0)
    return CSF_OK;
  append_bytes (timeline, &timeline->block, timeline->tail.data, timeline->tail.length);
  /* The end before may have been longer, with other names in it. */
  if (!timeline->no_memory && write_at (timeline->fd, &timeline->block, timeline->end)
      && ftruncate (timeline->fd, timeline->end + (off_t) timeline->block.length) == 0) {
    timeline->safe_end = timeline->end;
    timeline->end += (off_t) bytes;
    timeline->written_ns = csf_now_ns ();
    timeline->block.length = 0;
    return CSF_OK;
  }
  if (!timeline->no_memory)
    reason = errno;
  timeline->failed = true;
  if (timeline->safe_end == 0 && ftruncate (timeline->fd, 0) == 0)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "could not begin the trace (%s); make room for it: \"%s\"", strerror (reason),
        timeline->location);
  if (ftruncate (timeline->fd, timeline->safe_end) != 0
      || !write_at (timeline->fd, &timeline->tail, timeline->safe_end))
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_CLOSE, CSF_NO_FRAME, 0,
        "could not write to the trace (%s), nor end it; make room for it: \"%s\"", strerror (reason),
        timeline->location);
  return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_CLOSE, CSF_NO_FRAME, 0,
      "could not write on to the trace (%s); it ends there, and what is in it can be read: \"%s\"",
      strerror (reason), timeline->location);
}

static csf_status
open_file (const char *location, int *fd, csf_error *error)
{
  /* Of the open file, not of the process: it keeps out other elements as well. */
  struct flock whole = {.l_type = F_WRLCK,.l_whence = SEEK_SET };
  struct stat facts;
  csf_status status;

  *fd = open (location, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (*fd < 0)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "could not open the trace for writing (%s): \"%s\"", strerror (errno), location);
  if (fstat (*fd, &facts) != 0 || !S_ISREG (facts.st_mode))
    status = csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "expected a regular file for the trace, since its end is written more than once, got \"%s\"",
        location);
  else if (fcntl (*fd, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES))
    status = csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "the trace is being written by another element, give each a file of its own: \"%s\"",
        location);
  else if (ftruncate (*fd, 0) != 0)
    status = csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "could not empty the trace (%s): \"%s\"", strerror (errno), location);
  else
    return CSF_OK;
  close (*fd);
  return status;
}

csf_status
csf_timeline_open (const char *location, const char *name, csf_timeline **result, csf_error *error)
{
  csf_timeline *timeline;
  int fd;
  csf_status status = open_file (location, &fd, error);

  if (status != CSF_OK)
    return status;
  timeline = calloc (1, sizeof *timeline);
  if (timeline == NULL) {
    close (fd);
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0, "no memory left");
  }
  timeline->fd = fd;
  timeline->location = strdup (location);
  timeline->name = strdup (name);
  timeline->no_memory = timeline->location == NULL || timeline->name == NULL;
  append (timeline, &timeline->tail, "\n]}\n");
  append (timeline, &timeline->block, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
  append_string (timeline, &timeline->block, name);
  append (timeline, &timeline->block, "}}");
  status = flush (timeline, error);
  if (status != CSF_OK) {
    csf_timeline_close (timeline);
    return status;
  }
  /* The least that can be left of it. */
  timeline->safe_end = timeline->end;
  *result = timeline;
  return CSF_OK;
}

/* ---- events ------------------------------------------------------------------------------------ */

static void
name_lane (csf_timeline *timeline, unsigned lane, const char *name)
{
  if (timeline->lane_named[lane])
    return;
  timeline->lane_named[lane] = true;
  append (timeline, &timeline->block, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\","
      "\"args\":{\"name\":\"%s\"}}", lane, name);
  append (timeline, &timeline->block, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,"
      "\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}", lane, lane);
}

static void
name_stream (csf_timeline *timeline, unsigned stream, bool copies)
{
  static const char *const names[STREAM_LANES] = { "upload", "kernel", "records", "download" };
  const bool there[STREAM_LANES] = { copies, true, timeline->has_records, copies };

  for (unsigned i = 0; i < STREAM_LANES; i++) {
    char name[32];

    snprintf (name, sizeof name, "stream %u %s", stream, names[i]);
    if (there[i])
      name_lane (timeline, LANE_STREAM + stream * STREAM_LANES + i, name);
  }
}

void
csf_timeline_set_engine (csf_timeline *timeline, const csf_device_info *info,
    const csfk_kernel *kernel, unsigned num_streams)
{
  const bool copies = info->backend == CSF_BACKEND_CUDA;
  text *tail = &timeline->tail;

  timeline->has_records = copies && kernel->record_size > 0;
  name_lane (timeline, LANE_UPSTREAM, "upstream");
  name_lane (timeline, LANE_STAGING, "staging");
  name_lane (timeline, LANE_SUBMIT, "submit");
  name_lane (timeline, LANE_DOWNSTREAM, "downstream");
  name_lane (timeline, LANE_WAKE, "wake");
  name_lane (timeline, LANE_FINISH, "finish");
  for (unsigned i = 0; i < num_streams; i++)
    name_stream (timeline, i, copies);
  tail->length = 0;
  append (timeline, tail, "\n],\"otherData\":{\"element\":");
  append_string (timeline, tail, timeline->name);
  append (timeline, tail, ",\"backend\":");
  append_string (timeline, tail, info->backend_name);
  append (timeline, tail, ",\"device\":");
  append_string (timeline, tail, info->name);
  append (timeline, tail, ",\"kernel\":");
  append_string (timeline, tail, kernel->name);
  append (timeline, tail, ",\"num-streams\":\"%u\"}}\n", num_streams);
}

static void
append_event (csf_timeline *timeline, const event *from)
{
  const unsigned lane = from->lane;
  uint64_t begin = from->span.begin, end = from->span.end;
  text *block = &timeline->block;

  if (timeline->epoch == 0)
    timeline->epoch = begin;
  /* Clocks that were brought together may leave a step backwards. */
  if (begin < timeline->last_begin)
    begin = timeline->last_begin;
  if (begin < timeline->lane_end[lane])
    begin = timeline->lane_end[lane];
  if (end < begin)
    end = begin;
  timeline->last_begin = begin;
  timeline->lane_end[lane] = end;
  append (timeline, block, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"cat\":\"%s\",\"name\":\"%s\","
      "\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u,\"args\":{\"frame\":%" PRIu64, lane,
      lane < LANE_STREAM ? "host" : "device", from->name, (begin - timeline->epoch) / 1000,
      (unsigned) ((begin - timeline->epoch) % 1000), (end - begin) / 1000,
      (unsigned) ((end - begin) % 1000), from->frame);
  if (from->pts != CSF_NO_PTS)
    append (timeline, block, ",\"pts\":%" PRIu64, from->pts);
  if (lane >= LANE_STREAM)
    append (timeline, block, ",\"stream\":%u", (lane - LANE_STREAM) / STREAM_LANES);
  append (timeline, block, "}}");
}

static void
hold (csf_timeline *timeline, unsigned lane, const char *name, csf_span span,
    const csf_timeline_frame *frame)
{
  const event mine = {
    .lane = lane,.name = name,.span = span,.frame = frame->frame,.pts = frame->pts
  };
  unsigned place = timeline->n_held;

  if (span.end <= span.begin)
    return;
  for (; place > 0 && timeline->held[place - 1].span.begin > span.begin; place--)
    timeline->held[place] = timeline->held[place - 1];
  timeline->held[place] = mine;
  timeline->n_held++;
}

/* Lets go of what began before `before`, and of what there is no room for. */
static void
release (csf_timeline *timeline, uint64_t before, unsigned room)
{
  unsigned n = 0;

  while (n < timeline->n_held
      && (timeline->held[n].span.begin < before || timeline->n_held - n + room > MAX_HELD))
    append_event (timeline, &timeline->held[n++]);
  timeline->n_held -= n;
  memmove (timeline->held, timeline->held + n, timeline->n_held * sizeof (event));
}

csf_status
csf_timeline_add (csf_timeline *timeline, const csf_timeline_frame *frame, csf_error *error)
{
  const csf_span *span = frame->times.span;
  const unsigned lane = LANE_STREAM + frame->times.stream * STREAM_LANES;

  if (timeline->failed)
    return CSF_OK;
  release (timeline, 0, SPANS);
  hold (timeline, LANE_UPSTREAM, "wait for upstream", frame->upstream, frame);
  hold (timeline, LANE_WAKE, "wake", span[CSF_PART_WAKE], frame);
  hold (timeline, LANE_STAGING, "stage", span[CSF_PART_STAGING], frame);
  hold (timeline, LANE_SUBMIT, "submit", span[CSF_PART_SUBMIT], frame);
  if (frame->times.timed) {
    hold (timeline, lane, "upload", span[CSF_PART_UPLOAD], frame);
    hold (timeline, lane + 1, "kernel", span[CSF_PART_KERNEL], frame);
    if (timeline->has_records)
      hold (timeline, lane + 2, "records", span[CSF_PART_RECORDS], frame);
    hold (timeline, lane + 3, "download", span[CSF_PART_DOWNLOAD], frame);
    hold (timeline, LANE_FINISH, "finish", span[CSF_PART_FINISH], frame);
  }
  hold (timeline, LANE_DOWNSTREAM, "push", frame->downstream, frame);
  /* All of a later frame begins after this one was submitted. */
  release (timeline, span[CSF_PART_SUBMIT].end, 0);
  if (timeline->block.length < BLOCK_BYTES && csf_now_ns () - timeline->written_ns < BLOCK_NS)
    return CSF_OK;
  return flush (timeline, error);
}

csf_status
csf_timeline_finish (csf_timeline *timeline, csf_error *error)
{
  release (timeline, UINT64_MAX, 0);
  return flush (timeline, error);
}

void
csf_timeline_close (csf_timeline *timeline)
{
  if (timeline == NULL)
    return;
  close (timeline->fd);
  free (timeline->block.data);
  free (timeline->tail.data);
  free (timeline->location);
  free (timeline->name);
  free (timeline);
}
