#include "support/rules/faked_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void hear_denied(void *arg, const struct weir_rules_denial *d)
{
    struct faked_world *w = arg;
    char text[100];
    (void)weir_rules_key_text(d->key, d->key_len, text, sizeof text);
    (void)snprintf(w->denied, sizeof w->denied, "%s %s", d->limit, text);
    w->denials++;
    w->done_before_denial = w->done;
}

struct weir_rules_options faked_options(struct faked_world *w)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    o.flags = WEIR_EXPLICIT_TIME;
    o.fleet = fake_of(&w->fleet);
    o.denied = hear_denied;
    o.denied_arg = w;
    return o;
}

void faked_begin(struct faked_world *w, const char *yaml)
{
    struct weir_error error = {0};
    memset(w, 0, sizeof *w);
    fake_init(&w->fleet);
    struct weir_rules_options o = faked_options(w);
    if (weir_rules_open_text(&w->rules, "test", yaml, strlen(yaml), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

void faked_end(struct faked_world *w)
{
    weir_rules_close(w->rules);
    fake_finish(&w->fleet);
}

void faked_hear(void *arg, int error, const struct weir_rules_answer *answer)
{
    struct faked_world *w = arg;
    w->done++;
    w->error = error;
    memset(&w->answer, 0, sizeof w->answer);
    if (answer != NULL) {
        w->answer = *answer;
    }
}

int faked_ask_with(struct faked_world *w, const char *words, struct weir_rules_question q)
{
    struct weir_error error = {0};
    struct weir_rules_answer answer = {0};
    int e = rules_ask_async(w->rules, w, words, q, &answer, faked_hear, w, &error);
    if (e < 0) {
        fail_msg("%s: %s", words, error.text);
    }
    if (e == 1) {
        w->answer = answer;
    }
    return e;
}

int faked_ask(struct faked_world *w, const char *words)
{
    return faked_ask_with(w, words, (struct weir_rules_question){0});
}

const struct weir_rules_answer *faked_settle(struct faked_world *w, const char *words)
{
    unsigned before = w->done;
    assert_int_equal(faked_ask(w, words), 0);
    while (fake_answer(&w->fleet)) {
    }
    assert_int_equal(w->done, before + 1);
    assert_int_equal(w->error, 0);
    return &w->answer;
}

struct weir_rules_stats faked_stats(const struct faked_world *w)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(w->rules, &stats), 0);
    return stats;
}

int faked_refusal(struct faked_world *w, const char *words, struct weir_rules_question q,
                  struct weir_error *error)
{
    struct weir_rules_answer answer = {.answer = {.verdict = WEIR_ALLOW}}; /* of an earlier call */
    *error = (struct weir_error){0};
    int e = rules_ask_async(w->rules, w, words, q, &answer, faked_hear, w, error);
    assert_true(e >= 0 || answer.answer.verdict == 0);
    return e;
}
