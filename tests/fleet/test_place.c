/* Tests a place that shares the connections of a fleet's loop, on the test's own loop. There is no
 * store, so on_store_failure answers; and the test holds back what wakes the fleet's loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "fleet/loop.h"
#include "fleet/place.h"
#include "support/fleet/fleet_open.h"

#define BEYOND 10u
#define MOST (FLEET_QUEUE_MAX + BEYOND)

static struct {
    struct weir_fleet *fleet;
    struct fleet_place *place;
    struct store_limit *limit;
    uv_loop_t loop;
    uv_timer_t watchdog;
    bool barked;
    bool holds;       /* the fleet's loop is not woken */
    uv_async_t *held; /* by which it would have been */
    unsigned wakes;   /* how often */
    unsigned answered, again;
} t;

/* Replaces the function of libuv for every caller in this program. Calls within libuv stay. */
int uv_async_send(uv_async_t *handle)
{
    union {
        void *found;
        int (*send)(uv_async_t *handle);
    } real = {dlsym(RTLD_NEXT, "uv_async_send")};
    if (t.holds && handle->loop != &t.loop) {
        t.held = handle;
        t.wakes++;
        return 0;
    }
    return real.send(handle);
}

static void on_watchdog(uv_timer_t *timer)
{
    t.barked = true;
}

static int open_place(void **state)
{
    const struct weir_fleet_options options = {
        .size = sizeof options, .url = "redis://127.0.0.1:1", .deadline_ns = FLEET_PATIENT_NS};
    struct remote_spec spec = {.name = TEXT("api"),
                               .options = WEIR_OPTIONS_INIT,
                               .mode = REMOTE_EXACT,
                               .on_failure = REMOTE_FAIL_OPEN};
    spec.options.count = 10;
    spec.options.period_ns = WEIR_HOUR;
    spec.options.algorithm = WEIR_TOKEN_BUCKET;
    memset(&t, 0, sizeof t);
    assert_int_equal(uv_loop_init(&t.loop), 0);
    assert_int_equal(fleet_open_bare(&t.fleet, &options, NULL), 0);
    t.fleet->connections = 1;
    assert_int_equal(fleet_share(t.fleet, 2, NULL), 0);
    assert_int_equal(fleet_place_open(&t.place, t.fleet, &t.loop, NULL), 0);
    assert_int_equal(store_limit_open(t.fleet->shared, &spec, &t.limit, NULL), 0);
    assert_int_equal(uv_timer_init(&t.loop, &t.watchdog), 0);
    assert_int_equal(uv_timer_start(&t.watchdog, on_watchdog, 10000, 0), 0);
    t.holds = true;
    return 0;
}

static int close_place(void **state)
{
    t.holds = false;
    if (t.held != NULL) {
        (void)uv_async_send(t.held);
    }
    fleet_place_close(t.place);
    uv_close((uv_handle_t *)&t.watchdog, NULL);
    assert_int_equal(uv_run(&t.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&t.loop), 0);
    store_limit_release(t.limit);
    weir_fleet_close(t.fleet);
    return 0;
}

/* ---- asking ---- */

struct asked {
    struct remote_question question;
    struct remote_part part;
    _Alignas(16) char memory[];
};

static void ask(struct fleet_place *place);

static void on_answer(void *arg, int error, const struct remote_answer *answer)
{
    assert_int_equal(error, 0);
    assert_int_equal(answer->answer.flags, REMOTE_DEGRADED);
    free(arg);
    t.answered++;
    if (t.again > 0) {
        t.again--;
        ask(t.place);
    }
}

static void ask(struct fleet_place *place)
{
    struct asked *a = malloc(sizeof *a + fleet_question_bytes(1));
    struct remote_answer answer;
    assert_non_null(a);
    a->part = (struct remote_part){.limit = t.limit, .key = TEXT("alice"), .cost = 1};
    a->question = (struct remote_question){.verb = REMOTE_CHECK,
                                           .parts = &a->part,
                                           .n = 1,
                                           .done = on_answer,
                                           .arg = a,
                                           .memory = a->memory};
    assert_int_equal(fleet_place_ask(place, &a->question, &answer), REMOTE_PENDING);
}

static void ask_many(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ask(t.place);
    }
}

static void await_answers(unsigned n)
{
    t.holds = false;
    assert_int_equal(uv_async_send(t.held), 0);
    while (t.answered < n && !t.barked) {
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    }
    assert_int_equal(t.answered, n);
}

/* ---- tests ---- */

static void the_questions_of_a_turn_are_given_to_the_loop_at_its_end(void **state)
{
    ask_many(100);
    assert_int_equal(t.wakes, 0);
    (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    assert_int_equal(t.wakes, 1);
    await_answers(100);
}

static void questions_for_which_there_is_no_room_are_answered_and_may_lead_to_others(void **state)
{
    t.again = BEYOND;
    ask_many(MOST);
    (void)uv_run(&t.loop, UV_RUN_ONCE); /* must not sleep, because there are questions to give */
    assert_false(t.barked);
    assert_int_equal(t.answered, BEYOND);
    (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    assert_int_equal(t.answered, 2 * BEYOND);
    await_answers(MOST + BEYOND);
}

static void count_handle(uv_handle_t *handle, void *count)
{
    *(unsigned *)count += 1;
}

static unsigned handles(void)
{
    unsigned count = 0;
    uv_walk(&t.loop, count_handle, &count);
    return count;
}

static void a_closed_place_ends_after_its_last_question_was_refused(void **state)
{
    struct fleet_place *other;
    unsigned before = handles();
    ask_many(FLEET_QUEUE_MAX);
    (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    assert_int_equal(fleet_place_open(&other, t.fleet, &t.loop, NULL), 0);
    ask(other);
    fleet_place_close(other);
    for (unsigned i = 0; i < 3; i++) { /* the question, and two handles one after the other */
        (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(t.answered, 1);
    assert_int_equal(handles(), before);
    await_answers(FLEET_QUEUE_MAX + 1);
}

int main(void)
{
#define PLACE(name) cmocka_unit_test_setup_teardown(name, open_place, close_place)
    const struct CMUnitTest tests[] = {
        PLACE(the_questions_of_a_turn_are_given_to_the_loop_at_its_end),
        PLACE(questions_for_which_there_is_no_room_are_answered_and_may_lead_to_others),
        PLACE(a_closed_place_ends_after_its_last_question_was_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
