#include "support/fleet/fleet_traffic.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct question {
    struct traffic *traffic;
    unsigned limit;
    bool answered;
    uint64_t asked_ns;
    struct question *next;
};

static void note(struct traffic *t, unsigned i, uint64_t asked_ns, const struct weir_answer *a)
{
    struct traffic_count *c = &t->count[i];
    uint64_t now_ns = clock_boot_ns();
    bool degraded = (a->flags & WEIR_FLAG_DEGRADED) != 0;
    c->answered++;
    t->longest_ns = now_ns - asked_ns > t->longest_ns ? now_ns - asked_ns : t->longest_ns;
    c->plain += !degraded && a->verdict == WEIR_ALLOW;
    c->degraded += degraded && a->verdict == WEIR_ALLOW;
    c->refused += degraded && a->verdict != WEIR_ALLOW;
    c->last_good = degraded ? c->last_good : now_ns;
}

static void on_answer(void *arg, int error, const struct weir_answer *answer)
{
    struct question *q = arg;
    q->traffic->twice += q->answered || error != 0;
    q->answered = true;
    note(q->traffic, q->limit, q->asked_ns, answer);
}

static void free_questions(struct traffic *t)
{
    while (t->questions != NULL) {
        struct question *q = t->questions;
        t->questions = q->next;
        free(q);
    }
}

static void ask(struct traffic *t, unsigned i)
{
    struct question *q = malloc(sizeof *q);
    struct weir_answer a;
    struct weir_question ask = {.key = t->key, .key_len = strlen(t->key), .cost = 1};
    *q = (struct question){
        .traffic = t, .limit = i, .asked_ns = clock_boot_ns(), .next = t->questions};
    t->questions = q;
    t->count[i].asked++;
    int said = weir_fleet_ask(t->limit[i], &ask, &a, on_answer, q);
    if (said == 1) {
        q->answered = true;
        note(t, i, q->asked_ns, &a);
    } else if (said != 0) {
        t->twice++; /* must not happen: on_store_failure decides */
    }
}

static void turn(struct traffic *t, int wait_ms)
{
    struct pollfd p = {.fd = weir_fleet_fd(t->fleet), .events = POLLIN};
    int ms = weir_fleet_timeout_ms(t->fleet);
    (void)poll(&p, 1, ms >= 0 && ms < wait_ms ? ms : wait_ms);
    (void)weir_fleet_run(t->fleet);
}

static void tick(struct traffic *t)
{
    uint64_t now_ns = clock_boot_ns();
    if (t->next_ns == 0 || t->next_ns + 100 * WEIR_MILLISECOND < now_ns) {
        t->next_ns = now_ns; /* the test itself was delayed: it does not catch up */
    }
    if (now_ns < t->next_ns) {
        turn(t, 1);
        return;
    }
    for (unsigned i = 0; i < t->limits; i++) {
        ask(t, i);
    }
    t->next_ns += WEIR_MILLISECOND;
    turn(t, 0);
}

void traffic_run(struct traffic *t, unsigned ms)
{
    uint64_t until_ns = clock_boot_ns() + ms * WEIR_MILLISECOND;
    while (clock_boot_ns() < until_ns) {
        tick(t);
    }
}

int traffic_until_good(struct traffic *t)
{
    uint64_t began_ns = clock_boot_ns();
    unsigned good = 0;
    while (good < t->limits) {
        tick(t);
        good = 0;
        for (unsigned i = 0; i < t->limits; i++) {
            good += t->count[i].last_good > began_ns;
        }
        if (clock_boot_ns() - began_ns > 20 * WEIR_SECOND) {
            return -1;
        }
    }
    return (int)((clock_boot_ns() - began_ns) / WEIR_MILLISECOND);
}

bool traffic_drain(struct traffic *t)
{
    uint64_t until_ns = clock_boot_ns() + 10 * WEIR_SECOND;
    for (unsigned i = 0; i < t->limits; i++) {
        while (t->count[i].answered < t->count[i].asked) {
            if (clock_boot_ns() > until_ns) {
                return false;
            }
            turn(t, 10);
        }
    }
    free_questions(t);
    return true;
}

struct peeked {
    bool came;
    struct weir_answer answer;
};

static void on_peek(void *arg, int error, const struct weir_answer *answer)
{
    struct peeked *p = arg;
    p->came = true;
    p->answer = *answer;
}

int64_t traffic_charged(struct traffic *t, unsigned i, uint64_t quota)
{
    struct peeked p = {.came = false};
    struct weir_question q = {
        .key = t->key, .key_len = strlen(t->key), .cost = 1, .mode = WEIR_PEEK};
    int said = weir_fleet_ask(t->limit[i], &q, &p.answer, on_peek, &p);
    while (said == 0 && !p.came) {
        turn(t, 10);
    }
    bool degraded = said < 0 || (p.answer.flags & WEIR_FLAG_DEGRADED) != 0;
    return degraded ? -1 : (int64_t)(quota - p.answer.remaining);
}
