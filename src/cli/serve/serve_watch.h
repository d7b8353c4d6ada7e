/*
 * Notices when the rules on disk, or the files that are read with them, have changed.
 *
 * Folders are watched, not files, because editors write a new file and rename it, and Kubernetes
 * swaps a symbolic link next to it. So every folder is watched that can change what the path
 * means: that of the file, and that of each link on the way. After an event, and when nothing
 * more has happened for a moment, the files' metadata is compared; only if it differs are the
 * files read. Files with the same bytes as before are not new.
 *
 * Where the kernel cannot watch, the files are examined every two seconds.
 *
 * Operators can have the files read too, on another thread. Files that were read then are not new,
 * because limits that were put since would be lost for nothing. So the hashes belong to the thread
 * that reloads (server_reload_if()), all other members to the thread that watches.
 */
#ifndef WEIR_CLI_SERVE_SERVE_WATCH_H
#define WEIR_CLI_SERVE_SERVE_WATCH_H

#include <weir_rules.h>

#include "base/hash.h"
#include "rules/live/live.h"

#define WATCH_ALSO 5

#define WATCH_QUIET_NS (100 * WEIR_MILLISECOND) /* examine after this long without an event */
#define WATCH_MOST_NS WEIR_SECOND               /* but no later than this after the first event */
#define WATCH_LOOK_NS (2 * WEIR_SECOND)         /* interval without the kernel's help */

struct watch {
    struct weir_rules *rules; /* NULL: not read yet */
    const char *config;       /* NULL: no rule file */
    /* Files of secrets and certificates, which are read with the rules; NULL: none. */
    const char *also[WATCH_ALSO];
    bool open; /* otherwise nothing is watched */
    bool ask_kernel;
    bool complete;       /* the kernel watches every folder */
    int fd;              /* call watch_events() when readable; -1: never */
    uint64_t first_ns;   /* time of the first event since the files were examined; 0: none */
    uint64_t last_ns;    /* time of the last such event */
    uint64_t look_ns;    /* when to examine the files without an event */
    struct hash looks;   /* hash of the files' sizes, times and identities */
    struct hash content; /* hash of their bytes */
    struct hash before;  /* hash of the rule files' and others' bytes before they were read */
};

/* A watch that is not opened: every function accepts it, and nothing is new. */
#define WATCH_NOTHING ((struct watch){.fd = -1})

/*
 * Call it before the rules are read for the first time. config NULL: there is no rule file. With
 * ask_kernel false, the files are examined at intervals.
 */
void watch_open(struct watch *watch, const char *config, bool ask_kernel);

/*
 * Adds files that are read with the rules, NULL for none. Call it once, after watch_open() and
 * before the files are read for the first time.
 */
void watch_also(struct watch *watch, const char *const files[WATCH_ALSO]);
void watch_close(struct watch *watch);

/* Reads the events. Call it when the descriptor is readable, and after a reload, which may have
 * named other files. */
void watch_events(struct watch *watch, uint64_t now_ns);

/* Returns when to call watch_is_new() next; UINT64_MAX: not before an event. */
uint64_t watch_due_ns(const struct watch *watch);

/* Returns true if the files' bytes differ from those that were read last, successfully or not. Call
 * it while no other thread reloads. */
bool watch_is_new(struct watch *watch, uint64_t now_ns);

/* Call it when the files have been read for the first time. */
void watch_begin(struct watch *watch, struct weir_rules *rules, uint64_t now_ns);

/*
 * The thread that reloads calls watch_before() before the rules are read and watch_after()
 * afterwards, also if reading failed: the bytes that were read then count as known.
 */
void watch_before(struct watch *watch);
void watch_after(struct watch *watch);

#endif
