/* The list of blocked keys: GET /v1/blocks. */
#include <jansson.h>

#include "server/admin/admin.h"
#include "server/status/numbers.h"

#define BLOCKS_MOST 1000 /* items of one reply */
#define KEY_TEXT 512     /* bytes of a key as text; a longer one is cut */

struct blocks_listing {
    struct exchange *x;
    struct weir_text only; /* name of the limit to list; len 0: all */
    json_t *items;
    uint64_t left_out;
    uint64_t named;
    uint64_t in_tables;
};

static bool is_asked_for(const struct blocks_listing *l, const char *limit)
{
    return l->only.len == 0 || text_is(l->only, limit);
}

static json_t *to_ms(uint64_t ns)
{
    return json_integer((json_int_t)(ns / WEIR_MILLISECOND));
}

/* Returns a text of an operator; RESP does not check that it is UTF-8. */
static json_t *string_of(const char *text)
{
    json_t *string = json_string(text);
    return string != NULL ? string : json_string("(not UTF-8)");
}

static json_t *make_item(const struct weir_rules_block *b, uint64_t now_ns)
{
    char key[KEY_TEXT];
    bool ends = b->until_ns != WEIR_FOREVER;
    (void)weir_rules_key_text(b->key, b->key_len, key, sizeof key);
    return json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:s, s:o}", "limit", b->limit, "tier",
                     b->tier, "key", key, "banned", b->banned, "since_ms", to_ms(b->since_ns),
                     "until_ms", ends ? to_ms(b->until_ns) : json_null(), "blocked_ms",
                     ends ? to_ms(b->until_ns - now_ns) : json_integer(-1), "by", b->by, "why",
                     string_of(b->why));
}

static int list_one(void *arg, const struct weir_rules_block *b)
{
    struct blocks_listing *l = arg;
    if (!is_asked_for(l, b->limit)) {
        return 0;
    }
    l->named++;
    if (json_array_size(l->items) == BLOCKS_MOST) {
        l->left_out++;
        return 0;
    }
    json_t *item = make_item(b, l->x->now_ns);
    return item != NULL && json_array_append_new(l->items, item) == 0 ? 0 : WEIR_ENOMEM;
}

static int list_adhoc(void *arg, const struct block_note *note)
{
    struct weir_rules_block b = {.limit = SERVER_ADHOC,
                                 .tier = "",
                                 .key = note->key,
                                 .key_len = note->key_len,
                                 .since_ns = note->since_ns,
                                 .until_ns = note->until_ns,
                                 .by = note->by,
                                 .why = note->why};
    return list_one(arg, &b);
}

static int add_blocks(void *arg, const struct weir_rules_limit *limit)
{
    struct blocks_listing *l = arg;
    l->in_tables += is_asked_for(l, limit->name) ? limit->stats.blocks : 0;
    return 0;
}

/* Reads ?limit=NAME, which may be absent, into `room`. Returns false after a reply. */
static bool read_limit(struct exchange *x, char *room, struct blocks_listing *l)
{
    struct weir_text query = x->request->query;
    struct http_pair pair;
    if (query.len == 0) {
        return true;
    }
    if (!http_next_pair(&query, room, &pair) || query.len > 0 || !text_is(pair.name, "limit") ||
        pair.value.len == 0) {
        http_reply_problem(x, 400,
                           "found another query, expected ?limit=NAME, or nothing for all limits");
        return false;
    }
    l->only = pair.value;
    if (!server_is_adhoc(x->server, l->only) &&
        weir_rules_key_parts(x->server->rules, l->only.at, l->only.len) == WEIR_ENOLIMIT) {
        http_reply_problem(x, 404, "there is no limit of this name");
        return false;
    }
    return true;
}

static int list_all(struct blocks_listing *l)
{
    struct server *server = l->x->server;
    int e = weir_rules_blocks(server->rules, l->x->now_ns, list_one, l);
    if (e == 0) {
        e = block_notes_each(&server->adhoc_notes, l->x->now_ns, list_adhoc, l);
    }
    return e == 0 ? numbers_limits(server, add_blocks, l) : e;
}

static void run_blocks(struct exchange *x)
{
    char room[HTTP_HEAD_MAX];
    struct blocks_listing l = {.x = x};
    if (!read_limit(x, room, &l)) {
        return;
    }
    l.items = json_array();
    int e = list_all(&l);
    uint64_t unnamed = l.in_tables > l.named ? l.in_tables - l.named : 0;
    if (e == 0) {
        admin_reply_json(x, 200,
                         json_pack("{s:O, s:I, s:I}", "blocks", l.items, "left_out",
                                   (json_int_t)l.left_out, "unnamed", (json_int_t)unnamed));
    } else {
        http_reply_problem(x, 500, weir_strerror(e));
    }
    json_decref(l.items);
}

const struct http_route admin_blocks_routes[] = {
    {"GET", "/v1/blocks", HTTP_AT, ROLE_ADMIN, run_blocks,
     .summary = "keys that are blocked or banned: ?limit=L"},
    {.path = NULL},
};
