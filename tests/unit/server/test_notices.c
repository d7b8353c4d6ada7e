/* What operators must know at once: the notices, since when, and their words for each role. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/remote.h"
#include "server/status/notices.h"
#include "server/status/sentence.h"

#define T0 (UINT64_C(1795000000) * WEIR_SECOND) /* 2026-11-18T11:06:40Z */
#define LIMITS 6

static struct server server;
static struct limit_numbers limits[LIMITS];
static struct numbers now;
static struct notices *notices;
static json_t *told;
static char open_words[4096];

/* A node of a fleet of two, whose store is there. Its limits are local, and have no trouble. */
static int begin(void **state)
{
    static const char *const names[LIMITS] = {"login", "search", "api", "assets", "mail", "adhoc"};
    memset(limits, 0, sizeof limits);
    for (size_t i = 0; i < LIMITS; i++) {
        (void)snprintf(limits[i].name, sizeof limits[i].name, "%s", names[i]);
    }
    server = (struct server){.fleet = {.fleet = (struct weir_fleet *)(void *)limits}};
    now = (struct numbers){.server = &server, .limits = limits, .limits_count = LIMITS};
    now.fleet.up = 1;
    now.fleet.nodes = 2;
    notices = notices_create();
    assert_non_null(notices);
    return 0;
}

static int end(void **state)
{
    notices_destroy(notices);
    json_decref(told);
    told = NULL;
    return 0;
}

/* Looks at a time after T0, and reads what a role is told. */
static void look_as(enum role role, uint64_t seconds)
{
    struct buffer out;
    buffer_init(&out, sizeof open_words - 1);
    notices_update(notices, &now, T0 + seconds * WEIR_SECOND);
    json_decref(told);
    told = notices_json(notices, role);
    notices_put_open(notices, &out);
    (void)snprintf(open_words, sizeof open_words, "%.*s", TEXT_ARGS(buffer_text(&out)));
    buffer_finish(&out);
}

static void look(uint64_t seconds)
{
    look_as(ROLE_ADMIN, seconds);
}

static const json_t *notice_named(const char *name)
{
    for (size_t i = 0; i < json_array_size(told); i++) {
        const json_t *notice = json_array_get(told, i);
        if (strcmp(json_string_value(json_object_get(notice, "name")), name) == 0) {
            return notice;
        }
    }
    return NULL;
}

static void expect(const char *name, const char *text)
{
    const json_t *notice = notice_named(name);
    assert_non_null(notice);
    assert_string_equal(json_string_value(json_object_get(notice, "text")), text);
}

static void expect_since(const char *name, uint64_t seconds)
{
    const json_t *since = json_object_get(notice_named(name), "since_ms");
    assert_int_equal(json_integer_value(since), (T0 + seconds * WEIR_SECOND) / WEIR_MILLISECOND);
}

static void expect_none(void)
{
    assert_int_equal(json_array_size(told), 0);
    assert_string_equal(open_words, "");
}

static void share(size_t i, int on_store_failure)
{
    limits[i].remote = true;
    limits[i].on_store_failure = on_store_failure;
}

/* ---- rows ---- */

static void ends_a_sentence(const char *text)
{
    assert_true(strlen(text) > 20);
    assert_int_equal(text[strlen(text) - 1], '.');
}

static void each_row_has_words_for_every_reader(void **state)
{
    for (size_t i = 0; i < NOTICES; i++) {
        const struct notice_row *row = &notice_rows[i];
        assert_true(strcmp(row->severity, "critical") == 0 ||
                    strcmp(row->severity, "warning") == 0);
        assert_true(row->title[0] >= 'A' && row->title[0] <= 'Z');
        assert_true(row->open[0] >= 'a' && row->open[0] <= 'z');
        assert_memory_equal(row->alert, "Weir", 4);
        ends_a_sentence(row->now);
        ends_a_sentence(row->act);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(row->name, notice_rows[j].name);
            assert_string_not_equal(row->open, notice_rows[j].open);
        }
    }
}

static void rows_are_in_the_order_of_their_severity(void **state)
{
    for (size_t i = 1; i < NOTICES; i++) {
        assert_true(strcmp(notice_rows[i - 1].severity, notice_rows[i].severity) <= 0);
    }
}

static void a_server_without_trouble_has_no_notice(void **state)
{
    look(0);
    expect_none();
    server.fleet.fleet = NULL;
    now.fleet = (struct fleet_numbers){.up = 0};
    look(1);
    expect_none();
}

/* ---- the store ---- */

static void a_store_that_is_away_says_what_each_limit_does(void **state)
{
    share(0, REMOTE_FAIL_CLOSED);
    share(1, REMOTE_FAIL_LOCAL);
    look(0);
    expect_none();
    now.fleet.up = 0;
    look(3);
    look(20);
    expect("store_away", "login denies all, search is divided by 2 nodes");
    expect_since("store_away", 3);
    assert_string_equal(open_words, "store away since 2026-11-18T11:06:43Z\n");
    now.fleet.up = 1;
    look(21);
    expect_none();
}

static void many_limits_are_counted_behind_the_first_three(void **state)
{
    for (size_t i = 0; i < LIMITS - 1; i++) {
        share(i, i < 4 ? REMOTE_FAIL_LOCAL : REMOTE_FAIL_OPEN);
    }
    now.fleet.up = 0;
    now.fleet.nodes = 1;
    look(0);
    expect("store_away",
           "login, search, api and 1 more are counted by this node alone; mail allows all");
}

static void limits_that_deny_nothing_are_not_said_to_deny_all(void **state)
{
    share(0, REMOTE_FAIL_CLOSED);
    share(1, REMOTE_FAIL_CLOSED);
    limits[0].shadow = true;
    limits[1].switched = 1;
    now.fleet.up = 0;
    look(0);
    expect("store_away", "no limit that denies uses it");
}

static void the_built_in_limit_is_named_when_it_is_used(void **state)
{
    share(5, REMOTE_FAIL_CLOSED);
    now.fleet.up = 0;
    look(0);
    expect("store_away", "no limit that denies uses it");
    limits[5].stats.allowed = 1;
    look(1);
    expect("store_away", "adhoc denies all");
}

static void a_full_store_is_told(void **state)
{
    now.fleet.full = 1;
    look(0);
    assert_non_null(notice_named("store_full"));
    assert_string_equal(open_words, "store full since 2026-11-18T11:06:40Z\n");
}

/* Adds 1000 answers of a shared limit, so many of them without the store, and looks. */
static void answer(uint64_t degraded, uint64_t seconds)
{
    limits[1].stats.allowed += 1000;
    limits[1].degraded += degraded;
    look(seconds);
}

static void a_share_of_answers_without_the_store_is_told_in_round_numbers(void **state)
{
    share(1, REMOTE_FAIL_LOCAL);
    answer(900, 0); /* before the first look: when that was is not known */
    expect_none();
    answer(9, 1);
    expect_none();
    answer(71, 2);
    expect("degraded",
           "at least 2 % of the shared answers come without the store, those of search");
    answer(75, 3);
    expect("degraded",
           "at least 5 % of the shared answers come without the store, those of search");
    expect_since("degraded", 2);
    look(13);
    expect_none();
}

static void answers_while_the_store_was_away_are_no_second_notice(void **state)
{
    share(1, REMOTE_FAIL_LOCAL);
    answer(0, 0);
    now.fleet.up = 0;
    answer(1000, 1);
    assert_null(notice_named("degraded"));
    now.fleet.up = 1;
    answer(0, 2);
    expect_none();
}

/* ---- tables ---- */

static void a_full_table_says_what_happens_to_new_keys(void **state)
{
    look(0);
    limits[0].stats.full_denied += 5;
    limits[1].stats.evicted += 5;
    limits[2].stats.full_allowed += 5;
    limits[3].stats.reclaimed += 5; /* a fresh key was forgotten: nobody notices */
    look(1);
    expect("table_full", "login denies new keys, api allows new keys without a charge, search "
                         "forgets keys in use");
    look(10);
    assert_non_null(notice_named("table_full"));
    look(11);
    expect_none();
}

static void a_limit_in_shadow_mode_denies_no_new_key(void **state)
{
    limits[0].shadow = true;
    look(0);
    limits[0].stats.full_denied += 5;
    look(1);
    expect("table_full", "login has no room for new keys");
}

static void what_happened_before_the_first_look_is_no_notice(void **state)
{
    limits[0].stats.full_denied = 5;
    look(0);
    expect_none();
}

static void a_limit_at_another_place_in_the_rules_begins_anew(void **state)
{
    look(0);
    limits[0].stats.evicted = 7;
    (void)snprintf(limits[0].name, sizeof limits[0].name, "other");
    look(1);
    expect_none();
    limits[0].stats.evicted = 8;
    look(2);
    expect("table_full", "other forgets keys in use");
}

/* ---- what operators have done ---- */

static void a_failed_reload_is_told_since_the_first_one(void **state)
{
    notices_reloaded(notices, "the old rules stay", "r.yaml:1:2: found x", T0);
    notices_reloaded(notices, "the old rules stay", "r.yaml:3:4: found y", T0 + WEIR_SECOND);
    look(5);
    expect("reload_failed", "the old rules stay");
    expect_since("reload_failed", 0);
    assert_string_equal(json_string_value(json_object_get(notice_named("reload_failed"), "why")),
                        "r.yaml:3:4: found y");
    notices_reloaded(notices, NULL, "", T0 + 6 * WEIR_SECOND);
    look(6);
    expect_none();
}

static void the_kill_switch_is_told_for_all_limits_and_for_some(void **state)
{
    limits[2].switched = 1;
    look(0);
    expect("kill_switch", "api denies nothing");
    for (size_t i = 0; i < LIMITS; i++) {
        limits[i].switched = 1;
    }
    now.shadow = true;
    look(1);
    expect("kill_switch", "nothing is denied");
    expect_since("kill_switch", 0);
    limits[0].switched = 0;
    look(2);
    expect("kill_switch", "search, api, assets and 1 more deny nothing");
}

static void limits_in_shadow_mode_by_the_rules_are_no_kill_switch(void **state)
{
    limits[2].shadow = true;
    look(0);
    expect_none();
}

/* ---- certificates ---- */

static void a_certificate_is_told_a_week_before_its_end(void **state)
{
    now.certificate_ns = T0 + 8 * WEIR_DAY;
    now.fleet.certificate_ns = T0 + 7 * WEIR_DAY;
    look(0);
    expect_none();
    look(1);
    expect("store_certificate",
           "that of this node for the store in 7 days, on 2026-11-25 at 11:06 UTC");
    assert_true(json_is_null(json_object_get(notice_named("store_certificate"), "since_ms")));
    look(5 * 24 * 3600);
    expect("certificate", "that of the listeners in 3 days, on 2026-11-26 at 11:06 UTC");
    assert_string_equal(open_words, "the certificate of the listeners ends within a week\n"
                                    "the certificate for the store ends within a week\n");
    look(8 * 24 * 3600 - 3600);
    expect("certificate", "that of the listeners in 1 hour, on 2026-11-26 at 11:06 UTC");
    look(8 * 24 * 3600);
    expect("certificate", "that of the listeners has ended, on 2026-11-26 at 11:06 UTC");
}

/* ---- readers ---- */

/* Lets everything be wrong whose words could name a limit, a file or an address. */
static void break_all(void)
{
    share(0, REMOTE_FAIL_CLOSED);
    look(0);
    now.fleet.up = 0;
    (void)snprintf(now.fleet.why.text, sizeof now.fleet.why.text, "10.1.2.3:6379: refused");
    limits[3].stats.evicted = 1;
    limits[4].switched = 1;
    notices_reloaded(notices, "the old rules stay", "/etc/secret.yaml:1:2: found x", T0);
}

static void words_for_everybody_name_no_limit(void **state)
{
    break_all();
    look(1);
    assert_non_null(strstr(open_words, "store away since 2026-11-18T11:06:41Z\n"));
    assert_non_null(strstr(open_words, "reload failed since 2026-11-18T11:06:40Z\n"));
    for (size_t i = 0; i < LIMITS; i++) {
        assert_null(strstr(open_words, limits[i].name));
    }
    assert_null(strstr(open_words, "secret.yaml"));
    assert_null(strstr(open_words, "10.1.2.3"));
}

static void the_reason_is_for_the_role_admin_alone(void **state)
{
    break_all();
    look_as(ROLE_CHECK, 1);
    expect("store_away", "login denies all");
    assert_true(json_is_null(json_object_get(notice_named("store_away"), "why")));
    char *text = json_dumps(told, 0);
    assert_null(strstr(text, "secret.yaml"));
    assert_null(strstr(text, "10.1.2.3"));
    free(text);
    look_as(ROLE_ADMIN, 1);
    assert_string_equal(json_string_value(json_object_get(notice_named("store_away"), "why")),
                        "10.1.2.3:6379: refused");
}

static void a_reason_that_is_not_utf_8_does_not_hide_the_notice(void **state)
{
    notices_reloaded(notices, "the old rules stay", "found '\xff'", T0);
    look(0);
    expect("reload_failed", "the old rules stay");
    assert_string_equal(json_string_value(json_object_get(notice_named("reload_failed"), "why")),
                        "(not UTF-8)");
}

static void the_worst_comes_first(void **state)
{
    break_all();
    look(1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(told, 0), "severity")),
                        "critical");
    assert_int_equal(json_array_size(told), 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(each_row_has_words_for_every_reader),
        TEST(rows_are_in_the_order_of_their_severity),
        TEST(a_server_without_trouble_has_no_notice),
        TEST(a_store_that_is_away_says_what_each_limit_does),
        TEST(many_limits_are_counted_behind_the_first_three),
        TEST(limits_that_deny_nothing_are_not_said_to_deny_all),
        TEST(the_built_in_limit_is_named_when_it_is_used),
        TEST(a_full_store_is_told),
        TEST(a_share_of_answers_without_the_store_is_told_in_round_numbers),
        TEST(answers_while_the_store_was_away_are_no_second_notice),
        TEST(a_full_table_says_what_happens_to_new_keys),
        TEST(a_limit_in_shadow_mode_denies_no_new_key),
        TEST(what_happened_before_the_first_look_is_no_notice),
        TEST(a_limit_at_another_place_in_the_rules_begins_anew),
        TEST(a_failed_reload_is_told_since_the_first_one),
        TEST(the_kill_switch_is_told_for_all_limits_and_for_some),
        TEST(limits_in_shadow_mode_by_the_rules_are_no_kill_switch),
        TEST(a_certificate_is_told_a_week_before_its_end),
        TEST(words_for_everybody_name_no_limit),
        TEST(the_reason_is_for_the_role_admin_alone),
        TEST(a_reason_that_is_not_utf_8_does_not_hide_the_notice),
        TEST(the_worst_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
