/*
 * The example of a rule file that the design shows: it loads, and each of its
 * limits and lists does what it says. Its files are made in a temporary folder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rules/rules_ask.h"

#define T0 RULES_T0

/* @ stands for the folder. */
static const char example[] =
    "version: 1\n"
    "server: {http: '127.0.0.1:8080', resp: '127.0.0.1:6380', admin: '127.0.0.1:8082', state: "
    "/run/weir, memory: 1GB, trusted_proxies: [127.0.0.0/8, '::1/128'], headers: ietf}\n"
    "store: {url: 'redis://10.0.0.5:6379/0', password_file: /run/secrets/redis, deadline: 5ms, "
    "fleet_size: auto}   # a bare URL works too\n"
    "attributes:                      # where /v1/auth finds them; the first source present wins\n"
    "  user: ['header:X-User-Id']\n"
    "  api_key: ['header:X-Api-Key', 'query:api_key']\n"
    "  tier: ['header:X-Tier', 'file:@/tiers.csv by user']\n"
    "  tokens: request\n"
    "allow: [{ip: [10.0.0.0/8, 'file:@/allow.cidr']}, {path: /healthz}]\n"
    "block: [{api_key: ['file:@/revoked.txt']}]\n"
    "limits:\n"
    "  - {name: login, when: {method: POST, path: [/login, /v1/login]}, key: [ip], rate: 5/min, "
    "group: endpoint, on_store_failure: closed}\n"
    "  - name: search\n"
    "    when: {path: /search/**}\n"
    "    key: [user|ip]\n"
    "    rate: 100/min\n"
    "    burst: 150\n"
    "    tiers: {by: tier, default: free, free: {}, pro: {rate: 1k/min, burst: 2k}, enterprise: "
    "{rate: 20k/h}}\n"
    "    overrides: {by: user, file: @/overrides.csv}\n"
    "    group: endpoint\n"
    "  - {name: api, when: {path: /**}, unless: {path: /static/**}, key: [api_key|ip], rate: "
    "0.5/s, burst: 30, group: endpoint, max_keys: 1M}\n"
    "  - {name: llm, when: {path: /v1/chat}, key: [user], rate: 1M/day, algorithm: fixed_window, "
    "cost: 'attribute:tokens', consistency: leased}\n"
    "  - {name: export, when: {path: /export}, key: [user], rate: 2/s, algorithm: leaky_bucket, "
    "queue: 20}\n"
    "  - {name: everyone, key: [], rate: 50k/s, consistency: synced, shadow: true}\n";

static const struct {
    const char *name;
    const char *content;
} files[] = {
    {"weir.yaml", NULL},
    {"tiers.csv", "user,tier\nanna,pro\nemil,enterprise\nodd,platinum\n"},
    {"allow.cidr", "# ours\n198.51.100.0/24\n2001:db8:1::/48\n"},
    {"revoked.txt", "leaked-1\nleaked-2\n"},
    {"addresses.csv", "2001:db8:7::1,1/h\n192.0.2.7,2/h\n"},
    {"overrides.csv", "user,rate,burst\nvip,600/min,900\nslow,1/h\n"},
};
#define FILES (sizeof files / sizeof files[0])

static char folder[64];
static char path[96];

static void path_of(const char *name)
{
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
}

static void write_example(FILE *file)
{
    for (const char *c = example; *c != 0; c++) {
        (void)(*c == '@' ? fputs(folder, file) : fputc(*c, file));
    }
}

static int make_files(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%s/weir-design-XXXXXX",
                   tmp != NULL && strlen(tmp) < 30 ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    for (size_t i = 0; i < FILES; i++) {
        path_of(files[i].name);
        FILE *file = fopen(path, "w");
        if (file == NULL) {
            return -1;
        }
        if (files[i].content != NULL) {
            (void)fputs(files[i].content, file);
        } else {
            write_example(file);
        }
        (void)fclose(file);
    }
    return 0;
}

static int remove_files(void **state)
{
    for (size_t i = 0; i < FILES; i++) {
        path_of(files[i].name);
        (void)unlink(path);
    }
    return rmdir(folder);
}

/* ---- each test with rules of its own ---- */

static void tell(void *arg, const struct weir_rules_message *m)
{
    ++*(unsigned *)arg;
    (void)fprintf(stderr, "%s:%u:%u: %s\n", m->file, m->line, m->column, m->text);
}

static uint64_t frozen(void *arg)
{
    (void)arg;
    return T0;
}

static int open_example(void **state)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules = NULL;
    unsigned messages = 0;
    o.clock = frozen;
    o.message = tell;
    o.message_arg = &messages;
    path_of("weir.yaml");
    int e = weir_rules_open(&rules, path, &o, NULL);
    *state = rules;
    return e != 0 || messages != 0 ? -1 : 0;
}

static int close_example(void **state)
{
    weir_rules_close(*state);
    return 0;
}

static void assert_binds(struct weir_rules *r, const char *words, const char *limit,
                         unsigned applied)
{
    struct weir_rules_answer a = rules_peek(r, T0, words);
    if (strcmp(a.limit, limit) != 0 || a.applied != applied) {
        fail_msg("%s: '%s' of %u, expected '%s' of %u", words, a.limit, a.applied, limit, applied);
    }
}

static void groups_choose_the_first_and_the_others_always_apply(void **state)
{
    struct weir_rules *r = *state;
    assert_binds(r, "method=POST path=/login ip=192.0.2.1", "login", 1);
    assert_binds(r, "method=GET path=/login ip=192.0.2.1", "api", 1);
    assert_binds(r, "path=/search/cats ip=192.0.2.1", "search", 1);
    assert_binds(r, "path=/search ip=192.0.2.1", "search", 1);
    assert_binds(r, "path=/anything/else ip=192.0.2.1", "api", 1);
    assert_binds(r, "path=/static/logo.png ip=192.0.2.1", "", 0);
    assert_binds(r, "path=/v1/chat ip=192.0.2.1 user=u tokens=10", "api", 2);
    assert_binds(r, "path=/export ip=192.0.2.1 user=u", "export", 2);
}

static void login_is_five_a_minute_for_each_address_and_only_by_post(void **state)
{
    struct weir_rules *r = *state;
    assert_int_equal(rules_allowed(r, T0, "method=POST path=/login ip=192.0.2.1", 4), 4);
    assert_int_equal(rules_allowed(r, T0, "method=POST path=/v1/login ip=::ffff:192.0.2.1", 4), 1);
    assert_int_equal(rules_allowed(r, T0, "method=POST path=//login/. ip=192.0.2.1", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "method=post path=/%6cogin ip=192.0.2.1", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "method=POST path=/login ip=192.0.2.2", 9), 5);
    assert_int_equal(rules_allowed(r, T0, "method=GET path=/login ip=192.0.2.1", 9), 9);
    struct weir_rules_answer a = rules_peek(r, T0, "method=POST path=/login ip=192.0.2.1");
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_int_equal(a.answer.quota, 5);
    assert_int_equal(a.answer.retry_after_ns, 12 * WEIR_SECOND);
    uint64_t again = T0 + 12 * WEIR_SECOND;
    assert_int_equal(rules_allowed(r, again - 1, "method=POST path=/login ip=192.0.2.1", 1), 0);
    assert_int_equal(rules_allowed(r, again, "method=POST path=/login ip=192.0.2.1", 2), 1);
}

static void assert_tier(struct weir_rules *r, const char *words, const char *tier, uint64_t burst)
{
    struct weir_rules_answer a = rules_peek(r, T0, words);
    assert_string_equal(a.limit, "search");
    assert_string_equal(a.tier, tier);
    assert_int_equal(a.answer.quota, burst);
    assert_int_equal(a.answer.remaining, burst);
}

static void search_has_tiers_from_a_header_or_from_the_file_by_user(void **state)
{
    struct weir_rules *r = *state;
    assert_tier(r, "path=/search/x ip=192.0.2.1", "free", 150);
    assert_tier(r, "path=/search/x user=nobody", "free", 150);
    assert_tier(r, "path=/search/x user=anna", "pro", 2000);
    assert_tier(r, "path=/search/x header:x-user-id=anna", "pro", 2000);
    assert_tier(r, "path=/search/x user=emil", "enterprise", 20000);
    assert_tier(r, "path=/search/x user=emil header:X-TIER=pro", "pro", 2000);
    assert_tier(r, "path=/search/x user=emil tier=free", "free", 150);
    assert_tier(r, "path=/search/x user=odd", "free", 150); /* no such tier: the default */
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(r, &stats), 0);
    assert_int_equal(stats.tier_unknown, 1);
}

static void each_tier_refills_at_its_own_rate(void **state)
{
    struct weir_rules *r = *state;
    assert_int_equal(rules_allowed(r, T0, "path=/search/x user=u", 200), 150);
    assert_int_equal(rules_allowed(r, T0 + WEIR_MINUTE, "path=/search/x user=u", 200), 100);
    assert_int_equal(rules_allowed(r, T0, "path=/search/x user=anna", 2100), 2000);
    assert_int_equal(rules_allowed(r, T0 + WEIR_MINUTE, "path=/search/x user=anna", 1100), 1000);
    assert_int_equal(rules_ask_cost(r, T0, "path=/search user=emil", 20000).answer.verdict,
                     WEIR_ALLOW);
    struct weir_rules_answer a = rules_peek(r, T0 + WEIR_MINUTE, "path=/search user=emil");
    assert_int_equal(a.answer.remaining, 333); /* 20000 / 60 */
}

static void search_has_other_numbers_for_single_users(void **state)
{
    struct weir_rules *r = *state;
    assert_tier(r, "path=/search/x user=vip", "", 900);
    assert_tier(r, "path=/search/x user=vip tier=pro", "", 900);
    assert_int_equal(rules_allowed(r, T0, "path=/search/x user=slow", 5), 1);
    assert_int_equal(rules_allowed(r, T0 + WEIR_HOUR, "path=/search/x user=slow", 5), 1);
    assert_int_equal(rules_allowed(r, T0, "path=/search/x ip=192.0.2.1", 5), 5);
}

static void api_is_one_in_two_seconds_after_thirty_except_for_static_files(void **state)
{
    struct weir_rules *r = *state;
    assert_int_equal(rules_allowed(r, T0, "path=/a ip=192.0.2.1", 40), 30);
    assert_int_equal(rules_allowed(r, T0, "path=/static/a ip=192.0.2.1", 40), 40);
    assert_int_equal(rules_allowed(r, T0, "path=/static/../a ip=192.0.2.1", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/a ip=192.0.2.1 query:api_key=k", 40), 30);
    assert_int_equal(rules_allowed(r, T0, "path=/a ip=192.0.2.9 header:X-Api-Key=k", 1), 0);
    assert_int_equal(rules_allowed(r, T0 + 2 * WEIR_SECOND - 1, "path=/a ip=192.0.2.1", 1), 0);
    assert_int_equal(rules_allowed(r, T0 + 2 * WEIR_SECOND, "path=/a ip=192.0.2.1", 2), 1);
}

static void llm_counts_tokens_until_midnight(void **state)
{
    struct weir_rules *r = *state;
    struct weir_error error;
    struct weir_rules_answer a =
        rules_ask(r, T0, "path=/v1/chat ip=192.0.2.1 user=u tokens=999990");
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_string_equal(a.limit, "llm");
    assert_int_equal(a.answer.remaining, 10);
    a = rules_ask(r, T0, "path=/v1/chat ip=192.0.2.1 user=u tokens=11");
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_string_equal(a.limit, "llm");
    assert_int_equal(a.answer.retry_after_ns, WEIR_DAY);
    a = rules_ask(r, T0, "path=/v1/chat ip=192.0.2.1 user=u tokens=1000001");
    assert_int_equal(a.answer.verdict, WEIR_NEVER);
    assert_int_equal(rules_refusal(r, "path=/v1/chat ip=192.0.2.1 user=u", &error),
                     WEIR_EATTRIBUTE);
    assert_int_equal(rules_refusal(r, "path=/v1/chat ip=192.0.2.1 user=u tokens=-1", &error),
                     WEIR_EATTRIBUTE);
    a = rules_peek(r, T0, "path=/a ip=192.0.2.1"); /* of all these api was charged for one */
    assert_int_equal(a.answer.remaining, 29);
    a = rules_ask(r, T0, "path=/v1/chat ip=192.0.2.1 tokens=5"); /* without a user: skipped */
    assert_string_equal(a.limit, "api");
    assert_int_equal(a.missing, 1);
    a = rules_ask(r, T0 + WEIR_DAY, "path=/v1/chat ip=192.0.2.1 user=u tokens=1000000");
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
}

static void export_waits_in_a_queue_of_twenty(void **state)
{
    struct weir_rules *r = *state;
    for (uint64_t i = 0; i <= 20; i++) {
        struct weir_rules_answer a = rules_ask(r, T0, "path=/export ip=192.0.2.1 user=u");
        assert_int_equal(a.answer.verdict, WEIR_ALLOW);
        assert_int_equal(a.answer.delay_ns, i * WEIR_SECOND / 2);
    }
    struct weir_rules_answer a = rules_ask(r, T0, "path=/export ip=192.0.2.1 user=u");
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_string_equal(a.limit, "export");
    assert_int_equal(a.answer.retry_after_ns, WEIR_SECOND / 2);
    a = rules_peek(r, T0, "path=/a ip=192.0.2.1");
    assert_int_equal(a.answer.remaining, 9); /* 30 - 21: the denied one charged nothing */
}

static void everyone_together_is_only_watched(void **state)
{
    struct weir_rules *r = *state;
    struct weir_rules_answer a = rules_ask_cost(r, T0, "path=/static/x", 50000);
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_int_equal(a.answer.flags & WEIR_FLAG_SHADOW, 0);
    a = rules_ask(r, T0, "path=/static/x");
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_true((a.answer.flags & WEIR_FLAG_SHADOW) != 0);
    assert_string_equal(a.shadow, "everyone");
    assert_int_equal(a.shadow_denied, 1);
    assert_int_equal(a.reason, WEIR_REASON_SHADOW);
    a = rules_ask(r, T0 + WEIR_SECOND, "path=/static/x");
    assert_int_equal(a.answer.flags & WEIR_FLAG_SHADOW, 0);
}

static void a_denied_request_is_not_counted_for_everyone(void **state)
{
    struct weir_rules *r = *state;
    assert_int_equal(rules_ask_cost(r, T0, "path=/static/x", 49999).answer.flags, 0);
    assert_int_equal(rules_ask_cost(r, T0, "path=/a ip=192.0.2.1", 31).answer.verdict, WEIR_NEVER);
    assert_int_equal(rules_ask(r, T0, "path=/static/x").answer.flags, 0);
    assert_true((rules_ask(r, T0, "path=/static/x").answer.flags & WEIR_FLAG_SHADOW) != 0);
}

static void assert_reason(struct weir_rules *r, const char *words, int reason)
{
    struct weir_rules_answer a = rules_ask(r, T0, words);
    if (a.reason != reason) {
        fail_msg("%s: reason %d, expected %d", words, a.reason, reason);
    }
}

static void block_beats_allow_beats_limits(void **state)
{
    struct weir_rules *r = *state;
    assert_reason(r, "path=/a ip=10.255.0.1", WEIR_REASON_ALLOW_LIST);
    assert_reason(r, "path=/a ip=::ffff:10.255.0.1", WEIR_REASON_ALLOW_LIST);
    assert_reason(r, "path=/a ip=11.0.0.1", WEIR_REASON_LIMIT);
    assert_reason(r, "path=/a ip=198.51.100.77", WEIR_REASON_ALLOW_LIST);
    assert_reason(r, "path=/a ip=198.51.101.77", WEIR_REASON_LIMIT);
    assert_reason(r, "path=/a ip=2001:db8:1:ffff::1", WEIR_REASON_ALLOW_LIST);
    assert_reason(r, "path=/a ip=2001:db8:2::1", WEIR_REASON_LIMIT);
    assert_reason(r, "path=/healthz ip=11.0.0.1", WEIR_REASON_ALLOW_LIST);
    assert_reason(r, "path=/healthz/x ip=11.0.0.1", WEIR_REASON_LIMIT);
    assert_reason(r, "path=/healthz ip=10.0.0.1 api_key=leaked-1", WEIR_REASON_BLOCK_LIST);
    assert_reason(r, "path=/healthz header:X-Api-Key=leaked-2", WEIR_REASON_BLOCK_LIST);
    assert_reason(r, "path=/a ip=11.0.0.1 query:api_key=leaked-1", WEIR_REASON_BLOCK_LIST);
    assert_reason(r, "path=/a ip=11.0.0.1 query:api_key=leaked-11", WEIR_REASON_LIMIT);
    struct weir_rules_answer a = rules_ask(r, T0, "path=/a api_key=leaked-1");
    assert_int_equal(a.answer.verdict, WEIR_NEVER);
    assert_true(a.answer.retry_after_ns == WEIR_FOREVER);
}

/* Takes 10 of the limiter's key, and notes the tier. */
static int take_ten(void *arg, struct weir *limiter, const void *key, size_t key_len,
                    const struct weir_rules_found *found)
{
    struct weir_answer a;
    (void)snprintf(arg, WEIR_RULES_NAME, "%.*s", (int)found->tier.len,
                   found->tier.len > 0 ? found->tier.at : "");
    return weir_check_at(limiter, key, key_len, 10, T0, &a);
}

static void assert_same_count(struct weir_rules *r, const char *user, const char *tier,
                              uint64_t burst)
{
    char found[WEIR_RULES_NAME];
    char words[80];
    struct weir_text part = {user, strlen(user)};
    struct weir_rules_key key = {.limit = {"search", 6}, .parts = &part, .parts_count = 1};
    assert_int_equal(weir_rules_use(r, &key, take_ten, found, NULL), 0);
    assert_string_equal(found, tier);
    (void)snprintf(words, sizeof words, "path=/search user=%s", user);
    assert_int_equal(rules_peek(r, T0, words).answer.remaining, burst - 10);
}

static void a_limit_by_its_name_is_the_one_that_requests_are_counted_by(void **state)
{
    assert_same_count(*state, "anna", "pro", 2000); /* by the file */
    assert_same_count(*state, "nobody", "free", 150);
    assert_same_count(*state, "vip", "", 900);
}

/* The same client has the same key, so it has the same numbers too. */
static void an_override_by_address_is_for_the_whole_client(void **state)
{
    char yaml[200];
    (void)snprintf(yaml, sizeof yaml,
                   "limits: [{name: l, key: [ip], rate: 5/h, overrides: {by: ip, file: "
                   "%s/addresses.csv}}]",
                   folder);
    struct weir_rules *r = rules_open(yaml);
    assert_int_equal(rules_allowed(r, T0, "ip=2001:db8:7::1", 1), 1);
    assert_int_equal(rules_allowed(r, T0, "ip=2001:db8:7::1", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "ip=2001:db8:7::2", 9), 0);
    assert_int_equal(rules_allowed(r, T0, "ip=2001:db8:7:1::1", 9), 5);
    assert_int_equal(rules_allowed(r, T0, "ip=192.0.2.7", 9), 2);
    assert_int_equal(rules_allowed(r, T0, "ip=::ffff:192.0.2.7", 9), 0);
    assert_int_equal(rules_allowed(r, T0, "ip=192.0.2.8", 9), 5);
    weir_rules_close(r);
}

#define TOLD_MAX 400

static void note_restart(void *arg, const struct weir_rules_message *m)
{
    char *told = arg;
    size_t used = strlen(told);
    if (strstr(m->text, "after a restart") != NULL) {
        assert_int_equal(m->severity, WEIR_RULES_WARNING);
        (void)snprintf(told + used, TOLD_MAX - used, "%s\n", m->text);
    }
}

static void a_reload_reports_what_needs_a_restart(void **state)
{
#define LIMIT "limits: [{name: l, key: [], rate: 1/s}]\n"
    static const char before[] = "server: {http: '127.0.0.1:1', memory: 1GB}\n" LIMIT;
    static const char after[] = "server: {http: 'off', headers: off, memory: 2GB}\n"
                                "store: 'redis://h:1'\n" LIMIT "allow: [{path: /ok}]\n";
    char told[TOLD_MAX] = "";
    struct weir_rules *r;
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    o.message = note_restart;
    o.message_arg = told;
    assert_int_equal(weir_rules_open_text(&r, "x", before, sizeof before - 1, &o, NULL), 0);
    assert_int_equal(weir_rules_reload_text(r, "x", before, sizeof before - 1, NULL), 0);
    assert_string_equal(told, "");
    assert_int_equal(weir_rules_reload_text(r, "x", after, sizeof after - 1, NULL), 0);
    assert_non_null(strstr(told, "server.http "));
    assert_non_null(strstr(told, "server.headers "));
    assert_non_null(strstr(told, "store.url "));
    assert_null(strstr(told, "memory")); /* counts at once */
    weir_rules_close(r);
}

static int sum_bytes(void *arg, const struct weir_rules_limit *limit)
{
    *(uint64_t *)arg += limit->stats.bytes;
    return 0;
}

static void its_memory_is_that_of_its_limiters_and_below_what_it_may_take(void **state)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    uint64_t sum = 0;
    assert_int_equal(weir_rules_stats_read(*state, &stats), 0);
    assert_int_equal(weir_rules_limits(*state, sum_bytes, &sum), 0);
    assert_int_equal(stats.bytes, sum);
    assert_true(sum > 1000000 * 16 && sum < 1000000000);
}

#define EXAMPLE(test) cmocka_unit_test_setup_teardown(test, open_example, close_example)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXAMPLE(groups_choose_the_first_and_the_others_always_apply),
        EXAMPLE(login_is_five_a_minute_for_each_address_and_only_by_post),
        EXAMPLE(search_has_tiers_from_a_header_or_from_the_file_by_user),
        EXAMPLE(each_tier_refills_at_its_own_rate),
        EXAMPLE(search_has_other_numbers_for_single_users),
        EXAMPLE(api_is_one_in_two_seconds_after_thirty_except_for_static_files),
        EXAMPLE(llm_counts_tokens_until_midnight),
        EXAMPLE(export_waits_in_a_queue_of_twenty),
        EXAMPLE(everyone_together_is_only_watched),
        EXAMPLE(a_denied_request_is_not_counted_for_everyone),
        EXAMPLE(block_beats_allow_beats_limits),
        EXAMPLE(a_limit_by_its_name_is_the_one_that_requests_are_counted_by),
        cmocka_unit_test(an_override_by_address_is_for_the_whole_client),
        cmocka_unit_test(a_reload_reports_what_needs_a_restart),
        EXAMPLE(its_memory_is_that_of_its_limiters_and_below_what_it_may_take),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
