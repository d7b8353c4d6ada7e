/*
 * EVAL, for clients that call redis-cell by a script. There is no Lua here: exactly one script is
 * understood, a call of CL.THROTTLE whose reply is returned:
 *
 *     return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], 30, "60")
 *
 * Arguments are KEYS[n], ARGV[n], strings without escapes, and whole numbers. Spaces may be
 * anywhere between the words, and a semicolon at the end.
 */
#include "server/resp/resp_commands.h"

#define SCRIPT "return redis.call('CL.THROTTLE', ...) with literals, KEYS[n] or ARGV[n]"
#define ARGS_MAX 8    /* more than CL.THROTTLE takes: their number is checked later */
#define DIGITS_MAX 15 /* of a number in the script, which Lua would print as it is written */

/* A script that is being read, and the command that it calls. */
struct eval_script {
    struct weir_text rest;
    const struct weir_text *keys;
    unsigned keys_count;
    const struct weir_text *args;
    unsigned args_count;
    unsigned argc;
    struct weir_text argv[ARGS_MAX];
};

/* ---- words ---- */

static bool has_blank(const struct eval_script *s)
{
    return s->rest.len > 0 && s->rest.at[0] != 0 && strchr(" \t\r\n\f\v", s->rest.at[0]) != NULL;
}

static void skip_blanks(struct eval_script *s)
{
    while (has_blank(s)) {
        s->rest = text_after(s->rest, 1);
    }
}

/* Takes the word, and blanks before it, if it comes next. */
static bool take(struct eval_script *s, const char *word)
{
    skip_blanks(s);
    if (!text_starts(s->rest, word)) {
        return false;
    }
    s->rest = text_after(s->rest, strlen(word));
    return true;
}

/* Takes the digits that come next, without a leading zero. False: there are none, or too many. */
static bool take_digits(struct eval_script *s, struct weir_text *digits)
{
    size_t n = 0;
    skip_blanks(s);
    while (n < s->rest.len && s->rest.at[n] >= '0' && s->rest.at[n] <= '9') {
        n++;
    }
    *digits = (struct weir_text){s->rest.at, n};
    if (n == 0 || n > DIGITS_MAX || (n > 1 && digits->at[0] == '0')) {
        return false;
    }
    s->rest = text_after(s->rest, n);
    return true;
}

/* Takes a string in quotes of either kind. */
static bool take_string(struct eval_script *s, struct weir_text *value)
{
    skip_blanks(s);
    if (s->rest.len == 0 || (s->rest.at[0] != '\'' && s->rest.at[0] != '"')) {
        return false;
    }
    char quote = s->rest.at[0];
    struct weir_text inside = text_after(s->rest, 1);
    *value = text_before(inside, quote);
    if (value->len == inside.len || text_before(*value, '\\').len < value->len ||
        text_before(*value, '\n').len < value->len) {
        return false;
    }
    s->rest = text_after(inside, value->len + 1);
    return true;
}

/* ---- arguments ---- */

/* Takes "[n]" and finds the nth value. */
static bool take_element(struct eval_script *s, const struct weir_text *values, unsigned count,
                         struct weir_text *value)
{
    struct weir_text digits;
    uint64_t n;
    if (!take(s, "[") || !take_digits(s, &digits) || !resp_to_u64(digits, &n) || n < 1 ||
        n > count || !take(s, "]")) {
        return false;
    }
    *value = values[n - 1];
    return true;
}

static bool take_value(struct eval_script *s, struct weir_text *value)
{
    return take(s, "KEYS")   ? take_element(s, s->keys, s->keys_count, value)
           : take(s, "ARGV") ? take_element(s, s->args, s->args_count, value)
                             : take_string(s, value) || take_digits(s, value);
}

/* Reads the script into s->argv. False: it is another one, which s->rest shows from where on. */
static bool read_script(struct eval_script *s)
{
    struct weir_text name;
    if (!take(s, "return") || !has_blank(s) || !take(s, "redis") || !take(s, ".") ||
        !take(s, "call") || !take(s, "(") || !take_string(s, &name) ||
        !text_is_word(name, "CL.THROTTLE")) {
        return false;
    }
    s->argv[s->argc++] = name;
    while (take(s, ",")) {
        struct weir_text value;
        if (!take_value(s, &value)) {
            return false;
        }
        s->argv[s->argc < ARGS_MAX ? s->argc++ : ARGS_MAX - 1] = value;
    }
    if (!take(s, ")")) {
        return false;
    }
    (void)take(s, ";");
    skip_blanks(s);
    return s->rest.len == 0;
}

/* ---- the command ---- */

/* Reads "script numkeys key ... arg ...". Returns false after an error reply. */
static bool read_eval(struct command *c, struct eval_script *s)
{
    int64_t n;
    if (!resp_to_i64(c->argv[2], &n)) {
        resp_put_error(c->out, TEXT("ERR value is not an integer or out of range"));
        return false;
    }
    if (n < 0 || n > c->argc - 3) {
        resp_put_error(c->out, n < 0 ? TEXT("ERR Number of keys can't be negative")
                                     : TEXT("ERR Number of keys can't be greater than number of "
                                            "args"));
        return false;
    }
    *s = (struct eval_script){.rest = c->argv[1],
                              .keys = c->argv + 3,
                              .keys_count = (unsigned)n,
                              .args = c->argv + 3 + n,
                              .args_count = c->argc - 3 - (unsigned)n};
    if (!read_script(s)) {
        resp_put_errorf(c->out, "ERR EVAL: found '%.*s'%s, expected " SCRIPT, TEXT_CUT(s->rest, 40),
                        s->rest.len > 40 ? "..." : "");
        return false;
    }
    return true;
}

void resp_run_eval(struct command *c)
{
    struct eval_script s;
    if (!read_eval(c, &s)) {
        return;
    }
    const struct command_row *row = resp_find_command(s.argv[0]);
    struct command call = *c; /* MULTI queues *c as it is */
    call.argc = s.argc;
    call.argv = s.argv;
    if (c->checking) {
        (void)resp_check(&call, row);
    } else {
        resp_run(&call, row);
        c->result = call.result;
    }
}

void resp_run_evalsha(struct command *c)
{
    resp_put_error(c->out, TEXT("NOSCRIPT No matching script. Please use EVAL."));
}
