/* Arguments by the rows of a command: what is found, and what is said of the rest. */
#include "cli/cli.h"
#include "support/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int run(int argc, char **argv)
{
    return argc + (argv != NULL);
}

enum { RATE, BURST, JSON };
static const struct cli_option options[] = {
    {"--rate", "N/PERIOD", "how much"},
    {"--burst", "N", "how much at once"},
    {"--json", NULL, "as JSON"},
};
static const struct cli_command command =
    CLI_COMMAND("test this", "[FILE]", "try things", options, run);
static const struct cli_command plain = CLI_PLAIN_COMMAND("plain", "", "do nothing", run);

static struct cli_args args;

#define ARGS(...) start(&command, (char *[]){"this", __VA_ARGS__, NULL})

static void start(const struct cli_command *of, char **argv)
{
    int argc = 0;
    static char *copy[16];
    for (; argv[argc] != NULL; argc++) {
        copy[argc] = argv[argc];
    }
    cli_args_init(&args, of, argc, copy);
}

static void expect(int row, const char *value)
{
    assert_int_equal(cli_next(&args), row);
    if (value != NULL) {
        assert_non_null(args.value);
        assert_string_equal(args.value, value);
    }
}

/* What fn() writes to a stream, to be freed. */
static char *written(int fd, void (*fn)(void))
{
    char name[] = "/tmp/weir-options-XXXXXX";
    int file = mkstemp(name);
    int before = dup(fd);
    char *text = calloc(1, 4096);
    assert_true(file >= 0 && before >= 0 && text != NULL);
    (void)fflush(NULL);
    assert_true(dup2(file, fd) == fd);
    fn();
    (void)fflush(NULL);
    assert_true(dup2(before, fd) == fd);
    assert_true(pread(file, text, 4095, 0) >= 0);
    (void)close(file);
    (void)close(before);
    (void)unlink(name);
    return text;
}

static void expect_bad(void)
{
    assert_int_equal(cli_next(&args), CLI_BAD);
}

static void expect_help(void)
{
    assert_int_equal(cli_next(&args), CLI_HELP);
}

static void expect_complaint(const char *complaint)
{
    char *said = written(STDERR_FILENO, expect_bad);
    assert_string_equal(said, complaint);
    free(said);
}

static void values_stand_behind_an_option_or_an_equals_sign(void **state)
{
    ARGS("--rate", "5/min", "--burst=7", "--json");
    expect(RATE, "5/min");
    expect(BURST, "7");
    expect(JSON, NULL);
    assert_null(args.value);
    expect(CLI_END, NULL);
    expect(CLI_END, NULL);
}

static void a_value_may_be_empty_or_look_like_an_option(void **state)
{
    ARGS("--rate=", "--burst", "--json", "--rate=a=b");
    expect(RATE, "");
    expect(BURST, "--json");
    expect(RATE, "a=b");
    expect(CLI_END, NULL);
}

static void what_is_no_option_is_an_operand_also_a_single_dash_and_nothing(void **state)
{
    ARGS("file.yaml", "-", "", "--json", "more");
    expect(CLI_OPERAND, "file.yaml");
    expect(CLI_OPERAND, "-");
    expect(CLI_OPERAND, "");
    expect(JSON, NULL);
    expect(CLI_OPERAND, "more");
    expect(CLI_END, NULL);
}

static void behind_two_dashes_everything_is_an_operand(void **state)
{
    ARGS("--json", "--", "-x", "--json", "--");
    expect(JSON, NULL);
    expect(CLI_OPERAND, "-x");
    expect(CLI_OPERAND, "--json");
    expect(CLI_OPERAND, "--");
    expect(CLI_END, NULL);
}

static void no_arguments_are_the_end(void **state)
{
    start(&command, (char *[]){"this", NULL});
    expect(CLI_END, NULL);
}

static void a_misspelt_option_is_answered_with_a_suggestion(void **state)
{
    ARGS("--rat", "--jsonn=1", "-json", "--bursts");
    expect_complaint("weir test this: unknown option '--rat'; did you mean '--rate'?\n");
    expect_complaint("weir test this: unknown option '--jsonn'; did you mean '--json'?\n");
    expect_complaint("weir test this: unknown option '-json'; did you mean '--json'?\n");
    expect_complaint("weir test this: unknown option '--bursts'; did you mean '--burst'?\n");
}

static void another_option_is_answered_with_where_they_are_listed(void **state)
{
    ARGS("--completely-different", "-x");
    expect_complaint("weir test this: unknown option '--completely-different'; "
                     "'weir test this --help' lists them\n");
    expect_complaint("weir test this: unknown option '-x'; 'weir test this --help' lists them\n");
    start(&plain, (char *[]){"plain", "--json", NULL});
    expect_complaint("weir plain: unknown option '--json'; 'weir plain --help' lists them\n");
}

static void a_missing_value_and_one_too_many_are_told(void **state)
{
    ARGS("--json=yes", "--rate");
    expect_complaint("weir test this: --json takes no value, found 'yes'\n");
    expect_complaint("weir test this: --rate needs a value: N/PERIOD\n");
}

static void help_lists_every_row(void **state)
{
    static char *const spellings[] = {"--help", "-h"};
    for (size_t i = 0; i < 2; i++) {
        ARGS(spellings[i]);
        char *help = written(STDOUT_FILENO, expect_help);
        assert_string_equal(help, "usage: weir test this [options] [FILE]\n\ntry things.\n\n"
                                  "  --rate N/PERIOD            how much\n"
                                  "  --burst N                  how much at once\n"
                                  "  --json                     as JSON\n");
        free(help);
    }
    start(&plain, (char *[]){"plain", "--help", NULL});
    char *help = written(STDOUT_FILENO, expect_help);
    assert_string_equal(help, "usage: weir plain\n\ndo nothing.\n");
    free(help);
}

static void complain(void)
{
    assert_int_equal(cli_complain(&command, "found %d", 5), CLI_USAGE);
}

static void a_complaint_names_its_command(void **state)
{
    char *said = written(STDERR_FILENO, complain);
    assert_string_equal(said, "weir test this: found 5\n");
    free(said);
}

static void tell(void)
{
    struct weir_rules_message message = {WEIR_RULES_ERROR, "a.yaml", 3, 7, "found x, expected y"};
    cli_tell_rules(NULL, &message);
    message.severity = WEIR_RULES_WARNING;
    cli_tell_rules(NULL, &message);
    message.line = 0;
    cli_tell_rules(NULL, &message);
}

static void messages_about_rules_say_where(void **state)
{
    char *said = written(STDERR_FILENO, tell);
    assert_string_equal(said, "a.yaml:3:7: found x, expected y\n"
                              "a.yaml:3:7: warning: found x, expected y\n"
                              "a.yaml: warning: found x, expected y\n");
    free(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stand_behind_an_option_or_an_equals_sign),
        cmocka_unit_test(a_value_may_be_empty_or_look_like_an_option),
        cmocka_unit_test(what_is_no_option_is_an_operand_also_a_single_dash_and_nothing),
        cmocka_unit_test(behind_two_dashes_everything_is_an_operand),
        cmocka_unit_test(no_arguments_are_the_end),
        cmocka_unit_test(a_misspelt_option_is_answered_with_a_suggestion),
        cmocka_unit_test(another_option_is_answered_with_where_they_are_listed),
        cmocka_unit_test(a_missing_value_and_one_too_many_are_told),
        cmocka_unit_test(help_lists_every_row),
        cmocka_unit_test(a_complaint_names_its_command),
        cmocka_unit_test(messages_about_rules_say_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
