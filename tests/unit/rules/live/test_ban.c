/* Bans of limits that this process decides: what counts, what a ban does, what a reload keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/rules_ask.h"

#define T0 RULES_T0
#define BAN "ban: {denials: 3, within: 1min, for: 10min}"
#define RULES(more) "limits: [{name: l, key: [user], rate: 1/h, " BAN more "}]"

static const unsigned banned = WEIR_FLAG_BLOCKED | WEIR_FLAG_BANNED;

/* Asks n times; none of these may be allowed, banned or blocked. */
static void deny(struct weir_rules *r, uint64_t now_ns, const char *words, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct weir_rules_answer a = rules_ask(r, now_ns, words);
        assert_int_equal(a.answer.verdict, WEIR_DENY);
        assert_int_equal(a.answer.flags, 0);
    }
}

static unsigned flags_of(struct weir_rules *r, uint64_t now_ns, const char *words)
{
    return rules_peek(r, now_ns, words).answer.flags;
}

struct numbers {
    uint64_t bans, failed, evicted;
};

static int add_numbers(void *arg, const struct weir_rules_limit *limit)
{
    struct numbers *n = arg;
    n->bans += limit->bans;
    n->failed += limit->bans_failed;
    n->evicted += limit->denials_evicted;
    return 0;
}

static struct numbers numbers_of(struct weir_rules *r)
{
    struct numbers n = {0};
    assert_int_equal(weir_rules_limits(r, add_numbers, &n), 0);
    return n;
}

static void reload(struct weir_rules *r, const char *yaml)
{
    struct weir_error error = {0};
    if (weir_rules_reload_text(r, "test", yaml, strlen(yaml), &error) != 0) {
        fail_msg("%s", error.text);
    }
}

/* ---- what a ban does ---- */

static void the_last_denial_that_is_allowed_bans_the_key_until_its_time_is_over(void **state)
{
    struct weir_rules *r = rules_open(RULES(""));
    assert_int_equal(rules_allowed(r, T0, "user=u", 1), 1);
    deny(r, T0, "user=u", 2);
    struct weir_rules_answer a = rules_ask(r, T0, "user=u");
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_int_equal(a.answer.flags, banned);
    assert_int_equal(a.reason, WEIR_REASON_BAN);
    assert_int_equal(a.answer.retry_after_ns, WEIR_HOUR); /* longer than the ban */
    assert_int_equal(rules_ask(r, T0, "user=u").reason, WEIR_REASON_BAN);
    assert_int_equal(flags_of(r, T0 + 10 * WEIR_MINUTE - 2, "user=u"), banned);
    assert_int_equal(flags_of(r, T0 + 10 * WEIR_MINUTE, "user=u"), 0);
    assert_int_equal(numbers_of(r).bans, 1);
    assert_int_equal(rules_allowed(r, T0, "user=v", 1), 1); /* no other key is banned */
    weir_rules_close(r);
}

static void a_ban_tells_when_it_ends_and_a_call_at_that_time_passes(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 1/s, " BAN "}]");
    assert_int_equal(rules_allowed(r, T0, "user=u", 1), 1);
    deny(r, T0, "user=u", 2);
    struct weir_rules_answer a = rules_ask(r, T0, "user=u");
    assert_int_equal(a.answer.retry_after_ns, 10 * WEIR_MINUTE);
    uint64_t end = T0 + 10 * WEIR_MINUTE - 1; /* ends of bans are odd */
    a = rules_ask(r, T0 + WEIR_MINUTE, "user=u");
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_int_equal(T0 + WEIR_MINUTE + a.answer.retry_after_ns, end);
    assert_int_equal(rules_ask(r, end - 1, "user=u").answer.verdict, WEIR_DENY);
    assert_int_equal(rules_ask(r, end, "user=u").answer.verdict, WEIR_ALLOW);
    weir_rules_close(r);
}

static void attempts_while_a_key_is_banned_do_not_extend_the_ban(void **state)
{
    struct weir_rules *r = rules_open(RULES(""));
    (void)rules_allowed(r, T0, "user=u", 4);
    for (unsigned i = 1; i < 600; i++) {
        assert_int_equal(rules_ask(r, T0 + i * WEIR_SECOND, "user=u").answer.flags, banned);
    }
    assert_int_equal(rules_ask(r, T0 + 10 * WEIR_MINUTE, "user=u").answer.flags, 0);
    assert_int_equal(numbers_of(r).bans, 1);
    weir_rules_close(r);
}

static void a_window_forgets_the_denials_of_the_window_before(void **state)
{
    struct weir_rules *r = rules_open(RULES(""));
    (void)rules_allowed(r, T0, "user=u", 1);
    for (unsigned i = 0; i < 10; i++) {
        deny(r, T0 + i * WEIR_MINUTE, "user=u", 2);
    }
    assert_int_equal(numbers_of(r).bans, 0);
    deny(r, T0 + 10 * WEIR_MINUTE, "user=u", 2);
    assert_int_equal(rules_ask(r, T0 + 10 * WEIR_MINUTE, "user=u").answer.flags, banned);
    weir_rules_close(r);
}

static void a_longer_block_of_an_operator_is_not_shortened_by_a_ban(void **state)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_answer a;
    struct weir *w = NULL;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 1;
    o.period_ns = WEIR_HOUR;
    o.max_keys = 100;
    o.flags = WEIR_EXPLICIT_TIME;
    assert_int_equal(weir_open(&w, &o, NULL), 0);
    assert_int_equal(weir_block_at(w, "u", 1, WEIR_FOREVER, T0), 0);
    assert_int_equal(weir_ban_at(w, "u", 1, T0 + WEIR_MINUTE, T0), 0);
    assert_int_equal(weir_check_at(w, "u", 1, 1, T0 + WEIR_HOUR, &a), 0);
    assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(a.retry_after_ns, WEIR_FOREVER);
    assert_int_equal(weir_block_at(w, "u", 1, T0 + WEIR_MINUTE, T0), 0);
    assert_int_equal(weir_ban_at(w, "u", 1, T0 + 2 * WEIR_MINUTE, T0), 0);
    assert_int_equal(weir_check_at(w, "u", 1, 1, T0, &a), 0);
    assert_int_equal(a.flags, banned);
    assert_int_equal(a.retry_after_ns, 2 * WEIR_MINUTE - 1);
    assert_int_equal(weir_ban_at(w, "u", 1, WEIR_FOREVER, T0), WEIR_ETIME);
    weir_close(w);
}

/* ---- what counts ---- */

static void peeks_never_shadow_and_other_limits_do_not_count(void **state)
{
    struct weir_rules *r =
        rules_open("limits:\n"
                   "- {name: l, key: [user], rate: 1/h, " BAN "}\n"
                   "- {name: wide, when: {path: /w}, key: [user], rate: 1/day}\n");
    (void)rules_allowed(r, T0, "user=u", 1);
    for (unsigned i = 0; i < 5; i++) {
        (void)rules_peek(r, T0, "user=u");
        assert_int_equal(rules_ask_cost(r, T0, "user=u", 2).answer.verdict, WEIR_NEVER);
    }
    (void)rules_allowed(r, T0, "path=/w user=v", 1);
    for (unsigned i = 0; i < 5; i++) { /* the other limit denies for longer, so it binds */
        assert_string_equal(rules_ask(r, T0, "path=/w user=v").limit, "wide");
    }
    assert_int_equal(weir_rules_shadow_set(r, "l", 1, NULL), 0);
    assert_int_equal(rules_allowed(r, T0, "user=u", 5), 5);
    assert_int_equal(weir_rules_shadow_set(r, "l", 0, NULL), 0);
    deny(r, T0, "user=u", 2);
    assert_int_equal(rules_ask(r, T0, "user=u").answer.flags, banned);
    weir_rules_close(r);
}

static void denials_for_lack_of_room_do_not_count(void **state)
{
    struct weir_rules *r = rules_open(
        "limits: [{name: l, key: [user], rate: 1/day, max_keys: 1, on_full: deny, " BAN "}]");
    char words[32];
    unsigned full = 0;
    for (unsigned i = 0; i < 2000; i++) { /* a table has some slots more than max_keys */
        (void)snprintf(words, sizeof words, "user=u%u", i);
        full += (rules_ask(r, T0, words).answer.flags & WEIR_FLAG_FULL) != 0;
    }
    assert_true(full > 5);
    for (unsigned i = 0; i < 9; i++) {
        assert_int_equal(rules_ask(r, T0, "user=late").answer.flags, WEIR_FLAG_FULL);
    }
    assert_int_equal(numbers_of(r).bans, 0);
    weir_rules_close(r);
}

static void a_ban_for_which_there_is_no_room_is_counted_and_tried_again_in_the_next_window(
    void **state)
{
    struct weir_rules *r = rules_open(RULES(", max_blocks: 1"));
    (void)rules_allowed(r, T0, "user=a", 4);
    (void)rules_allowed(r, T0, "user=b", 1);
    deny(r, T0, "user=b", 10);
    assert_int_equal(numbers_of(r).bans, 1);
    assert_int_equal(numbers_of(r).failed, 1);
    uint64_t later = T0 + 11 * WEIR_MINUTE;
    deny(r, later, "user=b", 2);
    assert_int_equal(rules_ask(r, later, "user=b").answer.flags, banned);
    assert_int_equal(numbers_of(r).bans, 2);
    weir_rules_close(r);
}

static void each_tier_counts_and_bans_for_itself(void **state)
{
    struct weir_rules *r = rules_open(RULES(", tiers: {pro: {rate: 2/h}}"));
    (void)rules_allowed(r, T0, "user=u", 3);
    (void)rules_allowed(r, T0, "user=u tier=pro", 4);
    assert_int_equal(rules_ask(r, T0, "user=u tier=pro").answer.flags, banned);
    deny(r, T0, "user=u", 0);
    assert_int_equal(flags_of(r, T0, "user=u"), 0);
    assert_int_equal(rules_ask(r, T0, "user=u").answer.flags, banned);
    weir_rules_close(r);
}

/* ---- by name ---- */

static int check_and_count(void *arg, struct weir *limiter, const void *key, size_t key_len,
                           const struct weir_rules_found *found)
{
    struct weir_answer *a = arg;
    int e = weir_check_at(limiter, key, key_len, 1, T0, a);
    if (e == 0) {
        weir_rules_count_denied(found, key, key_len, T0, a);
    }
    return e;
}

static void checks_of_one_limit_by_its_name_count_too(void **state)
{
    struct weir_rules *r = rules_open(RULES(""));
    struct weir_text part = {"u", 1};
    struct weir_rules_key key = {.limit = {"l", 1}, .parts = &part, .parts_count = 1};
    struct weir_answer a = {0};
    (void)rules_allowed(r, T0, "user=u", 3);
    assert_int_equal(weir_rules_use(r, &key, check_and_count, &a, NULL), 0);
    assert_int_equal(a.flags, banned);
    assert_int_equal(rules_ask(r, T0, "user=u").answer.flags, banned);
    weir_rules_close(r);
}

/* ---- reloads ---- */

static void a_reload_keeps_counts_and_bans_of_limits_that_it_keeps(void **state)
{
    struct weir_rules *r = rules_open(RULES(""));
    (void)rules_allowed(r, T0, "user=banned", 4);
    (void)rules_allowed(r, T0, "user=u", 1);
    deny(r, T0, "user=u", 2);
    reload(r, "limits: [{name: l, key: [user], rate: 2/h, "
              "ban: {denials: 3, within: 1min, for: 1h}}]");
    assert_int_equal(flags_of(r, T0, "user=banned"), banned);
    (void)rules_ask(r, T0, "user=u"); /* a unit more, by the new rate */
    struct weir_rules_answer a = rules_ask(r, T0, "user=u");
    assert_int_equal(a.answer.flags, banned);
    assert_int_equal(flags_of(r, T0 + 50 * WEIR_MINUTE, "user=u"), banned);
    assert_int_equal(numbers_of(r).bans, 2);
    weir_rules_close(r);
}

static void a_reload_may_add_change_and_remove_a_ban_and_keeps_the_keys(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 1/h}]");
    (void)rules_allowed(r, T0, "user=u", 9);
    assert_int_equal(numbers_of(r).bans, 0);
    reload(r, RULES(""));
    deny(r, T0, "user=u", 2);
    reload(r, "limits: [{name: l, key: [user], rate: 1/h, "
              "ban: {denials: 2, within: 2min, for: 10min}}]"); /* counts otherwise: afresh */
    deny(r, T0, "user=u", 1);
    assert_int_equal(rules_ask(r, T0, "user=u").answer.flags, banned);
    reload(r, "limits: [{name: l, key: [user], rate: 1/h}]");
    assert_int_equal(flags_of(r, T0, "user=u"), banned); /* until it is over or lifted */
    (void)rules_allowed(r, T0, "user=v", 1);
    deny(r, T0, "user=v", 9);
    weir_rules_close(r);
}

static void a_load_that_fails_leaves_the_counts_alone(void **state)
{
    struct weir_rules *r = rules_open(RULES(""));
    static const char bad[] =
        "limits:\n"
        "- {name: l, key: [user], rate: 1/h, ban: {denials: 9, within: 1min, for: 1min}}\n"
        "- {name: m, key: [user], rate: 1/h, ban: {denials: 0, within: 1min, for: 1min}}\n";
    (void)rules_allowed(r, T0, "user=u", 3);
    assert_int_equal(weir_rules_reload_text(r, "test", bad, strlen(bad), NULL), WEIR_ERULES);
    assert_int_equal(rules_ask(r, T0, "user=u").answer.flags, banned);
    weir_rules_close(r);
}

/* ---- memory ---- */

static void the_memory_for_counting_is_part_of_the_limit(void **state)
{
    struct weir_rules_stats with = {.size = sizeof with};
    struct weir_rules_stats without = {.size = sizeof without};
    struct weir_rules *r = rules_open(RULES(""));
    assert_int_equal(weir_rules_stats_read(r, &with), 0);
    weir_rules_close(r);
    r = rules_open("limits: [{name: l, key: [user], rate: 1/h}]");
    assert_int_equal(weir_rules_stats_read(r, &without), 0);
    weir_rules_close(r);
    assert_true(with.bytes > without.bytes + 100000 * 16); /* a slot for each of max_keys */
    assert_non_null(rules_complaint("server: {memory: 11MB}\nadhoc: off\n" RULES("")));
    assert_null(rules_complaint("server: {memory: 11MB}\nadhoc: off\n"
                                "limits: [{name: l, key: [user], rate: 1/h}]"));
}

/* With more denied keys than max_keys, those with the fewest denials are forgotten. */
static void counting_is_bounded_and_what_is_forgotten_is_counted(void **state)
{
    struct weir_rules *r = rules_open(
        "limits: [{name: l, key: [user], rate: 1/day, max_keys: 100, ban: {denials: 1000, "
        "within: 1h, for: 1h}}]");
    char words[32];
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(words, sizeof words, "user=u%u", i);
        (void)rules_ask(r, T0, words);
        (void)rules_ask(r, T0, words);
    }
    assert_true(numbers_of(r).evicted > 4000);
    weir_rules_close(r);
}

/* ---- the list ---- */

struct listing {
    char text[500];
};

static int list(void *arg, const struct weir_rules_block *b)
{
    struct listing *l = arg;
    char key[64];
    size_t n = strlen(l->text);
    (void)weir_rules_key_text(b->key, b->key_len, key, sizeof key);
    (void)snprintf(l->text + n, sizeof l->text - n, "%s/%s %s %llu %llu %d %s: %s\n", b->limit,
                   b->tier, key, (unsigned long long)((b->since_ns - T0) / WEIR_SECOND),
                   (unsigned long long)((b->until_ns - T0) / WEIR_SECOND), b->banned, b->by,
                   b->why);
    return 0;
}

static void assert_listed(struct weir_rules *r, uint64_t now_ns, const char *expected)
{
    struct listing l = {.text = ""};
    assert_int_equal(weir_rules_blocks(r, now_ns, list, &l), 0);
    assert_string_equal(l.text, expected);
}

static int unblock(void *arg, struct weir *limiter, const void *key, size_t key_len,
                   const struct weir_rules_found *found)
{
    (void)arg;
    (void)found;
    return weir_unblock(limiter, key, key_len);
}

static void banned_keys_are_listed_with_their_end_and_the_reason(void **state)
{
    struct weir_rules *r = rules_open(RULES(", tiers: {pro: {}}"));
    struct weir_text part = {"v", 1};
    struct weir_rules_key key = {
        .limit = {"l", 1}, .parts = &part, .parts_count = 1, .tier = {"pro", 3}};
    assert_listed(r, T0, "");
    (void)rules_allowed(r, T0, "user=u", 4);
    (void)rules_allowed(r, T0 + WEIR_SECOND, "user=v tier=pro", 4);
    assert_listed(r, T0,
                  "l/ u 0 600 1 ban: 3 denials within 1min\n"
                  "l/pro v 1 601 1 ban: 3 denials within 1min\n");
    assert_int_equal(weir_rules_use(r, &key, unblock, NULL, NULL), 1);
    assert_listed(r, T0, "l/ u 0 600 1 ban: 3 denials within 1min\n");
    reload(r, RULES(", tiers: {pro: {}}"));
    assert_listed(r, T0 + 599 * WEIR_SECOND, "l/ u 0 600 1 ban: 3 denials within 1min\n");
    assert_listed(r, T0 + 600 * WEIR_SECOND, "");
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_denial_that_is_allowed_bans_the_key_until_its_time_is_over),
        cmocka_unit_test(a_ban_tells_when_it_ends_and_a_call_at_that_time_passes),
        cmocka_unit_test(attempts_while_a_key_is_banned_do_not_extend_the_ban),
        cmocka_unit_test(a_window_forgets_the_denials_of_the_window_before),
        cmocka_unit_test(a_longer_block_of_an_operator_is_not_shortened_by_a_ban),
        cmocka_unit_test(peeks_never_shadow_and_other_limits_do_not_count),
        cmocka_unit_test(denials_for_lack_of_room_do_not_count),
        cmocka_unit_test(
            a_ban_for_which_there_is_no_room_is_counted_and_tried_again_in_the_next_window),
        cmocka_unit_test(each_tier_counts_and_bans_for_itself),
        cmocka_unit_test(checks_of_one_limit_by_its_name_count_too),
        cmocka_unit_test(a_reload_keeps_counts_and_bans_of_limits_that_it_keeps),
        cmocka_unit_test(a_reload_may_add_change_and_remove_a_ban_and_keeps_the_keys),
        cmocka_unit_test(a_load_that_fails_leaves_the_counts_alone),
        cmocka_unit_test(the_memory_for_counting_is_part_of_the_limit),
        cmocka_unit_test(counting_is_bounded_and_what_is_forgotten_is_counted),
        cmocka_unit_test(banned_keys_are_listed_with_their_end_and_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
