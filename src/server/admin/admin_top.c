/* The route about the keys that are denied most. */
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "server/admin/admin.h"
#include "server/record/top_panes.h"
#include "server/loop/worker.h"
#include "wire/resp.h"

#define TOP_TOLD 20
#define TOP_MOST 99999
#define KEY_TEXT (4 * TOP_KEY_BYTES + 8)

const uint64_t admin_top_minutes[ADMIN_TOP_MINUTES] = {1, 5, TOP_MINUTES};

/* ---- the list ---- */

static size_t tops_of(const struct server *server, struct top *tops[SERVER_THREADS_MAX + 1])
{
    for (unsigned i = 0; i < server->workers_count; i++) {
        tops[i] = server->workers[i].top;
    }
    return server->workers_count;
}

void admin_top_tick(const struct server *server)
{
    struct top *tops[SERVER_THREADS_MAX + 1];
    size_t n = tops_of(server, tops);
    top_panes_tick(server->panes, tops, n, clock_monotonic_ns());
}

static json_t *make_item(const struct top_row *row)
{
    char text[KEY_TEXT];
    bool cut = row->key_len > TOP_KEY_BYTES;
    size_t n =
        weir_rules_key_text(row->key, cut ? TOP_KEY_BYTES : row->key_len, text, sizeof text - 3);
    if (cut && (n < 3 || memcmp(text + n - 3, "...", 3) != 0)) {
        memcpy(text + n, "...", 4);
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:I}", "limit", row->limit, "key", text, "reason",
                     weir_rules_reason_name((int)row->reason), "count", (json_int_t)row->high,
                     "error", (json_int_t)(row->high - row->low));
}

json_t *admin_top(const struct server *server, uint64_t minutes, size_t most)
{
    struct top *tops[SERVER_THREADS_MAX + 1];
    struct top_list list;
    uint64_t now_ns = clock_monotonic_ns();
    top_panes_list(server->panes, tops, tops_of(server, tops), minutes * WEIR_MINUTE, now_ns,
                   &list);
    uint64_t others =
        list.count > most && list.rows[most]->high > list.lost ? list.rows[most]->high : list.lost;
    json_t *denied = json_array();
    for (size_t i = 0; i < list.count && i < most; i++) {
        (void)json_array_append_new(denied, make_item(list.rows[i]));
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "minutes", (json_int_t)minutes, "seconds",
                     (json_int_t)((now_ns - list.from_ns) / WEIR_SECOND), "others",
                     (json_int_t)others, "denied", denied);
}

/* ---- the route ---- */

struct top_query {
    uint64_t n;
    uint64_t minutes;
};

static bool is_minutes(uint64_t minutes)
{
    bool some = false;
    for (size_t i = 0; i < ADMIN_TOP_MINUTES; i++) {
        some = some || admin_top_minutes[i] == minutes;
    }
    return some;
}

/* Reads the query; of a parameter that is given twice the last one counts. */
static bool read_query(struct weir_text query, struct top_query *q)
{
    char room[64];
    struct http_pair pair;
    bool good = query.len < sizeof room;
    *q = (struct top_query){TOP_TOLD, TOP_MINUTES};
    while (good && query.len > 0) {
        good = http_next_pair(&query, room, &pair);
        if (good && text_is(pair.name, "n")) {
            good = resp_to_u64(pair.value, &q->n) && q->n > 0 && q->n <= TOP_MOST;
        } else {
            good = good && text_is(pair.name, "minutes") && resp_to_u64(pair.value, &q->minutes) &&
                   is_minutes(q->minutes);
        }
    }
    return good;
}

static void run_top(struct exchange *x)
{
    struct top_query q;
    if (read_query(x->request->query, &q)) {
        admin_reply_json(x, 200, admin_top(x->server, q.minutes, q.n));
    } else {
        http_reply_problem(x, 400,
                           "found another query, expected ?n=N, with N from 1 to 99999, or "
                           "?minutes=1, 5 or 15, or both");
    }
}

const struct http_route admin_top_routes[] = {
    {"GET", "/v1/top", HTTP_AT, ROLE_ADMIN, run_top,
     .summary = "keys that are denied most: ?n=20&minutes=15"},
    {.path = NULL},
};
