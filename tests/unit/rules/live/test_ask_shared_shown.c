/* Limits that a fleet decides: shadow limits, who is told, and what they show of themselves. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rules/live/live.h"
#include "support/rules/faked_world.h"

/* ---- the limit that clients are told ---- */

static void a_local_limit_is_told_instead_of_a_hidden_one_of_the_fleet(void **state)
{
    struct faked_world w;
    struct weir_rules_question show = {.flags = WEIR_RULES_SHOW};
    faked_begin(&w, "limits:\n"
                    "- {name: all, key: [], rate: 3/h}\n"
                    "- {name: shared, key: [user], rate: 5/h}\n"
                    "- {name: wide, key: [user], rate: 9/h, consistency: local}\n"
                    "- {name: own, key: [user], rate: 4/h, consistency: local}\n"
                    "- {name: quiet, key: [user], rate: 3/h, consistency: local, expose: false}\n");
    assert_int_equal(faked_ask_with(&w, "user=u", show), 0);
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(w.answer.limit, "all");
    assert_true(w.answer.hidden);
    assert_string_equal(w.answer.shown.limit, "own");
    assert_int_equal(w.answer.shown.quota, 4);
    assert_int_equal(w.answer.shown.remaining, 3);
    assert_int_equal(w.answer.shown.window_ns, WEIR_HOUR);

    assert_int_equal(faked_ask(&w, "user=u"), 0); /* without WEIR_RULES_SHOW */
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(w.answer.shown.limit, "");
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    assert_true(fake_answer(&w.fleet));

    assert_int_equal(faked_ask_with(&w, "user=u", show), 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    assert_string_equal(w.answer.limit, "all");
    assert_string_equal(w.answer.shown.limit, ""); /* the others would have allowed */
    faked_end(&w);
}

static void a_shared_limit_is_told_instead_of_a_hidden_one(void **state)
{
    struct faked_world w;
    struct weir_rules_question show = {.flags = WEIR_RULES_SHOW};
    faked_begin(&w, "limits:\n"
                    "- {name: all, key: [], rate: 2/h}\n"
                    "- {name: wide, key: [user], rate: 9/h}\n"
                    "- {name: own, key: [user], rate: 4/h}\n"
                    "- {name: here, key: [user], rate: 5/h, consistency: local}\n"
                    "- {name: quiet, key: [user], rate: 3/h, expose: false}\n");
    assert_int_equal(faked_ask_with(&w, "user=u", show), 0);
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(w.answer.limit, "all");
    assert_true(w.answer.hidden);
    assert_string_equal(w.answer.shown.limit, "own");
    assert_int_equal(w.answer.shown.quota, 4);
    assert_int_equal(w.answer.shown.remaining, 3);
    assert_int_equal(w.answer.shown.window_ns, WEIR_HOUR);

    assert_int_equal(faked_ask(&w, "user=u"), 0); /* without WEIR_RULES_SHOW */
    assert_null(w.fleet.last.shown);
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(w.answer.shown.limit, "");

    assert_int_equal(faked_ask_with(&w, "user=u", show), 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    assert_string_equal(w.answer.limit, "all");
    assert_string_equal(w.answer.shown.limit, ""); /* the others would have allowed */
    faked_end(&w);
}

static void a_shared_limit_that_denies_too_is_told_of_a_denial(void **state)
{
    struct faked_world w;
    struct weir_rules_question show = {.flags = WEIR_RULES_SHOW};
    faked_begin(&w, "limits:\n"
                    "- {name: all, key: [], rate: 1/h}\n"
                    "- {name: wide, key: [user], rate: 9/h}\n"
                    "- {name: own, key: [user], rate: 1/h}\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(faked_ask_with(&w, "user=u", show), 0);
        assert_true(fake_answer(&w.fleet));
    }
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    assert_string_equal(w.answer.limit, "all");
    assert_string_equal(w.answer.shown.limit, "own");
    assert_int_equal(w.answer.shown.quota, 1);
    assert_int_equal(w.answer.shown.remaining, 0);
    faked_end(&w);
}

/* The usual case must cost nothing: then the binding limit is the one that is told. */
static void the_fleet_is_asked_for_a_second_limit_only_if_some_are_hidden(void **state)
{
    static const char *const same[] = {
        "limits: [{name: a, key: [user], rate: 2/h}, {name: b, key: [user], rate: 3/h}]",
        "limits: [{name: a, key: [], rate: 2/h}, {name: b, key: [], rate: 3/h}]",
        "limits: [{name: a, key: [], rate: 2/h}]",
    };
    struct weir_rules_question show = {.flags = WEIR_RULES_SHOW};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct faked_world w;
        faked_begin(&w, same[i]);
        assert_int_equal(faked_ask_with(&w, "user=u", show), 0);
        assert_null(w.fleet.last.shown);
        assert_true(fake_answer(&w.fleet));
        assert_string_equal(w.answer.limit, "a");
        assert_string_equal(w.answer.shown.limit, "");
        faked_end(&w);
    }
}

/* ---- shadow limits ---- */

static void shadow_limits_are_asked_each_for_itself_when_the_others_allow(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: l, key: [], rate: 2/h}\n"
                    "- {name: s1, key: [user], rate: 1/h, shadow: true}\n"
                    "- {name: s2, key: [user], rate: 1/h, shadow: true}\n"
                    "- {name: here, key: [user], rate: 1/h, shadow: true, consistency: local}\n");
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    assert_int_equal(fake_out(&w.fleet), 1);
    assert_string_equal(w.fleet.told[0], "l  * 1");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(fake_out(&w.fleet), 2);
    assert_int_equal(w.fleet.last.n, 1);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 1);
    assert_int_equal(w.answer.shadow_denied, 0);

    /* The second of them answers first: what is told is the first. */
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    assert_true(fake_answer(&w.fleet));
    assert_true(fake_answer_newest(&w.fleet));
    assert_true(fake_answer_newest(&w.fleet));
    assert_int_equal(w.done, 2);
    assert_int_equal(w.answer.answer.verdict, WEIR_ALLOW);
    assert_int_equal(w.answer.shadow_denied, 3);
    assert_string_equal(w.answer.shadow, "s1");
    assert_int_equal(w.answer.answer.flags & WEIR_FLAG_SHADOW, WEIR_FLAG_SHADOW);
    assert_string_equal(w.answer.limit, "l");
    assert_int_equal(w.denials, 0);

    unsigned asked = w.fleet.asked;
    assert_int_equal(faked_settle(&w, "user=u")->answer.verdict, WEIR_DENY);
    assert_int_equal(w.fleet.asked, asked + 1);
    assert_int_equal(faked_stats(&w).shadow_denied, 1);
    assert_int_equal(faked_stats(&w).asked, 3);
    faked_end(&w);
}

static void a_shadow_limit_of_the_fleet_beside_limits_that_are_decided_here(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: l, key: [user], rate: 2/h, consistency: local}\n"
                    "- {name: s, when: {user: u}, key: [], rate: 1/h, shadow: true}\n");
    assert_int_equal(faked_ask(&w, "user=v"), 1);
    assert_int_equal(faked_settle(&w, "user=u")->answer.remaining, 1);
    assert_string_equal(w.answer.shadow, "");
    assert_string_equal(faked_settle(&w, "user=u")->shadow, "s");
    assert_int_equal(faked_ask(&w, "user=u"), 1);
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    assert_string_equal(w.denied, "l u");
    faked_end(&w);
}

static void a_shadow_limit_alone_never_denies(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits: [{name: s, key: [], rate: 1/h, shadow: true}]");
    assert_int_equal(faked_settle(&w, "")->reason, WEIR_REASON_UNMATCHED);
    assert_int_equal(faked_settle(&w, "")->answer.verdict, WEIR_ALLOW);
    assert_int_equal(w.answer.answer.quota, WEIR_UNLIMITED);
    assert_int_equal(w.answer.shadow_denied, 1);
    assert_int_equal(faked_stats(&w).unmatched, 2);
    faked_end(&w);
}

static void a_shadow_limit_that_cannot_be_asked_is_counted_and_no_more(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: l, key: [], rate: 9/h}\n"
                    "- {name: s, key: [], rate: 9/h, shadow: true, cost: 'attribute:size'}\n"
                    "- {name: t, key: [], rate: 9/h, shadow: true}\n");
    assert_int_equal(faked_settle(&w, "")->answer.verdict, WEIR_ALLOW);
    assert_int_equal(faked_stats(&w).shadow_failed, 1);
    assert_int_equal(faked_ask(&w, "size=1"), 0);
    assert_true(fake_answer(&w.fleet));
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 2);
    assert_int_equal(w.answer.shadow_denied, 0);
    assert_int_equal(faked_stats(&w).shadow_failed, 2);
    faked_end(&w);
}

static void a_limit_switched_to_shadow_is_asked_as_one(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits: [{name: l, key: [], rate: 1/h}]");
    assert_int_equal(faked_ask(&w, ""), 0);
    assert_int_equal(weir_rules_shadow_set(w.rules, "l", 1, NULL), 0);
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(w.answer.limit, "l");
    assert_int_equal(faked_settle(&w, "")->answer.verdict, WEIR_ALLOW);
    assert_string_equal(w.answer.shadow, "l");
    faked_end(&w);
}

/* ---- who is told ---- */

static void a_refusal_is_told_before_the_answer_with_its_key(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits: [{name: l, key: [user|ip], rate: 1/h}]");
    (void)faked_settle(&w, "user=alice");
    assert_int_equal(w.denials, 0);
    (void)faked_settle(&w, "user=alice");
    assert_string_equal(w.denied, "l user=alice");
    assert_int_equal(w.denials, 1);
    assert_int_equal(w.done_before_denial, 1);
    faked_end(&w);
}

/* ---- looking at them ---- */

static int take_limit(void *arg, const struct weir_rules_limit *limit)
{
    struct weir_rules_limit *to = arg;
    to[strcmp(limit->name, "f") == 0 ? 0 : 1] = *limit;
    return 0;
}

static void what_a_limit_has_counted_is_what_the_fleet_has(void **state)
{
    struct faked_world w;
    struct weir_rules_limit found[2];
    faked_begin(&w,
                "limits:\n"
                "- {name: f, key: [], rate: 2/h, consistency: synced, on_store_failure: closed}\n"
                "- {name: l, key: [], rate: 9/h, consistency: local}\n");
    for (unsigned i = 0; i < 3; i++) {
        (void)faked_settle(&w, "");
    }
    fake_find(&w.fleet, "f")->counts.degraded[REMOTE_FAIL_CLOSED] = 7;
    fake_find(&w.fleet, "f")->counts.remembered = 8;
    assert_int_equal(weir_rules_limits(w.rules, take_limit, found), 0);
    assert_int_equal(found[0].consistency, WEIR_RULES_SYNCED);
    assert_int_equal(found[0].on_store_failure, 2);
    assert_int_equal(found[0].stats.allowed, 2);
    assert_int_equal(found[0].stats.denied, 1);
    assert_int_equal(found[0].stats.bytes, 0);
    assert_int_equal(found[0].degraded[2], 7);
    assert_int_equal(found[0].remembered, 8);
    assert_int_equal(found[1].consistency, WEIR_RULES_LOCAL);
    assert_int_equal(found[1].stats.allowed, 2);
    assert_int_equal(faked_stats(&w).bytes, found[1].stats.bytes);
    faked_end(&w);
}

static int look(void *arg, struct weir *limiter, struct weir_text key,
                const struct rules_found *found)
{
    struct rules_found *to = arg;
    *to = *found;
    assert_int_equal(limiter == NULL, found->remote != NULL);
    assert_int_equal(key.len, found->remote != NULL ? 9 : 1);
    if (found->shard.at != NULL) {
        assert_int_equal(found->shard.len, 2);
        assert_memory_equal(found->shard.at, "t1", 2);
    }
    weir_rules_limit_keep(found->told.limit);
    return 5;
}

/* weir_rules_use_fn */
static int look_in_public(void *arg, struct weir *limiter, const void *key, size_t key_len,
                          const struct weir_rules_found *found)
{
    assert_int_equal(limiter == NULL, found->consistency != WEIR_RULES_LOCAL);
    assert_int_equal(key_len, limiter == NULL ? 9 : 1);
    return 6;
}

static void a_limit_by_its_name_says_whose_it_is(void **state)
{
    struct faked_world w;
    struct rules_found found;
    struct weir_text parts[] = {{"t1", 2}, {"abc", 3}};
    struct weir_rules_key key = {.limit = {"f", 1}, .parts = parts, .parts_count = 2};
    faked_begin(&w, "limits:\n"
                    "- {name: f, key: [tenant, user], rate: 2/h, shard_by: tenant, shadow: true}\n"
                    "- {name: l, key: [user], rate: 9/h, consistency: local}\n");
    assert_int_equal(weir_rules_use(w.rules, &key, look_in_public, NULL, NULL), 6);
    assert_int_equal(rules_use(w.rules, &key, look, &found, NULL), 5);
    assert_ptr_equal(found.remote, fake_find(&w.fleet, "f"));
    assert_int_equal(found.told.consistency, WEIR_RULES_EXACT);
    assert_int_equal(weir_rules_remove(w.rules, "f", NULL), 0);
    assert_non_null(fake_find(&w.fleet, "f"));
    weir_rules_limit_let_go(found.told.limit);
    assert_null(fake_find(&w.fleet, "f"));

    struct weir_rules_key local = {
        .limit = {"l", 1}, .parts = &(struct weir_text){"u", 1}, .parts_count = 1};
    assert_int_equal(weir_rules_use(w.rules, &local, look_in_public, NULL, NULL), 6);
    assert_int_equal(rules_use(w.rules, &local, look, &found, NULL), 5);
    assert_null(found.remote);
    assert_int_equal(found.told.consistency, WEIR_RULES_LOCAL);
    weir_rules_limit_let_go(found.told.limit);
    faked_end(&w);
}

static void limits_of_the_fleet_take_no_memory_and_no_files(void **state)
{
    static const char yaml[] = "server: {memory: 100MB}\n"
                               "adhoc: off\n"
                               "limits:\n"
                               "- {name: f, key: [user], rate: 2/h, max_keys: 1G}\n"
                               "- {name: l, key: [user], rate: 2/h, consistency: local}\n";
    char folder[] = "/tmp/weir-out-XXXXXX";
    char path[100];
    unsigned files = 0;
    struct faked_world w = {0};
    assert_non_null(mkdtemp(folder));
    fake_init(&w.fleet);
    struct weir_rules_options o = faked_options(&w);
    o.flags = 0;
    o.state = folder;
    assert_int_equal(weir_rules_open_text(&w.rules, "test", yaml, sizeof yaml - 1, &o, NULL), 0);
    DIR *d = opendir(folder);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        files += strstr(entry->d_name, ".weir") != NULL;
        assert_true(entry->d_name[0] != 'f');
        (void)snprintf(path, sizeof path, "%s/%.60s", folder, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(d);
    assert_int_equal(files, 1);
    faked_end(&w);
    assert_int_equal(rmdir(folder), 0);
}

static void without_a_fleet_every_limit_is_decided_here(void **state)
{
    struct weir_rules *r = rules_open("store: redis://localhost\n"
                                      "limits: [{name: l, key: [], rate: 2/h}]");
    assert_int_equal(rules_allowed(r, RULES_T0, "", 3), 2);
    assert_null(weir_rules_fleet(r));
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_limit_is_told_instead_of_a_hidden_one_of_the_fleet),
        cmocka_unit_test(a_shared_limit_is_told_instead_of_a_hidden_one),
        cmocka_unit_test(a_shared_limit_that_denies_too_is_told_of_a_denial),
        cmocka_unit_test(the_fleet_is_asked_for_a_second_limit_only_if_some_are_hidden),
        cmocka_unit_test(shadow_limits_are_asked_each_for_itself_when_the_others_allow),
        cmocka_unit_test(a_shadow_limit_of_the_fleet_beside_limits_that_are_decided_here),
        cmocka_unit_test(a_shadow_limit_alone_never_denies),
        cmocka_unit_test(a_shadow_limit_that_cannot_be_asked_is_counted_and_no_more),
        cmocka_unit_test(a_limit_switched_to_shadow_is_asked_as_one),
        cmocka_unit_test(a_refusal_is_told_before_the_answer_with_its_key),
        cmocka_unit_test(what_a_limit_has_counted_is_what_the_fleet_has),
        cmocka_unit_test(a_limit_by_its_name_says_whose_it_is),
        cmocka_unit_test(limits_of_the_fleet_take_no_memory_and_no_files),
        cmocka_unit_test(without_a_fleet_every_limit_is_decided_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
