/*
 * The real program with --state, killed and started again under load. Clients keep books: what
 * they were allowed, and what was on its way when a connection broke. Whatever happens, nobody is
 * allowed more than the limit, and the books agree with the state: it was charged for every
 * allowance that arrived, and beyond that at most for what was on its way at a kill. An orderly
 * end, and a reload, lose nothing at all.
 */
// test-timeout: 300
// test-serial: yes
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_program.h"
#include "support/engine/threads_run.h"

#define CLIENTS 4
#define DEPTH 8 /* of a pipeline: so much is on its way on each connection */
#define KEYS 24 /* of each kind; the first gets half of all requests */
#define QUOTA 2000

static const char rules[] =
    "adhoc: {max_keys: 1k}\n"
    "limits:\n"
    "- {name: bucket, key: [user], rate: 2000/week, max_keys: 1k, when: {path: /bucket}}\n"
    "- {name: log, key: [user], rate: 2000/week, algorithm: sliding_log, max_keys: 100, when: "
    "{path: /log}}\n";

/* A reload that changes what it can without touching the keys: other limits come and go. */
static const char other_rules[] =
    "adhoc: {max_keys: 1k}\n"
    "limits:\n"
    "- {name: late, key: [user], rate: 7/week, max_keys: 1k, when: {path: /late}}\n"
    "- {name: log, key: [user], rate: 2000/week, algorithm: sliding_log, max_keys: 100, when: "
    "{path: [/log, /also]}}\n"
    "- {name: bucket, key: [user], rate: 2000/week, max_keys: 1k, when: {path: /bucket}}\n";

/* How a limit is asked about a key, and how "allowed" and "denied" begin. */
static const struct kind {
    const char *ask;
    const char *peek;
    const char *more; /* after the key */
    const char *peek_more;
    const char *allowed;
    const char *denied;
} kinds[] = {
    {"WEIR.CHECK bucket", "WEIR.PEEK bucket", "", "", "['allow' 'bucket' ", "['deny' 'bucket' "},
    {"WEIR.CHECK log", "WEIR.PEEK log", "", "", "['allow' 'log' ", "['deny' 'log' "},
    {"CL.THROTTLE", "CL.THROTTLE", " 1999 1 15000", " 1999 1 15000 0", "[0 2000 ", "[1 2000 "},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct book {
    uint64_t allowed;
    uint64_t broken; /* asked, and the connection broke before the reply */
};

struct scene {
    struct server_program program;
    struct book books[KINDS][KEYS];
    uint64_t replies;
    uint64_t refused; /* under overload: not charged */
    uint64_t ended;   /* no more is to be asked */
};

static struct scene scene;

struct asked {
    unsigned kind;
    unsigned key;
};

/* ---- clients ---- */

static size_t pack_batch(uint64_t *random, struct asked *asked, char *bytes, size_t size)
{
    size_t len = 0;
    for (unsigned i = 0; i < DEPTH; i++) {
        char words[64];
        uint64_t r = threads_random(random);
        asked[i] = (struct asked){r % KINDS, r >> 8 & 1 ? 0 : (r >> 16) % KEYS};
        (void)snprintf(words, sizeof words, "%s %u%s", kinds[asked[i].kind].ask, asked[i].key,
                       kinds[asked[i].kind].more);
        len += server_pack(words, bytes + len, size - len);
    }
    return len;
}

/* True if it was a reply. */
static bool note_reply(const struct asked *asked, const char *heard)
{
    const struct kind *kind = &kinds[asked->kind];
    bool allowed = strncmp(heard, kind->allowed, strlen(kind->allowed)) == 0;
    bool refused = strncmp(heard, "-OVERLOAD", 9) == 0;
    if (strcmp(heard, "end") == 0 || strcmp(heard, "reset") == 0) {
        return false;
    }
    if (!allowed && !refused && strncmp(heard, kind->denied, strlen(kind->denied)) != 0) {
        threads_fail(__FILE__, __LINE__, heard);
    }
    (void)threads_add(&scene.books[asked->kind][asked->key].allowed, allowed);
    (void)threads_add(&scene.refused, refused);
    (void)threads_add(&scene.replies, 1);
    return true;
}

/* False when the connection has broken. */
static bool ask_batch(struct server_client *c, uint64_t *random)
{
    struct asked asked[DEPTH];
    char bytes[4096];
    unsigned i = 0;
    size_t len = pack_batch(random, asked, bytes, sizeof bytes);
    (void)server_send(c, bytes, len); /* what of it arrived, the replies tell */
    while (i < DEPTH && note_reply(&asked[i], server_reply(c))) {
        i++;
    }
    bool whole = i == DEPTH;
    for (; i < DEPTH; i++) {
        (void)threads_add(&scene.books[asked[i].kind][asked[i].key].broken, 1);
    }
    return whole;
}

static void hammer(unsigned index)
{
    uint64_t random = 77 + index;
    while (threads_get(&scene.ended) == 0) {
        struct server_client c;
        if (!server_program_connect(&scene.program, &c)) {
            (void)usleep(1000);
            continue;
        }
        while (threads_get(&scene.ended) == 0 && ask_batch(&c, &random)) {
        }
        server_disconnect(&c);
    }
}

/* ---- the one who kills ---- */

/* What happens to the server, in turn. */
static const int *signals;
static unsigned rounds;

static void await_replies(uint64_t n)
{
    server_program_await_count(&scene.program, &scene.replies, threads_get(&scene.replies) + n);
}

static void reload(unsigned round)
{
    unsigned before = server_program_logged(&scene.program, "rules reloaded");
    server_program_write_rules(&scene.program, round % 2 == 0 ? other_rules : rules);
    server_program_signal(&scene.program, SIGHUP);
    server_program_await(&scene.program, "rules reloaded", before);
}

static void disturb(void)
{
    for (unsigned i = 0; i < rounds; i++) {
        int number = signals[i % 3];
        await_replies(500);
        if (number == SIGHUP) {
            reload(i);
        } else {
            server_program_signal(&scene.program, number);
            threads_require(server_program_start(&scene.program));
        }
    }
    await_replies(500);
    threads_set(&scene.ended, 1);
}

static void act(unsigned index, void *arg)
{
    (void)arg;
    if (index == CLIENTS) {
        disturb();
    } else {
        hammer(index);
    }
}

/* ---- the books ---- */

static uint64_t charged(struct server_client *c, unsigned kind, unsigned key)
{
    char words[64];
    (void)snprintf(words, sizeof words, "%s %u%s", kinds[kind].peek, key, kinds[kind].peek_more);
    const char *heard = server_ask(c, words);
    const char *quota = strstr(heard, " 2000 "); /* and then what is left */
    if (quota == NULL) {
        fail_msg("%s: %s", words, heard);
        return 0;
    }
    return QUOTA - strtoull(quota + 6, NULL, 10);
}

/* Charged for more than was received by at most what was on its way; returns by how much in all. */
static uint64_t assert_books_agree(struct server_client *c)
{
    uint64_t lost = 0;
    uint64_t most = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (unsigned key = 0; key < KEYS; key++) {
            const struct book *book = &scene.books[kind][key];
            uint64_t n = charged(c, kind, key);
            if (book->allowed > n || n > book->allowed + book->broken) {
                fail_msg("kind %u, key %u: charged %llu, allowed %llu, on its way %llu", kind, key,
                         (unsigned long long)n, (unsigned long long)book->allowed,
                         (unsigned long long)book->broken);
            }
            lost += n - book->allowed;
            most = book->allowed > most ? book->allowed : most;
        }
    }
    assert_true(most <= QUOTA);
    return lost;
}

/* Plays it, and returns what was charged and not received. */
static uint64_t play(const int *three_signals, unsigned how_often)
{
    struct server_client c;
    scene = (struct scene){0};
    signals = three_signals;
    rounds = how_often;
    server_program_init(&scene.program, rules);
    assert_true(server_program_start(&scene.program));
    threads_run(CLIENTS + 1, act, NULL);
    assert_true(server_program_connect(&scene.program, &c));
    uint64_t lost = assert_books_agree(&c);
    server_disconnect(&c);
    assert_int_equal(server_program_logged(&scene.program, "afresh"), 0);
    server_program_finish(&scene.program);
    return lost;
}

/* ---- the tests ---- */

static void kills_under_load_admit_nothing_extra_and_lose_what_was_on_its_way_at_most(void **state)
{
    static const int kills[3] = {SIGKILL, SIGKILL, SIGKILL};
    unsigned n = (unsigned)THREADS_ROUNDS(60, 6, 4);
    assert_true(play(kills, n) <= (uint64_t)n * CLIENTS * DEPTH);
}

static void orderly_restarts_under_load_lose_nothing(void **state)
{
    static const int ends[3] = {SIGTERM, SIGTERM, SIGTERM};
    assert_int_equal(play(ends, (unsigned)THREADS_ROUNDS(30, 4, 3)), 0);
}

static void reloads_under_load_lose_nothing(void **state)
{
    static const int reloads[3] = {SIGHUP, SIGHUP, SIGHUP};
    assert_int_equal(play(reloads, (unsigned)THREADS_ROUNDS(20, 6, 4)), 0);
}

static void kills_ends_and_reloads_in_turn_keep_the_books(void **state)
{
    static const int all[3] = {SIGHUP, SIGKILL, SIGTERM};
    (void)play(all, (unsigned)THREADS_ROUNDS(30, 6, 3));
}

/* A key that has used up its quota stays denied, whatever happens to the server. */
static void a_kill_gives_nobody_a_second_quota(void **state)
{
    struct server_client c;
    struct server_program p;
    server_program_init(&p, "limits: [{name: few, key: [user], rate: 10/week}]");
    uint64_t allowed = 0;
    for (unsigned i = 0; i < 6; i++) {
        assert_true(server_program_start(&p) && server_program_connect(&p, &c));
        for (unsigned j = 0; j < 4; j++) {
            allowed += strncmp(server_ask(&c, "WEIR.CHECK few alice"), "['allow'", 8) == 0;
        }
        server_disconnect(&c);
        server_program_signal(&p, SIGKILL);
    }
    assert_int_equal(allowed, 10);
    server_program_finish(&p);
}

/* ---- kills while nobody asks ---- */

/* `changing` is another table each time, `kept` is not; of `here` and `there` one is new. */
static void write_changing(const struct server_program *p, unsigned round)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "adhoc: {max_keys: 1k}\n"
                   "limits:\n"
                   "- {name: changing, key: [user], rate: 5/week, max_keys: %u}\n"
                   "- {name: kept, key: [user], rate: 10/week, max_keys: 1k}\n"
                   "- {name: %s, key: [user], rate: 5/week, max_keys: 1k}\n",
                   1000 + round % 7, round % 2 == 0 ? "here" : "there");
    server_program_write_rules(p, text);
}

static void a_kill_in_the_middle_of_a_start_or_a_reload_spoils_no_file(void **state)
{
    struct server_client c;
    struct server_program p;
    uint64_t random = 5;
    unsigned n = (unsigned)THREADS_ROUNDS(100, 10, 5);
    server_program_init(&p, "limits: []");
    write_changing(&p, 0);
    assert_true(server_program_start(&p) && server_program_connect(&p, &c));
    assert_non_null(strstr(server_ask(&c, "WEIR.CHECK kept x"), "'kept' 10 9 "));
    server_disconnect(&c);
    for (unsigned i = 1; i <= n; i++) {
        write_changing(&p, i);
        if (p.pid != 0) {
            server_program_signal(&p, SIGHUP);
            (void)usleep((useconds_t)(threads_random(&random) % 3000));
            server_program_signal(&p, SIGKILL);
        } else if (i % 3 == 0) {
            assert_true(server_program_start(&p));
        } else {
            (void)close(server_program_spawn(&p));
            (void)usleep((useconds_t)(threads_random(&random) % 6000));
            server_program_signal(&p, SIGKILL);
        }
    }
    if (p.pid == 0) {
        assert_true(server_program_start(&p));
    }
    assert_true(server_program_connect(&p, &c));
    assert_non_null(strstr(server_ask(&c, "WEIR.PEEK kept x"), "'kept' 10 9 "));
    assert_int_equal(server_program_logged(&p, "cannot be used"), 0);
    server_disconnect(&c);
    server_program_finish(&p);
}

/* ---- what the program says ---- */

static void write_into(const struct server_program *p, const char *command)
{
    char line[1024];
    (void)snprintf(line, sizeof line, "cd %s/state && %s", p->folder, command);
    assert_int_equal(system(line), 0); /* NOLINT(cert-env33-c) */
}

static void damaged_files_are_told_and_the_server_starts(void **state)
{
    struct server_client c;
    struct server_program p;
    server_program_init(&p, rules);
    assert_true(server_program_start(&p) && server_program_connect(&p, &c));
    (void)server_ask(&c, "WEIR.CHECK log x");
    (void)server_ask(&c, "WEIR.CHECK bucket x");
    server_disconnect(&c);
    server_program_signal(&p, SIGTERM);
    write_into(&p, "for f in bucket~*.weir adhoc.weir; do printf x | "
                   "dd of=$f bs=1 seek=40 conv=notrunc 2>/dev/null; done");
    assert_true(server_program_start(&p) && server_program_connect(&p, &c));
    assert_int_equal(server_program_logged(&p, "cannot be used: the header is damaged"), 2);
    write_into(&p, "ls bucket~*.weir.bad adhoc.weir.bad >/dev/null");
    assert_true(server_program_metric(&p, "weir_state_files_unusable_total") == 2);
    assert_non_null(strstr(server_ask(&c, "WEIR.PEEK log x"), "'log' 2000 1999 "));
    assert_non_null(strstr(server_ask(&c, "WEIR.PEEK bucket x"), "'bucket' 2000 2000 "));
    server_disconnect(&c);
    server_program_finish(&p);
}

static void two_servers_do_not_share_a_folder(void **state)
{
    struct server_program p;
    char expected[64];
    server_program_init(&p, rules);
    assert_true(server_program_start(&p));
    struct server_program second = p;
    (void)snprintf(second.address, sizeof second.address, "127.0.0.1:0"); /* not of the port */
    assert_false(server_program_start(&second));
    (void)snprintf(expected, sizeof expected, "in use by process %ld", (long)p.pid);
    assert_int_equal(server_program_logged(&p, expected), 1);
    server_program_finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_under_load_admit_nothing_extra_and_lose_what_was_on_its_way_at_most),
        cmocka_unit_test(orderly_restarts_under_load_lose_nothing),
        cmocka_unit_test(reloads_under_load_lose_nothing),
        cmocka_unit_test(kills_ends_and_reloads_in_turn_keep_the_books),
        cmocka_unit_test(a_kill_gives_nobody_a_second_quota),
        cmocka_unit_test(a_kill_in_the_middle_of_a_start_or_a_reload_spoils_no_file),
        cmocka_unit_test(damaged_files_are_told_and_the_server_starts),
        cmocka_unit_test(two_servers_do_not_share_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
