/* weir watch: the state of a key as lines, on a terminal in place of the lines before. */
#ifndef WEIR_CLI_WATCH_WATCH_VIEW_H
#define WEIR_CLI_WATCH_WATCH_VIEW_H

#include "cli/watch/key_state.h"
#include "common/buffer.h"

struct watch_view {
    bool in_place;      /* a terminal: paint over what was painted before */
    unsigned painted;   /* lines on the terminal that the next picture replaces */
    struct buffer last; /* without a terminal: what the last line says, except times */
    const char *title;  /* what is watched and where, safe for a terminal */
};

/* Finds out what standard output is. Call watch_view_finish() at the end. */
void watch_view_init(struct watch_view *v, const char *title);
void watch_view_finish(struct watch_view *v);

/*
 * Shows the state, or without a terminal adds a line if it is another one than before. `reason`:
 * why there is this verdict, "limit" if for what the key has left. Returns false if nothing can
 * be written any more.
 */
bool watch_view_show(struct watch_view *v, const struct key_state *state, const char *reason);

/* Does the same with the reason for which there is no answer, which is safe for a terminal. */
bool watch_view_fail(struct watch_view *v, struct weir_text why);

#endif
