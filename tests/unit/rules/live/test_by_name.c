/* One limit by its name and the parts of its key: the same bucket as a request that matches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/rules_ask.h"

static const char rules_text[] =
    "limits:\n"
    "- {name: ip, when: {path: /ip}, key: [ip], rate: 5/h}\n"
    "- {name: pair, when: {path: /pair}, key: [user|ip, path], rate: 5/h}\n"
    "- {name: tiers, when: {path: /t}, key: [user], rate: 5/h, tiers: {pro: {rate: 50/h}}}\n"
    "- {name: all, when: {path: /all}, key: [], rate: 5/h}\n";

static int take_one(void *arg, struct weir *limiter, const void *key, size_t key_len,
                    const struct weir_rules_found *found)
{
    (void)found;
    return weir_check_at(limiter, key, key_len, 1, RULES_T0, arg);
}

static int use(struct weir_rules *r, const char *limit, const char *a, const char *b,
               const char *tier, struct weir_answer *answer)
{
    struct weir_text parts[2] = {{a, a != NULL ? strlen(a) : 0}, {b, b != NULL ? strlen(b) : 0}};
    struct weir_rules_key key = {.limit = {limit, strlen(limit)},
                                 .parts = parts,
                                 .parts_count = (a != NULL) + (b != NULL),
                                 .tier = {tier, strlen(tier)}};
    struct weir_error error;
    return weir_rules_use(r, &key, take_one, answer, &error);
}

static void it_is_the_bucket_of_a_request_that_matches(void **state)
{
    struct weir_rules *r = rules_open(rules_text);
    struct weir_answer a;
    assert_int_equal(rules_ask(r, RULES_T0, "path=/ip ip=192.0.2.1").answer.remaining, 4);
    assert_int_equal(use(r, "ip", "::ffff:192.0.2.1", NULL, "", &a), 0);
    assert_int_equal(a.remaining, 3);
    assert_int_equal(rules_ask(r, RULES_T0, "path=/pair user=u").answer.remaining, 4);
    assert_int_equal(use(r, "pair", "u", "//pair/./", "", &a), 0);
    assert_int_equal(a.remaining, 3);
    assert_int_equal(use(r, "all", NULL, NULL, "", &a), 0);
    assert_int_equal(rules_ask(r, RULES_T0, "path=/all").answer.remaining, 3);
    weir_rules_close(r);
}

static void the_tier_chooses_the_bucket(void **state)
{
    struct weir_rules *r = rules_open(rules_text);
    struct weir_answer a;
    assert_int_equal(use(r, "tiers", "u", NULL, "pro", &a), 0);
    assert_int_equal(a.remaining, 49);
    assert_int_equal(use(r, "tiers", "u", NULL, "", &a), 0);
    assert_int_equal(a.remaining, 4);
    assert_int_equal(use(r, "tiers", "u", NULL, "unknown", &a), 0);
    assert_int_equal(a.remaining, 3);
    assert_int_equal(rules_ask(r, RULES_T0, "path=/t user=u tier=pro").answer.remaining, 48);
    weir_rules_close(r);
}

static void what_does_not_fit_is_an_error(void **state)
{
    struct weir_rules *r = rules_open(rules_text);
    struct weir_answer a;
    assert_int_equal(use(r, "none", "u", NULL, "", &a), WEIR_ENOLIMIT);
    assert_int_equal(use(r, "", "u", NULL, "", &a), WEIR_ENOLIMIT);
    assert_int_equal(use(r, "ip", NULL, NULL, "", &a), WEIR_EKEY);
    assert_int_equal(use(r, "ip", "1.2.3.4", "x", "", &a), WEIR_EKEY);
    assert_int_equal(use(r, "ip", "", NULL, "", &a), WEIR_EKEY);
    assert_int_equal(use(r, "ip", "nowhere", NULL, "", &a), WEIR_EATTRIBUTE);
    assert_int_equal(use(r, "pair", "u", "/..;/", "", &a), WEIR_EATTRIBUTE);
    assert_int_equal(weir_rules_key_parts(r, "none", 4), WEIR_ENOLIMIT);
    assert_int_equal(weir_rules_key_parts(r, "pair", 4), 2);
    assert_int_equal(weir_rules_key_parts(r, "all", 3), 0);
    assert_int_equal(weir_rules_use(NULL, NULL, take_one, &a, NULL), WEIR_EINVAL);
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_bucket_of_a_request_that_matches),
        cmocka_unit_test(the_tier_chooses_the_bucket),
        cmocka_unit_test(what_does_not_fit_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
