/* Denials of limits by reason: exact totals from several threads, and a table that is full. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <weir_rules.h>

#include "server/record/limit_reasons.h"

#define THREADS 4
#define EACH 20000
#define LIMITS 50

static struct limit_reasons *reasons;

static int make(void **state)
{
    (void)state;
    reasons = limit_reasons_create();
    assert_non_null(reasons);
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    limit_reasons_destroy(reasons);
    return 0;
}

static uint64_t count_of(const char *limit, int reason)
{
    uint64_t counts[REQUEST_REASONS];
    limit_reasons_read(reasons, limit, counts);
    return counts[reason];
}

static const char *name_of(unsigned number, char name[WEIR_RULES_NAME])
{
    (void)snprintf(name, WEIR_RULES_NAME, "limit-%u", number);
    return name;
}

static void limits_and_reasons_are_told_apart(void **state)
{
    (void)state;
    limit_reasons_count(reasons, "login", WEIR_REASON_STORE);
    limit_reasons_count(reasons, "login", WEIR_REASON_STORE);
    limit_reasons_count(reasons, "login", WEIR_REASON_BAN);
    limit_reasons_count(reasons, "api", WEIR_REASON_BAN);
    assert_int_equal(count_of("login", WEIR_REASON_STORE), 2);
    assert_int_equal(count_of("login", WEIR_REASON_BAN), 1);
    assert_int_equal(count_of("login", WEIR_REASON_BLOCKED), 0);
    assert_int_equal(count_of("api", WEIR_REASON_BAN), 1);
    assert_int_equal(count_of("other", WEIR_REASON_BAN), 0);
}

static void *deny(void *arg)
{
    char name[WEIR_RULES_NAME];
    (void)arg;
    limit_reasons_use(reasons);
    for (unsigned i = 0; i < EACH; i++) {
        limit_reasons_note(name_of(i % LIMITS, name), WEIR_REASON_STORE);
    }
    return NULL;
}

static void threads_count_exactly_what_they_deny(void **state)
{
    pthread_t threads[THREADS];
    char name[WEIR_RULES_NAME];
    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, deny, NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (unsigned i = 0; i < LIMITS; i++) {
        assert_int_equal(count_of(name_of(i, name), WEIR_REASON_STORE), THREADS * EACH / LIMITS);
    }
}

static void a_full_table_keeps_those_that_it_has(void **state)
{
    char name[WEIR_RULES_NAME];
    (void)state;
    for (unsigned i = 0; i < REASON_ROWS + 10; i++) {
        limit_reasons_count(reasons, name_of(i, name), WEIR_REASON_BAN);
    }
    limit_reasons_count(reasons, name_of(7, name), WEIR_REASON_BAN);
    assert_int_equal(count_of(name, WEIR_REASON_BAN), 2);
    assert_int_equal(count_of(name_of(REASON_ROWS - 1, name), WEIR_REASON_BAN), 1);
    assert_int_equal(count_of(name_of(REASON_ROWS, name), WEIR_REASON_BAN), 0);
}

static void without_a_table_nothing_is_counted(void **state)
{
    uint64_t counts[REQUEST_REASONS] = {1, 2, 3};
    (void)state;
    limit_reasons_use(NULL);
    limit_reasons_note("login", WEIR_REASON_STORE);
    limit_reasons_read(NULL, "login", counts);
    for (unsigned i = 0; i < REQUEST_REASONS; i++) {
        assert_int_equal(counts[i], 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(limits_and_reasons_are_told_apart),
        TEST(threads_count_exactly_what_they_deny),
        TEST(a_full_table_keeps_those_that_it_has),
        TEST(without_a_table_nothing_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
