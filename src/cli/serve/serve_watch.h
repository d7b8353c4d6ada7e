/*
 * Notices when the rules on disk have become others.
 *
 * Folders are watched, not files: editors write a new file and rename it, and
 * Kubernetes swaps a symbolic link beside it. So each folder counts that can give
 * the path another meaning: that of the file, and that of each link on the way.
 * Something happened there; when it has been quiet for a moment, the files are
 * looked at, and only if one of them looks new, read: the same bytes are no news.
 *
 * Where the kernel cannot watch, the files are looked at every two seconds.
 */
#ifndef WEIR_CLI_SERVE_SERVE_WATCH_H
#define WEIR_CLI_SERVE_SERVE_WATCH_H

#include <weir_rules.h>

#include "base/hash.h"
#include "rules/live/live.h"
#include "server/net/access.h"

#define WATCH_QUIET_NS (100 * WEIR_MILLISECOND) /* that long nothing has happened, ... */
#define WATCH_MOST_NS WEIR_SECOND               /* ... or that long something has */
#define WATCH_LOOK_NS (2 * WEIR_SECOND)         /* without the kernel's help */

struct watch {
    struct weir_rules *rules; /* NULL: not read yet */
    const char *config;       /* NULL: nothing is watched */
    const char *also[ROLES];  /* files that are read with the rules: secrets; NULL: none */
    bool ask_kernel;
    bool complete;       /* the kernel watches every folder */
    int fd;              /* readable: call watch_events(); -1: never */
    uint64_t first_ns;   /* of what has happened and was not looked at; 0: nothing has */
    uint64_t last_ns;    /* likewise */
    uint64_t look_ns;    /* when to look without being told */
    struct hash looks;   /* sizes, times and places of the files */
    struct hash content; /* their bytes */
    struct hash before;  /* those of the rule files alone, when they were about to be read */
};

/*
 * Before the rules are read for the first time; config NULL: nothing is watched. With ask_kernel
 * false the files are looked at from time to time.
 */
void watch_open(struct watch *watch, const char *config, bool ask_kernel);
void watch_close(struct watch *watch);

/* The descriptor is readable. */
void watch_events(struct watch *watch, uint64_t now_ns);

/* When watch_is_new() is to be called next; UINT64_MAX: not before something happens. */
uint64_t watch_due_ns(const struct watch *watch);

/* True if the files have other bytes than those that were read last, or tried. */
bool watch_is_new(struct watch *watch, uint64_t now_ns);

/* The rules are about to be read; and they have been, or not: what is there now is known. */
void watch_before(struct watch *watch);
void watch_after(struct watch *watch, struct weir_rules *rules, uint64_t now_ns);

#endif
