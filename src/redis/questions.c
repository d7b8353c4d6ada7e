/*
 * What a client asks an endpoint on its own account (the greeting of a connection, the role of a
 * node, and whether the endpoint would answer calls), and what it reports as the error of one.
 *
 * Passwords are sent to the store and shown nowhere: a message about a refusal contains the reply
 * of the store, never the request, and link_shown_error() removes passwords where the reply quotes
 * them.
 *
 * Whether calls would be answered is asked for the breaker while that is open, and for a link that
 * has recorded an error and got no call since. Many a store that refuses every call still answers
 * PING: one without memory (OOM) or disk (MISCONF), without its replicas (NOREPLICAS), made a
 * replica itself (READONLY), or in a Cluster that is down. A probe by PING would close the breaker,
 * and the next calls would open it again, over and over. So a probe is a call of a script, which
 * after refusals makes an empty write to the key of a call that was refused: it needs all that the
 * call needs, in the same slot, and changes nothing, whether the key exists or not.
 */
#include <stdio.h>

#include "base/maths.h"
#include "redis/breaker.h"
#include "redis/link.h"
#include "wire/resp.h"

#define RECHECK_EVERY WEIR_SECOND
#define QUESTIONS 64 /* places for questions, in addition to those for calls */

/* ---- asking ---- */

int client_ask(struct client_link *link, const struct weir_text *words, size_t n,
               client_answer_fn answer, void *arg)
{
    if (link->state < LINK_GREETING) {
        return WEIR_EIO;
    }
    size_t before = buffer_len(&link->out);
    resp_put_array(&link->out, n);
    for (size_t i = 0; i < n; i++) {
        resp_put_bulk(&link->out, words[i]);
    }
    if (link->out.full ||
        !link_has_places(link, 1, link->client->in_flight_most + (uint64_t)QUESTIONS)) {
        link->out.end = link->out.begin + before;
        link->out.full = false;
        return WEIR_EFULL;
    }
    link_take_place(link, answer, arg);
    link->greeting += link->state == LINK_GREETING;
    link_wake(link);
    return 0;
}

/* ---- errors that are reported ---- */

void link_blame(struct client_link *link, struct weir_text why)
{
    client_complain(link->client, "%s: %.*s", link->name, TEXT_ARGS(why));
    link->client->blamed = link;
}

struct weir_text link_shown_error(const struct client_link *link, struct weir_text error,
                                  char room[LINK_SHOWN_MAX])
{
    /* The error is cut off where one of these begins. They are followed by the arguments of an
     * unknown command; by the key that holds something else than a state (lua/common.lua); by the
     * name of the script, which would turn one reason into many. */
    static const char *const ends[] = {", with args", " of this limit is in ", " script: "};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *at = memmem(error.at, error.len, ends[i], strlen(ends[i]));
        error.len = at != NULL ? (size_t)(at - error.at) : error.len;
    }
    error = text_trim(error);
    return text_trim(redact_write(link->client->options->redact, error, room, LINK_SHOWN_MAX));
}

void link_complain(struct client_link *link, struct weir_text error)
{
    uint64_t now_ns = link->client->now_ns;
    char room[LINK_SHOWN_MAX];
    link_blame(link, link_shown_error(link, error, room));
    link->complained = true;
    link->complained_ns = now_ns;
    link->recheck_ns = now_ns + RECHECK_EVERY;
    if (link->state == LINK_READY) {
        link_set_timer(link, now_ns);
    }
}

void link_refuses(struct client_link *link, struct weir_text error, struct weir_text key,
                  uint64_t now_ns)
{
    link_complain(link, error);
    link_note_successes(link, now_ns);
    breaker_doubt(link->breaker, key);
    link_note_failure(link, now_ns);
}

void link_clear_complaint(struct client_link *link)
{
    if (link->complained) {
        link->complained = false;
        link->client->error[0] = 0;
    }
}

/* ---- the greeting: AUTH, SELECT ---- */

/* Returns the beginning of a message that says which option a Sentinel's refusal is about; "" for a
 * store, because there the message names the refused command. */
static const char *advice(const struct client_link *link, struct weir_text said)
{
    if (!link->sentinel) {
        return "";
    }
    return text_starts(said, "NOAUTH")
               ? "the Sentinel requires a password in sentinel_password_file: "
           : text_starts(said, "WRONGPASS")
               ? "the Sentinel refuses the password of sentinel_password_file: "
               : "the Sentinel: ";
}

/* Handles a reply that must not be an error. `arg` names the command. */
static void on_welcome(void *arg, struct client_link *link, const struct store_reply *reply,
                       uint64_t now_ns)
{
    if (reply != NULL && reply->type == '-') {
        char room[LINK_SHOWN_MAX];
        struct weir_text said = link_shown_error(link, reply->text, room);
        link_fail(link, now_ns, "%s%s: %.*s", advice(link, said), (const char *)arg,
                  TEXT_ARGS(said));
    }
}

static int authenticate(struct client_link *link)
{
    const struct client_options *o = link->client->options;
    const struct weir_text *password = o->password;
    struct weir_text user = link->sentinel ? o->sentinel_user : o->user;
    if (password == NULL || password->len == 0) {
        return 0;
    }
    if (o->redact != NULL) {
        redact_learn(o->redact, *password);
    }
    struct weir_text words[] = {TEXT("AUTH"), user, *password};
    if (user.len == 0) {
        words[1] = *password;
    }
    return client_ask(link, words, user.len == 0 ? 2 : 3, on_welcome, "AUTH");
}

static int choose_db(struct client_link *link)
{
    char digits[12];
    unsigned db = link->client->options->url->db;
    if (db == 0) {
        return 0;
    }
    (void)snprintf(digits, sizeof digits, "%u", db);
    struct weir_text words[] = {TEXT("SELECT"), text_of(digits)};
    return client_ask(link, words, 2, on_welcome, "SELECT");
}

void link_greet(struct client_link *link, uint64_t now_ns)
{
    struct client *c = link->client;
    uint64_t life = link->life;
    int e = authenticate(link);
    e = e != 0 || link->sentinel ? e : choose_db(link);
    if (e == 0 && c->ops->greet != NULL) {
        c->ops->greet(c->topology, link);
    }
    if (link->life != life) {
        return;
    }
    /* At least one question must be answered before calls are sent: a store that requires a
     * password refuses every command. */
    if (e == 0 && link->greeting == 0) {
        e = client_ask(link, &TEXT("PING"), 1, on_welcome, "PING");
    }
    if (e != 0) {
        link_fail(link, now_ns, "out of memory to send the greeting");
    }
}

void link_ignore_reply(void *arg, struct client_link *link, const struct store_reply *reply,
                       uint64_t now_ns)
{
    (void)arg;
    (void)link;
    (void)reply;
    (void)now_ns;
}

/* ---- the memory ---- */

static void on_memory(void *arg, struct client_link *link, const struct store_reply *reply,
                      uint64_t now_ns)
{
    struct endpoint_memory *m = arg;
    if (reply != NULL && reply->type == '$') {
        memory_read(m, reply->text, link->client->options->memory_high);
    } else if (reply != NULL) {
        memory_is_unknown(m, now_ns);
    }
}

void link_ask_memory(struct client_link *link, uint64_t now_ns)
{
    static const struct weir_text memory[] = {{"INFO", 4}, {"memory", 6}};
    static const struct weir_text stats[] = {{"INFO", 4}, {"stats", 5}};
    static const struct weir_text clients[] = {{"INFO", 4}, {"clients", 7}};
    struct endpoint_memory *m = &link->breaker->memory;
    if (link->client->options->memory_high != 0 && !link->sentinel && memory_take_turn(m, now_ns)) {
        (void)client_ask(link, memory, 2, on_memory, m);
        (void)client_ask(link, stats, 2, on_memory, m);
        if (load_relaxed(&m->maxclients) == 0) {
            (void)client_ask(link, clients, 2, on_memory, m);
        }
    }
}

/* ---- the role ---- */

bool client_role_is_master(const struct store_reply *reply)
{
    struct weir_text rest = reply->whole;
    return reply->type != '-' && value_array(&rest) >= 1 && text_is(value_text(&rest), "master");
}

/* Drops a link that is not a master, with the reason `arg`, and one that asks for a password. A
 * link that may not ask for the role (an error) is taken for a master, until a call is refused with
 * READONLY. */
static void on_role(void *arg, struct client_link *link, const struct store_reply *reply,
                    uint64_t now_ns)
{
    link->role_asked = false;
    if (reply == NULL || reply->type == '-') {
        if (reply != NULL && text_starts(reply->text, "NOAUTH")) {
            client_link_drop(link, "requires a password", now_ns);
        }
        return;
    }
    if (!client_role_is_master(reply)) {
        client_link_drop(link, arg, now_ns);
    }
}

void client_link_ask_role(struct client_link *link, char *otherwise)
{
    if (!link->role_asked) {
        link->role_asked = client_ask(link, &TEXT("ROLE"), 1, on_role, otherwise) == 0;
    }
}

/* ---- probes ---- */

/* An error of the write is the script's answer as it is, on all versions of Redis. */
#define PROBE "return KEYS[1] and redis.pcall('SETRANGE', KEYS[1], 0, '') or 1"

/* Calls the script, which is short enough to be sent as text each time, with a key that calls were
 * refused for, or without one if the breaker knows of none. Returns 0; or WEIR_E..., and `answer`
 * is not called. A Sentinel runs no scripts, and is sent a PING. */
static int try_call(struct client_link *link, client_answer_fn answer)
{
    char room[BREAKER_KEY_MAX];
    struct weir_text key = {room, breaker_doubted(link->breaker, room)};
    struct weir_text words[] = {TEXT("EVAL"), TEXT(PROBE), key.len > 0 ? TEXT("1") : TEXT("0"),
                                key};
    return link->sentinel ? client_ask(link, &TEXT("PING"), 1, answer, NULL)
                          : client_ask(link, words, key.len > 0 ? 4 : 3, answer, NULL);
}

/*
 * Returns true if the reply to a probe does not show that the endpoint refuses calls; then
 * the complaint is over. A refusal is passed to the topology: the endpoint may have been replaced,
 * and without calls no other reply would show it. The topology also knows whether a call would end
 * with this refusal (MOVED from a store that should not be in a Cluster) or go elsewhere (MOVED
 * within a Cluster). WRONGTYPE counts as willing, because the store only replies so after it has
 * checked that writes are permitted. "CLUSTERDOWN Hash slot not served" also counts, for a Cluster
 * that serves the slots that it can: it says nothing about other slots, and as long as no call is
 * sent there, no other key can become the doubted one.
 */
static bool is_willing(struct client_link *link, const struct store_reply *reply, uint64_t now_ns)
{
    struct client *c = link->client;
    struct client_link *to = NULL;
    bool refused = reply->refusal > STORE_REFUSED;
    bool ends = refused && c->ops->refused(c->topology, link, reply, now_ns, &to) == TOPOLOGY_END;
    bool other = text_starts(reply->text, "CLUSTERDOWN Hash slot not served");
    if (ends || (store_is_failure(reply->refusal) && !other)) {
        return false;
    }
    link_clear_complaint(link);
    breaker_well(link->breaker, now_ns);
    return true;
}

/* Tells the breaker of an answered probe. A good one that was late is made once more. */
static void judge(struct client_link *link, bool good, uint64_t now_ns)
{
    bool in_time = now_ns - link->probe_ns <= link->client->options->deadline_ns;
    if (good && !in_time && !link->again) {
        /* A stall may have ended just now. A store that is always late fails the second time. */
        link->again = true;
        link_probe(link, now_ns);
        return;
    }
    link->again = false;
    link->probing = false;
    breaker_probed(link->breaker, in_time && good, now_ns);
    link_set_timer(link, now_ns);
    if (!breaker_is_open(link->breaker)) {
        client_reroute(link->client, now_ns);
    }
}

/* Handles the reply to a probe. If there is no reply, or the link is not probing any more, end()
 * has told the breaker. */
static void on_probed(void *arg, struct client_link *link, const struct store_reply *reply,
                      uint64_t now_ns)
{
    (void)arg;
    if (reply != NULL && link->probing) {
        judge(link, is_willing(link, reply, now_ns), now_ns);
    }
}

void link_probe(struct client_link *link, uint64_t now_ns)
{
    link->probe_ns = now_ns;
    if (try_call(link, on_probed) != 0) {
        link->probing = false;
        breaker_probed(link->breaker, false, now_ns);
    }
}

/* ---- checks after an error ---- */

static void on_rechecked(void *arg, struct client_link *link, const struct store_reply *reply,
                         uint64_t now_ns)
{
    (void)arg;
    link->rechecking = false;
    if (reply != NULL) {
        (void)is_willing(link, reply, now_ns);
    }
}

/* Checks whether calls would be answered again. A success that another thread has noted since the
 * error counts too. The probe only tests refusals of all calls; other errors (missing permissions
 * for a command, for example) are cleared only by a call. */
void link_recheck(struct client_link *link, uint64_t now_ns)
{
    if (breaker_well_ns(link->breaker) > link->complained_ns) {
        link_clear_complaint(link);
    }
    if (!link->complained || now_ns < link->recheck_ns) {
        return;
    }
    link->recheck_ns = now_ns + RECHECK_EVERY;
    bool idle = !link->rechecking && !link->probing && !breaker_is_open(link->breaker);
    if (idle && breaker_doubts(link->breaker)) {
        link->rechecking = try_call(link, on_rechecked) == 0;
    }
}
