#include "cli/answer_json.h"

#include "cli/admin_client.h"
#include "cli/grid.h"
#include "rules/value/quantity.h"

/* ---- the question ---- */

json_t *key_question(char **words, int count, const char *tier)
{
    json_t *key = json_array();
    bool good = true;
    for (int i = 1; i < count; i++) {
        good = json_array_append_new(key, json_string(words[i])) == 0 && good;
    }
    json_t *body = json_pack("{ss so}", "limit", words[0], "key", key);
    if (tier != NULL) {
        good = json_object_set_new(body, "tier", json_string(tier)) == 0 && good;
    }
    if (!good) {
        json_decref(body);
        return NULL;
    }
    return body;
}

static void put_parameter(struct buffer *target, const char *name, const char *value)
{
    buffer_put(target, text_of(name));
    http_put_encoded(target, text_of(value));
}

void key_target(struct buffer *target, char **words, int count, const char *tier, const char *by)
{
    put_parameter(target, "/v1/keys?limit=", words[0]);
    for (int i = 1; i < count; i++) {
        put_parameter(target, "&key=", words[i]);
    }
    if (tier != NULL) {
        put_parameter(target, "&tier=", tier);
    }
    if (by != NULL) {
        put_parameter(target, "&by=", by);
    }
    buffer_put_char(target, 0);
}

json_t *attributes_question(char **words, int count)
{
    json_t *attributes = json_object();
    bool good = true;
    for (int i = 0; i < count; i++) {
        struct weir_text value = text_of(words[i]);
        struct weir_text name = text_cut(&value, '=');
        good = json_object_setn_new(attributes, name.at, name.len,
                                    json_stringn(value.at, value.len)) == 0 &&
               good;
    }
    json_t *body = json_pack("{so}", "attributes", attributes);
    if (!good) {
        json_decref(body);
        return NULL;
    }
    return body;
}

/* ---- the answer ---- */

/* Returns a member that is a whole number above 0; otherwise 0. */
static uint64_t count_of(const json_t *said, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(said, name));
    return number > 0 ? (uint64_t)number : 0;
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
    (void)printf("%-10s ", what);
    safe_print(stdout, text_of(text), false);
    (void)putchar('\n');
}

static void print_flags(const json_t *flags)
{
    for (size_t i = 0; i < json_array_size(flags); i++) {
        const char *flag = json_string_value(json_array_get(flags, i));
        (void)fputs(i == 0 ? "flags      " : " ", stdout);
        safe_print(stdout, text_of(flag != NULL ? flag : "?"), false);
    }
    (void)fputs(json_array_size(flags) > 0 ? "\n" : "", stdout);
}

static void print_times(const json_t *said)
{
    json_int_t blocked = json_integer_value(json_object_get(said, "blocked_ms"));
    if (count_of(said, "retry_after_ms") > 0) {
        print_duration("retry in", count_of(said, "retry_after_ms"));
    }
    print_duration("reset in", count_of(said, "reset_after_ms"));
    if (count_of(said, "delay_ms") > 0) {
        print_duration("wait", count_of(said, "delay_ms"));
    }
    if (blocked > 0) {
        print_duration("blocked", (uint64_t)blocked);
    } else if (blocked < 0) {
        print_text("blocked", "without end");
    }
}

enum colour verdict_colour(const char *verdict)
{
    return strcmp(verdict, "allow") == 0  ? COLOUR_GOOD
           : strcmp(verdict, "deny") == 0 ? COLOUR_WARNING
                                          : COLOUR_BAD;
}

static void print_verdict(const char *verdict)
{
    (void)printf("%-10s %s", "verdict", colour_begin(stdout, verdict_colour(verdict)));
    safe_print(stdout, text_of(verdict), false);
    (void)printf("%s\n", colour_end(stdout));
}

void answer_print(const json_t *said)
{
    const char *limit = json_text(said, "limit");
    const char *reason = json_text(said, "reason");
    print_verdict(json_text(said, "verdict"));
    print_text("limit", limit[0] != 0 ? limit : "none enforced");
    if (reason[0] != 0) {
        print_text("reason", reason);
    }
    if (json_number(said, "remaining") >= 0) { /* an adhoc limit has none */
        (void)printf("%-10s %llu of %llu\n", "remaining",
                     (unsigned long long)count_of(said, "remaining"),
                     (unsigned long long)count_of(said, "quota"));
    }
    if (limit[0] != 0) {
        print_times(said);
    }
    print_flags(json_object_get(said, "flags"));
}
