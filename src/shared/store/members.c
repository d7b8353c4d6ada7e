#include "shared/store/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <weir.h>

#include "base/atomic.h"
#include "shared/core/script.h"
#include "wire/resp.h"

void members_init(struct members *m, const char *prefix, uint64_t node)
{
    *m = (struct members){.node = node};
    (void)snprintf(m->key, sizeof m->key, "%s%s%s:nodes", prefix, prefix[0] != 0 ? ":" : "",
                   STORE_VERSION);
}

bool members_take_beat(struct members *m, uint64_t now_ns)
{
    uint64_t due_ns = load_relaxed(&m->due_ns);
    return now_ns >= due_ns && cas_u64(&m->due_ns, due_ns, now_ns + MEMBERS_BEAT_NS);
}

uint64_t members_due(const struct members *m)
{
    return load_relaxed(&m->due_ns);
}

void members_put_arguments(const struct members *m, struct buffer *b, unsigned *count)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%016" PRIx64, m->node);
    resp_put_bulk(b, TEXT("1"));
    resp_put_bulk(b, text_of(m->key));
    resp_put_bulk(b, (struct weir_text){text, (size_t)n});
    n = snprintf(text, sizeof text, "%" PRIu64, MEMBERS_ALIVE_NS / WEIR_MICROSECOND);
    resp_put_bulk(b, (struct weir_text){text, (size_t)n});
    *count = 4;
}

static void set_nodes(struct members *m, uint64_t nodes)
{
    store_relaxed(&m->nodes, nodes);
    if (m->kept != NULL) {
        store_relaxed(m->kept, nodes);
    }
}

void members_heard(struct members *m, const struct store_reply *reply, uint64_t now_ns)
{
    if (reply->type != ':' || reply->n != 1 || reply->integers[0] <= 0) {
        return;
    }
    uint64_t nodes = (uint64_t)reply->integers[0];
    uint64_t heard_ns = load_relaxed(&m->heard_ns);
    bool more = nodes >= load_relaxed(&m->nodes);
    bool gap = heard_ns == 0 || now_ns > heard_ns + MEMBERS_GAP_NS;
    store_relaxed(&m->heard_ns, now_ns);
    if (more || gap) {
        store_relaxed(&m->since_ns, now_ns);
    }
    if (more || now_ns >= load_relaxed(&m->since_ns) + MEMBERS_ALIVE_NS) {
        set_nodes(m, nodes);
    }
}

void members_keep(struct members *m, uint64_t *kept)
{
    uint64_t nodes = load_relaxed(kept);
    m->kept = kept;
    if (nodes > m->nodes && nodes <= MEMBERS_MOST) {
        m->nodes = nodes;
    }
}

uint64_t members_count(const struct members *m)
{
    uint64_t nodes = load_relaxed(&m->nodes);
    return nodes > 0 ? nodes : 1;
}
