/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel's records on their way to the host: a buffer for each slot that grows to the most that ever came,
 * the second pass when records found no room, and the copy out before the slot is used again.  Knows no
 * device: memory and passes are the backend's. */
#ifndef CSF_METASINK_H
#define CSF_METASINK_H

#include "backend.h"

typedef struct csf_metasink csf_metasink;

/* NULL in *sink for a kernel without records. */
csf_status csf_metasink_create (csf_session * session, const csf_config * config, csf_metasink ** sink,
    csf_error * error);

/* No slot runs.  NULL is allowed. */
void csf_metasink_destroy (csf_metasink * sink);

/* Submit thread: the buffer for this slot's next job, which is free. */
const csf_record_buffer *csf_metasink_take (csf_metasink * sink, unsigned slot);

/* Retire thread, after the slot's work is done: fills the result's records.  CSF_AGAIN: the slot has more to do,
 * wait for it and call again. */
csf_status csf_metasink_collect (csf_metasink * sink, unsigned slot, csf_result * result,
    csf_error * error);

/* Any thread. */
void csf_metasink_get_stats (csf_metasink * sink, csf_engine_stats * stats);

#endif
