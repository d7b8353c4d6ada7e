/* weir ctl: its commands as rows, and what they share. */
#ifndef WEIR_CLI_CTL_CTL_H
#define WEIR_CLI_CTL_CTL_H

#include "cli/admin_client.h"
#include "cli/grid.h"

struct ctl {
    struct admin_client client;
    bool json;
    const char *tier;  /* options, as they were given; NULL: not */
    const char *until; /* --for */
    const char *units;
    char **operands; /* behind the words of the command */
    int count;
};

/* Options that belong to some of the commands only. */
#define CTL_TIER 0x1u
#define CTL_FOR 0x2u
#define CTL_UNITS 0x4u

struct ctl_row {
    struct cli_word word; /* "key get LIMIT KEY...": for help and the manual */
    const char *name;     /* "key get" */
    int least;            /* operands */
    int most;             /* 0: any; -1: none */
    unsigned takes;       /* CTL_... */
    int (*run)(struct ctl *ctl);
};

/* Without a name behind the last. */
extern const struct ctl_row ctl_limit_rows[];  /* ctl_limits.c */
extern const struct ctl_row ctl_key_rows[];    /* ctl_keys.c */
extern const struct ctl_row ctl_server_rows[]; /* ctl_server.c */

#define CTL_TARGET_MAX 65536 /* bytes of a request's target */
#define CTL_OUTPUT_MAX (64u << 20)

/* ---- what several of them need (ctl.c) ---- */

/* Prints what the server said as JSON of ASCII; nothing if it said nothing. */
void ctl_print_json(const json_t *value);

/* Prints a harmless text. */
void ctl_print(const struct buffer *text);

/* A line of it: "search: replaced". */
void ctl_print_line(struct text name, const char *what);

/* A member that is a text, or a whole number, else "" and 0. */
const char *ctl_text(const json_t *object, const char *name);
uint64_t ctl_count(const json_t *object, const char *name);

/* Sends an object; takes it over. CLI_OK and what the server said (may be NULL). */
int ctl_send_json(const struct ctl *ctl, const char *method, const char *target, json_t *body,
                  json_t **out);

#endif
