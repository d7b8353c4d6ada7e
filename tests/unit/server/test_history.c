/* The history keeps the newest samples and events, within bounds, and shows each role its part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "server/record/history.h"

static struct history *history;

static int start(void **state)
{
    history = history_create();
    return history != NULL ? 0 : -1;
}

static int stop(void **state)
{
    history_destroy(history);
    return 0;
}

/* Returns the samples as a JSON array. */
static json_t *samples(void)
{
    struct buffer out;
    buffer_init(&out, 16u << 20);
    buffer_put_char(&out, '[');
    history_put_samples(history, &out);
    buffer_put_char(&out, ']');
    assert_false(out.full);
    json_t *all = json_loadb(buffer_text(&out).at, buffer_len(&out), 0, NULL);
    assert_non_null(all);
    buffer_finish(&out);
    return all;
}

static void append_event(void *arg, struct weir_text event)
{
    json_t *one = json_loadb(event.at, event.len, 0, NULL);
    assert_non_null(one);
    assert_null(memchr(event.at, '\n', event.len)); /* an event of a stream is one line */
    assert_int_equal(json_array_append_new(arg, one), 0);
}

static json_t *events(uint64_t after, enum role role, uint64_t *last)
{
    json_t *all = json_array();
    *last = history_events(history, after, role, append_event, all);
    return all;
}

static void the_newest_900_samples_are_kept_in_order(void **state)
{
    char text[32];
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(text, sizeof text, "{\"n\":%d}", i);
        history_add(history, (struct weir_text){text, (size_t)n});
    }
    json_t *all = samples();
    assert_int_equal(json_array_size(all), 900);
    for (size_t i = 0; i < 900; i++) {
        assert_int_equal(json_integer_value(json_object_get(json_array_get(all, i), "n")), 100 + i);
    }
    json_decref(all);
}

static void large_samples_are_fewer(void **state)
{
    size_t size = 10000;
    char *text = malloc(size);
    for (int i = 0; i < 1000; i++) {
        memset(text, ' ', size);
        int n = snprintf(text, size, "{\"n\":%d", i);
        text[n] = ' ';
        text[size - 1] = '}';
        history_add(history, (struct weir_text){text, size});
    }
    json_t *all = samples();
    size_t count = json_array_size(all);
    assert_int_equal(count, HISTORY_BYTES / size);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(all, count - 1), "n")), 999);
    json_decref(all);
    free(text);
}

static void the_newest_50_events_are_kept(void **state)
{
    char text[32];
    uint64_t last;
    for (int i = 0; i < 60; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        history_note(history, HISTORY_MODE, text, NULL);
    }
    json_t *all = events(0, ROLE_ADMIN, &last);
    assert_int_equal(last, 60);
    assert_int_equal(json_array_size(all), 50);
    assert_string_equal(json_string_value(json_object_get(json_array_get(all, 0), "text")), "10");
    json_decref(all);
    all = events(58, ROLE_ADMIN, &last);
    assert_int_equal(json_array_size(all), 2);
    json_decref(all);
    all = events(60, ROLE_ADMIN, &last);
    assert_int_equal(json_array_size(all), 0);
    json_decref(all);
}

static void the_role_check_learns_kind_and_time_alone(void **state)
{
    struct buffer said;
    uint64_t last;
    buffer_init(&said, 1024);
    buffer_put(&said, (struct weir_text){"weir.yaml:3:5: found a\0two", 26});
    history_note(history, HISTORY_RELOAD_FAILED, "hidden", &said);
    json_t *all = events(0, ROLE_CHECK, &last);
    const json_t *e = json_array_get(all, 0);
    assert_int_equal(json_object_size(e), 2);
    assert_string_equal(json_string_value(json_object_get(e, "kind")), "reload failed");
    assert_true(json_integer_value(json_object_get(e, "at_ms")) > 1600000000000);
    json_decref(all);
    all = events(0, ROLE_ADMIN, &last);
    e = json_array_get(all, 0);
    const json_t *messages = json_object_get(e, "messages");
    assert_string_equal(json_string_value(json_object_get(e, "text")), "hidden");
    assert_int_equal(json_array_size(messages), 2);
    assert_string_equal(json_string_value(json_array_get(messages, 0)), "weir.yaml:3:5: found a");
    assert_string_equal(json_string_value(json_array_get(messages, 1)), "two");
    json_decref(all);
    buffer_finish(&said);
}

static void hostile_texts_stay_texts(void **state)
{
    static const char bad[] = "\"}],\n\ndata: <img onerror=alert(1)>\r\n\x01\xff\\";
    struct buffer said;
    uint64_t last;
    buffer_init(&said, 1024);
    buffer_put(&said, (struct weir_text){bad, sizeof bad});
    history_note(history, HISTORY_RELOAD, bad, &said);
    json_t *all = events(0, ROLE_ADMIN, &last);
    const json_t *e = json_array_get(all, 0);
    const char *text = json_string_value(json_object_get(e, "text"));
    assert_string_equal(text, "\"}],\n\ndata: <img onerror=alert(1)>\r\n\x01?\\");
    assert_string_equal(json_string_value(json_array_get(json_object_get(e, "messages"), 0)), text);
    json_decref(all);
    buffer_finish(&said);
}

static void too_many_messages_are_counted(void **state)
{
    struct buffer said;
    uint64_t last;
    char line[128];
    buffer_init(&said, 1 << 20);
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(line, sizeof line, "weir.yaml:%d:1: found something \x02", i);
        buffer_put(&said, (struct weir_text){line, (size_t)n + 1});
    }
    history_note(history, HISTORY_RELOAD_FAILED, "many", &said);
    json_t *all = events(0, ROLE_ADMIN, &last);
    json_t *messages = json_object_get(json_array_get(all, 0), "messages");
    size_t count = json_array_size(messages);
    assert_in_range(count, 50, 1000);
    (void)snprintf(line, sizeof line, "%zu more: see the log", 5000 - (count - 1));
    assert_string_equal(json_string_value(json_array_get(messages, count - 1)), line);
    json_decref(all);
    buffer_finish(&said);
}

static void without_a_history_nothing_is_noted(void **state)
{
    history_note(NULL, HISTORY_START, "started", NULL);
    history_destroy(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_newest_900_samples_are_kept_in_order),
        TEST(large_samples_are_fewer),
        TEST(the_newest_50_events_are_kept),
        TEST(the_role_check_learns_kind_and_time_alone),
        TEST(hostile_texts_stay_texts),
        TEST(too_many_messages_are_counted),
        TEST(without_a_history_nothing_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
