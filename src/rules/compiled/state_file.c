/* One limiter's file: opens it, makes it, moves it aside, replaces it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "rules/compiled/state.h"

/* How many unusable files of one name are kept for inspection. */
#define BAD_MAX 4

/* What to do with a file that weir_open() refused. */
enum fate {
    FATE_FAIL,   /* the file is not the reason: do not start */
    FATE_ASIDE,  /* the file is unusable */
    FATE_REPLACE /* the rules have changed */
};

static enum fate fate_of(int e)
{
    static const struct {
        int code;
        enum fate fate;
    } rows[] = {
        {WEIR_EACCES, FATE_ASIDE},  {WEIR_EVERSION, FATE_ASIDE},    {WEIR_EDAMAGED, FATE_ASIDE},
        {WEIR_ETIME, FATE_ASIDE},   {WEIR_EMISMATCH, FATE_REPLACE}, {WEIR_EQUOTA, FATE_REPLACE},
        {WEIR_ERATE, FATE_REPLACE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code == e) {
            return rows[i].fate;
        }
    }
    return FATE_FAIL;
}

/* ---- moving aside ---- */

static bool earlier(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/*
 * Chooses a name for a bad file: a free one, or that of the file moved aside first, which is
 * removed.
 */
static int choose_aside(const char *path, char aside[PATH_MAX])
{
    struct timespec oldest = {0};
    int best = 0;
    for (int i = 1; i <= BAD_MAX; i++) {
        struct stat st;
        int n = snprintf(aside, PATH_MAX, i == 1 ? "%s.bad" : "%s.bad.%d", path, i);
        if (n < 0 || n >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (lstat(aside, &st) != 0) {
            return errno == ENOENT ? 0 : -1;
        }
        if (!S_ISDIR(st.st_mode) && (best == 0 || earlier(&st.st_ctim, &oldest))) {
            best = i;
            oldest = st.st_ctim;
        }
    }
    errno = EEXIST;
    (void)snprintf(aside, PATH_MAX, best <= 1 ? "%s.bad" : "%s.bad.%d", path, best);
    return best != 0 ? unlink(aside) : -1;
}

static int move_aside(struct state *state, const char *path, const struct weir_error *why,
                      struct problems *problems, struct weir_error *error)
{
    char aside[PATH_MAX];
    if (choose_aside(path, aside) != 0 || rename(path, aside) != 0) {
        return fail_errno(error, "cannot be used and cannot be renamed", path);
    }
    state->unusable++;
    warning(problems, (struct place){path, 0, 0},
            "cannot be used: %s; it has been renamed to %s, and its keys start afresh",
            problem_without_path(why, path), strrchr(aside, '/') + 1);
    return 0;
}

/* ---- opening ---- */

static int make(struct state *state, struct weir_options *o, struct state_file *file,
                struct weir **limiter, struct weir_error *error)
{
    char path[PATH_MAX];
    state_path(state, file->name, file->draft ? ".new" : "", path);
    if (file->draft) {
        (void)unlink(path); /* left by a process that was killed */
    }
    o->path = path;
    int e = weir_open(limiter, o, error);
    file->made = e == 0;
    return e;
}

static int open_old(struct state *state, struct weir_options *o, struct problems *problems,
                    struct state_file *file, struct weir **limiter, struct weir_error *error)
{
    struct weir_error why = {0};
    int e = weir_open(limiter, o, &why);
    enum fate fate = e != 0 ? fate_of(e) : FATE_FAIL;
    if (fate == FATE_ASIDE) {
        e = move_aside(state, o->path, &why, problems, error);
    } else if (fate == FATE_REPLACE) {
        warning(problems, (struct place){o->path, 0, 0}, "%s: its keys start afresh",
                problem_without_path(&why, o->path));
        file->draft = true;
        e = 0;
    } else {
        return e == 0 ? 0 : fail(error, e, "%s", why.text);
    }
    return e != 0 ? e : make(state, o, file, limiter, error);
}

static int open_file(struct state *state, struct weir_options *o, bool busy,
                     struct problems *problems, struct state_file *file, struct weir **limiter,
                     struct weir_error *error)
{
    char path[PATH_MAX];
    struct stat st;
    state_path(state, file->name, "", path);
    o->memory = WEIR_FILE;
    o->path = path;
    o->flags &= ~(WEIR_PREFAULT | WEIR_HUGE_PAGES);
    o->flags |= WEIR_CHANGE | WEIR_RECOVER;
    file->made = false;
    file->draft = busy;
    if (busy) {
        warning(problems, (struct place){path, 0, 0},
                "the limit's algorithm, period, max_keys, max_blocks, on_full, align or undelayed "
                "has changed, or its count has become too large for the old state: its keys start "
                "afresh");
    } else if (lstat(path, &st) == 0) {
        return open_old(state, o, problems, file, limiter, error);
    }
    return make(state, o, file, limiter, error);
}

int state_limiter(struct state *state, struct weir_options *o, bool busy, struct problems *problems,
                  struct state_file *file, struct weir **limiter, struct weir_error *error)
{
    int e = open_file(state, o, busy, problems, file, limiter, error);
    if (e == 0) {
        state_mapped(state, file->name, *limiter);
    }
    return e;
}

void state_limiter_close(struct weir *limiter)
{
    state_unmapped(limiter);
    weir_close(limiter);
}

void state_keep(const struct state *state, struct state_file *file, struct problems *problems)
{
    char draft[PATH_MAX];
    char path[PATH_MAX];
    state_path(state, file->name, ".new", draft);
    state_path(state, file->name, "", path);
    if (file->draft && rename(draft, path) == 0) {
        file->draft = false;
    } else if (file->draft) {
        warning(problems, (struct place){draft, 0, 0},
                "cannot be renamed: %s; a restart will forget its keys", strerror(errno));
    }
    file->made = false;
}

void state_discard(const struct state *state, const struct state_file *file)
{
    char path[PATH_MAX];
    if (file->made) {
        state_path(state, file->name, file->draft ? ".new" : "", path);
        (void)unlink(path);
    }
}
