/*
 * A store that does harm by what it says. It puts the password, in several forms, into every text
 * that it may choose; the password appears neither in the log nor in anything that operators see.
 * And it announces addresses outside of store.networks, to which no connection is made.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/store/fake_store.h"
#include "support/server/server_program.h"
#include "support/engine/threads_run.h"

#define PASSWORD "S3CR3T@pass/word"
#define ENCODED "S3CR3T%40pass%2Fword"
#define MARKED "S3CR3T" /* no form of the password is shown without this part */

static struct server_program program;
static struct fake_store *store;

static bool is(const struct resp_request *command, const char *upper)
{
    return command->argc > 0 && text_is_word(command->argv[0], upper);
}

/* ---- stores ---- */

static void refuse_auth(const struct fake_store *s, const struct resp_request *command,
                        struct buffer *out)
{
    resp_put_error(
        out, is(command, "AUTH")
                 ? TEXT("WRONGPASS '" PASSWORD "' is wrong: redis://u:" ENCODED "@host, " ENCODED)
                 : TEXT("NOAUTH"));
}

/* The password begins where the message is cut. */
static void refuse_auth_at_length(const struct fake_store *s, const struct resp_request *command,
                                  struct buffer *out)
{
    char text[400];
    memset(text, '.', sizeof text);
    memcpy(text, "ERR ", 4);
    memcpy(text + 114, PASSWORD, strlen(PASSWORD));
    (void)command;
    resp_put_error(out, (struct weir_text){text, sizeof text});
}

static void refuse_calls(const struct fake_store *s, const struct resp_request *command,
                         struct buffer *out)
{
    if (is(command, "AUTH")) {
        resp_put_simple(out, TEXT("OK"));
    } else {
        resp_put_error(out, TEXT("OOM not enough memory for " PASSWORD));
    }
}

static void put_node(struct buffer *out, struct weir_text host, unsigned at)
{
    resp_put_array(out, 2);
    resp_put_bulk(out, host);
    resp_put_integer(out, at);
}

static void put_slots(struct buffer *out, unsigned first, unsigned last, struct weir_text host,
                      unsigned at)
{
    resp_put_array(out, 3);
    resp_put_integer(out, first);
    resp_put_integer(out, last);
    put_node(out, host, at);
}

static void name_nodes_like_the_password(const struct fake_store *s,
                                         const struct resp_request *command, struct buffer *out)
{
    if (is(command, "CLUSTER")) {
        resp_put_array(out, 2);
        put_slots(out, 0, 8191, TEXT("127.0.0.1"), fake_store_port(s));
        put_slots(out, 8192, 16383, TEXT("S3CR3T@pass%2Fword.example"), 7000);
    } else if (is(command, "EVALSHA") || is(command, "EVAL")) {
        resp_put_error(out, TEXT("MOVED 1 x." ENCODED ":7000"));
    } else {
        resp_put_simple(out, TEXT("OK"));
    }
}

static void name_masters_like_the_password(const struct fake_store *s,
                                           const struct resp_request *command, struct buffer *out)
{
    if (is(command, "SENTINEL")) {
        resp_put_array(out, 2);
        resp_put_bulk(out, TEXT("x." ENCODED));
        resp_put_bulk(out, TEXT("7000"));
    } else {
        resp_put_simple(out, TEXT("OK"));
    }
}

/* ---- a server with such a store ---- */

static void begin(fake_store_fn reply, const char *scheme, const char *after, const char *more)
{
    char rules[800];
    char path[400];
    server_program_init(&program, "");
    (void)snprintf(path, sizeof path, "%s/password", program.folder);
    FILE *f = fopen(path, "w");
    threads_require(f != NULL && fputs(PASSWORD "\n", f) >= 0 && fclose(f) == 0);
    store = fake_store_start(reply);
    (void)snprintf(rules, sizeof rules,
                   "adhoc: off\n"
                   "store: {url: '%s127.0.0.1:%u%s', password_file: password%s}\n"
                   "limits: [{name: api, key: [user], rate: 1000/week, on_store_failure: open}]\n",
                   scheme, fake_store_port(store), after, more);
    server_program_write_rules(&program, rules);
    threads_require(server_program_start(&program));
}

static void finish(void)
{
    server_program_signal(&program, SIGTERM);
    fake_store_stop(store);
    server_program_finish(&program);
}

/* Asks about some keys; each is answered, with or without the store. */
static void ask(unsigned keys)
{
    struct server_client c;
    char words[64];
    threads_require(server_program_connect(&program, &c));
    for (unsigned i = 0; i < keys; i++) {
        (void)snprintf(words, sizeof words, "WEIR.CHECK api %u", i);
        assert_memory_equal(server_ask(&c, words), "['allow' 'api' ", 15);
    }
    server_disconnect(&c);
}

/* Requires that neither the log nor the operators' pages have the password. */
static void assert_secret(void)
{
    static const char *const pages[] = {"/metrics", "/v1/status", "/v1/limits", "/readyz"};
    assert_int_equal(server_program_logged(&program, MARKED), 0);
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        char *page = server_program_page(&program, pages[i]);
        assert_null(strstr(page, MARKED));
        free(page);
    }
}

static void assert_says_without_password(fake_store_fn reply, const char *scheme, const char *after,
                                         const char *said)
{
    begin(reply, scheme, after, "");
    ask(20);
    server_program_await(&program, said, 0);
    assert_secret();
    finish();
}

static void a_refused_password_is_not_logged(void **state)
{
    assert_says_without_password(refuse_auth, "redis://", "",
                                 "AUTH: WRONGPASS '***' is wrong: redis://***@host, ***");
}

static void a_password_in_a_long_message_is_not_logged_in_part(void **state)
{
    assert_says_without_password(refuse_auth_at_length, "redis://", "", "AUTH: ERR ....");
}

static void a_password_in_a_refusal_of_calls_is_not_logged(void **state)
{
    assert_says_without_password(refuse_calls, "redis://", "", "OOM not enough memory for ***");
}

static void a_node_named_like_the_password_is_not_used(void **state)
{
    begin(name_nodes_like_the_password, "redis-cluster://", "", "");
    ask(200);
    assert_secret();
    finish();
}

static void a_master_named_like_the_password_is_not_used(void **state)
{
    assert_says_without_password(name_masters_like_the_password, "redis-sentinel://", "/m",
                                 "the Sentinels name x.***:7000 as the master");
}

/* ---- networks ---- */

static struct fake_store *elsewhere;

static void be_elsewhere(const struct fake_store *s, const struct resp_request *command,
                         struct buffer *out)
{
    (void)command;
    resp_put_simple(out, TEXT("OK"));
}

/* Half of the slots, and every call, belong to a node outside; once by its address, once by a name
 * that leads there. */
static void name_nodes_elsewhere(const struct fake_store *s, const struct resp_request *command,
                                 struct buffer *out)
{
    char moved[64];
    if (is(command, "CLUSTER")) {
        resp_put_array(out, 3);
        put_slots(out, 0, 8191, TEXT("127.0.0.1"), fake_store_port(s));
        put_slots(out, 8192, 12287, TEXT("127.0.0.1"), fake_store_port(elsewhere));
        put_slots(out, 12288, 16383, TEXT("localhost"), fake_store_port(elsewhere));
    } else if (is(command, "EVALSHA") || is(command, "EVAL")) {
        static unsigned calls;
        (void)snprintf(moved, sizeof moved, "%s 1 127.0.0.1:%u", calls++ % 2 == 0 ? "MOVED" : "ASK",
                       fake_store_port(elsewhere));
        resp_put_error(out, text_of(moved));
    } else {
        resp_put_simple(out, TEXT("OK"));
    }
}

static void name_a_master_elsewhere(const struct fake_store *s, const struct resp_request *command,
                                    struct buffer *out)
{
    char digits[16];
    (void)snprintf(digits, sizeof digits, "%u", fake_store_port(elsewhere));
    if (is(command, "SENTINEL")) {
        resp_put_array(out, 2);
        resp_put_bulk(out, TEXT("127.0.0.1"));
        resp_put_bulk(out, text_of(digits));
    } else {
        resp_put_simple(out, TEXT("OK"));
    }
}

/* Sends the server to `elsewhere`. Returns how many connections arrived there. */
static uint64_t lead_astray(fake_store_fn reply, const char *scheme, const char *after,
                            const char *networks)
{
    elsewhere = fake_store_start(be_elsewhere);
    begin(reply, scheme, after, networks);
    ask(300);
    server_program_await(&program, "an address outside of store.networks: not used", 0);
    assert_true(server_program_logged(&program, "store.networks") < 4); /* not for each */
    assert_true(server_program_metric(&program, "weir_store_targets_refused_total") > 0);
    uint64_t arrived = fake_store_accepted(elsewhere);
    finish();
    fake_store_stop(elsewhere);
    return arrived;
}

static void nodes_outside_of_the_networks_are_not_used(void **state)
{
    assert_int_equal(
        lead_astray(name_nodes_elsewhere, "redis-cluster://", "", ", networks: [10.0.0.0/8]"), 0);
}

static void a_master_outside_of_the_networks_is_not_used(void **state)
{
    assert_int_equal(
        lead_astray(name_a_master_elsewhere, "redis-sentinel://", "/m", ", networks: []"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_password_is_not_logged),
        cmocka_unit_test(a_password_in_a_long_message_is_not_logged_in_part),
        cmocka_unit_test(a_password_in_a_refusal_of_calls_is_not_logged),
        cmocka_unit_test(a_node_named_like_the_password_is_not_used),
        cmocka_unit_test(a_master_named_like_the_password_is_not_used),
        cmocka_unit_test(nodes_outside_of_the_networks_are_not_used),
        cmocka_unit_test(a_master_outside_of_the_networks_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
