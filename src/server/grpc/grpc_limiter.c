/*
 * weir.v1.Limiter (proto/weir/v1/limiter.proto). Its methods are the operations, and Batch. In all
 * requests the field of a member of struct ask has the number of the member plus 1.
 */
#include <stdio.h>

#include "base/error.h"
#include "server/grpc/grpc.h"
#include "server/operations/awaited.h"
#include "wire/protobuf.h"

#define SERVICE "weir.v1.Limiter"
#define BATCH_MAX 1000
#define ANSWER_BYTES 1024 /* at least an answer as a message */

/* ---- requests ---- */

static int bad_field(struct weir_error *error, unsigned member, const char *expected)
{
    return fail(error, WEIR_EINVAL, "%s: expected %s", ask_members[member].name, expected);
}

/* Reads an entry of the map: {name = 1, value = 2}. Of two entries with one name the later counts,
 * as in every map of Protocol Buffers. */
static int read_attribute(struct weir_text entry, struct ask *ask, struct weir_error *error)
{
    struct protobuf_field f;
    struct weir_text pair[2] = {{"", 0}, {"", 0}};
    int more;
    while ((more = protobuf_next(&entry, &f)) == 1) {
        if (f.type == PROTOBUF_BYTES && f.number <= 2) {
            pair[f.number - 1] = f.bytes;
        }
    }
    if (more < 0 || !protobuf_is_string(pair[0]) || !protobuf_is_string(pair[1])) {
        return bad_field(error, ASK_ATTRIBUTES, "names and values of UTF-8 without NUL");
    }
    size_t i = 0;
    while (i < ask->attributes_count &&
           (ask->attributes[i].name_len != pair[0].len ||
            memcmp(ask->attributes[i].name, pair[0].at, pair[0].len) != 0)) {
        i++;
    }
    if (i == WEIR_RULES_ATTRIBUTES_MAX) {
        return bad_field(error, ASK_ATTRIBUTES, "at most 256 attributes");
    }
    ask->attributes[i] =
        (struct weir_rules_attribute){pair[0].at, pair[0].len, pair[1].at, pair[1].len};
    ask->attributes_count += i == ask->attributes_count;
    return 0;
}

static int read_part(struct weir_text part, struct ask *ask, struct weir_error *error)
{
    if (ask->parts_count == CONFIG_KEY_PARTS_MAX) {
        return bad_field(error, ASK_KEY, "at most 8 parts");
    }
    if (part.len == 0 || !protobuf_is_string(part)) {
        return bad_field(error, ASK_KEY, "at least one character, of UTF-8 without NUL");
    }
    ask->parts[ask->parts_count++] = part;
    return 0;
}

/* A number that is 0 counts as absent if 0 is not a value of the member: clients do not send it. */
static int read_number(uint64_t value, unsigned member, struct ask *ask, struct weir_error *error)
{
    const struct ask_member_row *row = &ask_members[member];
    if (value == 0 && row->least > 0) {
        ask->given &= ~ASK_BIT(member);
        return 0;
    }
    if (value > row->most) {
        return fail(error, WEIR_EINVAL, "%s: found %llu, expected at most %llu", row->name,
                    (unsigned long long)value, (unsigned long long)row->most);
    }
    ask->number[member] = value;
    return 0;
}

static int read_field(const struct protobuf_field *f, unsigned member, struct ask *ask,
                      struct weir_error *error)
{
    const struct ask_member_row *row = &ask_members[member];
    bool number = row->kind == ASK_NUMBER;
    if (f->type != (number ? PROTOBUF_VARINT : PROTOBUF_BYTES)) {
        return bad_field(error, member, number ? "a number" : "a string or a message");
    }
    ask->given |= ASK_BIT(member);
    switch (row->kind) {
    case ASK_NUMBER:
        return read_number(f->value, member, ask, error);
    case ASK_PARTS:
        return read_part(f->bytes, ask, error);
    case ASK_PAIRS:
        return read_attribute(f->bytes, ask, error);
    default:
        ask->text[member] = f->bytes;
        ask->given &= f->bytes.len > 0 ? ~0u : ~ASK_BIT(member);
        return protobuf_is_string(f->bytes) ? 0 : bad_field(error, member, "UTF-8 without NUL");
    }
}

/* Reads the members that the operation takes; other fields are skipped, because newer clients may
 * send them. */
static int read_ask(struct weir_text message, const struct operation_row *row, struct ask *ask,
                    struct weir_error *error)
{
    struct protobuf_field f;
    int more;
    int e = 0;
    ask_init(ask);
    error->text[0] = 0;
    while (e == 0 && (more = protobuf_next(&message, &f)) != 0) {
        if (more < 0) {
            return fail(error, WEIR_EINVAL, "the message is malformed");
        }
        unsigned member = f.number - 1;
        if (member < ASK_MEMBERS && (row->members & ASK_BIT(member)) != 0) {
            e = read_field(&f, member, ask, error);
        }
    }
    unsigned zero = ASK_BIT(ASK_ACTUAL); /* absent on the wire if it is 0 */
    unsigned missing = row->needed & ~ask->given & ~zero;
    return e != 0 || missing == 0 ? e
                                  : bad_field(error, (unsigned)__builtin_ctz(missing), "a value");
}

/* ---- answers ---- */

/* Fields of the message Answer. */
enum {
    ANSWER_VERDICT = 1, /* enum weir_verdict */
    ANSWER_LIMIT,
    ANSWER_QUOTA,
    ANSWER_REMAINING,
    ANSWER_RETRY_AFTER,
    ANSWER_RESET_AFTER,
    ANSWER_DELAY,
    ANSWER_IS_DEGRADED,
    ANSWER_IS_SHADOW,
    ANSWER_IS_FULL,
    ANSWER_REASON, /* enum weir_rules_reason plus 1 */
    ANSWER_RESERVATION,
    ANSWER_BLOCKED,
    ANSWER_IS_MISSING
};

/* The field of each flag, in the order of answer_flag_names. */
static const unsigned flag_fields[ANSWER_FLAGS] = {ANSWER_IS_DEGRADED, ANSWER_IS_SHADOW,
                                                   ANSWER_IS_FULL, ANSWER_IS_MISSING};

static void put_answer(struct buffer *to, const struct answer *a, unsigned operation)
{
    enum operation_extra extra = operation_rows[operation].extra;
    protobuf_put_number(to, ANSWER_VERDICT, (uint64_t)a->verdict);
    protobuf_put_bytes(to, ANSWER_LIMIT, text_of(a->limit));
    protobuf_put_number(to, ANSWER_QUOTA, a->quota);
    protobuf_put_number(to, ANSWER_REMAINING, (uint64_t)a->remaining);
    protobuf_put_number(to, ANSWER_RETRY_AFTER, (uint64_t)a->retry_after_ms);
    protobuf_put_number(to, ANSWER_RESET_AFTER, a->reset_after_ms);
    protobuf_put_number(to, ANSWER_DELAY, a->delay_ms);
    for (unsigned i = 0; i < ANSWER_FLAGS; i++) {
        protobuf_put_number(to, flag_fields[i], a->flags >> i & 1);
    }
    protobuf_put_number(to, ANSWER_REASON, (uint64_t)a->reason + 1);
    if (extra == EXTRA_RESERVATION) {
        protobuf_put_bytes(to, ANSWER_RESERVATION, text_of(a->reservation));
    } else if (extra == EXTRA_BLOCKED) {
        protobuf_put_number(to, ANSWER_BLOCKED, (uint64_t)a->blocked_ms);
    }
}

/* ---- one operation ---- */

static void reply(struct grpc_call *call, unsigned operation, int e, const struct answer *a,
                  const struct weir_error *error)
{
    if (e != 0) {
        grpc_fail(call, e, error);
    } else {
        put_answer(grpc_begin_message(call), a, operation);
        enum request_result result = operation_result((enum operation)operation, 0, a);
        worker_count_reason(call->connection->worker, PROTOCOL_GRPC, result, a->reason, a->limit);
        grpc_reply(call, result);
    }
}

static void put_later(struct pending *p)
{
    struct grpc_call *call = grpc_resume(p);
    struct weir_error error = {0};
    if (call != NULL) {
        reply(call, p->wire.operation, p->error, &awaited_of(p)->answer, &error);
        grpc_put_frames(p->connection);
    }
}

static void run_operation(struct grpc_call *call, struct weir_text message)
{
    unsigned operation = call->method->operation;
    struct asker asker = grpc_asker(call);
    struct weir_error error;
    struct answer a;
    struct ask ask;
    int e = read_ask(message, &operation_rows[operation], &ask, &error);
    e = e != 0 ? e : operation_run(&asker, (enum operation)operation, &ask, &a, &error);
    if (e == ANSWER_LATER) {
        asker.pending->wire.operation = operation;
        grpc_keep(call, asker.pending, put_later);
    } else {
        reply(call, operation, e, &a, &error);
    }
}

/* ---- batches ---- */

/* Fields of BatchRequest, BatchAnswer and Result. */
enum { BATCH_REQUESTS = 1, BATCH_RESULTS = 1, RESULT_ANSWER = 1, RESULT_ERROR = 2 };

/* Puts the result of one check, and counts it. */
static void put_result(struct worker *w, struct buffer *to, int e, const struct answer *a,
                       const struct weir_error *error)
{
    struct buffer inner;
    struct buffer result;
    buffer_init(&inner, ANSWER_BYTES);
    buffer_init(&result, 2 * ANSWER_BYTES);
    enum request_result counted = operation_result(OPERATION_CHECK, e, a);
    worker_count_requests(w, PROTOCOL_GRPC, counted, 1);
    if (e == 0) {
        worker_count_reason(w, PROTOCOL_GRPC, counted, a->reason, a->limit);
        put_answer(&inner, a, OPERATION_CHECK);
        protobuf_put_message(&result, RESULT_ANSWER, buffer_text(&inner));
    } else {
        protobuf_put_bytes(&result, RESULT_ERROR, text_of(answer_words_of_error(e, error)));
    }
    protobuf_put_message(to, BATCH_RESULTS, buffer_text(&result));
    buffer_finish(&inner);
    buffer_finish(&result);
}

static void put_part_later(struct pending *part)
{
    struct buffer *body = &part->batch->body;
    struct weir_error error = {0};
    put_result(part->worker, body, part->error, &awaited_of(part)->answer, &error);
    buffer_put(body, buffer_text(&part->body));
}

static void put_batch_later(struct pending *batch)
{
    struct grpc_call *call = grpc_resume(batch);
    for (struct pending *part = batch->parts; part != NULL; part = part->next) {
        part->put(part);
    }
    if (call != NULL) {
        buffer_put(grpc_begin_message(call), buffer_text(&batch->body));
        grpc_reply(call, REQUEST_UNTOLD);
        grpc_put_frames(batch->connection);
    }
}

/* Answers each check by itself: not all or nothing. The answers that come later are parts of
 * `batch`; NULL: no fleet decides. */
static void answer_each(struct grpc_call *call, struct weir_text message, struct pending *batch,
                        struct buffer *results)
{
    struct worker *w = call->connection->worker;
    struct asker asker = grpc_asker(call);
    struct protobuf_field f;
    asker.worker = batch != NULL ? w : NULL;
    while (protobuf_next(&message, &f) == 1) {
        struct answer a;
        struct weir_error error;
        struct ask ask;
        if (f.number != BATCH_REQUESTS) {
            continue;
        }
        int e = read_ask(f.bytes, &operation_rows[OPERATION_CHECK], &ask, &error);
        e = e != 0 ? e : operation_run(&asker, OPERATION_CHECK, &ask, &a, &error);
        if (e == ANSWER_LATER) {
            pending_keep_part(asker.pending, batch, results, put_part_later);
        } else {
            put_result(w, results, e, &a, &error);
        }
    }
}

/* Returns how many requests a batch has, or -1 if the message is malformed. */
static int count_requests(struct weir_text message)
{
    struct protobuf_field f;
    int n = 0;
    int more;
    while ((more = protobuf_next(&message, &f)) == 1) {
        if (f.number == BATCH_REQUESTS && f.type != PROTOBUF_BYTES) {
            return -1;
        }
        n += f.number == BATCH_REQUESTS;
    }
    return more == 0 ? n : -1;
}

static void answer_batch(struct grpc_call *call, struct weir_text message)
{
    struct worker *w = call->connection->worker;
    struct pending *batch = w->where != NULL ? pending_batch(w) : NULL;
    struct buffer results;
    if (batch == NULL && w->where != NULL) {
        grpc_fail(call, WEIR_ENOMEM, &(struct weir_error){0});
        return;
    }
    buffer_init(&results, SERVER_REPLY_BYTES);
    answer_each(call, message, batch, &results);
    if (batch != NULL && batch->parts != NULL) {
        pending_end_parts(batch, &results);
        grpc_keep(call, batch, put_batch_later);
    } else {
        struct buffer *to = grpc_begin_message(call);
        pending_destroy(batch);
        buffer_put(to, buffer_text(&results));
        to->full = to->full || results.full; /* an error, not a reply without some results */
        grpc_reply(call, REQUEST_UNTOLD);
    }
    buffer_finish(&results);
}

static void run_batch(struct grpc_call *call, struct weir_text message)
{
    int n = count_requests(message);
    if (n < 0 || n > BATCH_MAX) {
        struct weir_error error;
        (void)fail(&error, WEIR_EINVAL,
                   n < 0 ? "the message is malformed" : "requests: found %d, expected at most %d",
                   n, BATCH_MAX);
        grpc_fail(call, WEIR_EINVAL, &error);
    } else {
        answer_batch(call, message);
    }
}

/* ---- methods, as the rows of operations say ---- */

static struct grpc_method methods[OPERATIONS + 1];
static size_t methods_count;

static void make_methods(void)
{
    static char names[OPERATIONS][16];
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const struct operation_row *row = &operation_rows[i];
        if (row->reach != 0) {
            (void)snprintf(names[i], sizeof names[i], "%c%s", row->name[0] - 'a' + 'A',
                           row->name + 1);
            methods[methods_count++] =
                (struct grpc_method){SERVICE, names[i], row->role, i, run_operation, NULL};
        }
    }
    methods[methods_count++] =
        (struct grpc_method){SERVICE, "Batch", ROLE_CHECK, OPERATION_CHECK, run_batch, NULL};
}

const struct grpc_method *grpc_limiter_methods(size_t *count)
{
    static uv_once_t once = UV_ONCE_INIT;
    uv_once(&once, make_methods);
    *count = methods_count;
    return methods;
}
