/* What a client knows of the memory of an endpoint, and what it does if that is nearly full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir.h>

#include "redis/memory.h"
#include "support/store/client_world.h"

#define INFO(text) "$" text "\r\n"

static void info_is_read_by_lines(void **state)
{
    struct endpoint_memory m = {0};
    memory_read(&m,
                TEXT("# Memory\r\nused_memory:900\r\nused_memory_rss:5\r\nmaxmemory:1000\r\n"
                     "maxmemory_policy:volatile-ttl\r\n"),
                90);
    assert_int_equal(m.used_bytes, 900);
    assert_int_equal(m.most_bytes, 1000);
    assert_string_equal(memory_policy_name(m.policy), "volatile-ttl");
    assert_true(memory_is_full(&m));
    memory_read(&m, TEXT("# Stats\r\nevicted_keys:7\r\n"), 90);
    assert_int_equal(m.evicted, 7);
    memory_read(&m, TEXT("# Clients\r\nconnected_clients:3\r\nmaxclients:10000\r\n"), 90);
    assert_int_equal(m.maxclients, 10000);
    assert_true(memory_is_full(&m)); /* the other sections say nothing of it */
    memory_read(&m, TEXT("used_memory:899\nmaxmemory:1000\n"), 90);
    assert_false(memory_is_full(&m));
    memory_read(&m, TEXT("used_memory:899\nmaxmemory:0\n"), 1);
    assert_false(memory_is_full(&m)); /* unlimited */
    memory_read(&m, TEXT("maxmemory_policy:new-policy\nused_memory:x\nmaxmemory:1"), 90);
    assert_int_equal(m.policy, MEMORY_POLICY_UNKNOWN);
    assert_int_equal(m.used_bytes, 899);
}

static void one_thread_asks_in_a_second(void **state)
{
    struct endpoint_memory m = {0};
    assert_true(memory_take_turn(&m, 5));
    assert_false(memory_take_turn(&m, 5));
    assert_false(memory_take_turn(&m, 4 + WEIR_SECOND));
    assert_true(memory_take_turn(&m, 5 + WEIR_SECOND));
    memory_is_unknown(&m, 6 * WEIR_SECOND);
    assert_false(memory_take_turn(&m, 65 * WEIR_SECOND));
    assert_true(memory_take_turn(&m, 66 * WEIR_SECOND));
}

/* Returns whether what the client has sent on socket 0 has the word, and forgets it. */
static bool sent(struct client_world *w, const char *word)
{
    struct buffer *b = &w->sockets[0].sent;
    world_flush(w, 0);
    bool has = memmem(b->at + b->begin, buffer_len(b), word, strlen(word)) != NULL;
    buffer_take(b, buffer_len(b));
    return has;
}

static struct breakers *breakers;

static void world_with_memory(struct client_world *w)
{
    breakers = breakers_create(1);
    world_prepare(w, "redis://h:1", breakers);
    w->options.memory_high = 90;
    world_create(w);
    world_greet(w, 0);
}

static void calls_to_a_full_endpoint_say_so(void **state)
{
    struct client_world w = {0};
    struct world_call call;
    world_with_memory(&w);
    assert_true(sent(&w, "INFO"));
    assert_true(world_say(&w, 0, INFO("31\r\nused_memory:95\r\nmaxmemory:100\r\n")));
    assert_true(world_say(&w, 0, INFO("16\r\nevicted_keys:0\r\n")));
    assert_true(world_say(&w, 0, INFO("14\r\nmaxclients:9\r\n"))); /* asked for once */
    assert_int_equal(world_call(&w, &call, "k", 0), 0);
    assert_true(sent(&w, "\r\n$4\r\nfull\r\n"));
    assert_true(world_say(&w, 0, ":1\r\n"));
    world_pass(&w, WEIR_SECOND);
    assert_int_equal(world_call(&w, &call, "k", 0), 0);
    assert_true(sent(&w, "INFO"));
    assert_true(world_say(&w, 0, INFO("31\r\nused_memory:50\r\nmaxmemory:100\r\n")));
    assert_true(world_say(&w, 0, INFO("16\r\nevicted_keys:0\r\n") ":1\r\n"));
    assert_int_equal(world_call(&w, &call, "k", 0), 0);
    assert_false(sent(&w, "full"));
    world_stop(&w);
    breakers_destroy(breakers);
}

static void a_call_refused_for_lack_of_memory_marks_the_endpoint(void **state)
{
    struct client_world w = {0};
    struct world_call call;
    struct world_call next;
    world_with_memory(&w);
    assert_true(sent(&w, "INFO"));
    assert_true(world_say(&w, 0, "-NOPERM no INFO\r\n-NOPERM no INFO\r\n-NOPERM no INFO\r\n"));
    assert_int_equal(world_call(&w, &call, "k", 0), 0);
    assert_false(sent(&w, "full"));
    assert_true(world_say(&w, 0, "-OOM command not allowed\r\n"));
    assert_int_equal(world_call(&w, &next, "j", 0), 0);
    assert_true(sent(&w, "full"));
    world_stop(&w);
    breakers_destroy(breakers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_is_read_by_lines),
        cmocka_unit_test(one_thread_asks_in_a_second),
        cmocka_unit_test(calls_to_a_full_endpoint_say_so),
        cmocka_unit_test(a_call_refused_for_lack_of_memory_marks_the_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
