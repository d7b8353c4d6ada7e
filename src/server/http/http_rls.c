/*
 * POST /json: a call of Envoy's rate limit service as JSON, as its reference server takes it: a
 * RateLimitRequest in the JSON form of Protocol Buffers, with names in either form (hitsAddend,
 * hits_addend) and whole numbers as numbers or strings. Replies 200, or 429 if it is over the
 * limit, with a RateLimitResponse.
 */
#include "base/error.h"
#include "server/operations/rls.h"
#include "server/http/http_json.h"
#include "server/operations/awaited.h"
#include "wire/jsontext.h"

/* Names and values: 5 of an entry; 20, more than there are, of a descriptor, and of the call. */
#define VALUES_MAX ((CALL_MAX + 1) * (RLS_ENTRIES_MAX * 5 + 20))

/* ---- requests ---- */

struct rls_body {
    struct arena *memory;
    struct weir_error *error;
};

typedef int (*member_fn)(const struct rls_body *r, struct weir_text name, struct weir_text value,
                         void *to);

static int unexpected(const struct rls_body *r, struct weir_text name, struct weir_text value,
                      const char *expected)
{
    return http_json_bad(r->error, name, value, expected);
}

static int unknown(const struct rls_body *r, struct weir_text name, const char *expected)
{
    return fail(r->error, WEIR_EINVAL, "found the member '%.*s', expected %s", TEXT_CUT(name, 64),
                expected);
}

/* Calls fn with each member of an object; names have no quotes. */
static int read_object(const struct rls_body *r, struct weir_text name, struct weir_text value,
                       member_fn fn, void *to)
{
    struct weir_text member;
    struct weir_text item;
    int e = jsontext_is(value, '{') ? 0 : unexpected(r, name, value, "an object");
    while (e == 0 && jsontext_next_member(&value, &member, &item)) {
        member = http_json_bytes(member, r->memory);
        e = member.at == NULL        ? WEIR_ENOMEM
            : jsontext_is(item, 'n') ? 0 /* null: as if it were absent */
                                     : fn(r, member, item, to);
    }
    return e;
}

/* Calls fn with each item of a list. */
static int read_list(const struct rls_body *r, struct weir_text name, struct weir_text value,
                     member_fn fn, void *to)
{
    struct weir_text item;
    int e = jsontext_is(value, '[') ? 0 : unexpected(r, name, value, "a list");
    while (e == 0 && jsontext_next_item(&value, &item)) {
        e = fn(r, name, item, to);
    }
    return e;
}

static int read_string(const struct rls_body *r, struct weir_text name, struct weir_text value,
                       struct weir_text *to)
{
    if (!jsontext_is(value, '"')) {
        return unexpected(r, name, value, "a string");
    }
    *to = http_json_bytes(value, r->memory);
    return to->at == NULL ? WEIR_ENOMEM : 0;
}

static int read_number(const struct rls_body *r, struct weir_text name, struct weir_text value,
                       uint64_t most, uint64_t *to)
{
    bool good = false;
    if (jsontext_is(value, '"')) {
        struct weir_text digits = http_json_bytes(value, r->memory);
        good = digits.at != NULL && text_to_u64(digits, to);
    } else {
        good = jsontext_whole(value, to);
    }
    return good && *to <= most
               ? 0
               : unexpected(r, name, value,
                            most == UINT32_MAX ? "a whole number from 0 to 4294967295"
                                               : "a whole number from 0 to 18446744073709551615");
}

static bool named(struct weir_text name, const char *camel, const char *snake)
{
    return text_is(name, camel) || text_is(name, snake);
}

static int read_entry_member(const struct rls_body *r, struct weir_text name,
                             struct weir_text value, void *to)
{
    struct rls_entry *entry = to;
    return text_is(name, "key")     ? read_string(r, name, value, &entry->key)
           : text_is(name, "value") ? read_string(r, name, value, &entry->value)
                                    : unknown(r, name, "key or value");
}

static int read_entry(const struct rls_body *r, struct weir_text name, struct weir_text value,
                      void *to)
{
    struct rls_descriptor *d = to;
    struct rls_entry entry = {{"", 0}, {"", 0}};
    int e = read_object(r, name, value, read_entry_member, &entry);
    if (e == 0 && d->count <= RLS_ENTRIES_MAX &&
        !arena_append(r->memory, &d->entries, &d->count, sizeof entry, &entry)) {
        return WEIR_ENOMEM;
    }
    return e;
}

static int read_unit(const struct rls_body *r, struct weir_text name, struct weir_text value,
                     uint64_t *unit)
{
    struct weir_text word = TEXT("");
    if (!jsontext_is(value, '"')) {
        return read_number(r, name, value, UINT32_MAX, unit);
    }
    int e = read_string(r, name, value, &word);
    for (*unit = 0; e == 0 && *unit < RLS_UNITS && !text_is(word, rls_unit_names[*unit]);) {
        (*unit)++;
    }
    return e == 0 && *unit == RLS_UNITS
               ? fail(r->error, WEIR_EINVAL,
                      "unit: found '%.*s', expected SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR",
                      TEXT_CUT(word, 64))
               : e;
}

static int read_override(const struct rls_body *r, struct weir_text name, struct weir_text value,
                         void *to)
{
    struct rls_descriptor *d = to;
    return named(name, "requestsPerUnit", "requests_per_unit")
               ? read_number(r, name, value, UINT32_MAX, &d->requests)
           : text_is(name, "unit") ? read_unit(r, name, value, &d->unit)
                                   : unknown(r, name, "requestsPerUnit or unit");
}

static int read_descriptor_member(const struct rls_body *r, struct weir_text name,
                                  struct weir_text value, void *to)
{
    struct rls_descriptor *d = to;
    if (text_is(name, "entries")) {
        return read_list(r, name, value, read_entry, d);
    }
    if (text_is(name, "limit")) {
        d->limited = true;
        return read_object(r, name, value, read_override, d);
    }
    if (named(name, "hitsAddend", "hits_addend")) {
        d->hits_given = true;
        return read_number(r, name, value, UINT64_MAX, &d->hits);
    }
    if (named(name, "isNegativeHits", "is_negative_hits")) {
        d->back = jsontext_is(value, 't');
        return d->back || jsontext_is(value, 'f') ? 0 : unexpected(r, name, value, "true or false");
    }
    return unknown(r, name, "entries, limit, hitsAddend or isNegativeHits");
}

static int read_descriptor(const struct rls_body *r, struct weir_text name, struct weir_text value,
                           void *to)
{
    struct rls_ask *ask = to;
    struct rls_descriptor d = {0};
    int e = read_object(r, name, value, read_descriptor_member, &d);
    if (e == 0 && ask->count <= CALL_MAX &&
        !arena_append(r->memory, &ask->descriptors, &ask->count, sizeof d, &d)) {
        return WEIR_ENOMEM;
    }
    return e;
}

static int read_member(const struct rls_body *r, struct weir_text name, struct weir_text value,
                       void *to)
{
    struct rls_ask *ask = to;
    if (text_is(name, "domain")) {
        return read_string(r, name, value, &ask->domain);
    }
    if (text_is(name, "descriptors")) {
        return read_list(r, name, value, read_descriptor, ask);
    }
    if (named(name, "hitsAddend", "hits_addend")) {
        return read_number(r, name, value, UINT32_MAX, &ask->hits);
    }
    return unknown(r, name, "domain, descriptors or hitsAddend");
}

/* ---- responses ---- */

static void put_code(struct buffer *to, int verdict)
{
    buffer_put(to, rls_code(verdict) == RLS_OK ? TEXT("\"OK\"") : TEXT("\"OVER_LIMIT\""));
}

static void put_status(struct buffer *to, const struct call_status *s, uint64_t now_ns)
{
    struct rls_told told = rls_told(s, now_ns);
    buffer_put(to, TEXT("{\"code\":"));
    put_code(to, s->verdict);
    if (s->limited && !s->unlimited) {
        buffer_put(to, TEXT(",\"currentLimit\":{\"requestsPerUnit\":"));
        buffer_put_u64(to, told.requests);
        buffer_put(to, TEXT(",\"unit\":\""));
        buffer_put(to, text_of(rls_unit_names[told.unit]));
        buffer_put(to, TEXT("\""));
        if (s->label.len > 0) {
            buffer_put(to, TEXT(",\"name\":"));
            jsontext_put_string(to, s->label);
        }
        buffer_put(to, TEXT("}"));
    }
    if (s->limited) {
        buffer_put(to, TEXT(",\"limitRemaining\":"));
        buffer_put_u64(to, told.remaining);
    }
    if (s->limited && !s->unlimited) {
        buffer_put(to, TEXT(",\"durationUntilReset\":\""));
        buffer_put_u64(to, told.reset_s);
        buffer_put(to, TEXT("s\""));
    }
    buffer_put(to, TEXT("}"));
}

static void put_header(struct buffer *to, size_t number, struct weir_text name,
                       struct weir_text value)
{
    buffer_put(to, number == 0 ? TEXT(",\"responseHeadersToAdd\":[") : TEXT(","));
    buffer_put(to, TEXT("{\"key\":"));
    jsontext_put_string(to, name);
    buffer_put(to, TEXT(",\"value\":"));
    jsontext_put_string(to, value);
    buffer_put(to, TEXT("}"));
}

/* Puts the flags of the answer as members that are true. */
static void put_metadata(struct buffer *to, unsigned flags)
{
    const char *between = ",\"dynamicMetadata\":{";
    for (unsigned i = 0; i < RLS_FLAGS; i++) {
        if ((flags >> i & 1) != 0) {
            buffer_put(to, text_of(between));
            jsontext_put_string(to, text_of(rls_flag_name(i)));
            buffer_put(to, TEXT(":true"));
            between = ",";
        }
    }
    buffer_put(to, flags != 0 ? TEXT("}") : TEXT(""));
}

static void reply(struct exchange *x, const struct call *call)
{
    int verdict = call->answer.answer.verdict;
    struct buffer *to = &x->body;
    buffer_put(to, TEXT("{\"overallCode\":"));
    put_code(to, verdict);
    buffer_put(to, TEXT(",\"statuses\":["));
    for (size_t i = 0; i < call->count; i++) {
        buffer_put(to, i > 0 ? TEXT(",") : TEXT(""));
        put_status(to, &call->statuses[i], call->now_ns);
    }
    buffer_put(to, TEXT("]"));
    size_t headers = rls_each_field(x->server, call, put_header, to);
    buffer_put(to, headers > 0 ? TEXT("]") : TEXT(""));
    put_metadata(to, rls_flags(call));
    buffer_put(to, TEXT("}"));
    x->result = verdict == WEIR_ALLOW ? REQUEST_ALLOW : REQUEST_DENY;
    worker_count_reason(x->connection->worker, PROTOCOL_HTTP, x->result, call->answer.reason,
                        call->answer.limit);
    http_reply(x, verdict == WEIR_ALLOW ? 200 : 429, "application/json", NULL);
}

/* Replies with an error, or denies a call that cannot be decided, if the rules say so. */
static void fail_call(struct exchange *x, int e, const struct weir_error *error)
{
    if (!rls_is_bad(e) || !rls_bad_call(x->connection->worker, answer_words_of_error(e, error))) {
        http_reply_failure(x, e, error);
        return;
    }
    buffer_put(&x->body, TEXT("{\"overallCode\":\"OVER_LIMIT\",\"statuses\":[]}"));
    x->result = REQUEST_DENY;
    worker_count_reason(x->connection->worker, PROTOCOL_HTTP, REQUEST_DENY, WEIR_REASON_UNMATCHED,
                        "");
    http_reply(x, 429, "application/json", NULL);
}

static void put_later(struct pending *p)
{
    struct http_request request;
    struct exchange x = http_resume(p, &request);
    struct weir_error error = {0};
    if (p->error != 0) {
        fail_call(&x, p->error, &error);
    } else {
        reply(&x, awaited_of(p)->call);
    }
    buffer_finish(&x.body);
}

static void run(struct exchange *x)
{
    struct asker asker = http_asker(x);
    struct pending *p = awaited_spare(asker.worker);
    struct weir_error error = {0};
    struct rls_ask ask = {.domain = {"", 0}};
    struct weir_text body;
    int e = p == NULL ? WEIR_ENOMEM : http_parse_json(x, VALUES_MAX, &body, &error);
    if (e == 0) {
        struct rls_body r = {&p->memory, &error};
        e = read_object(&r, TEXT("the body"), body, read_member, &ask);
        e = e != 0 ? e : rls_run(&asker, p, &ask, &error);
    }
    if (e == ANSWER_LATER) {
        http_keep(x, p, put_later);
    } else if (e != 0) {
        fail_call(x, e, &error);
    } else {
        reply(x, awaited_of(p)->call);
    }
}

const struct http_route http_rls_routes[] = {
    {"POST", "/json", HTTP_AT, ROLE_CHECK, run,
     .summary =
         "decides a call of Envoy's rate limit service: a RateLimitRequest as JSON; 200 or 429"},
    {.path = NULL},
};
