#include "support/server/server_vectors.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

const char *const server_vector_verdicts[WEIR_NEVER + 1] = {
    [WEIR_ALLOW] = "allow", [WEIR_DENY] = "deny", [WEIR_NEVER] = "never"};

/* Returns whether a section can be sent: rules have no offsets (nor debt, which these files do not
 * use), the calls must be checks and peeks with a cost, and MAXWAIT is in milliseconds. */
static bool can_be_sent(const struct oracle_vector *v)
{
    const struct oracle_rule *r = &v->trace.rule;
    bool good = !v->stepped && r->offset_ns == 0;
    for (size_t i = 0; i < v->trace.n; i++) {
        const struct oracle_op *op = &v->trace.ops[i];
        good = good && (op->verb == ORACLE_CHECK || op->verb == ORACLE_PEEK) && op->cost > 0 &&
               op->wait_ns % WEIR_MILLISECOND == 0;
    }
    return good;
}

static void load(struct server_world *w, const struct oracle_rule *r, unsigned number)
{
    char text[512];
    struct weir_error error;
    char more[64] = "";
    if (r->algorithm == WEIR_TOKEN_BUCKET) {
        (void)snprintf(more, sizeof more, ", burst: %" PRIu64, r->burst);
    } else if (r->algorithm == WEIR_LEAKY_BUCKET) {
        (void)snprintf(more, sizeof more, ", queue: %" PRIu64 ", undelayed: %" PRIu64, r->queue,
                       r->undelayed);
    }
    int n = snprintf(text, sizeof text,
                     "limits: [{name: v%u, key: [user], algorithm: %s, rate: %" PRIu64 "/%" PRIu64
                     "ns%s, max_keys: 1k%s}]",
                     number, weir_algorithm_name(r->algorithm), r->count, r->period_ns, more,
                     w->store != NULL ? ", deny_cache: off" : ""); /* by the real clock */
    if (weir_rules_reload_text(w->server.rules, "v", text, (size_t)n, &error) != 0) {
        fail_msg("%s: %s", text, error.text);
    }
}

uint64_t server_vector_ms(const struct oracle_vector *v, uint64_t time)
{
    uint64_t per_ms = WEIR_MILLISECOND / v->unit;
    return (time + per_ms - 1) / per_ms;
}

/* Sends the sections of a file. Returns how many calls were sent. */
static size_t send_file(struct server_world *w, const char *name, unsigned *number,
                        server_vector_fn send, void *arg)
{
    char path[4096];
    char limit[16];
    size_t sent = 0;
    struct oracle_vector v;
    (void)snprintf(path, sizeof path, "%s/tests/vectors/%s.vec", WEIR_SOURCE_DIR, name);
    struct oracle_reader reader = {.in = fopen(path, "r")};
    assert_non_null(reader.in);
    for (int got; (got = oracle_vector_read(&reader, &v)) != 0; oracle_vector_finish(&v)) {
        assert_int_equal(got, 1);
        if (!can_be_sent(&v)) {
            continue;
        }
        server_world_set_time(w, 0); /* where the section's time line begins */
        load(w, &v.trace.rule, ++*number);
        (void)snprintf(limit, sizeof limit, "v%u", *number);
        for (size_t i = 0; i < v.trace.n; i++, sent++) {
            server_world_set_time(w, v.trace.ops[i].time_ns);
            send(arg, &v, i, limit);
        }
    }
    (void)fclose(reader.in);
    return sent;
}

void server_vectors_send(struct server_world *w, server_vector_fn send, void *arg)
{
    static const char *const files[] = {"token_bucket", "leaky_bucket", "fixed_window",
                                        "sliding_window", "sliding_log"};
    unsigned number = 0;
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t sent = send_file(w, files[i], &number, send, arg);
        print_message("%s: %zu calls\n", files[i], sent);
        assert_true(sent > 100);
    }
}
