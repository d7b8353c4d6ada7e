/*
 * What a store depends on, under the test's control: calls wait here until the test ends them;
 * leases and exchanges answer as the test tells them to. These functions replace the real ones in
 * the program that includes this header.
 */
#ifndef WEIR_TESTS_UNIT_STORE_FAKES_H
#define WEIR_TESTS_UNIT_STORE_FAKES_H

#include <string.h>

#include "shared/leased/lease.h"
#include "shared/core/node_keys.h"
#include "shared/synced/sync.h"

#define FAKE_CALLS_MAX 64

struct fake_call {
    char arguments[4096];
    const char *script;
    unsigned slot;
    client_done_fn done;
    void *arg;
};

static struct {
    struct fake_call calls[FAKE_CALLS_MAX];
    unsigned count;
    int refuse;       /* error that client_call() returns; 0: none */
    bool may_be_late; /* whether client_await_late() keeps what it is given, as `late` */
    struct client_late *late;
    unsigned lease_says;
    uint64_t lease_id; /* lease id of the calls it makes; 0: they are not for a lease */
    int lease_error;
    struct weir_answer lease_answer;
    struct weir_answer sync_answer;
    int sync_says;
    unsigned leases_lost, leases_replied, lease_refunds, lease_forgets, sync_refunds, sync_hurries;
    struct store_limit *due; /* of a lease that is to be renewed by the next lease_next() */
} fake;

/* ---- the client ---- */

int client_create(struct client **c, const struct client_options *options,
                  const struct client_driver *driver, uint64_t now_ns)
{
    *c = (struct client *)(void *)&fake;
    return 0;
}

__attribute__((unused)) static void fake_end(unsigned i, enum client_end end,
                                             const struct store_reply *reply, uint64_t now_ns)
{
    struct fake_call call = fake.calls[i];
    fake.count--;
    memmove(&fake.calls[i], &fake.calls[i + 1], (fake.count - i) * sizeof fake.calls[0]);
    call.done(call.arg, end, reply, now_ns);
}

void client_destroy(struct client *c, uint64_t now_ns)
{
    while (fake.count > 0) {
        fake_end(0, CLIENT_UNKNOWN, NULL, now_ns);
    }
}

unsigned client_in_flight(const struct client *c)
{
    return fake.count;
}

const char *client_last_error(const struct client *c)
{
    return "";
}

int client_call(struct client *c, const struct client_call *call, uint64_t now_ns,
                client_done_fn done, void *arg)
{
    if (fake.refuse != 0) {
        return fake.refuse;
    }
    struct fake_call *f = &fake.calls[fake.count++];
    *f = (struct fake_call){
        .script = call->script->name, .slot = call->slot, .done = done, .arg = arg};
    size_t n = 0; /* the arguments one after the other, separated by spaces */
    for (struct weir_text rest = call->arguments; rest.len > 0;) {
        size_t len = 0;
        size_t i = 1;
        for (; rest.at[i] != '\r'; i++) {
            len = len * 10 + (size_t)(rest.at[i] - '0');
        }
        memcpy(f->arguments + n, rest.at + i + 2, len);
        n += len;
        f->arguments[n++] = ' ';
        rest = text_after(rest, i + 2 + len + 2);
    }
    return 0;
}

bool client_await_late(struct client *c, struct client_late *late)
{
    if (fake.may_be_late) {
        fake.late = late;
    }
    return fake.may_be_late;
}

uint64_t client_tick(struct client *c, uint64_t now_ns)
{
    return UINT64_MAX;
}

/* Returns an answer of a script. */
__attribute__((unused)) static struct store_reply fake_reply(int verdict, int64_t remaining,
                                                             int64_t retry_us, int64_t limit)
{
    return (struct store_reply){.type = ':',
                                .n = 9,
                                .integers = {verdict, 0, remaining, verdict == WEIR_ALLOW, retry_us,
                                             1000000, 0, 123456, limit}};
}

/* ---- leases ---- */

bool lease_is_worth(const struct store_params *params, uint64_t nodes)
{
    return params->quota >= 100;
}

unsigned lease_ask(struct node_keys *keys, const struct remote_part *of, enum lease_how how,
                   uint64_t now_ns, struct weir_answer *answer, struct lease_call *call)
{
    struct store_limit *limit = of->limit;
    *answer = fake.lease_answer;
    if (how == LEASE_HERE) {
        return (fake.lease_says & LEASE_ANSWERED) != 0 ? fake.lease_says : 0;
    }
    *call = (struct lease_call){.limit = limit,
                                .cost = of->cost,
                                .id = fake.lease_id,
                                .want = fake.lease_id,
                                .made_ns = now_ns};
    if ((fake.lease_says & LEASE_SEND) != 0) {
        store_limit_hold(limit);
    }
    return fake.lease_says;
}

void lease_alone(const struct remote_part *of, uint64_t now_ns, struct lease_call *call)
{
    *call = (struct lease_call){.limit = of->limit, .cost = of->cost};
    store_limit_hold(of->limit);
}

bool lease_refund(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns)
{
    fake.lease_refunds += (unsigned)of->cost;
    return true;
}

const struct script *lease_script(const struct scripts *s, const struct lease_call *call)
{
    return &s->row[1];
}

void lease_put_arguments(const struct lease_call *call, struct buffer *b, unsigned *count)
{
    buffer_put(b, TEXT("$5\r\nlease\r\n"));
    *count = 1;
}

int lease_reply(struct node_keys *keys, const struct lease_call *call,
                const struct store_reply *reply, uint64_t now_ns, struct weir_answer *answer)
{
    fake.leases_replied++;
    if (answer != NULL) {
        *answer = fake.lease_answer;
    }
    store_limit_release(call->limit);
    return fake.lease_error;
}

void lease_lost(struct node_keys *keys, const struct lease_call *call, uint64_t now_ns)
{
    fake.leases_lost++;
    store_limit_release(call->limit);
}

void lease_unsent(struct node_keys *keys, const struct lease_call *call, uint64_t now_ns)
{
    lease_lost(keys, call, now_ns);
}

bool lease_next(struct node_keys *keys, uint64_t now_ns, struct lease_call *call)
{
    if (fake.due == NULL) {
        return false;
    }
    *call = (struct lease_call){.limit = fake.due, .made_ns = now_ns};
    store_limit_hold(fake.due);
    fake.due = NULL;
    return true;
}

void lease_forget(struct node_keys *keys, const struct remote_part *of)
{
    fake.lease_forgets++;
}

/* ---- exchanges ---- */

int sync_ask(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns,
             struct weir_answer *answer)
{
    *answer = fake.sync_answer;
    return fake.sync_says;
}

void sync_hurry(struct node_keys *keys, const struct remote_part *of)
{
    fake.sync_hurries++;
}

void sync_refund(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns)
{
    fake.sync_refunds += (unsigned)of->cost;
}

bool sync_next(struct node_keys *keys, uint64_t now_ns, struct sync_call *call)
{
    return false;
}

const struct script *sync_script(const struct scripts *s, const struct sync_call *call)
{
    return &s->row[1];
}

void sync_put_arguments(const struct sync_call *call, unsigned n, struct buffer *b, unsigned *count)
{
    *count = 0;
}

int sync_reply(struct node_keys *keys, const struct sync_call *call,
               const struct store_reply *reply, uint64_t now_ns)
{
    return 0;
}

void sync_lost(struct node_keys *keys, const struct sync_call *call, uint64_t now_ns)
{
}

void sync_counts(const struct node_keys *keys, struct sync_counts *counts)
{
    *counts = (struct sync_counts){0};
}

#endif
