/*
 * The folder in which limiters live in files, so that a restart, an upgrade or
 * a kill keeps their keys. docs/decisions/018 says why it is as it is.
 *
 *     .lock                                  held by the process that uses the folder
 *     LIMIT~MEANING.weir                     the keys of a limit,
 *     LIMIT@TIER~MEANING.weir                of one of its tiers,
 *     LIMIT=COUNT-PERIOD-BURST~MEANING.weir  of one rate of its overrides
 *     adhoc.weir                             of a limiter beside the rules
 *     *.weir.new                             becomes *.weir when the rules are switched
 *     *.weir.bad *.weir.bad.2 ...            could not be used
 *
 * Names of limits and tiers have none of the characters between them. MEANING is
 * a hash of what the bytes of a key are made of; everything else that must be the
 * same stands in the file, which refuses another: then its keys start afresh.
 *
 * A load makes and opens files, but takes none away: if it fails, what it made
 * goes, and the files of the rules in force are as they were. state_settle() ends
 * a load that succeeded, and cannot fail.
 */
#ifndef WEIR_RULES_COMPILED_STATE_H
#define WEIR_RULES_COMPILED_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rules/file/problems.h"

struct rule;
struct ruleset;
struct variant;

#define STATE_NAME_MAX 192

struct state {
    char *folder;  /* without links, from the root */
    int lock;      /* its descriptor */
    pid_t process; /* that opened it; its children share the limiters, but not the folder */
    uint64_t unusable;
};

/* Where a limiter lives. */
struct state_file {
    char name[STATE_NAME_MAX]; /* "": in memory */
    bool made;                 /* by a load that has not succeeded yet */
    bool draft;                /* still called NAME.new */
};

/*
 * WEIR_ENOENT, WEIR_EACCES (no folder, somebody else's, or others may write there, or it is in
 * use), WEIR_ENOMEM, WEIR_EIO.
 */
int state_open(struct state **state, const char *folder, struct weir_error *error);
void state_close(struct state *state);

/* The file of one variant of a limit. */
void state_name(const struct rule *rule, const struct variant *variant, char name[STATE_NAME_MAX]);

/*
 * Opens the limiter of *o in file->name, or makes it. A file that cannot be used is moved aside,
 * counted and told; one whose parameters are others is to be replaced, and told. `busy`: the rules
 * in force have the file, so it is to be replaced in any case.
 */
int state_limiter(struct state *state, struct weir_options *o, bool busy, struct problems *problems,
                  struct state_file *file, struct weir **limiter, struct weir_error *error);

/* A file is to stay, or was made in vain. */
void state_keep(const struct state *state, struct state_file *file, struct problems *problems);
void state_discard(const struct state *state, const struct state_file *file);

/*
 * The rules of *set will take the place of *old (NULL: are the first). Files of limits that are
 * gone, or of what a limit no longer has, are removed. At first those of limits that nobody knows
 * are told, and left alone.
 */
void state_settle(struct state *state, struct ruleset *set, const struct ruleset *old,
                  struct problems *problems);

/* FOLDER/NAME and what follows it. False: too long. */
bool state_path(const struct state *state, const char *name, const char *suffix,
                char path[PATH_MAX]);

#endif
