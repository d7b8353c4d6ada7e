/*
 * The script for fish: a function that finds the words of the command line which are commands, and
 * a `complete` for each word, option and operand, on the condition that these words are there.
 */
#include "cli/completion/completion.h"

static const char quote[] = "\\'";

static const char head[] =
    "# Completion for fish. Printed by 'weir completion fish'; do not edit.\n\n";

static const char finder[] =
    "\n"
    "# True if the words before the cursor that are commands are these.\n"
    "function __weir_at\n"
    "    set -l path ''\n"
    "    set -l value no\n"
    "    for word in (commandline -opc)[2..]\n"
    "        if test $value = yes\n"
    "            set value no # of an option\n"
    "        else if contains -- $word $__weir_with_value\n"
    "            set value yes\n"
    "        else if contains -- (string trim -- \"$path $word\") $__weir_commands\n"
    "            set path (string trim -- \"$path $word\")\n"
    "        end\n"
    "    end\n"
    "    test \"$path\" = \"$argv\"\n"
    "end\n"
    "\n"
    "complete -c weir -f\n";

/* The names of all options that have a value. No name is an option with a value and a switch. */
static void put_options_with_value(const struct completion_tree *tree)
{
    const struct cli_option *option;
    (void)fputs("set -g __weir_with_value", stdout);
    for (size_t n = 0; n < tree->count; n++) {
        for (size_t i = 0; (option = completion_option(&tree->nodes[n], &i)) != NULL;) {
            if (option->argument != NULL) {
                (void)printf(" %s", option->name);
            }
        }
    }
    (void)putchar('\n');
}

static void put_commands(const struct completion_tree *tree)
{
    (void)fputs("set -g __weir_commands", stdout);
    for (size_t n = 1; n < tree->count; n++) {
        (void)printf(" '%s'", tree->nodes[n].path);
    }
    (void)putchar('\n');
}

/* Prints what fish does with a value. */
static void put_value(struct completion_value value)
{
    if (value.kind == COMPLETION_FILE) {
        (void)fputs(" -F", stdout);
    } else if (value.kind == COMPLETION_FOLDER) {
        (void)fputs(" -f -a '(__fish_complete_directories)'", stdout);
    } else if (value.kind == COMPLETION_CHOICE) {
        (void)fputs(value.list ? " -f -a '(__fish_append , " : " -f -a '", stdout);
        completion_put_choices(&value, " ");
        (void)fputs(value.list ? ")'" : "'", stdout);
    } else {
        (void)fputs(" -f", stdout);
    }
}

static void put_begin(const struct completion_node *node)
{
    (void)printf("complete -c weir -n '__weir_at %s'", node->path);
}

static void put_node(const struct completion_tree *tree, const struct completion_node *node)
{
    const struct completion_node *below;
    const struct cli_option *option;
    char text[256];
    for (size_t i = 0; (below = completion_below(tree, node, &i)) != NULL;) {
        put_begin(node);
        (void)printf(" -a %s -d ", completion_word(below));
        completion_put_quoted(completion_help(tree, below, text, sizeof text), quote);
        (void)putchar('\n');
    }
    for (size_t i = 0; (option = completion_option(node, &i)) != NULL;) {
        put_begin(node);
        (void)printf(" -l %s", option->name + 2);
        if (option->argument != NULL) {
            (void)fputs(" -r", stdout);
            put_value(completion_value(option, option->argument));
        }
        (void)fputs(" -d ", stdout);
        completion_put_quoted(option->help, quote);
        (void)putchar('\n');
    }
    struct completion_value operand = completion_value(NULL, node->operands);
    if (operand.kind != COMPLETION_OTHER) {
        put_begin(node);
        put_value(operand);
        (void)putchar('\n');
    }
}

void completion_fish(const struct completion_tree *tree)
{
    (void)fputs(head, stdout);
    put_commands(tree);
    put_options_with_value(tree);
    (void)fputs(finder, stdout);
    for (size_t i = 0; i < tree->count; i++) {
        put_node(tree, &tree->nodes[i]);
    }
}
