/* Arguments by the rows of a command: what is found, and what is said of the rest. */
#include "cli/cli.h"
#include "rules/value/quantity.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int run(const struct cli_given *with, void *to)
{
    return with->count + (to != NULL);
}

static struct settings {
    struct rate rate;
    uint64_t burst;
    bool json;
    unsigned threads;
    uint64_t wait_ns;
    int form;
    const char *name;
} settings;

#define TO(member) .to = offsetof(struct settings, member)

static const char *const forms[] = {"text", "html", "json", NULL};

enum { RATE, BURST, JSON };
static const struct cli_option options[] = {
    {"--rate", "N/PERIOD", "how much", cli_read_rate, TO(rate)},
    {"--burst", "N", "how much at once", cli_read_count, TO(burst), 1},
    {"--json", NULL, "as JSON", cli_read_switch, TO(json)},
};
static const struct cli_option more[] = {
    {"--threads", "N", "threads", cli_read_unsigned, TO(threads), 1, 64},
    {"--wait", "DURATION", "wait", cli_read_duration, TO(wait_ns), WEIR_MILLISECOND, WEIR_HOUR},
    {"--form", "FORM", "form", cli_read_choice, TO(form), .choices = forms},
    {"--name", "NAME", "name", cli_read_text, TO(name)},
};
static const struct cli_command command =
    CLI_COMMAND("test this", "[FILE]", "try things", options, settings, run);
static const struct cli_command values =
    CLI_COMMAND("values", "WORD...", "read", more, settings, run);
static const struct cli_command plain = {"plain", "", "do nothing", .run = run};

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

static const struct cli_command *of;
static char **all;
static int read_code;
static struct cli_given given;

static void read_all(void)
{
    int argc = 0;
    while (all[argc] != NULL) {
        argc++;
    }
    settings = (struct settings){.threads = 3};
    read_code = cli_read(of, argc, all, &settings, &given);
}

/* Reads the arguments of a command, and compares the exit code and the complaint. */
static void expect_read(const struct cli_command *c, char **argv, int code, const char *complaint)
{
    of = c;
    all = argv;
    char *said = written(STDERR_FILENO, read_all);
    assert_string_equal(said, complaint);
    assert_int_equal(read_code, code);
    free(said);
}

#define READ(c, code, complaint, ...)                                                              \
    expect_read(&(c), (char *[]){"this", __VA_ARGS__, NULL}, code, complaint)

static void values_stand_behind_an_option_or_an_equals_sign(void **state)
{
    READ(values, CLI_END, "", "--threads", "5", "--name=a=b", "--form", "json", "x");
    assert_int_equal(settings.threads, 5);
    assert_string_equal(settings.name, "a=b");
    assert_int_equal(settings.form, 2);
}

static void a_value_may_be_empty_or_look_like_an_option(void **state)
{
    READ(values, CLI_END, "", "--name=", "x");
    assert_string_equal(settings.name, "");
    READ(values, CLI_END, "", "--name", "--threads", "x");
    assert_string_equal(settings.name, "--threads");
    assert_int_equal(settings.threads, 3);
}

static void what_is_no_option_is_an_operand_also_a_single_dash_and_nothing(void **state)
{
    READ(values, CLI_END, "", "file.yaml", "-", "", "--threads", "1", "more");
    assert_int_equal(given.count, 4);
    assert_string_equal(given.operands[0], "file.yaml");
    assert_string_equal(given.operands[1], "-");
    assert_string_equal(given.operands[2], "");
    assert_string_equal(given.operands[3], "more");
}

static void behind_two_dashes_everything_is_an_operand(void **state)
{
    READ(values, CLI_END, "", "--threads=1", "--", "-x", "--threads", "--");
    assert_int_equal(given.count, 3);
    assert_string_equal(given.operands[0], "-x");
    assert_string_equal(given.operands[1], "--threads");
    assert_string_equal(given.operands[2], "--");
}

static void words_for_another_program_are_not_read(void **state)
{
    static const struct cli_command verbatim = {"verbatim", "[WORD...]", "run", .run = run,
                                                .verbatim = true};
    READ(verbatim, CLI_END, "", "--help", "--", "-x");
    assert_int_equal(given.count, 3);
    assert_string_equal(given.operands[0], "--help");
    assert_string_equal(given.operands[1], "--");
    assert_string_equal(given.operands[2], "-x");
}

static void no_arguments_are_the_end(void **state)
{
    expect_read(&command, (char *[]){"this", NULL}, CLI_END, "");
    assert_int_equal(given.options, 0);
    assert_int_equal(given.count, 0);
}

static void a_misspelt_option_is_answered_with_a_suggestion(void **state)
{
    static char *const words[] = {"--rat", "--jsonn=1", "-json", "--bursts"};
    static const char *const said[] = {
        "'--rat'; did you mean '--rate'", "'--jsonn'; did you mean '--json'",
        "'-json'; did you mean '--json'", "'--bursts'; did you mean '--burst'"};
    for (size_t i = 0; i < 4; i++) {
        char complaint[128];
        (void)snprintf(complaint, sizeof complaint, "weir test this: unknown option %s?\n",
                       said[i]);
        READ(command, CLI_USAGE, complaint, words[i]);
    }
}

static void another_option_is_answered_with_where_they_are_listed(void **state)
{
    READ(command, CLI_USAGE,
         "weir test this: unknown option '--completely-different'; 'weir test this --help' lists "
         "them\n",
         "--completely-different");
    READ(command, CLI_USAGE,
         "weir test this: unknown option '-x'; 'weir test this --help' lists them\n", "-x");
    READ(plain, CLI_USAGE, "weir plain: unknown option '--json'; 'weir plain --help' lists them\n",
         "--json");
}

static void a_missing_value_and_one_too_many_are_told(void **state)
{
    READ(command, CLI_USAGE, "weir test this: --json: found the value 'yes', expected none\n",
         "--json=yes");
    READ(command, CLI_USAGE, "weir test this: --rate: found no value, expected N/PERIOD\n",
         "--rate");
}

static void expect_help(const struct cli_command *c, char *spelling, const char *expected)
{
    of = c;
    all = (char *[]){"this", spelling, NULL};
    char *help = written(STDOUT_FILENO, read_all);
    assert_string_equal(help, expected);
    assert_int_equal(read_code, CLI_OK);
    free(help);
}

static void help_lists_every_row(void **state)
{
    static char *const spellings[] = {"--help", "-h"};
    for (size_t i = 0; i < 2; i++) {
        expect_help(&command, spellings[i],
                    "usage: weir test this [options] [FILE]\n\ntry things.\n\n"
                    "  --rate N/PERIOD            how much\n"
                    "  --burst N                  how much at once\n"
                    "  --json                     as JSON\n");
    }
    expect_help(&plain, "--help", "usage: weir plain\n\ndo nothing.\n");
}

static void every_value_is_read_into_its_member(void **state)
{
    READ(command, CLI_END, "", "--rate", "5/min", "a.yaml", "--burst=1k", "--json");
    assert_true(settings.rate.count == 5 && settings.rate.period_ns == WEIR_MINUTE);
    assert_true(settings.burst == 1000 && settings.json);
    assert_int_equal(given.options, 1u << RATE | 1u << BURST | 1u << JSON);
    assert_int_equal(given.count, 1);
    assert_string_equal(given.operands[0], "a.yaml");
    READ(values, CLI_END, "", "one", "--threads=64", "two", "--wait", "1ms", "--form", "html",
         "--name=", "--", "--three");
    assert_true(settings.threads == 64 && settings.wait_ns == WEIR_MILLISECOND);
    assert_true(settings.form == 1 && settings.name[0] == 0);
    assert_int_equal(given.count, 3);
    assert_string_equal(given.operands[0], "one");
    assert_string_equal(given.operands[1], "two");
    assert_string_equal(given.operands[2], "--three");
}

static void a_value_that_does_not_fit_is_told_with_what_was_expected(void **state)
{
    READ(values, CLI_USAGE,
         "weir values: --threads: found '65', expected a whole number from 1 to 64\n", "--threads",
         "65");
    assert_int_equal(settings.threads, 3);
    READ(command, CLI_USAGE,
         "weir test this: --burst: found '0', expected a whole number from 1 up\n", "--burst", "0");
    READ(values, CLI_USAGE, "weir values: --wait: found '2h', expected a duration from 1ms to 1h\n",
         "--wait", "2h");
    READ(values, CLI_USAGE, "weir values: --form: found 'pdf', expected text, html or json\n",
         "--form", "pdf");
    READ(command, CLI_USAGE,
         "weir test this: --rate: found '5', expected a count per period such as 5/min; a slash is "
         "missing\n",
         "--rate", "5");
}

static void operands_are_counted_as_the_row_says(void **state)
{
    READ(command, CLI_USAGE, "weir test this: found 'a' and 'b', expected one FILE\n", "a", "b");
    READ(values, CLI_USAGE,
         "weir values: found nothing, expected WORD...; 'weir values --help' describes it\n",
         "--threads", "1");
    READ(plain, CLI_USAGE, "weir plain: found 'x', expected options only\n", "x");
    expect_read(&command, (char *[]){"this", NULL}, CLI_END, "");
}

static void a_variable_says_on_or_off(void **state)
{
    static const char *const on[] = {"on", "1", "yes", "true", ""};
    static const char *const off[] = {"off", "0", "no", "false"};
    struct cli_value value = {&command, &options[JSON], "WEIR_JSON", ""};
    for (size_t i = 0; i < 5; i++) {
        settings.json = false;
        value.text = on[i];
        assert_int_equal(cli_read_value(&value, &settings), CLI_OK);
        assert_true(settings.json);
    }
    for (size_t i = 0; i < 4; i++) {
        settings.json = true;
        value.text = off[i];
        assert_int_equal(cli_read_value(&value, &settings), CLI_OK);
        assert_false(settings.json);
    }
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
        cmocka_unit_test(words_for_another_program_are_not_read),
        cmocka_unit_test(no_arguments_are_the_end),
        cmocka_unit_test(a_misspelt_option_is_answered_with_a_suggestion),
        cmocka_unit_test(another_option_is_answered_with_where_they_are_listed),
        cmocka_unit_test(a_missing_value_and_one_too_many_are_told),
        cmocka_unit_test(help_lists_every_row),
        cmocka_unit_test(every_value_is_read_into_its_member),
        cmocka_unit_test(a_value_that_does_not_fit_is_told_with_what_was_expected),
        cmocka_unit_test(operands_are_counted_as_the_row_says),
        cmocka_unit_test(a_variable_says_on_or_off),
        cmocka_unit_test(a_complaint_names_its_command),
        cmocka_unit_test(messages_about_rules_say_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
