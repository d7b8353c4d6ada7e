/*
 * What files that the rules name take: no more than was counted against server.memory, also after
 * reloads. The rules kept the lists of their first load for as long as they lived.
 * test-labels: nosan
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rules/live/live.h"
#include "support/engine/unit_limiter.h"

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
#include <malloc.h>

static size_t held_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}
#else
static size_t held_bytes(void)
{
    skip();
    return 0;
}
#endif

#define LINES 200000
#define OTHERS (1u << 20) /* what the rules take besides files, and the allocator for itself */

static char folder[] = "/tmp/weir-files-XXXXXX";
static char rules_path[64];
static char list_path[64];

enum kind { USERS, IPV4, IPV6, PLANS, RATES };

static void write_list(enum kind kind)
{
    FILE *out = fopen(list_path, "w");
    assert_non_null(out);
    for (unsigned i = 0; i < LINES; i++) {
        unsigned high = i / 250;
        unsigned low = i % 250;
        if (kind == USERS) {
            (void)fprintf(out, "user-%u-%u\n", high, low);
        } else if (kind == IPV4) {
            (void)fprintf(out, "%u.%u.%u.1\n", 1 + high / 250, high % 250, low);
        } else if (kind == IPV6) {
            (void)fprintf(out, "2001:db8:%x:%x::/64\n", high, 2 * low);
        } else {
            (void)fprintf(out, "user-%u-%u,%s\n", high, low, kind == PLANS ? "gold" : "7/min");
        }
    }
    (void)fclose(out);
}

#define BLOCK_USERS "block: [{user: 'file:list'}]\n"
#define BLOCK_NETWORKS "block: [{ip: 'file:list'}]\n"
#define ATTRIBUTE "attributes: {user: request, plan: 'file:list by user'}\n"
#define OVERRIDES "overrides: {by: user, file: list}, "

/* With a section, or with members of the limit. */
static void write_rules(const char *section, const char *members, const char *rate)
{
    FILE *out = fopen(rules_path, "w");
    assert_non_null(out);
    (void)fprintf(out,
                  /* the lists fit, with little to spare */
                  "%sadhoc: off\nserver: {memory: 40MB}\n"
                  "limits: [{name: a, key: [user], %srate: %s, max_keys: 100}]\n",
                  section, members, rate);
    (void)fclose(out);
}

static int begin(void **state)
{
    (void)snprintf(folder, sizeof folder, "/tmp/weir-files-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(rules_path, sizeof rules_path, "%s/weir.yaml", folder);
    (void)snprintf(list_path, sizeof list_path, "%s/list", folder);
    return 0;
}

static int end(void **state)
{
    (void)unlink(rules_path);
    (void)unlink(list_path);
    return rmdir(folder);
}

static void assert_counted(const struct weir_rules *rules, size_t before)
{
    size_t held = held_bytes() - before;
    uint64_t counted = rules->set->config.files_bytes;
    if (held > counted + OTHERS) {
        fail_msg("%zu bytes are held and %llu counted", held, (unsigned long long)counted);
    }
}

static void load_again_and_again(const char *section, const char *members)
{
    struct weir_rules *rules;
    size_t before = held_bytes();
    write_rules(section, members, "5/min");
    assert_int_equal(weir_rules_open(&rules, rules_path, NULL, NULL), 0);
    assert_counted(rules, before);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(weir_rules_reload(rules, NULL, NULL), 0);
        assert_counted(rules, before);
    }
    write_rules(section, members, "often");
    assert_int_equal(weir_rules_reload(rules, NULL, NULL), WEIR_ERULES);
    assert_counted(rules, before);
    weir_rules_close(rules);
}

static void a_list_of_values_takes_what_is_counted(void **state)
{
    write_list(USERS);
    load_again_and_again(BLOCK_USERS, "");
}

static void a_list_of_networks_takes_what_is_counted(void **state)
{
    write_list(IPV4);
    load_again_and_again(BLOCK_NETWORKS, "");
    write_list(IPV6);
    load_again_and_again(BLOCK_NETWORKS, "");
}

static void a_table_of_values_takes_what_is_counted(void **state)
{
    write_list(PLANS);
    load_again_and_again(ATTRIBUTE, "");
}

static void rates_of_single_users_take_what_is_counted(void **state)
{
    write_list(RATES);
    load_again_and_again("", OVERRIDES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_list_of_values_takes_what_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(a_list_of_networks_takes_what_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(a_table_of_values_takes_what_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(rates_of_single_users_take_what_is_counted, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
