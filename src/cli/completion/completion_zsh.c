/*
 * The script for zsh: a function for each node. One with words below it completes the word, and
 * calls the function of that word for the rest of the line.
 */
#include "cli/completion/completion.h"

static const char quote[] = "'\\''";

/* Prints the name of a node's function. */
static void put_name(const struct completion_node *node)
{
    (void)printf("_weir%s", node->path[0] != 0 ? "_" : "");
    for (const char *c = node->path; *c != 0; c++) {
        (void)putchar(*c == ' ' ? '_' : *c);
    }
}

/* Prints text of a specification in single quotes: brackets, colons and backslashes are special. */
static void put_escaped(const char *text, const char *special)
{
    for (; *text != 0; text++) {
        const char plain[2] = {*text, 0};
        (void)fputs(strchr(special, *text) != NULL ? "\\" : "", stdout);
        (void)fputs(*text == '\'' ? quote : plain, stdout);
    }
}

/* Prints ":MESSAGE:ACTION". */
static void put_value(struct completion_value value)
{
    (void)putchar(':');
    put_escaped(value.text, "\\:[]");
    (void)putchar(':');
    if (value.kind == COMPLETION_CHOICE) {
        (void)fputs(value.list ? " _values -s , value " : "(", stdout);
        completion_put_choices(&value, " ");
        (void)fputs(value.list ? "" : ")", stdout);
    } else if (value.kind == COMPLETION_FILE) {
        (void)fputs("_files", stdout);
    } else if (value.kind == COMPLETION_FOLDER) {
        (void)fputs("_files -/", stdout);
    }
}

/* Prints the specifications of a node's options and operands. */
static void put_specifications(const struct completion_node *node, bool operands)
{
    const struct cli_option *option;
    for (size_t i = 0; (option = completion_option(node, &i)) != NULL;) {
        bool repeated = strstr(option->help, "may be repeated") != NULL;
        (void)printf(" \\\n        '%s%s%s[", repeated ? "*" : "", option->name,
                     option->argument != NULL ? "=" : "");
        put_escaped(option->help, "\\[]");
        (void)putchar(']');
        if (option->argument != NULL) {
            put_value(completion_value(option, option->argument));
        }
        (void)putchar('\'');
    }
    if (operands && node->operands[0] != 0) {
        (void)fputs(" \\\n        '*", stdout);
        put_value(completion_value(NULL, node->operands));
        (void)putchar('\'');
    }
}

static void put_leaf(const struct completion_node *node)
{
    size_t first = 0;
    if (completion_option(node, &first) == NULL && node->operands[0] == 0) {
        (void)fputs("    _message 'no more arguments'\n", stdout);
        return;
    }
    (void)fputs("    _arguments -S :", stdout);
    put_specifications(node, true);
    (void)putchar('\n');
}

static void put_branch(const struct completion_tree *tree, const struct completion_node *node)
{
    const struct completion_node *below;
    char text[256];
    (void)fputs("    local curcontext=$curcontext state line\n"
                "    local -a weir_words\n"
                "    weir_words=(\n",
                stdout);
    for (size_t i = 0; (below = completion_below(tree, node, &i)) != NULL;) {
        (void)printf("        '%s:", completion_word(below));
        put_escaped(completion_help(tree, below, text, sizeof text), "\\");
        (void)fputs("'\n", stdout);
    }
    (void)fputs("    )\n    _arguments -C -S :", stdout);
    put_specifications(node, false);
    (void)fputs(" \\\n        '1:command:->word' '*:: :->rest'\n"
                "    case $state in\n"
                "    word) _describe command weir_words ;;\n"
                "    rest) (( $+functions[",
                stdout);
    put_name(node);
    (void)fputs("_$line[1]] )) && ", stdout);
    put_name(node);
    (void)fputs("_$line[1] ;;\n    esac\n", stdout);
}

void completion_zsh(const struct completion_tree *tree)
{
    (void)fputs("#compdef weir\n"
                "# Completion for zsh. Printed by 'weir completion zsh'; do not edit.\n",
                stdout);
    for (size_t i = 0; i < tree->count; i++) {
        const struct completion_node *node = &tree->nodes[i];
        size_t first = 0;
        (void)putchar('\n');
        put_name(node);
        (void)fputs("() {\n", stdout);
        if (completion_below(tree, node, &first) != NULL) {
            put_branch(tree, node);
        } else {
            put_leaf(node);
        }
        (void)fputs("}\n", stdout);
    }
    /* Run by zsh the first time that it is needed, or read by a user's .zshrc. */
    (void)fputs("\nif [[ $funcstack[1] == _weir ]]; then\n"
                "    _weir \"$@\"\n"
                "else\n"
                "    compdef _weir weir\n"
                "fi\n",
                stdout);
}
