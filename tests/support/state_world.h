/* Rules whose state lives in a folder of the test's own: opened, ended, opened again. */
#ifndef WEIR_TESTS_SUPPORT_STATE_WORLD_H
#define WEIR_TESTS_SUPPORT_STATE_WORLD_H

#include <weir_rules.h>

struct state_world {
    char *folder;
    struct weir_rules *rules; /* NULL: ended */
    char told[8192];          /* by the last open, reload, ...: "NAME: text" and a line end each */
    char names[4096];
    struct weir_error error;
};

/* As cmocka's setup and teardown. */
int state_world_make(void **state);
int state_world_remove(void **state);

/* Times are the caller's, around RULES_T0. The first fails the test on an error. */
void state_world_open(struct state_world *w, const char *yaml);
int state_world_try(struct state_world *w, const char *yaml);
void state_world_reload(struct state_world *w, const char *yaml);
void state_world_close(struct state_world *w);

/* Ends the rules and opens them again. */
void state_world_restart(struct state_world *w, const char *yaml);

/*
 * What is in the folder, sorted, a blank between, without the lock; what keys mean is left out:
 * "api~.weir search@pro~.weir".
 */
const char *state_world_files(struct state_world *w);

/* The path of the only file whose shown name this is; to be freed. */
char *state_world_path(struct state_world *w, const char *shown);

/* Moved aside since the rules were opened. */
uint64_t state_world_unusable(struct state_world *w);

#endif
