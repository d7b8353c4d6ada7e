/* Rules whose state is in a folder of the test: opened, closed, opened again. */
#ifndef WEIR_TESTS_SUPPORT_STATE_WORLD_H
#define WEIR_TESTS_SUPPORT_STATE_WORLD_H

#include <weir_rules.h>

struct state_world {
    char *folder;
    struct weir_rules *rules; /* NULL: closed */
    /* Messages of the last call: "NAME: text" or "NAME:LINE: text", each with a line end. */
    char told[8192];
    char names[4096];
    struct weir_error error;
};

/* Setup and teardown for cmocka. */
int state_world_make(void **state);
int state_world_remove(void **state);

/* Times are the caller's, around RULES_T0. An error of state_world_open() fails the test. */
void state_world_open(struct state_world *w, const char *yaml);
int state_world_try(struct state_world *w, const char *yaml);
void state_world_reload(struct state_world *w, const char *yaml);
void state_world_close(struct state_world *w);

/* Closes the rules and opens them again. */
void state_world_restart(struct state_world *w, const char *yaml);

/*
 * Returns the names in the folder, sorted, separated by blanks, without the lock file. The hash of
 * what keys mean is left out: "api~.weir search@pro~.weir".
 */
const char *state_world_files(struct state_world *w);

/* Returns the path of the only file with this shown name; to be freed. */
char *state_world_path(struct state_world *w, const char *shown);

/* Returns how many files were moved aside since the rules were opened. */
uint64_t state_world_unusable(struct state_world *w);

#endif
