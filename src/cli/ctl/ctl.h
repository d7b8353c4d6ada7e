/* weir ctl: its commands as rows, and functions that they share. */
#ifndef WEIR_CLI_CTL_CTL_H
#define WEIR_CLI_CTL_CTL_H

#include "cli/admin_client.h"
#include "cli/grid.h"

struct ctl {
    struct admin_client client;
    bool json;
    const char *tier;  /* options as given; NULL: not given */
    const char *until; /* --for */
    const char *units;
    char **operands; /* the words after the command's name */
    int count;
};

/* Options that belong to some of the commands only. */
#define CTL_TIER 0x1u
#define CTL_FOR 0x2u
#define CTL_UNITS 0x4u

struct ctl_row {
    struct cli_word word; /* "key get LIMIT KEY...": for help and the manual */
    const char *name;     /* "key get" */
    int least;            /* fewest operands */
    int most;             /* most operands; 0: any number; -1: none */
    unsigned takes;       /* options it takes: CTL_... */
    int (*run)(struct ctl *ctl);
};

/* Each list ends with a row that has no name. */
extern const struct ctl_row ctl_limit_rows[];  /* ctl_limits.c */
extern const struct ctl_row ctl_key_rows[];    /* ctl_keys.c */
extern const struct ctl_row ctl_server_rows[]; /* ctl_server.c */

#define CTL_TARGET_MAX 65536 /* bytes of a request's target */
#define CTL_OUTPUT_MAX (64u << 20)

/* ---- shared functions (ctl.c) ---- */

/* Prints the server's answer as JSON in ASCII; prints nothing for NULL. */
void ctl_print_json(const json_t *value);

/* Prints a text that is already safe for a terminal. */
void ctl_print(const struct buffer *text);

/* Prints a line such as "search: replaced". The name is made safe for a terminal. */
void ctl_print_line(struct text name, const char *what);

/* Return a member that is a string or a whole number above 0; otherwise "" or 0. */
const char *ctl_text(const json_t *object, const char *name);
uint64_t ctl_count(const json_t *object, const char *name);

/*
 * Sends a JSON object, and takes ownership of it. Returns CLI_OK and sets *out to the server's
 * answer (NULL if it is empty), or an exit code after a message. A NULL body means out of
 * memory.
 */
int ctl_send_json(const struct ctl *ctl, const char *method, const char *target, json_t *body,
                  json_t **out);

#endif
