/* Reservations: settled once, by whoever comes first, or too late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/operations/operations.h"
#include "server/operations/reservations.h"
#include "support/engine/threads_run.h"

#define NOW (UINT64_C(1800000000) * WEIR_SECOND)
#define MS WEIR_MILLISECOND

static const char rules_text[] =
    "limits:\n"
    "  - {name: day, key: [user], rate: 1M/day, algorithm: fixed_window, max_keys: 100k}\n"
    "  - {name: api, key: [user], rate: 10/min}\n"
    "  - {name: own, key: [user], rate: 10/min, cost: 3}\n"
    "  - {name: quiet, key: [user], rate: 10/min, shadow: true}\n"
    "  - {name: pair, key: [tenant, user], rate: 10/min, tiers: {by: tier, default: free,"
    " free: {}, pro: {rate: 100/min}}}\n";

static struct server server;  /* nothing of it runs */
static struct address client; /* who makes the reservations */

static void be_client(unsigned number)
{
    client =
        (struct address){.bytes = {10, 0, (uint8_t)(number >> 8), (uint8_t)number}, .family = 4};
}

static void start_with(uint64_t most)
{
    struct weir_error error = {0};
    be_client(1);
    server.options.reservation_ttl_ms = 0;
    if (weir_rules_open_text(&server.rules, "test", rules_text, sizeof rules_text - 1, NULL,
                             &error) != 0 ||
        reservations_create(&server.reservations, most, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static int start(void **state)
{
    start_with(RESERVATIONS_MAX);
    return 0;
}

static int stop(void **state)
{
    reservations_destroy(server.reservations);
    weir_rules_close(server.rules);
    return 0;
}

static struct weir_text value(const char *text)
{
    return (struct weir_text){text, strlen(text)};
}

struct made {
    int e;
    struct answer a;
    struct weir_error error;
    char id[RESERVATION_ID];
};

static struct made make_key(const struct weir_rules_key *key, uint64_t cost, uint64_t ttl_ms,
                            uint64_t now_ns)
{
    struct asker asker = {.server = &server, .by.peer = &client, .now_ns = now_ns};
    struct made m = {0};
    m.e = reservation_make(&asker, key, cost, ttl_ms, &m.a, &m.error);
    memcpy(m.id, m.a.reservation, sizeof m.id);
    return m;
}

static struct made make_at(const char *limit, uint64_t cost, uint64_t ttl_ms, uint64_t now_ns)
{
    struct weir_text alice = value("alice");
    struct weir_rules_key key = {.limit = value(limit), .parts = &alice, .parts_count = 1};
    return make_key(&key, cost, ttl_ms, now_ns);
}

static struct made make(const char *limit, uint64_t cost)
{
    return make_at(limit, cost, 1000, NOW);
}

static int settle_at(const char *id, uint64_t actual, uint64_t now_ns, struct answer *a,
                     struct weir_error *error)
{
    struct asker asker = {.server = &server, .now_ns = now_ns};
    return reservation_settle(&asker, (struct weir_text){id, strlen(id)}, actual, a, error);
}

/* What remains afterwards; fails the test if it cannot be settled. */
static int64_t settled(const char *id, uint64_t actual)
{
    struct weir_error error = {0};
    struct answer a;
    if (settle_at(id, actual, NOW, &a, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return a.remaining;
}

static void expect_none(const char *id, uint64_t now_ns, const char *why)
{
    struct weir_error error = {0};
    struct answer a;
    assert_int_equal(settle_at(id, 1, now_ns, &a, &error), RESERVATION_NONE);
    assert_string_equal(error.text, why);
}

#define UNKNOWN "no such reservation: unknown, expired, settled or cancelled"
#define GONE "the limit of this reservation is gone or has changed"

static struct reservations_counts counts(void)
{
    struct reservations_counts c;
    reservations_count(server.reservations, &c);
    return c;
}

static int64_t remaining(const char *limit)
{
    struct asker asker = {.server = &server, .by.role = ROLE_CHECK, .now_ns = NOW};
    struct weir_error error = {0};
    struct answer a;
    struct ask ask;
    ask_init(&ask);
    ask.text[ASK_LIMIT] = text_of(limit);
    ask.parts[ask.parts_count++] = value("alice");
    ask.number[ASK_COST] = 1;
    ask.given = ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY);
    assert_int_equal(operation_run(&asker, OPERATION_PEEK, &ask, &a, &error), 0);
    return a.remaining;
}

/* ---- one after the other ---- */

static void the_estimate_is_replaced_by_what_was_used(void **state)
{
    struct made m = make("api", 6);
    assert_int_equal(m.e, 0);
    assert_int_equal(m.a.verdict, WEIR_ALLOW);
    assert_int_equal(m.a.remaining, 4);
    assert_int_equal(strlen(m.id), 32);
    assert_int_equal(strspn(m.id, "0123456789abcdef"), 32);
    assert_int_equal(settled(m.id, 2), 8);
    m = make("api", 1);
    assert_int_equal(settled(m.id, 5), 3); /* more than the estimate */
    m = make("api", 3);
    assert_int_equal(settled(m.id, 0), 3); /* cancelled */
    m = make("api", 1);
    assert_int_equal(settled(m.id, 9), 0); /* into debt */
    assert_int_equal(make("api", 1).a.verdict, WEIR_DENY);
    assert_int_equal(counts().open, 0);
    assert_int_equal(counts().made, 4);
    assert_int_equal(counts().settled, 4);
}

static void the_limits_own_cost_counts_where_none_is_given(void **state)
{
    assert_int_equal(make("own", 0).a.remaining, 7);
    assert_int_equal(make("own", 2).a.remaining, 5);
    assert_int_equal(make("api", 0).a.remaining, 9);
}

static void what_is_denied_reserves_nothing(void **state)
{
    assert_int_equal(make("api", 10).e, 0);
    struct made m = make("api", 1);
    assert_int_equal(m.e, 0);
    assert_int_equal(m.a.verdict, WEIR_DENY);
    assert_string_equal(m.id, "");
    m = make("api", 11);
    assert_int_equal(m.a.verdict, WEIR_NEVER);
    assert_string_equal(m.id, "");
    assert_int_equal(counts().open, 1);
}

static void an_id_is_good_once_in_either_case_of_letters(void **state)
{
    struct made m = make("api", 5);
    char upper[RESERVATION_ID];
    for (unsigned i = 0; i < RESERVATION_ID; i++) {
        upper[i] = (char)(m.id[i] >= 'a' ? m.id[i] - 'a' + 'A' : m.id[i]);
    }
    assert_int_equal(settled(upper, 1), 9);
    expect_none(m.id, NOW, UNKNOWN);
    expect_none(upper, NOW, UNKNOWN);
    assert_int_equal(remaining("api"), 9);
}

static void what_is_no_id_is_unknown(void **state)
{
    static const char *const ids[] = {"",
                                      "0",
                                      "00000000000000000000000000000000",
                                      "0000000000000000000000000000000",
                                      "000000000000000000000000000000000",
                                      "0000000000000000000000000000000g",
                                      "-0000000000000000000000000000000"};
    (void)make("api", 1);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        expect_none(ids[i], NOW, UNKNOWN);
    }
    assert_int_equal(counts().open, 1);
}

static void no_two_ids_are_alike(void **state)
{
    struct made a = make("day", 1);
    struct made b = make("day", 1);
    unsigned same = 0;
    for (unsigned i = 0; i < 32; i++) {
        same += a.id[i] == b.id[i];
    }
    assert_in_range(same, 0, 16); /* two of 32 on average */
}

static void after_its_time_the_estimate_stays_charged(void **state)
{
    struct made a = make_at("day", 100, 1000, NOW);
    struct made b = make_at("day", 10, 1000, NOW);
    struct weir_error error = {0};
    struct answer answer;
    assert_int_equal(settle_at(a.id, 1, NOW + 1000 * MS - 1, &answer, &error), 0);
    assert_int_equal(answer.remaining, 1000000 - 10 - 1);
    expect_none(b.id, NOW + 1000 * MS, "the reservation has expired");
    expect_none(b.id, NOW, UNKNOWN); /* also for a clock that is behind */
    assert_int_equal(remaining("day"), 1000000 - 10 - 1);
    assert_int_equal(counts().expired, 1);
    assert_int_equal(counts().open, 0);
}

static void a_shadow_limit_gives_an_id_that_settles_nothing(void **state)
{
    struct made a = make("quiet", 10);
    struct made b = make("quiet", 5); /* it would have denied */
    assert_int_equal(b.a.verdict, WEIR_ALLOW);
    assert_int_equal(b.a.flags, ANSWER_SHADOW);
    assert_int_equal(strlen(b.id), 32);
    assert_int_equal(settled(b.id, 0), 0);
    assert_int_equal(settled(a.id, 4), 6);
}

static void keys_of_several_parts_and_tiers_are_remembered(void **state)
{
    char long_part[2001];
    memset(long_part, 'x', 2000);
    long_part[2000] = 0;
    struct weir_text parts[2] = {value(long_part), {"a\0b", 3}};
    struct weir_rules_key key = {
        .limit = value("pair"), .parts = parts, .parts_count = 2, .tier = value("pro")};
    struct made m = make_key(&key, 50, 1000, NOW);
    assert_int_equal(m.e, 0);
    assert_int_equal(m.a.remaining, 50);
    memset(long_part, 'y', 2000); /* it has its own copy */
    assert_int_equal(settled(m.id, 1), 99);
}

static void what_cannot_be_reserved_says_why(void **state)
{
    struct weir_text many[9] = {{"a", 1}, {"a", 1}, {"a", 1}, {"a", 1}, {"a", 1},
                                {"a", 1}, {"a", 1}, {"a", 1}, {"a", 1}};
    struct weir_rules_key key = {.limit = value("pair"), .parts = many, .parts_count = 9};
    struct made m = make("nowhere", 1);
    assert_int_equal(m.e, WEIR_ENOLIMIT);
    assert_string_equal(m.error.text, "no limit named 'nowhere'");
    assert_int_equal(make_key(&key, 1, 1, NOW).e, WEIR_EKEY);
    assert_int_equal(make("pair", 1).e, WEIR_EKEY); /* one part of two */
    assert_int_equal(counts().open, 0);
    assert_int_equal(counts().made, 0);
}

/* ---- room ---- */

static void a_full_table_refuses_and_takes_nothing_until_something_is_old(void **state)
{
    start_with(6); /* three for one client */
    struct made first = make_at("day", 1, 500, NOW);
    (void)make_at("day", 1, 1000, NOW);
    (void)make_at("day", 1, 2000, NOW);
    struct made m = make("day", 1);
    assert_int_equal(m.e, RESERVATION_FULL);
    assert_string_equal(m.error.text,
                        "the reservations of this client take 3 places of 6; more than half are "
                        "taken, so one client may have 1: settle or cancel some");
    assert_string_equal(m.id, "");
    assert_int_equal(remaining("day"), 1000000 - 3);
    assert_int_equal(counts().refused[ROOM_NOT_OF_CLIENT], 1);
    assert_int_equal(make_at("day", 1, 1000, NOW + 500 * MS - 1).e, RESERVATION_FULL);
    assert_int_equal(make_at("day", 1, 9000, NOW + 500 * MS).e, 0); /* for the first one */
    assert_int_equal(make_at("day", 1, 1000, NOW + 500 * MS).e, RESERVATION_FULL);
    expect_none(first.id, NOW, UNKNOWN);
    assert_int_equal(make_at("day", 1, 9000, NOW + 2000 * MS).e, 0);
    assert_int_equal(make_at("day", 1, 9000, NOW + 2000 * MS).e, 0);
    assert_int_equal(make_at("day", 1, 9000, NOW + 2000 * MS).e, RESERVATION_FULL);
    assert_int_equal(counts().open, 3);
    assert_int_equal(counts().expired, 3);
    assert_int_equal(counts().refused[ROOM_NOT_OF_CLIENT], 4);
}

static void settling_makes_room(void **state)
{
    start_with(1);
    for (unsigned i = 0; i < 100; i++) {
        struct made m = make("day", 1);
        assert_int_equal(m.e, 0);
        assert_int_equal(make("day", 1).e, RESERVATION_FULL);
        assert_int_equal(settled(m.id, 1), 1000000 - 1 - (int64_t)i);
    }
}

static void long_keys_take_several_places(void **state)
{
    static char part[4001];
    uint64_t n = 0;
    memset(part, 'x', 4000);
    struct weir_text one = {part, 4000};
    struct weir_rules_key key = {.limit = value("day"), .parts = &one, .parts_count = 1};
    while (n < RESERVATIONS_MAX && make_key(&key, 1, 1000, NOW).e == 0) {
        n++;
    }
    assert_in_range(n, RESERVATIONS_MAX / 2 / 5, RESERVATIONS_MAX / 2 / 5 + 1); /* 5 places each */
    assert_int_equal(counts().refused[ROOM_NOT_OF_CLIENT], 1);
    assert_int_equal(counts().open, n);
}

/* ---- room for others ---- */

/* Makes as many as it gets; returns how many. */
static unsigned make_all(const char *limit)
{
    unsigned n = 0;
    while (make(limit, 1).e == 0) {
        n++;
    }
    return n;
}

static void one_client_gets_half_and_the_next_one_a_share(void **state)
{
    start_with(1024);
    assert_int_equal(make_all("day"), 512);
    be_client(2);
    assert_in_range(make_all("day"), 10, 16); /* of 256 that are free for the limit */
    be_client(3);
    assert_in_range(make_all("quiet"), 20, 32); /* of 500 */
    be_client(1);
    assert_int_equal(make("quiet", 1).e, RESERVATION_FULL);
    assert_true(counts().refused[ROOM_NOT_OF_CLIENT] >= 3);
    assert_int_equal(counts().refused[ROOM_NOT_OF_ALL], 0);
}

static void a_hundred_greedy_clients_leave_room_for_the_next(void **state)
{
    start_with(RESERVATIONS_MAX);
    for (unsigned i = 0; i < 100; i++) {
        be_client(10 + i);
        assert_true(make_all("day") > 0);
    }
    be_client(1);
    assert_int_equal(make("day", 1).e, 0);
    assert_true(make_all("quiet") > 100); /* another limit has places of its own */
}

static void one_limit_leaves_a_quarter_to_the_others(void **state)
{
    unsigned n = 0;
    start_with(64);
    for (be_client(n); make("day", 1).e == 0; be_client(n)) { /* each client makes one */
        n++;
    }
    assert_int_equal(n, 48);
    assert_string_equal(make("day", 1).error.text,
                        "the reservations of this limit take 48 places, and may take 48 of all 64");
    assert_int_equal(counts().refused[ROOM_NOT_OF_LIMIT], 2);
    assert_int_equal(make("quiet", 1).e, 0);
    n = 100;
    for (be_client(n); make("quiet", 1).e == 0; be_client(n)) {
        n++;
    }
    assert_int_equal(counts().open, 64);
    assert_int_equal(counts().refused[ROOM_NOT_OF_ALL], 1);
    assert_string_equal(make("quiet", 1).error.text,
                        "the reservations of all clients take 64 places of 64");
}

static void clients_of_one_ipv6_network_are_one(void **state)
{
    start_with(64);
    client = (struct address){.bytes = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 1}, .family = 6};
    assert_int_equal(make_all("day"), 32);
    client.bytes[8] = 2;
    assert_int_equal(make("day", 1).e, RESERVATION_FULL);
    client.bytes[7] = 2;
    assert_int_equal(make("day", 1).e, 0);
}

static void the_time_to_live_has_a_bound(void **state)
{
    struct made m = make_at("day", 1, 600001, NOW);
    assert_int_equal(m.e, WEIR_EINVAL);
    assert_string_equal(m.error.text, "ttl_ms: found 600001, expected at most 600000 "
                                      "(server.reservation_ttl in the rule file)");
    assert_int_equal(make_at("day", 1, 600000, NOW).e, 0);
    m = make_at("api", 1, 0, NOW); /* a minute */
    expect_none(m.id, NOW + 60000 * MS, "the reservation has expired");
    server.options.reservation_ttl_ms = 5000;
    assert_int_equal(make_at("day", 1, 5001, NOW).e, WEIR_EINVAL);
    m = make_at("api", 1, 0, NOW);
    expect_none(m.id, NOW + 5000 * MS, "the reservation has expired");
    assert_int_equal(remaining("day"), 1000000 - 1);
}

/* ---- other rules ---- */

static void reload(const char *text)
{
    struct weir_error error = {0};
    if (weir_rules_reload_text(server.rules, "test", text, strlen(text), &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void a_kept_limit_settles_over_a_reload(void **state)
{
    struct made m = make("api", 6);
    reload("limits: [{name: api, key: [user], rate: 10/min}]\n");
    assert_int_equal(settled(m.id, 1), 9);
}

static void a_limit_that_is_gone_or_another_one_is_told(void **state)
{
    struct made gone = make("own", 1);
    struct made other_window = make("day", 5);
    struct made other_key = make("api", 1);
    reload("limits:\n"
           "  - {name: day, key: [user], rate: 1M/h, algorithm: fixed_window}\n"
           "  - {name: api, key: [tenant, user], rate: 10/min}\n");
    expect_none(gone.id, NOW, GONE);
    expect_none(other_window.id, NOW, GONE);
    expect_none(other_key.id, NOW, GONE);
    assert_int_equal(remaining("day"), 1000000); /* nothing was given to the new one */
    assert_int_equal(counts().lost, 3);
    assert_int_equal(counts().open, 0);
}

/* ---- races ---- */

#define THREADS 4
#define MANY 600

struct race {
    char ids[MANY][RESERVATION_ID];
    uint64_t settled;
    uint64_t cancelled;
    uint64_t none;
    uint64_t made;
    uint64_t denied;
};

/* Each thread tries each reservation, half of them settle 4 of 10 and half cancel. */
static void settle_all(unsigned index, void *arg)
{
    struct race *race = arg;
    for (unsigned i = 0; i < MANY; i++) {
        struct weir_error error;
        struct answer a;
        int e = settle_at(race->ids[i], index % 2 == 0 ? 4 : 0, NOW, &a, &error);
        threads_require(e == 0 || e == RESERVATION_NONE);
        (void)threads_add(e != 0           ? &race->none
                          : index % 2 == 0 ? &race->settled
                                           : &race->cancelled,
                          1);
    }
}

static void of_all_who_try_one_settles(void **state)
{
    static struct race race;
    race = (struct race){0};
    for (unsigned i = 0; i < MANY; i++) {
        struct made m = make("day", 10);
        assert_int_equal(m.e, 0);
        memcpy(race.ids[i], m.id, RESERVATION_ID);
    }
    threads_run(THREADS, settle_all, &race);
    assert_int_equal(race.settled + race.cancelled, MANY);
    assert_int_equal(race.none, (THREADS - 1) * MANY);
    assert_int_equal(remaining("day"), 1000000 - 4 * race.settled);
    assert_int_equal(counts().open, 0);
    assert_int_equal(counts().settled, MANY);
}

/* Each thread makes and settles its own, as fast as it can, in a table that is too small. */
static void make_and_settle(unsigned index, void *arg)
{
    struct race *race = arg;
    for (unsigned i = 0; i < MANY; i++) {
        struct weir_error error;
        struct answer a;
        struct made m = make("day", 7);
        threads_require(m.e == 0 || m.e == RESERVATION_FULL);
        (void)threads_add(m.e == 0 ? &race->made : &race->denied, 1);
        if (m.e == 0) {
            threads_require(settle_at(m.id, 2, NOW, &a, &error) == 0);
        }
    }
    (void)index;
}

static void a_small_table_is_never_over_its_bound_and_loses_nothing(void **state)
{
    struct race race = {.made = 0};
    start_with(4); /* two for one client */
    threads_run(THREADS, make_and_settle, &race);
    assert_int_equal(race.made + race.denied, THREADS * MANY);
    assert_int_equal(counts().refused[ROOM_NOT_OF_ALL] + counts().refused[ROOM_NOT_OF_CLIENT] +
                         counts().refused[ROOM_NOT_OF_LIMIT],
                     race.denied);
    assert_int_equal(counts().made, race.made);
    assert_int_equal(counts().settled, race.made);
    assert_int_equal(counts().open, 0);
    assert_int_equal(remaining("day"), 1000000 - 2 * race.made);
    assert_int_equal(make("day", 1).e, 0);
    assert_int_equal(make("day", 1).e, 0);
    assert_int_equal(make("day", 1).e, RESERVATION_FULL); /* no place has got lost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_estimate_is_replaced_by_what_was_used, start, stop),
        cmocka_unit_test_setup_teardown(the_limits_own_cost_counts_where_none_is_given, start,
                                        stop),
        cmocka_unit_test_setup_teardown(what_is_denied_reserves_nothing, start, stop),
        cmocka_unit_test_setup_teardown(an_id_is_good_once_in_either_case_of_letters, start, stop),
        cmocka_unit_test_setup_teardown(what_is_no_id_is_unknown, start, stop),
        cmocka_unit_test_setup_teardown(no_two_ids_are_alike, start, stop),
        cmocka_unit_test_setup_teardown(after_its_time_the_estimate_stays_charged, start, stop),
        cmocka_unit_test_setup_teardown(a_shadow_limit_gives_an_id_that_settles_nothing, start,
                                        stop),
        cmocka_unit_test_setup_teardown(keys_of_several_parts_and_tiers_are_remembered, start,
                                        stop),
        cmocka_unit_test_setup_teardown(what_cannot_be_reserved_says_why, start, stop),
        cmocka_unit_test_teardown(a_full_table_refuses_and_takes_nothing_until_something_is_old,
                                  stop),
        cmocka_unit_test_teardown(settling_makes_room, stop),
        cmocka_unit_test_setup_teardown(long_keys_take_several_places, start, stop),
        cmocka_unit_test_teardown(one_client_gets_half_and_the_next_one_a_share, stop),
        cmocka_unit_test_teardown(a_hundred_greedy_clients_leave_room_for_the_next, stop),
        cmocka_unit_test_teardown(one_limit_leaves_a_quarter_to_the_others, stop),
        cmocka_unit_test_teardown(clients_of_one_ipv6_network_are_one, stop),
        cmocka_unit_test_setup_teardown(the_time_to_live_has_a_bound, start, stop),
        cmocka_unit_test_setup_teardown(a_kept_limit_settles_over_a_reload, start, stop),
        cmocka_unit_test_setup_teardown(a_limit_that_is_gone_or_another_one_is_told, start, stop),
        cmocka_unit_test_setup_teardown(of_all_who_try_one_settles, start, stop),
        cmocka_unit_test_teardown(a_small_table_is_never_over_its_bound_and_loses_nothing, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
