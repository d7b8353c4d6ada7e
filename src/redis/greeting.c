/*
 * How a connection begins: AUTH, SELECT, SCRIPT LOAD. Passwords are sent to the store and shown
 * nowhere: a message about a refusal contains the reply of the store, never the request, and
 * link_said() removes the request where the reply quotes it.
 */
#include <stdio.h>

#include "redis/link.h"
#include "redis/topology.h"
#include "redis/value.h"

bool client_link_is_sentinel(const struct client_link *link)
{
    return (link->flags & LINK_CONTROL) != 0;
}

/* Returns the beginning of a message that says which option a Sentinel's refusal is about; "" for a
 * store, because there the message names the refused command. */
static const char *advice(const struct client_link *link, struct text said)
{
    if (!client_link_is_sentinel(link)) {
        return "";
    }
    return text_starts(said, "NOAUTH")      ? "the Sentinel wants sentinel_password_file: "
           : text_starts(said, "WRONGPASS") ? "the Sentinel refuses sentinel_password_file: "
                                            : "the Sentinel: ";
}

/* Handles a reply that must not be an error. `arg` names the command. */
static void on_welcome(void *arg, struct client_link *link, const struct text *reply,
                       uint64_t now_ns)
{
    if (reply != NULL && text_starts(*reply, "-")) {
        struct text said = link_said(text_after(*reply, 1));
        link_fail(link, now_ns, "%s%s: %.*s", advice(link, said), (const char *)arg,
                  TEXT_ARGS(said));
    }
}

static char *const name_auth = "AUTH";
static char *const name_select = "SELECT";
static char *const name_ping = "PING";

static int authenticate(struct client_link *link)
{
    const struct client_options *o = link->client->options;
    bool sentinel = client_link_is_sentinel(link);
    const struct text *password = sentinel ? o->sentinel_password : o->password;
    struct text user = sentinel ? o->sentinel_user : o->user;
    if (password == NULL || password->len == 0) {
        return 0;
    }
    struct text words[] = {TEXT("AUTH"), user, *password};
    if (user.len == 0) {
        words[1] = *password;
    }
    return client_ask(link, words, user.len == 0 ? 2 : 3, on_welcome, name_auth);
}

static int choose_db(struct client_link *link)
{
    char digits[12];
    unsigned db = link->client->options->url->db;
    if (db == 0) {
        return 0;
    }
    (void)snprintf(digits, sizeof digits, "%u", db);
    struct text words[] = {TEXT("SELECT"), text_of(digits)};
    return client_ask(link, words, 2, on_welcome, name_select);
}

void link_greet(struct client_link *link, uint64_t now_ns)
{
    struct client *c = link->client;
    uint64_t life = link->life;
    int e = authenticate(link);
    e = e != 0 || client_link_is_sentinel(link) ? e : choose_db(link);
    if (e == 0) {
        c->ops->greet(c->topology, link, now_ns);
    }
    if (link->life != life) {
        return;
    }
    /* At least one question must be answered before calls are sent: a store that requires a
     * password refuses every command. */
    if (e == 0 && link->greeting == 0) {
        e = client_ask(link, &TEXT("PING"), 1, on_welcome, name_ping);
    }
    if (e != 0) {
        link_fail(link, now_ns, "no memory for a greeting");
    }
}

/* Ignores the reply: a script that could not be loaded is sent as text when it is called. */
static void on_loaded(void *arg, struct client_link *link, const struct text *reply,
                      uint64_t now_ns)
{
    (void)arg;
    (void)link;
    (void)reply;
    (void)now_ns;
}

void link_load_scripts(struct client_link *link)
{
    const struct scripts *s = link->client->options->scripts;
    link->loaded = true;
    for (size_t i = 0; i < SCRIPT_COUNT && (link->flags & LINK_CONTROL) == 0; i++) {
        struct text words[] = {TEXT("SCRIPT"), TEXT("LOAD"), s->row[i].text};
        (void)client_ask(link, words, 3, on_loaded, NULL);
    }
}

void client_link_judge(struct client_link *link, const struct text *reply, const char *otherwise,
                       uint64_t now_ns)
{
    if (reply != NULL && text_starts(*reply, "-NOAUTH")) {
        client_link_drop(link, "it asks for a password", now_ns);
        return;
    }
    if (reply == NULL || text_starts(*reply, "-")) {
        return;
    }
    struct text rest = *reply;
    if (value_array(&rest) < 1 || !text_is(value_text(&rest), "master")) {
        client_link_drop(link, otherwise, now_ns);
    }
}
