/* weir ctl: its commands as rows, and functions that they share. */
#ifndef WEIR_CLI_CTL_CTL_H
#define WEIR_CLI_CTL_CTL_H

#include "cli/admin_client.h"
#include "cli/grid.h"

struct ctl_row;

struct ctl {
    struct admin_client client;
    const struct ctl_row *row;
    struct admin_options to;
    const char *tier; /* options as given; NULL: not given */
    const char *by;
    const char *why;
    const char *keep;
    bool json;
    uint64_t block_ns; /* --for; 0: until it is unblocked */
    uint64_t units;
    int minutes;     /* index in admin_minutes */
    char **operands; /* the words after the command's name */
    int count;
    int status; /* of the server's last answer */
};

/* The rows of the options in ctl.c. Those from CTL_TIER on belong to some of the commands only. */
enum {
    CTL_ADMIN,
    CTL_SECRET_FILE,
    CTL_JSON,
    CTL_TLS,
    CTL_TLS_LAST = CTL_TLS + 3,
    CTL_TIER,
    CTL_BY,
    CTL_FOR,
    CTL_UNITS,
    CTL_WHY,
    CTL_KEEP,
    CTL_MINUTES,
    CTL_OPTIONS
};

#define CTL_TAKES(option) (UINT64_C(1) << (option))

struct ctl_row {
    const char *usage; /* "key get LIMIT KEY...": for help and the manual */
    const char *help;
    const char *name;            /* "key get" */
    int least;                   /* fewest operands */
    int most;                    /* most operands */
    uint64_t takes;              /* options of its own: CTL_TAKES() */
    int (*run)(struct ctl *ctl); /* NULL: sends `call`, and prints the answer with print() */
    const char *done;            /* for commands that change a key: what was done, in words */
    struct http_call call;
    void (*print)(const struct ctl *ctl, const json_t *said);
};

/* Each list ends with a row that has no name. */
extern const struct ctl_row ctl_limit_rows[];   /* ctl_limits.c */
extern const struct ctl_row ctl_key_rows[];     /* ctl_keys.c */
extern const struct ctl_row ctl_block_rows[];   /* ctl_blocks.c */
extern const struct ctl_row ctl_explain_rows[]; /* ctl_explain.c */
extern const struct ctl_row ctl_server_rows[];  /* ctl_server.c */

#define CTL_TARGET_MAX 65536 /* bytes of a request's target */
#define CTL_OUTPUT_MAX (64u << 20)

/* ---- shared functions (ctl_call.c) ---- */

/*
 * Sends a request and prints the server's answer: as JSON with --json, otherwise with print().
 * Returns the exit code.
 */
typedef void (*ctl_print_fn)(const struct ctl *ctl, const json_t *said);
int ctl_call(struct ctl *ctl, const struct http_call *call, ctl_print_fn print);
int ctl_get(struct ctl *ctl, const char *target, ctl_print_fn print);

/* Does the same with a body, and takes ownership of it. A NULL body could not be made. */
int ctl_send(struct ctl *ctl, const char *method, const char *target, json_t *body,
             ctl_print_fn print);

/* Prints the server's answer as JSON in ASCII; prints nothing for NULL. */
void ctl_print_json(const json_t *value);

/* Prints a grid and frees it. */
void ctl_print_grid(struct grid *g);

/* Prints a line such as "search: replaced". The name is made safe for a terminal. */
void ctl_print_line(struct weir_text name, const char *what);

/* Returns a member that is a whole number above 0; otherwise 0. */
uint64_t ctl_count(const json_t *object, const char *name);

#endif
