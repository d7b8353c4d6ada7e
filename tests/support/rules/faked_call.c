#include "support/rules/faked_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS_MAX 16

struct faked_call faked_call_init(void)
{
    return (struct faked_call){.memory = ARENA_INIT, .call = {.may_give = true}};
}

static void hear(void *arg)
{
    struct faked_call *c = arg;
    c->done++;
}

/* Reads one word into the question. */
static void read_word(char *word, struct call_question *q, struct weir_rules_attribute *with)
{
    char *value = strchr(word, '=');
    char *slash = strchr(word, '/');
    if (value != NULL) {
        *value++ = 0;
        with[q->attributes_count++] =
            (struct weir_rules_attribute){word, strlen(word), value, strlen(value)};
    } else if (word[0] == '+' || word[0] == '-') {
        q->hits = strtoull(word + 1, NULL, 10);
        q->back = word[0] == '-';
    } else if (slash != NULL) {
        uint64_t count = strtoull(word, NULL, 10);
        q->named = (struct rate){count, WEIR_HOUR};
        q->rate = (struct remote_rate){count > 0 ? WEIR_HOUR / count : 0, count};
        q->key = text_of(slash + 1);
    } else {
        fail_msg("%s: not a word of a question", word);
    }
}

static void read_question(char *words, struct call_question *q)
{
    struct weir_rules_attribute *with = calloc(WORDS_MAX, sizeof *with);
    assert_non_null(with);
    *q = (struct call_question){.attributes = with, .hits = 1};
    for (char *word; (word = strsep(&words, " ")) != NULL;) {
        if (word[0] != 0) {
            assert_true(q->attributes_count < WORDS_MAX);
            read_word(word, q, with);
        }
    }
}

void faked_call_ask(struct faked_call *c, struct weir_rules *rules, void *where, const char *words)
{
    struct call_question *questions = calloc(CALL_MAX + 1, sizeof *questions);
    char *copy = strdup(words);
    char *rest = copy;
    assert_non_null(questions);
    c->call.count = 0;
    for (char *one; (one = strsep(&rest, ";")) != NULL;) {
        assert_true(c->call.count <= CALL_MAX);
        read_question(one, &questions[c->call.count++]);
    }
    c->call.rules = rules;
    c->call.where = where;
    c->call.memory = &c->memory;
    c->call.now_ns = RULES_T0;
    c->call.questions = questions;
    c->call.done = hear;
    c->call.arg = c;
    c->result = call_ask(&c->call, &c->error);
    for (size_t i = 0; i < c->call.count; i++) {
        free((void *)(uintptr_t)questions[i].attributes);
    }
    c->call.questions = NULL;
    free(questions);
    free(copy);
}

static const char *verdict_name(int verdict)
{
    return verdict == WEIR_ALLOW ? "allow" : verdict == WEIR_DENY ? "deny" : "never";
}

const char *faked_call_told(const struct faked_call *c)
{
    static char told[FAKED_CALL_TOLD];
    int error = c->result < 0 ? c->result : c->call.error;
    if (c->result == RULES_PENDING && c->done == 0) {
        return "pending";
    }
    if (error != 0) {
        (void)snprintf(told, sizeof told, "error %d", error);
        return told;
    }
    const struct weir_rules_answer *a = &c->call.answer;
    int n = snprintf(told, sizeof told, "%s %s:", verdict_name(a->answer.verdict),
                     a->limit[0] != 0 ? a->limit : "-");
    for (size_t i = 0; i < c->call.count && (size_t)n < sizeof told; i++) {
        const struct call_status *s = &c->call.statuses[i];
        char left[24] = "-";
        if (s->limited) {
            (void)snprintf(left, sizeof left, "%llu", (unsigned long long)s->remaining);
        }
        n += snprintf(told + n, sizeof told - (size_t)n, "%s %s %s", i > 0 ? "," : "",
                      verdict_name(s->verdict), left);
    }
    return told;
}

void faked_call_finish(struct faked_call *c)
{
    arena_finish(&c->memory);
}

const char *faked_call_settle(struct faked_world *w, struct weir_rules *rules, const char *words)
{
    struct faked_call c = faked_call_init();
    faked_call_ask(&c, rules, w, words);
    while (w != NULL && fake_answer(&w->fleet)) {
    }
    assert_int_equal(c.done, c.result == RULES_PENDING);
    const char *told = faked_call_told(&c);
    faked_call_finish(&c);
    return told;
}
