/* Makes a tree of words from the rows of commands. */
#include <ctype.h>

#include "cli/completion/completion.h"

/* Returns the node of a path, which it adds if there is none; NULL: there is no room. */
static struct completion_node *node_at(struct completion_tree *tree, struct weir_text path)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (text_is(path, tree->nodes[i].path)) {
            return &tree->nodes[i];
        }
    }
    if (tree->count == COMPLETION_NODES || path.len >= sizeof tree->nodes[0].path) {
        return NULL;
    }
    struct completion_node *node = &tree->nodes[tree->count++];
    *node = (struct completion_node){.operands = ""};
    memcpy(node->path, path.at, path.len);
    return node;
}

/* Adds a node and those above it. Returns NULL if there is no room. */
static struct completion_node *add(struct completion_tree *tree, const char *path)
{
    struct completion_node *node = NULL;
    for (size_t end = 0; end == 0 || path[end - 1] != 0; end++) {
        end += strcspn(path + end, " ");
        node = node_at(tree, (struct weir_text){path, end});
        if (node == NULL) {
            return NULL;
        }
    }
    return node;
}

/* Returns the length of the words of a usage: "key get" of "key get LIMIT KEY...". */
static size_t words_of(const char *usage)
{
    size_t length = 0;
    for (size_t at = 0; usage[at] != 0; at += strspn(usage + at, " ")) {
        size_t end = at;
        while (islower((unsigned char)usage[end]) != 0 || usage[end] == '-') {
            end++;
        }
        if (end == at || (usage[end] != 0 && usage[end] != ' ')) {
            break;
        }
        length = end;
        at = end;
    }
    return length;
}

/* Adds the subcommands of a command. */
static bool add_words(struct completion_tree *tree, const struct cli_command *command)
{
    struct cli_word word;
    for (size_t i = 0; command->word != NULL && command->word(i, &word); i++) {
        char path[128];
        size_t length = words_of(word.usage);
        (void)snprintf(path, sizeof path, "%s %.*s", command->name, (int)length, word.usage);
        struct completion_node *node = add(tree, path);
        if (node == NULL) {
            return false;
        }
        node->help = word.help;
        node->command = command;
        node->options = word.options;
        node->operands = word.usage + length + strspn(word.usage + length, " ");
    }
    return true;
}

static bool add_command(struct completion_tree *tree, const struct cli_command *command)
{
    struct completion_node *node = add(tree, command->name);
    if (node == NULL) {
        return false;
    }
    node->help = command->summary;
    node->command = command;
    node->options = UINT64_MAX;
    node->operands = command->word != NULL ? "" : command->operands;
    return add_words(tree, command);
}

/* Adds "help" and the name of a command. */
static bool add_help(struct completion_tree *tree, const struct cli_command *command)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s %s", cli_help.name, command->name);
    struct completion_node *node = add(tree, path);
    if (node != NULL) {
        node->help = command->summary;
    }
    return node != NULL;
}

bool completion_make(struct completion_tree *tree)
{
    tree->count = 0;
    bool complete = add(tree, "") != NULL;
    for (size_t i = 0; complete && cli_commands[i] != NULL; i++) {
        complete = add_command(tree, cli_commands[i]);
    }
    for (size_t i = 0; complete && cli_commands[i] != NULL; i++) {
        complete = add_help(tree, cli_commands[i]);
    }
    return complete;
}

const struct completion_node *completion_below(const struct completion_tree *tree,
                                               const struct completion_node *node, size_t *i)
{
    size_t length = strlen(node->path);
    while (*i < tree->count) {
        const struct completion_node *other = &tree->nodes[(*i)++];
        const char *rest = other->path + length + (length > 0);
        if (other != node && strncmp(other->path, node->path, length) == 0 &&
            (length == 0 || other->path[length] == ' ') && strchr(rest, ' ') == NULL) {
            return other;
        }
    }
    return NULL;
}

const char *completion_word(const struct completion_node *node)
{
    const char *space = strrchr(node->path, ' ');
    return space != NULL ? space + 1 : node->path;
}

const char *completion_help(const struct completion_tree *tree, const struct completion_node *node,
                            char *text, size_t size)
{
    const struct completion_node *below;
    size_t n = 0;
    if (node->help != NULL) {
        return node->help;
    }
    for (size_t i = 0; n < size && (below = completion_below(tree, node, &i)) != NULL;) {
        n +=
            (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? ", " : "", completion_word(below));
    }
    return text;
}

const struct cli_option *completion_option(const struct completion_node *node, size_t *i)
{
    size_t count = node->command != NULL ? node->command->options_count : 0;
    while (*i < count) {
        size_t row = (*i)++;
        if ((node->options >> row & 1) != 0) {
            return &node->command->options[row];
        }
    }
    return NULL;
}

/* ---- values ---- */

struct completion_value completion_value(const struct cli_option *option, const char *text)
{
    struct completion_value value = {.option = option, .text = text + (text[0] == '[')};
    struct weir_text first = {value.text, strcspn(value.text, " ]")};
    bool words = text_is_made_of(first, "|_-");
    for (size_t i = 0; i < first.len; i++) {
        words &= isupper((unsigned char)first.at[i]) == 0;
    }
    value.list = strstr(text, ",...") != NULL;
    if (option != NULL && (option->choices != NULL || option->choice != NULL)) {
        value.kind = COMPLETION_CHOICE;
    } else if (text_starts(first, "FILE")) {
        value.kind = COMPLETION_FILE;
    } else if (text_is(first, "DIR")) {
        value.kind = COMPLETION_FOLDER;
    } else if (words && memchr(first.at, '|', first.len) != NULL) {
        value.kind = COMPLETION_CHOICE;
    }
    return value;
}

void completion_put_choices(const struct completion_value *value, const char *between)
{
    const struct cli_option *o = value->option;
    if (o == NULL || (o->choices == NULL && o->choice == NULL)) {
        struct weir_text rest = {value->text, strcspn(value->text, " ]")};
        for (const char *before = ""; rest.len > 0; before = between) {
            struct weir_text choice = text_cut(&rest, '|');
            (void)printf("%s%.*s", before, TEXT_ARGS(choice));
        }
        return;
    }
    const char *choice;
    for (size_t i = 0; (choice = o->choices != NULL ? o->choices[i] : o->choice(i)) != NULL; i++) {
        (void)printf("%s%s", i > 0 ? between : "", choice);
    }
}
