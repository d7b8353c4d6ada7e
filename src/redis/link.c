#include "redis/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/maths.h"
#include "redis/breaker.h"

#define OUT_MOST ((size_t)4 << 20)
#define IN_MOST (2 * VALUE_BYTES_MAX)
#define STOOD_FOR_A_WHILE WEIR_SECOND
#define BACKOFF_FIRST (10 * WEIR_MILLISECOND)
#define BACKOFF_MOST WEIR_SECOND
#define BACKOFF_DOUBLINGS 7
#define LOOK_AGAIN (100 * WEIR_MILLISECOND) /* another thread may close an open breaker */

static void end(struct client_link *link, bool failure, uint64_t now_ns);

/* Adds n to the metric of links that are ready for calls; UINT64_MAX subtracts one. Links to
 * Sentinels are not counted. */
static void count_up(const struct client_link *link, uint64_t n)
{
    if (!link->sentinel) {
        count_shared(&link->client->options->metrics->up, n);
    }
}

/* Clears the client's error if it is about this link, which is no longer needed. */
static void excuse(const struct client_link *link)
{
    if (link->client->blamed == link) {
        link->client->error[0] = 0;
        link->client->blamed = NULL;
    }
}

/* ---- opening and freeing ---- */

static void name_it(struct client_link *link)
{
    if (link->host[0] == '/') {
        (void)snprintf(link->name, sizeof link->name, "%s", link->host);
    } else {
        bool colons = strchr(link->host, ':') != NULL;
        (void)snprintf(link->name, sizeof link->name, "%s%s%s:%u", colons ? "[" : "", link->host,
                       colons ? "]" : "", link->port);
    }
}

static bool is_in_url(const struct store_url *url, struct weir_text host, unsigned port)
{
    size_t i = 0;
    while (i < url->count && (url->hosts[i].port != port || !text_is(host, url->hosts[i].host))) {
        i++;
    }
    return i < url->count;
}

/* Returns true if calls may go to an endpoint that was announced. Its name will be shown, so it
 * must not contain a password. */
static bool may_follow(const struct client_options *o, struct weir_text host, unsigned port)
{
    return !redact_finds(o->redact, host) &&
           (o->permits == NULL || o->permits(o->permits_arg, host, port));
}

static struct client_link *create(struct client *c, struct weir_text host, unsigned port,
                                  bool sentinel)
{
    struct client_link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        return NULL;
    }
    memcpy(link->host, host.at, host.len);
    link->client = c;
    link->port = port;
    link->sentinel = sentinel;
    name_it(link);
    link->breaker = breaker_find(c->options->breakers, link->name);
    if (link->breaker == NULL) {
        free(link);
        return NULL;
    }
    if (!sentinel) {
        breaker_for_calls(link->breaker);
    }
    link->retire_ns = UINT64_MAX;
    timer_init(&link->timer, TIMER_LINK);
    buffer_init(&link->out, OUT_MOST);
    buffer_init(&link->in, IN_MOST);
    list_init(&link->waiting);
    list_put(c->links.prev, &link->node);
    c->link_count++;
    return link;
}

struct client_link *client_link_open(struct client *c, struct weir_text host, unsigned port,
                                     bool sentinel)
{
    for (struct list *at = c->links.next; at != &c->links; at = at->next) {
        struct client_link *link = LIST_OF(at, struct client_link, node);
        if (!link->forgotten && link->port == port && text_is(host, link->host)) {
            return link;
        }
    }
    /* Host names also come from replies of stores and Sentinels. One with a zero byte would never
     * be found again, because it is compared as a C string. */
    bool fits = host.len > 0 && host.len < sizeof((struct client_link *)0)->host &&
                memchr(host.at, 0, host.len) == NULL;
    bool announced = !is_in_url(c->options->url, host, port);
    if (!fits || c->link_count >= CLIENT_LINKS_MAX ||
        (announced && !may_follow(c->options, host, port))) {
        return NULL;
    }
    struct client_link *link = create(c, host, port, sentinel);
    if (link != NULL) {
        link->announced = announced;
    }
    return link;
}

void link_free(struct client_link *link)
{
    timer_clear(&link->timer);
    list_take(&link->node);
    link->client->link_count--;
    breaker_leave(link->breaker);
    buffer_finish(&link->out);
    buffer_finish(&link->in);
    free(link->places);
    free(link);
}

/* ---- timers ---- */

/* Returns when to check an open breaker again: when a probe is due, but at the latest after
 * LOOK_AGAIN, because a probe of another thread may close it. */
static uint64_t breaker_look(const struct client_link *link, uint64_t now_ns)
{
    uint64_t due = min_u64(breaker_due(link->breaker), now_ns + LOOK_AGAIN);
    return max_u64(due, now_ns + WEIR_MILLISECOND);
}

static uint64_t silence(const struct client *c)
{
    return max_u64(10 * c->options->deadline_ns, 100 * WEIR_MILLISECOND);
}

static uint64_t patience(const struct client *c)
{
    return max_u64(10 * c->options->deadline_ns, WEIR_SECOND);
}

static uint64_t due_when_idle(const struct client_link *link, uint64_t now_ns)
{
    if (!link->wanted) {
        return UINT64_MAX;
    }
    return breaker_is_open(link->breaker) ? breaker_look(link, now_ns) : link->retry_ns;
}

static uint64_t due_when_ready(const struct client_link *link, uint64_t now_ns)
{
    uint64_t due = link_waits(link) ? link->quiet_ns + silence(link->client) : UINT64_MAX;
    bool look = !link->probing && breaker_is_open(link->breaker);
    due = link->complained ? min_u64(due, link->recheck_ns) : due;
    return look ? min_u64(due, breaker_look(link, now_ns)) : due;
}

void link_set_timer(struct client_link *link, uint64_t now_ns)
{
    uint64_t due = link->up_ns + patience(link->client); /* CONNECTING and GREETING */
    if (link->state == LINK_IDLE) {
        due = due_when_idle(link, now_ns);
    } else if (link->state == LINK_READY) {
        due = due_when_ready(link, now_ns);
    }
    timer_set(&link->client->timers, &link->timer, min_u64(due, link->retire_ns), now_ns);
}

void client_link_retire(struct client_link *link, uint64_t until_ns, uint64_t now_ns)
{
    link->retire_ns = until_ns;
    link_set_timer(link, now_ns);
}

/* ---- probing ---- */

static void begin(struct client_link *link, uint64_t now_ns)
{
    struct client *c = link->client;
    link->state = LINK_CONNECTING;
    link->up_ns = now_ns;
    c->counts.connects++;
    link_set_timer(link, now_ns);
    c->driver.connect(c->driver.arg, link, text_of(link->host), link->port);
}

void link_try_probe(struct client_link *link, uint64_t now_ns)
{
    if (link->probing || !breaker_may_probe(link->breaker, now_ns)) {
        return;
    }
    link->probing = true;
    if (link->state == LINK_READY) {
        link_probe(link, now_ns);
    } else if (link->state == LINK_IDLE) {
        begin(link, now_ns);
    }
}

void link_note_successes(struct client_link *link, uint64_t now_ns)
{
    breaker_good(link->breaker, link->good, now_ns);
    link->good = 0;
}

void link_note_failure(struct client_link *link, uint64_t now_ns)
{
    link_note_successes(link, now_ns);
    breaker_bad(link->breaker, now_ns);
    if (link->state == LINK_READY && breaker_is_open(link->breaker)) {
        link_set_timer(link, now_ns);
    }
}

/* ---- connecting ---- */

static void tick_idle(struct client_link *link, uint64_t now_ns)
{
    if (!link->wanted) {
        return;
    }
    if (breaker_is_open(link->breaker)) {
        link_try_probe(link, now_ns);
    } else if (now_ns >= link->retry_ns) {
        begin(link, now_ns);
    }
    if (link->state == LINK_IDLE) {
        link_set_timer(link, now_ns);
    }
}

static void tick_ready(struct client_link *link, uint64_t now_ns)
{
    if (link_waits(link) && now_ns >= link->quiet_ns + silence(link->client)) {
        link_fail(link, now_ns, "silent for %llu ms while replies are pending",
                  (unsigned long long)(silence(link->client) / WEIR_MILLISECOND));
        return;
    }
    if (breaker_is_open(link->breaker)) {
        link_try_probe(link, now_ns);
    }
    if (link->complained) {
        link_recheck(link, now_ns);
    }
    link_set_timer(link, now_ns);
}

/* Drops a link whose time is over; the end of client_tick() frees it. */
static void forget(struct client_link *link, uint64_t now_ns)
{
    struct client *c = link->client;
    link->forgotten = true;
    link->wanted = false;
    link->retire_ns = UINT64_MAX;
    if (c->ops->forgot != NULL) {
        c->ops->forgot(c->topology, link);
    }
    client_link_drop(link, NULL, now_ns);
    excuse(link);
    client_link_reroute(link, now_ns);
    c->reap = true;
}

void link_tick(struct client_link *link, uint64_t now_ns)
{
    if (now_ns >= link->retire_ns) {
        forget(link, now_ns);
        return;
    }
    switch (link->state) {
    case LINK_IDLE:
        tick_idle(link, now_ns);
        break;
    case LINK_READY:
        tick_ready(link, now_ns);
        break;
    default:
        link_fail(link, now_ns, "no connection within %llu ms",
                  (unsigned long long)(patience(link->client) / WEIR_MILLISECOND));
        break;
    }
}

void client_up(struct client_link *link, uint64_t now_ns)
{
    link->client->now_ns = now_ns;
    if (link->state == LINK_CONNECTING) {
        link->state = LINK_GREETING;
        link->began = link->last;
        link_greet(link, now_ns);
    }
}

void link_ready(struct client_link *link, uint64_t now_ns)
{
    struct client *c = link->client;
    uint64_t life = link->life;
    link->state = LINK_READY;
    link->up_ns = now_ns;
    link->quiet_ns = now_ns;
    count_up(link, 1);
    if (!link->sentinel) {
        c->error[0] = 0;
        link->complained = false;
    }
    if (link->probing) {
        link_probe(link, now_ns);
    }
    c->ops->ready(c->topology, link, now_ns);
    if (link->life != life) {
        return;
    }
    link_set_timer(link, now_ns);
    link_ask_memory(link, now_ns);
    if (!list_is_empty(&link->waiting)) {
        link_wake(link);
    }
}

/* ---- ending ---- */

static void set_retry(struct client_link *link, bool stood, uint64_t now_ns)
{
    bool long_enough = stood && now_ns - link->up_ns >= STOOD_FOR_A_WHILE;
    link->tries = long_enough ? 0 : link->tries + (stood ? 1 : 2);
    link->retry_ns = now_ns;
    if (link->tries >= 2) {
        unsigned doublings = (unsigned)min_u64(link->tries / 2 - 1, BACKOFF_DOUBLINGS);
        uint64_t most = min_u64(BACKOFF_FIRST << doublings, BACKOFF_MOST);
        link->retry_ns += client_random(link->client, most + 1);
    }
}

static void end_places(struct client_link *link, bool failure, uint64_t now_ns)
{
    while (link_waits(link)) {
        struct reply_place place = *link_place(link, link->first++);
        if (place.answer != NULL) {
            place.answer(place.arg, link, NULL, now_ns);
        } else if (place.arg != NULL) {
            if (failure) {
                link_note_failure(link, now_ns);
            }
            call_end(link->client, place.arg, CLIENT_UNKNOWN, now_ns);
        }
    }
}

static void forget_bytes(struct client_link *link)
{
    if (link->out.at != NULL) {
        /* A password may be in it. */
        explicit_bzero(link->out.at + link->out.begin, buffer_len(&link->out));
    }
    buffer_take(&link->out, buffer_len(&link->out));
    buffer_take(&link->in, buffer_len(&link->in));
    link->in.full = false;
    link->woken = false;
    link->greeting = 0;
    link->late = false;
    link->again = false;
}

static void tell_breaker(struct client_link *link, bool failure, uint64_t now_ns)
{
    if (link->probing) {
        link->probing = false;
        breaker_probed(link->breaker, false, now_ns);
    } else if (failure) {
        link_note_failure(link, now_ns);
    }
}

/* Cleans up after the connection has ended: tells the breaker and the topology, ends the calls that
 * were sent, and routes the waiting ones again. */
static void end(struct client_link *link, bool failure, uint64_t now_ns)
{
    struct client *c = link->client;
    bool stood = link->state == LINK_READY;
    link->state = LINK_IDLE;
    link->life++;
    if (stood) {
        count_up(link, UINT64_MAX);
    }
    set_retry(link, stood, now_ns);
    tell_breaker(link, failure, now_ns);
    forget_bytes(link);
    end_places(link, failure, now_ns);
    c->ops->gone(c->topology, link, now_ns);
    if (link->state == LINK_IDLE) {
        link_set_timer(link, now_ns);
    }
    client_link_reroute(link, now_ns);
    client_tell_metrics(c);
}

void client_down(struct client_link *link, uint64_t now_ns)
{
    link->client->now_ns = now_ns;
    if (link->state == LINK_IDLE) {
        return;
    }
    if (link->state != LINK_READY) {
        link_blame(link, TEXT("no connection"));
    }
    end(link, link->state != LINK_READY || link_waits(link), now_ns);
}

static void close_it(struct client_link *link)
{
    link->client->driver.close(link->client->driver.arg, link);
}

void link_fail(struct client_link *link, uint64_t now_ns, const char *format, ...)
{
    char why[200];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(why, sizeof why, format, list);
    va_end(list);
    link_blame(link, text_of(why));
    close_it(link);
    end(link, true, now_ns);
}

void client_link_drop(struct client_link *link, const char *why, uint64_t now_ns)
{
    if (link->state == LINK_IDLE) {
        return;
    }
    if (why != NULL) {
        link_blame(link, text_of(why));
    }
    close_it(link);
    /* A probe that got at least one reply on this connection has succeeded: the endpoint answers,
     * although the link is not wanted. */
    if (link->probing && link->state >= LINK_GREETING && link->first != link->began) {
        link->probing = false;
        breaker_probed(link->breaker, true, now_ns);
    }
    end(link, false, now_ns);
}

void link_abandon(struct client_link *link)
{
    if (link->state != LINK_IDLE) {
        close_it(link);
    }
    if (link->state == LINK_READY) {
        count_up(link, UINT64_MAX);
    }
    if (link->probing) {
        breaker_probed(link->breaker, false, link->client->now_ns);
    }
    link->state = LINK_IDLE;
    link->wanted = false;
}

/* ---- for topologies and drivers ---- */

void client_link_want(struct client_link *link, bool wanted, uint64_t now_ns)
{
    link->wanted = wanted && !link->forgotten;
    if (!wanted) {
        excuse(link);
    }
    if (link->state == LINK_IDLE) {
        link_set_timer(link, now_ns);
    }
}

bool client_is_hopeless(const struct client *c)
{
    for (const struct list *at = c->links.next; at != &c->links; at = at->next) {
        if (!client_link_is_hopeless(LIST_OF(at, struct client_link, node))) {
            return false;
        }
    }
    return true;
}

bool client_link_is_sentinel(const struct client_link *link)
{
    return link->sentinel;
}

bool client_link_is_announced(const struct client_link *link)
{
    return link->announced;
}

void *client_link_data(const struct client_link *link)
{
    return link->data;
}

void client_link_set_data(struct client_link *link, void *data)
{
    link->data = data;
}
