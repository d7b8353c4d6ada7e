/*
 * The script for bash: a table of what may follow which words, and a function that walks the
 * command line by it. An option is "--name", or "--name=" and its value: <file>, <folder>,
 * a|b, or a|b,... if it is a list. Bash splits "--name=value" into three words, unless the
 * user has changed COMP_WORDBREAKS.
 */
#include "cli/completion/completion.h"

static const char head[] =
    "# Completion for bash. Printed by 'weir completion bash'; do not edit.\n"
    "\n"
    "# Sets what may follow the words: words, options, operand.\n"
    "_weir_at() {\n"
    "    words='' options='' operand=''\n"
    "    case $1 in\n";

static const char tail[] =
    "    esac\n"
    "}\n"
    "\n"
    "# Completes $cur as a value: <file>, <folder>, a|b, or a|b,... for a list.\n"
    "_weir_value() {\n"
    "    local before=\n"
    "    case $1 in\n"
    "    '<file>')\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        ;;\n"
    "    '<folder>')\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "        ;;\n"
    "    *,...)\n"
    "        compopt -o nospace 2>/dev/null\n"
    "        [[ $cur == *,* ]] && before=${cur%,*},\n"
    "        set -- \"${1%,...}\"\n"
    "        mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"${1//|/ }\" -- \"${cur##*,}\")\n"
    "        ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"${1//|/ }\" -- \"$cur\") ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_weir() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} words options operand path= option= glued= word i\n"
    "    COMPREPLY=()\n"
    "    _weir_at ''\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ $word == '=' ]]; then\n"
    "            continue # between an option and its value\n"
    "        elif [[ $option ]]; then\n"
    "            option= # the word was its value\n"
    "        elif [[ $word == -* ]]; then\n"
    "            [[ \" $options \" == *\" $word=\"* ]] && option=$word\n"
    "        elif [[ \" $words \" == *\" $word \"* ]]; then\n"
    "            path=${path:+$path }$word\n"
    "            _weir_at \"$path\"\n"
    "        fi\n"
    "    done\n"
    "    if [[ $cur == '=' ]]; then\n"
    "        cur=\n"
    "    elif [[ $cur == --*=* ]]; then\n"
    "        option=${cur%%=*} glued=${cur%%=*}= cur=${cur#*=}\n"
    "    fi\n"
    "    if [[ $option ]]; then\n"
    "        for word in $options; do\n"
    "            [[ $word == \"$option=\"* ]] && _weir_value \"${word#*=}\"\n"
    "        done\n"
    "        [[ $glued ]] && COMPREPLY=(\"${COMPREPLY[@]/#/$glued}\")\n"
    "    elif [[ $cur == -* || -z $words$operand ]]; then\n"
    "        mapfile -t COMPREPLY < <(for word in $options; do compgen -W \"${word%%=*}\" -- "
    "\"$cur\"; done)\n"
    "    elif [[ $words ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
    "    else\n"
    "        _weir_value \"$operand\"\n"
    "    fi\n"
    "}\n"
    "complete -F _weir weir\n";

static void put_value(struct completion_value value)
{
    if (value.kind == COMPLETION_CHOICE) {
        completion_put_choices(&value, "|");
        (void)fputs(value.list ? ",..." : "", stdout);
    } else if (value.kind != COMPLETION_OTHER) {
        (void)fputs(value.kind == COMPLETION_FILE ? "<file>" : "<folder>", stdout);
    }
}

static void put_words(const struct completion_tree *tree, const struct completion_node *node)
{
    const struct completion_node *below;
    const char *before = "        words='";
    for (size_t i = 0; (below = completion_below(tree, node, &i)) != NULL; before = " ") {
        (void)printf("%s%s", before, completion_word(below));
    }
    (void)fputs(before[1] == 0 ? "'\n" : "", stdout);
}

static void put_options(const struct completion_node *node)
{
    const struct cli_option *option;
    const char *before = "        options='";
    for (size_t i = 0; (option = completion_option(node, &i)) != NULL; before = " ") {
        (void)printf("%s%s%s", before, option->name, option->argument != NULL ? "=" : "");
        if (option->argument != NULL) {
            put_value(completion_value(option, option->argument));
        }
    }
    (void)fputs(before[1] == 0 ? "'\n" : "", stdout);
}

static void put_node(const struct completion_tree *tree, const struct completion_node *node)
{
    struct completion_value operand = completion_value(NULL, node->operands);
    (void)printf("    '%s')\n", node->path);
    put_words(tree, node);
    put_options(node);
    if (operand.kind != COMPLETION_OTHER) {
        (void)fputs("        operand='", stdout);
        put_value(operand);
        (void)fputs("'\n", stdout);
    }
    (void)fputs("        ;;\n", stdout);
}

void completion_bash(const struct completion_tree *tree)
{
    (void)fputs(head, stdout);
    for (size_t i = 0; i < tree->count; i++) {
        put_node(tree, &tree->nodes[i]);
    }
    (void)fputs(tail, stdout);
}
