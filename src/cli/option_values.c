/* Reads the values of options. Each row of options names one of these functions, or its own. */
#include "cli/cli.h"
#include "rules/value/quantity.h"

int cli_read_text(const struct cli_value *value, void *to)
{
    *(const char **)to = value->text;
    return CLI_OK;
}

int cli_read_switch(const struct cli_value *value, void *to)
{
    /* In pairs: off, on. A flag has the value "". */
    static const char *const words[] = {"off", "on",    "0",    "1",   "no",
                                        "yes", "false", "true", "off", ""};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], value->text) == 0) {
            *(bool *)to = i % 2 == 1;
            return CLI_OK;
        }
    }
    return cli_expected(value, "on or off");
}

static bool is_within(const struct cli_option *o, uint64_t number)
{
    return number >= o->least && (o->most == 0 || number <= o->most);
}

/* Prints the error of a reader of rules/value/quantity.h, which says what it expected. */
static int complain(const struct cli_value *value, const struct weir_error *error)
{
    return cli_complain(value->command, "%s: %s", value->from, error->text);
}

int cli_read_count(const struct cli_value *value, void *to)
{
    const struct cli_option *o = value->option;
    struct weir_error error;
    char most[32];
    uint64_t number;
    if (count_parse(text_of(value->text), &number, &error) != 0) {
        return complain(value, &error);
    }
    if (!is_within(o, number)) {
        (void)snprintf(most, sizeof most, "to %llu", (unsigned long long)o->most);
        return cli_expected(value, "a whole number from %llu %s", (unsigned long long)o->least,
                            o->most == 0 ? "up" : most);
    }
    *(uint64_t *)to = number;
    return CLI_OK;
}

int cli_read_unsigned(const struct cli_value *value, void *to)
{
    uint64_t number = *(unsigned *)to;
    int code = cli_read_count(value, &number);
    *(unsigned *)to = (unsigned)number;
    return code;
}

int cli_read_duration(const struct cli_value *value, void *to)
{
    const struct cli_option *o = value->option;
    struct weir_error error;
    char least[QUANTITY_MAX];
    char most[QUANTITY_MAX];
    uint64_t ns;
    if (duration_parse(text_of(value->text), &ns, &error) != 0) {
        return complain(value, &error);
    }
    if (!is_within(o, ns)) {
        return cli_expected(value, "a duration from %s to %s", duration_print(o->least, least),
                            duration_print(o->most, most));
    }
    *(uint64_t *)to = ns;
    return CLI_OK;
}

int cli_read_rate(const struct cli_value *value, void *to)
{
    struct weir_error error;
    return rate_parse(text_of(value->text), 0, to, &error) == 0 ? CLI_OK : complain(value, &error);
}

int cli_read_choice(const struct cli_value *value, void *to)
{
    const char *const *choices = value->option->choices;
    char expected[128] = "";
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], value->text) == 0) {
            *(int *)to = i;
            return CLI_OK;
        }
        size_t n = strlen(expected);
        (void)snprintf(expected + n, sizeof expected - n, "%s%s",
                       i == 0                   ? ""
                       : choices[i + 1] == NULL ? " or "
                                                : ", ",
                       choices[i]);
    }
    return cli_expected(value, "%s", expected);
}
