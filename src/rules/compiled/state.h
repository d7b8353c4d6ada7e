/*
 * The folder in which limiters live in files, so that a restart, an upgrade or a kill keeps their
 * keys. docs/explanation/decisions/018 gives the reasons for the design.
 *
 *     .lock                                  held by the process that uses the folder
 *     fleet.nodes                            the number of nodes of the fleet (fleet/nodes_file.c)
 *     LIMIT~MEANING.weir                     the keys of a limit,
 *     LIMIT@TIER~MEANING.weir                of one of its tiers,
 *     LIMIT=COUNT-PERIOD-BURST~MEANING.weir  of one rate of its overrides
 *     adhoc.weir                             of a limiter beside the rules
 *     *.weir.new                             becomes *.weir when the rules are switched
 *     *.weir.bad *.weir.bad.2 ...            could not be used
 *
 * Names of limits and tiers do not contain the characters between them. MEANING is a hash of what
 * the bytes of a key are made of. Everything else that must be the same is stored in the file:
 * opening it with other parameters fails, and then its keys start afresh.
 *
 * A load makes and opens files, but removes none: if it fails, the files that it made are removed,
 * and those of the rules in force are as they were. state_settle() ends a load that succeeded, and
 * cannot fail.
 */
#ifndef WEIR_RULES_COMPILED_STATE_H
#define WEIR_RULES_COMPILED_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rules/yaml/problems.h"

struct rule;
struct ruleset;
struct variant;

#define STATE_NAME_MAX 192

struct state {
    char *folder;  /* absolute, without links */
    int lock;      /* descriptor of the lock file */
    pid_t process; /* the opener; its children share the limiters, but not the folder */
    uint64_t unusable;
};

/* The file of a limiter. */
struct state_file {
    char name[STATE_NAME_MAX]; /* "": in memory */
    bool made;                 /* by a load that has not succeeded yet */
    bool draft;                /* still called NAME.new */
};

/*
 * Opens and locks the folder. Returns 0, WEIR_ENOENT, WEIR_EACCES (it is no folder, belongs to
 * another user, is writable by others, or is in use), WEIR_EINVAL (its path is too long),
 * WEIR_ENOMEM or WEIR_EIO.
 */
int state_open(struct state **state, const char *folder, struct weir_error *error);
void state_close(struct state *state);

/*
 * Makes a name for one variant of a limit: LIMIT; LIMIT, the separator and TIER; or
 * LIMIT=COUNT-PERIOD-BURST for overrides. Returns its length.
 */
size_t variant_name(const struct rule *rule, const struct variant *variant, char separator,
                    char name[STATE_NAME_MAX]);

/* Makes the name of the file of one variant of a limit. */
void state_name(const struct rule *rule, const struct variant *variant, char name[STATE_NAME_MAX]);

/*
 * Opens the limiter of *o in file->name, or makes it. A file that cannot be used is moved aside,
 * counted and reported. One with other parameters will be replaced, which is reported. `busy`: the
 * rules in force use the file, so it will be replaced in any case.
 */
int state_limiter(struct state *state, struct weir_options *o, bool busy, struct problems *problems,
                  struct state_file *file, struct weir **limiter, struct weir_error *error);

/* Closes the limiter, which state_limiter() or weir_open() has opened. NULL is allowed. */
void state_limiter_close(struct weir *limiter);

/* state_keep() makes a file permanent; state_discard() removes one that a failed load has made. */
void state_keep(const struct state *state, struct state_file *file, struct problems *problems);
void state_discard(const struct state *state, const struct state_file *file);

/*
 * Called when the rules of *set replace *old (NULL: they are the first). Removes files of limits
 * that only *old has, and files that a limit of *set no longer needs. If *set is the first, files
 * of unknown limits are reported and left alone.
 */
void state_settle(struct state *state, struct ruleset *set, const struct ruleset *old,
                  struct problems *problems);

/* Sets path to FOLDER/NAME and the suffix. state_open() has checked that it fits. */
void state_path(const struct state *state, const char *name, const char *suffix,
                char path[PATH_MAX]);

/* ---- mapped files (state_mapped.c) ---- */

/*
 * Returns the path of the state file that this process has mapped at the address; NULL if there is
 * none. May be called in a signal handler, about an address that the interrupted code has used.
 */
const char *state_file_at(const void *address);

/* Enters the limiter of the file FOLDER/NAME; removes a limiter, if it was entered. */
void state_mapped(const struct state *state, const char *name, const struct weir *limiter);
void state_unmapped(const struct weir *limiter);

#endif
