/*
 * weir completion: scripts that complete command lines in shells, made from the rows of commands.
 * The rows become a tree of words first (completion_tree.c), which each shell's file prints.
 */
#ifndef WEIR_CLI_COMPLETION_COMPLETION_H
#define WEIR_CLI_COMPLETION_COMPLETION_H

#include "cli/cli.h"

#define COMPLETION_NODES 128

/* A place on the command line: the words so far, and what may follow them. */
struct completion_node {
    char path[48];                     /* "ctl key block"; "": the program alone */
    const char *help;                  /* NULL: a group of commands, such as "config" */
    const struct cli_command *command; /* NULL: it has no options */
    uint64_t options;                  /* bit i: it takes the option of row i */
    const char *operands;              /* as in cli_command and cli_word */
};

struct completion_tree {
    struct completion_node nodes[COMPLETION_NODES]; /* a node comes after the one above it */
    size_t count;
};

/* Makes the tree of cli_commands. Returns false if it has too many nodes. */
bool completion_make(struct completion_tree *tree);

/*
 * Returns the next node one word below `node`, from node *i on, and sets *i after it;
 * NULL: there is none.
 */
const struct completion_node *completion_below(const struct completion_tree *tree,
                                               const struct completion_node *node, size_t *i);

/* Returns the last word of a node's path. */
const char *completion_word(const struct completion_node *node);

/* Returns the help of a node; of a group, the words below it, in memory of `text`. */
const char *completion_help(const struct completion_tree *tree, const struct completion_node *node,
                            char *text, size_t size);

/* Returns the next option of a node, from row *i on, and sets *i after it; NULL: there is none. */
const struct cli_option *completion_option(const struct completion_node *node, size_t *i);

/* ---- values ---- */

enum completion_kind {
    COMPLETION_OTHER, /* the shell cannot know it */
    COMPLETION_FILE,
    COMPLETION_FOLDER,
    COMPLETION_CHOICE
};

/* The value of an option, or an operand. */
struct completion_value {
    enum completion_kind kind;
    bool list; /* several choices, separated by commas */
    const struct cli_option *option;
    const char *text; /* "FILE", "on|off" */
};

/* `option` NULL: the text is of operands. */
struct completion_value completion_value(const struct cli_option *option, const char *text);

/* Prints the choices, with `between` between two of them. */
void completion_put_choices(const struct completion_value *value, const char *between);

/* ---- shells ---- */

/* Prints a text in single quotes. `quote` is how the shell writes a single quote in one. */
void completion_put_quoted(const char *text, const char *quote);

void completion_bash(const struct completion_tree *tree);
void completion_zsh(const struct completion_tree *tree);
void completion_fish(const struct completion_tree *tree);

#endif
