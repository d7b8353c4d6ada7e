/* What is said of a key, in the same words as on the page (tests/page/test_limits.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/watch/key_state.h"

static json_t *cases;

static int load(void **state)
{
    char path[4096];
    json_error_t error;
    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/golden/key_states.json", getenv("WEIR_SOURCE_DIR"));
    cases = json_load_file(path, 0, &error);
    return json_array_size(cases) > 10 ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(cases);
    return 0;
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* Fails with the name of the case if a word is another one. The page writes a dash where a terminal
 * has a hyphen, and "not known" in the badge of a verdict that is null. */
static void expect(const json_t *one, const char *name, const char *got)
{
    const json_t *member = json_object_get(json_object_get(one, "expect"), name);
    const char *wanted = json_is_null(member) ? "not known" : json_string_value(member);
    wanted = strcmp(wanted, "\xe2\x80\x93") == 0 ? "-" : wanted;
    if (strcmp(wanted, got) != 0) {
        fail_msg("%s: %s: found '%s', expected '%s'",
                 json_string_value(json_object_get(one, "says")), name, got, wanted);
    }
}

static void tell(const json_t *one, struct key_polls *polls, struct key_state *s)
{
    const json_t *list = json_object_get(one, "polls");
    double even = key_even(json_string_value(json_object_get(one, "algorithm")),
                           number(one, "count"), number(one, "period_ms"));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        struct key_poll poll = {.sent_ms = number(item, "sent"), .came_ms = number(item, "came")};
        key_poll_read(json_object_get(item, "answer"), &poll);
        key_polls_add(polls, &poll);
    }
    key_state_tell(polls, even, s);
}

static void a_key_is_told_in_the_words_of_the_page(void **state)
{
    size_t told = 0;
    (void)state;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        struct key_polls polls = {.count = 0};
        struct key_state s;
        tell(one, &polls, &s);
        if (!s.in_use && json_object_get(one, "age") != NULL) {
            continue; /* the page alone extrapolates */
        }
        expect(one, "verdict", s.verdict);
        expect(one, "left", s.left);
        expect(one, "retry", s.retry);
        expect(one, "reset", s.reset);
        expect(one, "use", s.use);
        told++;
    }
    assert_true(told > 10);
}

static void only_the_last_polls_count(void **state)
{
    struct key_polls polls = {.count = 0};
    struct key_state s;
    (void)state;
    for (int i = 0; i < 2 * KEY_POLLS; i++) { /* one unit in the first second, then none */
        struct key_poll p = {.sent_ms = i * 1000,
                             .came_ms = i * 1000 + 1,
                             .verdict = "allow",
                             .known = true,
                             .quota = 9,
                             .remaining = i == 0 ? 9 : 8};
        key_polls_add(&polls, &p);
        key_state_tell(&polls, 0, &s);
        assert_int_equal(s.in_use, i > 0 && i < KEY_POLLS);
    }
    assert_string_equal(s.use, "no use seen");
    assert_int_equal(polls.count, KEY_POLLS);
}

static void the_bar_shows_what_is_left(void **state)
{
    struct key_poll half = {.verdict = "allow", .known = true, .quota = 10, .remaining = 5};
    struct key_poll blocked = half;
    struct key_polls polls = {.count = 0};
    struct key_state s;
    (void)state;
    key_polls_add(&polls, &half);
    key_state_tell(&polls, 0, &s);
    assert_true(s.part > 0.49 && s.part < 0.51 && !s.blocked);
    blocked.blocked_ms = -1;
    key_polls_add(&polls, &blocked);
    key_state_tell(&polls, 0, &s);
    assert_true(s.part == 0 && s.blocked);
    assert_string_equal(s.left, "blocked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_told_in_the_words_of_the_page),
        cmocka_unit_test(only_the_last_polls_count),
        cmocka_unit_test(the_bar_shows_what_is_left),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
