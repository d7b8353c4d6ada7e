#include "support/rules/rules_ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS_MAX 32

static uint64_t start_of_2026(void *arg)
{
    (void)arg;
    return RULES_T0;
}

struct weir_rules *rules_open(const char *yaml)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error = {0};
    struct weir_rules *rules = NULL;
    o.clock = start_of_2026;
    if (weir_rules_open_text(&rules, "test", yaml, strlen(yaml), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return rules;
}

const char *rules_complaint(const char *yaml)
{
    static struct weir_error error;
    struct weir_rules *rules = NULL;
    int e = weir_rules_open_text(&rules, "test", yaml, strlen(yaml), NULL, &error);
    weir_rules_close(rules);
    return e == 0 ? NULL : error.text;
}

/* Where and to which function the answer goes. */
struct later {
    void *where;
    weir_rules_done_fn done;
    void *arg;
};

/* Splits a copy of the words into attributes, and asks with them. */
static int ask_with(struct weir_rules *rules, uint64_t now_ns, const char *words,
                    struct weir_rules_question q, const struct later *later,
                    struct weir_rules_answer *a, struct weir_error *error)
{
    struct weir_rules_attribute with[WORDS_MAX];
    char *copy = strdup(words);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        char *value = strchr(word, '=');
        if (value != NULL && q.attributes_count < WORDS_MAX) {
            *value++ = 0;
            with[q.attributes_count++] =
                (struct weir_rules_attribute){word, strlen(word), value, strlen(value)};
        }
    }
    q.attributes = with;
    int e = later != NULL ? weir_rules_ask_async(rules, later->where, &q, now_ns, a, later->done,
                                                 later->arg, error)
                          : weir_rules_ask_at(rules, &q, now_ns, a, error);
    free(copy);
    return e;
}

static int ask(struct weir_rules *rules, uint64_t now_ns, const char *words,
               struct weir_rules_question q, struct weir_rules_answer *a, struct weir_error *error)
{
    return ask_with(rules, now_ns, words, q, NULL, a, error);
}

int rules_ask_async(struct weir_rules *rules, void *where, const char *words,
                    struct weir_rules_question q, struct weir_rules_answer *answer,
                    weir_rules_done_fn done, void *arg, struct weir_error *error)
{
    struct later later = {where, done, arg};
    return ask_with(rules, RULES_T0, words, q, &later, answer, error);
}

static struct weir_rules_answer ask_well(struct weir_rules *rules, uint64_t now_ns,
                                         const char *words, struct weir_rules_question q)
{
    struct weir_rules_answer a = {0};
    struct weir_error error = {0};
    if (ask(rules, now_ns, words, q, &a, &error) != 0) {
        fail_msg("%s: %s", words, error.text);
    }
    return a;
}

struct weir_rules_answer rules_ask(struct weir_rules *rules, uint64_t now_ns, const char *words)
{
    return ask_well(rules, now_ns, words, (struct weir_rules_question){0});
}

struct weir_rules_answer rules_peek(struct weir_rules *rules, uint64_t now_ns, const char *words)
{
    return ask_well(rules, now_ns, words, (struct weir_rules_question){.mode = WEIR_PEEK});
}

struct weir_rules_answer rules_ask_cost(struct weir_rules *rules, uint64_t now_ns,
                                        const char *words, uint64_t cost)
{
    return ask_well(rules, now_ns, words, (struct weir_rules_question){.cost = cost});
}

int rules_refusal(struct weir_rules *rules, const char *words, struct weir_error *error)
{
    struct weir_rules_answer a = {.answer = {.verdict = WEIR_ALLOW}}; /* left by an earlier call */
    *error = (struct weir_error){0};
    int e = ask(rules, RULES_T0, words, (struct weir_rules_question){0}, &a, error);
    assert_true(e >= 0 || a.answer.verdict == 0);
    return e;
}

unsigned rules_allowed(struct weir_rules *rules, uint64_t now_ns, const char *words, unsigned n)
{
    unsigned allowed = 0;
    for (unsigned i = 0; i < n; i++) {
        allowed += rules_ask(rules, now_ns, words).answer.verdict == WEIR_ALLOW;
    }
    return allowed;
}
