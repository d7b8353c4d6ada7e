/* weir ctl key ...: shows and changes one key of one limit. */
#include "cli/ctl/ctl.h"
#include "rules/value/quantity.h"

/* ---- showing ---- */

static void put_parameter(struct buffer *target, const char *name, const char *value)
{
    buffer_put(target, text_of(name));
    http_put_encoded(target, text_of(value));
}

static void put_target(struct buffer *target, const struct ctl *ctl)
{
    put_parameter(target, "/v1/keys?limit=", ctl->operands[0]);
    for (int i = 1; i < ctl->count; i++) {
        put_parameter(target, "&key=", ctl->operands[i]);
    }
    if (ctl->tier != NULL) {
        put_parameter(target, "&tier=", ctl->tier);
    }
    buffer_put_char(target, 0);
}

/*
 * Prints a duration. From 10 s on it is rounded up to whole seconds, because milliseconds do not
 * matter there.
 */
static void print_duration(const char *what, uint64_t ms)
{
    char text[QUANTITY_MAX];
    uint64_t shown = ms < 10000 ? ms : (ms / 1000 + (ms % 1000 != 0)) * 1000;
    (void)printf("%-10s %s\n", what,
                 shown < UINT64_MAX / WEIR_MILLISECOND
                     ? duration_print(shown * WEIR_MILLISECOND, text)
                     : "never");
}

static void print_text(const char *what, const char *text)
{
    struct buffer safe;
    buffer_init(&safe, CTL_TARGET_MAX);
    safe_put(&safe, text_of(text), false);
    (void)printf("%-10s %.*s\n", what, TEXT_ARGS(buffer_text(&safe)));
    buffer_finish(&safe);
}

static void print_flags(const json_t *flags)
{
    struct buffer line;
    buffer_init(&line, CTL_TARGET_MAX);
    for (size_t i = 0; i < json_array_size(flags); i++) {
        const char *flag = json_string_value(json_array_get(flags, i));
        buffer_put(&line, TEXT(" "));
        safe_put(&line, text_of(flag != NULL ? flag : "?"), false);
    }
    if (buffer_len(&line) > 0) {
        (void)printf("%-10s%.*s\n", "flags", TEXT_ARGS(buffer_text(&line)));
    }
    buffer_finish(&line);
}

static void print_key(const json_t *said)
{
    const json_t *retry = json_object_get(said, "retry_after_ms");
    json_int_t blocked = json_integer_value(json_object_get(said, "blocked_ms"));
    print_text("verdict", ctl_text(said, "verdict"));
    if (json_integer_value(json_object_get(said, "remaining")) >= 0) { /* an adhoc limit has none */
        (void)printf("%-10s %llu of %llu\n", "remaining",
                     (unsigned long long)ctl_count(said, "remaining"),
                     (unsigned long long)ctl_count(said, "quota"));
    }
    if (json_integer_value(retry) > 0) {
        print_duration("retry in", (uint64_t)json_integer_value(retry));
    }
    print_duration("reset in", ctl_count(said, "reset_after_ms"));
    if (blocked > 0) {
        print_duration("blocked", (uint64_t)blocked);
    } else if (blocked < 0) {
        (void)printf("%-10s %s\n", "blocked", "without end");
    }
    print_flags(json_object_get(said, "flags"));
}

static int run_get(struct ctl *ctl)
{
    struct buffer target;
    json_t *said = NULL;
    int code = CLI_USAGE;
    buffer_init(&target, CTL_TARGET_MAX);
    put_target(&target, ctl);
    if (target.full) {
        (void)cli_complain(&cli_ctl, "the key is too long");
    } else {
        code = admin_get_json(&ctl->client, buffer_text(&target).at, &said);
    }
    if (code == CLI_OK && ctl->json) {
        ctl_print_json(said);
    } else if (code == CLI_OK) {
        print_key(said);
    }
    json_decref(said);
    buffer_finish(&target);
    return code;
}

/* ---- changing ---- */

/* Returns the value as a JSON string, which must be UTF-8; NULL after a message. */
static json_t *text_or_complain(const char *value, const char *what)
{
    json_t *text = json_string(value);
    if (text == NULL) {
        (void)cli_complain(&cli_ctl, "the %s is not UTF-8", what);
    }
    return text;
}

static json_t *key_of(const struct ctl *ctl)
{
    json_t *key = json_array();
    for (int i = 1; i < ctl->count; i++) {
        json_t *part = text_or_complain(ctl->operands[i], "key");
        if (part == NULL || json_array_append_new(key, part) != 0) {
            json_decref(key);
            return NULL;
        }
    }
    return key;
}

/* Returns {"limit":...,"key":[...],"tier":...}; NULL after a message. */
static json_t *question_of(const struct ctl *ctl)
{
    json_t *limit = text_or_complain(ctl->operands[0], "limit");
    json_t *key = limit != NULL ? key_of(ctl) : NULL;
    json_t *tier = key != NULL && ctl->tier != NULL ? text_or_complain(ctl->tier, "tier") : NULL;
    json_t *body = json_object();
    bool good = limit != NULL && key != NULL && (ctl->tier == NULL || tier != NULL);
    good = json_object_set_new(body, "limit", limit) == 0 && good;
    good = json_object_set_new(body, "key", key) == 0 && good;
    if (tier != NULL) {
        good = json_object_set_new(body, "tier", tier) == 0 && good;
    }
    if (!good) {
        json_decref(body);
        return NULL;
    }
    return body;
}

/* Prints a line such as "search alice: not blocked". */
static void say_done(const struct ctl *ctl, const char *done)
{
    struct buffer name;
    buffer_init(&name, CTL_TARGET_MAX);
    for (int i = 0; i < ctl->count; i++) {
        buffer_put(&name, i > 0 ? TEXT(" ") : TEXT(""));
        buffer_put(&name, text_of(ctl->operands[i]));
    }
    ctl_print_line(buffer_text(&name), done);
    buffer_finish(&name);
}

/* Sends {"limit","key",...} and prints what was done. */
static int change(struct ctl *ctl, const char *target, json_t *body, const char *done)
{
    json_t *said = NULL;
    if (body == NULL) {
        return CLI_USAGE;
    }
    int code = ctl_send_json(ctl, "POST", target, body, &said);
    if (code == CLI_OK && ctl->json) {
        ctl_print_json(said);
    } else if (code == CLI_OK) {
        say_done(ctl, done);
    }
    json_decref(said);
    return code;
}

static int run_reset(struct ctl *ctl)
{
    return change(ctl, "/v1/keys/reset", question_of(ctl), "as fresh as if it had never come");
}

static int run_unblock(struct ctl *ctl)
{
    return change(ctl, "/v1/keys/unblock", question_of(ctl), "not blocked");
}

/*
 * Reads --for into *ms; 0: forever, which is sent without for_ms. Returns CLI_OK, or CLI_USAGE
 * after a message.
 */
static int read_until(const struct ctl *ctl, uint64_t *ms)
{
    struct weir_error error = {0};
    uint64_t ns = 0;
    *ms = 0;
    if (ctl->until == NULL || strcmp(ctl->until, "forever") == 0) {
        return CLI_OK;
    }
    if (duration_parse(text_of(ctl->until), &ns, &error) != 0) {
        return cli_complain(&cli_ctl, "--for: %s", error.text);
    }
    *ms = ns / WEIR_MILLISECOND + (ns % WEIR_MILLISECOND != 0);
    return *ms > 0 ? CLI_OK
                   : cli_complain(&cli_ctl, "--for is '%s', expected a duration above 0 or forever",
                                  ctl->until);
}

static int run_block(struct ctl *ctl)
{
    char done[QUANTITY_MAX + 32] = "blocked until it is unblocked";
    char text[QUANTITY_MAX];
    uint64_t ms;
    int code = read_until(ctl, &ms);
    json_t *body = code == CLI_OK ? question_of(ctl) : NULL;
    if (body != NULL && ms > 0) {
        (void)snprintf(done, sizeof done, "blocked for %s",
                       duration_print(ms * WEIR_MILLISECOND, text));
        (void)json_object_set_new(body, "for_ms", json_integer((json_int_t)ms));
    }
    return code == CLI_OK ? change(ctl, "/v1/keys/block", body, done) : code;
}

static int change_units(struct ctl *ctl, const char *target, const char *what)
{
    struct weir_error error = {0};
    char done[96];
    uint64_t units = 1;
    if (ctl->units != NULL && count_parse(text_of(ctl->units), &units, &error) != 0) {
        return cli_complain(&cli_ctl, "--units: %s", error.text);
    }
    if (units == 0 || units > INT64_MAX) {
        return cli_complain(&cli_ctl, "--units is '%s', expected at least 1", ctl->units);
    }
    json_t *body = question_of(ctl);
    if (body != NULL) {
        (void)json_object_set_new(body, "units", json_integer((json_int_t)units));
    }
    (void)snprintf(done, sizeof done, "%llu unit%s %s", (unsigned long long)units,
                   units == 1 ? "" : "s", what);
    return change(ctl, target, body, done);
}

static int run_refund(struct ctl *ctl)
{
    return change_units(ctl, "/v1/keys/refund", "given back");
}

static int run_penalize(struct ctl *ctl)
{
    return change_units(ctl, "/v1/keys/penalize", "taken");
}

const struct ctl_row ctl_key_rows[] = {
    {{"key get LIMIT KEY...", "what a check would say, without taking anything; blocks"},
     "key get",
     1,
     0,
     CTL_TIER,
     run_get},
    {{"key reset LIMIT KEY...", "forget what the key has used"},
     "key reset",
     1,
     0,
     CTL_TIER,
     run_reset},
    {{"key block LIMIT KEY... [--for D]", "deny the key, for a time or until it is unblocked"},
     "key block",
     1,
     0,
     CTL_TIER | CTL_FOR,
     run_block},
    {{"key unblock LIMIT KEY...", "end a block"}, "key unblock", 1, 0, CTL_TIER, run_unblock},
    {{"key refund LIMIT KEY... [--units N]", "give units back"},
     "key refund",
     1,
     0,
     CTL_TIER | CTL_UNITS,
     run_refund},
    {{"key penalize LIMIT KEY... [--units N]", "take units, into debt if need be"},
     "key penalize",
     1,
     0,
     CTL_TIER | CTL_UNITS,
     run_penalize},
    {{NULL, NULL}, NULL, 0, 0, 0, NULL},
};
