/* envoy.service.ratelimit.v3.RateLimitService (proto/envoy/service/ratelimit/v3/rls.proto). */
#include "base/error.h"
#include "server/operations/rls.h"
#include "server/grpc/grpc.h"
#include "server/operations/awaited.h"
#include "wire/protobuf.h"

#define SERVICE "envoy.service.ratelimit.v3.RateLimitService"

/* ---- requests ---- */

/* Fields of RateLimitRequest, RateLimitDescriptor, Entry, RateLimitOverride and UInt64Value. */
enum { REQUEST_DOMAIN = 1, REQUEST_DESCRIPTORS, REQUEST_HITS };
enum { DESCRIPTOR_ENTRIES = 1, DESCRIPTOR_LIMIT, DESCRIPTOR_HITS, DESCRIPTOR_NEGATIVE };
enum { ENTRY_KEY = 1, ENTRY_VALUE };
enum { OVERRIDE_REQUESTS = 1, OVERRIDE_UNIT };
enum { UINT64_VALUE = 1 };

struct rls_message {
    struct arena *memory;
    struct rls_ask *ask;
    struct weir_error *error;
};

static int malformed(const struct rls_message *r)
{
    return fail(r->error, WEIR_EINVAL, "the message is malformed");
}

/* Takes any bytes: Envoy sends what its clients have written into header fields. */
static int read_string(const struct rls_message *r, const struct protobuf_field *f,
                       const char *name, struct weir_text *to)
{
    if (f->type != PROTOBUF_BYTES) {
        return fail(r->error, WEIR_EINVAL, "%s: expected a string", name);
    }
    *to = f->bytes;
    return 0;
}

static int read_entry_field(const struct rls_message *r, const struct protobuf_field *f,
                            struct rls_entry *entry)
{
    if (f->number == ENTRY_KEY) {
        return read_string(r, f, "key", &entry->key);
    }
    return f->number == ENTRY_VALUE ? read_string(r, f, "value", &entry->value) : 0;
}

static int read_entry(const struct rls_message *r, struct weir_text message,
                      struct rls_descriptor *d)
{
    struct rls_entry entry = {{"", 0}, {"", 0}};
    struct protobuf_field f;
    int more;
    int e = 0;
    while (e == 0 && (more = protobuf_next(&message, &f)) != 0) {
        e = more < 0 ? malformed(r) : read_entry_field(r, &f, &entry);
    }
    if (e == 0 && d->count <= RLS_ENTRIES_MAX &&
        !arena_append(r->memory, &d->entries, &d->count, sizeof entry, &entry)) {
        return WEIR_ENOMEM;
    }
    return e;
}

static int read_override(const struct rls_message *r, struct weir_text message,
                         struct rls_descriptor *d)
{
    struct protobuf_field f;
    int more;
    d->limited = true;
    while ((more = protobuf_next(&message, &f)) == 1) {
        bool number = f.type == PROTOBUF_VARINT;
        if (number && f.number == OVERRIDE_REQUESTS) {
            d->requests = (uint32_t)f.value;
        } else if (number && f.number == OVERRIDE_UNIT) {
            d->unit = f.value;
        }
    }
    return more == 0 ? 0 : malformed(r);
}

static int read_hits(const struct rls_message *r, struct weir_text message,
                     struct rls_descriptor *d)
{
    struct protobuf_field f;
    int more;
    d->hits_given = true;
    while ((more = protobuf_next(&message, &f)) == 1) {
        if (f.type == PROTOBUF_VARINT && f.number == UINT64_VALUE) {
            d->hits = f.value;
        }
    }
    return more == 0 ? 0 : malformed(r);
}

static int read_descriptor(const struct rls_message *r, struct weir_text message)
{
    struct rls_descriptor d = {0};
    struct protobuf_field f;
    int more;
    int e = 0;
    while (e == 0 && (more = protobuf_next(&message, &f)) != 0) {
        bool bytes = f.type == PROTOBUF_BYTES;
        if (more < 0) {
            return malformed(r);
        }
        if (bytes && f.number == DESCRIPTOR_ENTRIES) {
            e = read_entry(r, f.bytes, &d);
        } else if (bytes && f.number == DESCRIPTOR_LIMIT) {
            e = read_override(r, f.bytes, &d);
        } else if (bytes && f.number == DESCRIPTOR_HITS) {
            e = read_hits(r, f.bytes, &d);
        } else if (f.type == PROTOBUF_VARINT && f.number == DESCRIPTOR_NEGATIVE) {
            d.back = f.value != 0;
        }
    }
    struct rls_ask *ask = r->ask;
    if (e == 0 && ask->count <= CALL_MAX &&
        !arena_append(r->memory, &ask->descriptors, &ask->count, sizeof d, &d)) {
        return WEIR_ENOMEM;
    }
    return e;
}

static int read_ask(const struct rls_message *r, struct weir_text message)
{
    struct protobuf_field f;
    int more;
    int e = 0;
    *r->ask = (struct rls_ask){.domain = {"", 0}};
    r->error->text[0] = 0;
    while (e == 0 && (more = protobuf_next(&message, &f)) != 0) {
        if (more < 0) {
            return malformed(r);
        }
        if (f.number == REQUEST_DOMAIN) {
            e = read_string(r, &f, "domain", &r->ask->domain);
        } else if (f.number == REQUEST_DESCRIPTORS && f.type == PROTOBUF_BYTES) {
            e = read_descriptor(r, f.bytes);
        } else if (f.number == REQUEST_HITS && f.type == PROTOBUF_VARINT) {
            r->ask->hits = (uint32_t)f.value;
        }
    }
    return e;
}

/* ---- responses ---- */

/* Fields of RateLimitResponse, DescriptorStatus, RateLimit, Duration and HeaderValue; of Struct,
 * its map, and Value. */
enum {
    RESPONSE_CODE = 1,
    RESPONSE_STATUSES,
    RESPONSE_HEADERS,
    RESPONSE_RAW_BODY = 5,
    RESPONSE_METADATA
};
enum { STATUS_CODE = 1, STATUS_LIMIT, STATUS_REMAINING, STATUS_RESET };
enum { LIMIT_REQUESTS = 1, LIMIT_UNIT, LIMIT_NAME };
enum { DURATION_SECONDS = 1 };
enum { HEADER_KEY = 1, HEADER_VALUE };
enum { STRUCT_FIELDS = 1 };
enum { MAP_KEY = 1, MAP_VALUE };
enum { VALUE_BOOL = 4 };

static void put_status(struct buffer *to, const struct call_status *s, uint64_t now_ns)
{
    struct rls_told told = rls_told(s, now_ns);
    size_t status = protobuf_begin(to, RESPONSE_STATUSES);
    protobuf_put_number(to, STATUS_CODE, (uint64_t)rls_code(s->verdict));
    if (s->limited && !s->unlimited) {
        size_t limit = protobuf_begin(to, STATUS_LIMIT);
        protobuf_put_number(to, LIMIT_REQUESTS, told.requests);
        protobuf_put_number(to, LIMIT_UNIT, told.unit);
        protobuf_put_bytes(to, LIMIT_NAME, s->label);
        protobuf_end(to, limit);
    }
    protobuf_put_number(to, STATUS_REMAINING, s->limited ? told.remaining : 0);
    if (s->limited && !s->unlimited) {
        size_t reset = protobuf_begin(to, STATUS_RESET);
        protobuf_put_number(to, DURATION_SECONDS, told.reset_s);
        protobuf_end(to, reset);
    }
    protobuf_end(to, status);
}

static void put_header(struct buffer *to, size_t number, struct weir_text name,
                       struct weir_text value)
{
    size_t header = protobuf_begin(to, RESPONSE_HEADERS);
    (void)number;
    protobuf_put_bytes(to, HEADER_KEY, name);
    protobuf_put_bytes(to, HEADER_VALUE, value);
    protobuf_end(to, header);
}

/* Puts the flags of the answer as members that are true. */
static void put_metadata(struct buffer *to, unsigned flags)
{
    size_t metadata = protobuf_begin(to, RESPONSE_METADATA);
    for (unsigned i = 0; i < RLS_FLAGS; i++) {
        if ((flags >> i & 1) != 0) {
            size_t field = protobuf_begin(to, STRUCT_FIELDS);
            protobuf_put_bytes(to, MAP_KEY, text_of(rls_flag_name(i)));
            size_t value = protobuf_begin(to, MAP_VALUE);
            protobuf_put_number(to, VALUE_BOOL, 1);
            protobuf_end(to, value);
            protobuf_end(to, field);
        }
    }
    protobuf_end(to, metadata);
}

static void reply(struct grpc_call *call, const struct call *said)
{
    int verdict = said->answer.answer.verdict;
    struct buffer *to = grpc_begin_message(call);
    protobuf_put_number(to, RESPONSE_CODE, (uint64_t)rls_code(verdict));
    for (size_t i = 0; i < said->count; i++) {
        put_status(to, &said->statuses[i], said->now_ns);
    }
    (void)rls_each_field(call->connection->worker->server, said, put_header, to);
    if (verdict != WEIR_ALLOW) {
        protobuf_put_bytes(to, RESPONSE_RAW_BODY, text_of(said->answer.deny_message));
    }
    unsigned flags = rls_flags(said);
    if (flags != 0) {
        put_metadata(to, flags);
    }
    enum request_result result = verdict == WEIR_ALLOW ? REQUEST_ALLOW : REQUEST_DENY;
    worker_count_reason(call->connection->worker, PROTOCOL_GRPC, result, said->answer.reason,
                        said->answer.limit);
    grpc_reply(call, result);
}

/* Denies a call that cannot be decided, if the rules say so. */
static bool decline(struct grpc_call *call, const char *why)
{
    if (!rls_bad_call(call->connection->worker, why)) {
        return false;
    }
    protobuf_put_number(grpc_begin_message(call), RESPONSE_CODE, RLS_OVER_LIMIT);
    worker_count_reason(call->connection->worker, PROTOCOL_GRPC, REQUEST_DENY,
                        WEIR_REASON_UNMATCHED, "");
    grpc_reply(call, REQUEST_DENY);
    return true;
}

static void fail_call(struct grpc_call *call, int e, const struct weir_error *error)
{
    if (!rls_is_bad(e) || !decline(call, answer_words_of_error(e, error))) {
        grpc_fail(call, e, error);
    }
}

static void put_later(struct pending *p)
{
    struct grpc_call *call = grpc_resume(p);
    struct weir_error error = {0};
    if (call == NULL) {
        return;
    }
    if (p->error != 0) {
        fail_call(call, p->error, &error);
    } else {
        reply(call, awaited_of(p)->call);
    }
    grpc_put_frames(p->connection);
}

static void run(struct grpc_call *call, struct weir_text message)
{
    struct asker asker = grpc_asker(call);
    struct pending *p = awaited_spare(asker.worker);
    struct weir_error error = {0};
    struct rls_ask ask;
    int e = WEIR_ENOMEM;
    if (p != NULL) {
        e = read_ask(&(struct rls_message){&p->memory, &ask, &error}, message);
        e = e != 0 ? e : rls_run(&asker, p, &ask, &error);
    }
    if (e == ANSWER_LATER) {
        grpc_keep(call, p, put_later);
    } else if (e != 0) {
        fail_call(call, e, &error);
    } else {
        reply(call, awaited_of(p)->call);
    }
}

const struct grpc_method grpc_rls_methods[GRPC_RLS_METHODS] = {
    {SERVICE, "ShouldRateLimit", ROLE_CHECK, OPERATION_CHECK, run, decline}};
