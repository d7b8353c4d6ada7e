/*
 * weir ctl put --keep FILE: a limit that survives reloads and restarts.
 *
 * The file is one of the server's rule files, in a folder or list that --config names, and has this
 * limit alone. Other rule files are never written, because their comments and order belong to their
 * authors. The steps, each of which can still be undone:
 *
 *   1. The limit must not be in another rule file. An old FILE must be one that this command has
 *      written.
 *   2. The server takes the limit, so it is valid.
 *   3. FILE is written under a hidden name and renamed, with the mode and the owner of an old FILE.
 *   4. The server reads its rules again, and says at which line the limit is. If it refuses the
 *      rules or has not read FILE, the old FILE is put back, the rules are read once more, and the
 *      limit is in effect until the next reload.
 */
#ifndef WEIR_CLI_CTL_CTL_KEEP_H
#define WEIR_CLI_CTL_CTL_KEEP_H

#include "cli/ctl/ctl.h"

/* Puts the limit of this name with `put`, and keeps it in ctl->keep. Returns the exit code. */
int ctl_keep(struct ctl *ctl, struct weir_text name, const struct http_call *put);

#endif
