#include <inttypes.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/maths.h"
#include "server/grpc/grpc.h"
#include "server/loop/penalty.h"
#include "wire/credentials.h"

#define PREFIX 5 /* bytes before a message: whether it is compressed, and its length */

/* ---- header fields ---- */

/* Reads "100m": up to eight digits and a unit. Returns false if it is anything else. */
static bool read_timeout(struct weir_text value, uint64_t *ns)
{
    static const struct {
        char unit;
        uint64_t ns;
    } units[] = {{'H', 3600 * WEIR_SECOND},
                 {'M', 60 * WEIR_SECOND},
                 {'S', WEIR_SECOND},
                 {'m', WEIR_MILLISECOND},
                 {'u', 1000},
                 {'n', 1}};
    uint64_t n;
    if (value.len < 2 || value.len > 9 ||
        !text_to_u64((struct weir_text){value.at, value.len - 1}, &n)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].unit == value.at[value.len - 1]) {
            *ns = n <= UINT64_MAX / units[i].ns ? n * units[i].ns : UINT64_MAX;
            return true;
        }
    }
    return false;
}

/* Takes the secret of a call that needs one; an Authorization may be meant for another server. Of
 * the two fields Weir-Secret counts. The path has come before: HTTP/2 demands that. After too many
 * wrong ones, none is looked at: many calls come in one read, before the connection ends. */
static void take_secret(struct grpc_call *call, struct weir_text authorization,
                        struct weir_text weir_secret)
{
    struct connection *c = call->connection;
    struct access *access = c->worker->server->options.access;
    struct access_pass pass = {0};
    struct credentials given;
    enum role asked;
    if (call->method == NULL || access_role(access, &c->pass) >= call->method->role ||
        (call->own_secret && weir_secret.at == NULL)) {
        return;
    }
    call->own_secret = weir_secret.at != NULL;
    call->wrong_secret =
        c->wrong >= CONNECTION_WRONG_MAX || !credentials_read(authorization, weir_secret, &given) ||
        !access_user(given.user, &asked) || !access_show(access, given.secret, asked, &pass);
    call->role = call->wrong_secret ? ROLE_NONE : pass.role;
}

/*
 * Returns whether the field is none that is read here, in a call for whose refusal a gateway would
 * let a request pass. Such a field costs nothing and is not counted: Envoy copies `tracestate`,
 * which its clients write, into its calls.
 */
static bool is_unread(const struct grpc_call *call, struct weir_text name)
{
    static const char *const read[] = {"content-type", "grpc-encoding", "grpc-timeout",
                                       "authorization", "weir-secret"};
    size_t i = 0;
    if (call->method == NULL || call->method->decline == NULL || text_starts(name, ":")) {
        return false;
    }
    while (i < sizeof read / sizeof read[0] && !text_is(name, read[i])) {
        i++;
    }
    return i == sizeof read / sizeof read[0];
}

void grpc_take_field(struct grpc_call *call, struct weir_text name, struct weir_text value)
{
    const struct weir_text none = {NULL, 0};
    uint64_t timeout_ns;
    if (is_unread(call, name)) {
        return;
    }
    call->fields_bytes += name.len + value.len;
    if (call->fields_bytes > GRPC_FIELDS_BYTES) {
        call->too_large = true;
    } else if (text_is(name, ":method")) {
        call->post = text_is(value, "POST");
    } else if (text_is(name, ":path")) {
        call->method = grpc_method(value);
    } else if (text_is(name, "content-type")) {
        struct weir_text after =
            text_starts(value, "application/grpc") ? text_after(value, 16) : none;
        call->typed = after.at != NULL &&
                      (after.len == 0 || after.at[0] == ';' || text_starts(after, "+proto"));
    } else if (text_is(name, "grpc-encoding")) {
        call->compressed = !text_is(value, "identity");
    } else if (text_is(name, "grpc-timeout") && read_timeout(value, &timeout_ns)) {
        call->deadline_ns = add_sat(clock_boot_ns(), timeout_ns);
    } else if (text_is(name, "authorization")) {
        take_secret(call, value, none);
    } else if (text_is(name, "weir-secret")) {
        take_secret(call, none, value);
    }
}

/* ---- memory ---- */

/* Counts the memory of the reply while bytes of it are to be sent: all of it, because a client may
 * fetch all but the last byte. */
static void count_reply(struct grpc_call *call)
{
    size_t kept = buffer_len(&call->reply) > 0 ? call->reply.size : 0;
    if (kept > call->reply_kept) {
        connection_keep_reply(call->connection, kept - call->reply_kept);
    } else {
        connection_free_reply(call->connection, call->reply_kept - kept);
    }
    call->reply_kept = kept;
}

/* Empties a buffer, and frees its memory unless that is little. */
static void drop(struct buffer *b)
{
    buffer_take(b, buffer_len(b));
    b->full = false;
    buffer_trim(b, GRPC_SPARE_BYTES);
}

void grpc_drop_reply(struct grpc_call *call)
{
    drop(&call->reply);
    count_reply(call);
}

void grpc_drop_request(struct grpc_call *call)
{
    call->connection->session_kept -= buffer_len(&call->request);
    drop(&call->request);
}

/* ---- replies ---- */

static nghttp2_nv field_of(const char *name, struct weir_text value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value.at, strlen(name), value.len,
                        NGHTTP2_NV_FLAG_NONE};
}

static nghttp2_session *session_of(const struct grpc_call *call)
{
    return grpc_session_of(call->connection)->h2;
}

/* Gives nghttp2 bytes of the reply; after the last of them, the status as a trailer. */
static ssize_t read_reply(nghttp2_session *h2, int32_t stream, uint8_t *to, size_t room,
                          uint32_t *flags, nghttp2_data_source *from, void *arg)
{
    struct grpc_call *call = from->ptr;
    struct weir_text bytes = buffer_text(&call->reply);
    size_t n = bytes.len < room ? bytes.len : room;
    (void)arg;
    memcpy(to, bytes.at, n);
    buffer_take(&call->reply, n);
    connection_pass_reply(call->connection, n);
    if (buffer_len(&call->reply) > 0) {
        return (ssize_t)n;
    }
    grpc_drop_reply(call);
    if (call->ended) {
        nghttp2_nv trailer = field_of("grpc-status", TEXT("0"));
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        return nghttp2_submit_trailer(h2, stream, &trailer, 1) == 0
                   ? (ssize_t)n
                   : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

static void count(struct grpc_call *call, enum request_result result)
{
    struct connection *c = call->connection;
    worker_count_requests(c->worker, c->protocol->kind, result, 1);
}

/* Begins the reply; its messages come from call->reply. */
static void begin_reply(struct grpc_call *call)
{
    nghttp2_nv fields[] = {field_of(":status", TEXT("200")),
                           field_of("content-type", TEXT("application/grpc"))};
    nghttp2_data_provider body = {.source = {.ptr = call}, .read_callback = read_reply};
    call->answered = true;
    (void)nghttp2_submit_response(session_of(call), call->stream, fields, 2, &body);
}

struct buffer *grpc_begin_message(struct grpc_call *call)
{
    static const char none[PREFIX] = {0};
    buffer_put(&call->reply, (struct weir_text){none, PREFIX});
    call->message_at = buffer_len(&call->reply);
    return &call->reply;
}

/* Writes the length of the message into its prefix, and sends it. */
static void end_message(struct grpc_call *call)
{
    struct buffer *b = &call->reply;
    if (b->full) {
        grpc_drop_reply(call);
        grpc_refuse(call, REQUEST_UNTOLD, GRPC_INTERNAL, "out of memory for the reply");
        return;
    }
    uint32_t len = (uint32_t)(buffer_len(b) - call->message_at);
    char *prefix = b->at + b->begin + call->message_at - PREFIX;
    for (unsigned i = 1; i < PREFIX; i++) {
        prefix[i] = (char)(len >> (8 * (PREFIX - 1 - i)));
    }
    count_reply(call);
    if (call->answered) {
        (void)nghttp2_session_resume_data(session_of(call), call->stream);
    } else {
        begin_reply(call);
    }
}

void grpc_push(struct grpc_call *call, struct weir_text message)
{
    buffer_put(grpc_begin_message(call), message);
    end_message(call);
}

void grpc_end(struct grpc_call *call)
{
    call->ended = true;
    (void)nghttp2_session_resume_data(session_of(call), call->stream);
}

void grpc_reply(struct grpc_call *call, enum request_result result)
{
    count(call, result);
    call->ended = true;
    end_message(call);
}

/* Writes a text as the specification wants it: bytes other than visible ASCII as %XX. */
static struct weir_text encode_words(const char *words, char *room, size_t size)
{
    size_t n = 0;
    for (; *words != 0 && n + 4 < size; words++) {
        unsigned char c = (unsigned char)*words;
        if (c >= 0x20 && c < 0x7f && c != '%') {
            room[n++] = (char)c;
        } else {
            n += (size_t)snprintf(room + n, 4, "%%%02X", c);
        }
    }
    return (struct weir_text){room, n};
}

void grpc_refuse(struct grpc_call *call, enum request_result result, enum grpc_status status,
                 const char *why)
{
    char number[12];
    char room[768];
    int n = snprintf(number, sizeof number, "%d", (int)status);
    nghttp2_nv fields[] = {field_of(":status", TEXT("200")),
                           field_of("content-type", TEXT("application/grpc")),
                           field_of("grpc-status", (struct weir_text){number, (size_t)n}),
                           field_of("grpc-message", encode_words(why, room, sizeof room)),
                           field_of("grpc-accept-encoding", TEXT("identity"))};
    count(call, result);
    call->answered = true;
    (void)nghttp2_submit_response(session_of(call), call->stream, fields,
                                  status == GRPC_UNIMPLEMENTED ? 5 : 4, NULL);
}

/* Refuses a call because of what is in it, unless its method has another answer for that. */
static void refuse_bad(struct grpc_call *call, enum grpc_status status, const char *why)
{
    const struct grpc_method *m = call->method;
    if (m == NULL || m->decline == NULL || !m->decline(call, why)) {
        grpc_refuse(call, REQUEST_ERROR, status, why);
    }
}

/* Answers a request that is no call of gRPC. */
static void refuse_request(struct grpc_call *call, struct weir_text http_status)
{
    nghttp2_nv fields[] = {field_of(":status", http_status), field_of("allow", TEXT("POST"))};
    count(call, REQUEST_ERROR);
    call->answered = true;
    (void)nghttp2_submit_response(session_of(call), call->stream, fields, call->post ? 1 : 2, NULL);
}

/* Returns the status of gRPC for an error, by its status of HTTP. */
static enum grpc_status status_of(int http_status)
{
    switch (http_status) {
    case 400:
        return GRPC_INVALID_ARGUMENT;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_NOT_FOUND;
    case 409:
        return GRPC_FAILED_PRECONDITION;
    case 429:
        return GRPC_RESOURCE_EXHAUSTED;
    case 501:
        return GRPC_UNIMPLEMENTED;
    case 503:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_INTERNAL;
    }
}

void grpc_fail(struct grpc_call *call, int e, const struct weir_error *error)
{
    grpc_refuse(call, REQUEST_ERROR, status_of(answer_error(e)->status),
                answer_words_of_error(e, error));
}

/* Returns whether the client no longer waits for the reply. */
static bool is_late(const struct grpc_call *call)
{
    return call->deadline_ns != UINT64_MAX && clock_boot_ns() > call->deadline_ns;
}

/* ---- answers that come later ---- */

struct asker grpc_asker(const struct grpc_call *call)
{
    struct connection *c = call->connection;
    return (struct asker){.server = c->worker->server,
                          .worker = c->worker,
                          .by = {&c->peer, call->role},
                          .now_ns = c->worker->now_ns};
}

void grpc_keep(struct grpc_call *call, struct pending *p, pending_put_fn put)
{
    call->answered = true;
    p->wire.stream = call->stream;
    pending_keep(p, call->connection, put);
}

struct grpc_call *grpc_resume(struct pending *p)
{
    nghttp2_session *h2 = grpc_session_of(p->connection)->h2;
    struct grpc_call *call = nghttp2_session_get_stream_user_data(h2, p->wire.stream);
    if (call != NULL) {
        call->answered = false;
        if (is_late(call)) {
            grpc_refuse(call, REQUEST_ERROR, GRPC_DEADLINE_EXCEEDED,
                        "the store answered after the deadline of the call");
            grpc_put_frames(p->connection);
            return NULL;
        }
    }
    return call;
}

/* ---- requests ---- */

static void put_wrong(struct grpc_call *call)
{
    grpc_refuse(call, REQUEST_ERROR, GRPC_UNAUTHENTICATED,
                "the secret is not valid, or not for this user");
}

static void put_wrong_late(struct pending *p)
{
    struct grpc_call *call = grpc_resume(p);
    if (call != NULL) {
        put_wrong(call);
        grpc_put_frames(p->connection);
    }
}

/* Refuses a wrong secret, now or after a delay. */
static void refuse_secret(struct grpc_call *call)
{
    struct connection *c = call->connection;
    if (c->wrong >= CONNECTION_WRONG_MAX) {
        grpc_refuse(call, REQUEST_ERROR, GRPC_UNAUTHENTICATED,
                    "the connection has shown too many wrong secrets, and ends");
        return;
    }
    struct pending *p = penalty_begin(c);
    count_own(&c->worker->counts.refused_access, 1);
    c->ending = connection_wrong_secret(c) || c->ending;
    if (p != NULL) {
        grpc_keep(call, p, put_wrong_late);
    } else {
        put_wrong(call);
    }
}

static void refuse_role(struct grpc_call *call)
{
    char why[96];
    (void)snprintf(why, sizeof why, "%s: found the role %s, expected %s", call->method->name,
                   role_names[call->role], role_names[call->method->role]);
    count_own(&call->connection->worker->counts.refused_access, 1);
    grpc_refuse(call, REQUEST_ERROR,
                call->role == ROLE_NONE ? GRPC_UNAUTHENTICATED : GRPC_PERMISSION_DENIED, why);
}

void grpc_check_head(struct grpc_call *call)
{
    if (!call->post || !call->typed) {
        refuse_request(call, call->post ? TEXT("415") : TEXT("405"));
    } else if (grpc_session_of(call->connection)->stale) {
        grpc_refuse(call, REQUEST_OVERLOAD, GRPC_UNAVAILABLE,
                    "the request waited longer than --max-age allows; retry later");
    } else if (call->too_large) {
        refuse_bad(call, GRPC_RESOURCE_EXHAUSTED, "found more than 8192 bytes of header fields");
    } else if (call->wrong_secret) {
        refuse_secret(call);
    } else if (call->method == NULL) {
        grpc_refuse(call, REQUEST_ERROR, GRPC_UNIMPLEMENTED,
                    "found an unknown method, expected one of weir.v1.Limiter, "
                    "envoy.service.ratelimit.v3.RateLimitService or grpc.health.v1.Health");
    } else if (call->role < call->method->role) {
        refuse_role(call);
    } else if (call->compressed) {
        refuse_bad(call, GRPC_UNIMPLEMENTED, "found a grpc-encoding other than identity");
    }
}

void grpc_take_bytes(struct grpc_call *call, struct weir_text bytes)
{
    size_t before = buffer_len(&call->request);
    if (call->answered) {
        return;
    }
    buffer_put(&call->request, bytes);
    call->connection->session_kept += buffer_len(&call->request) - before;
    if (call->request.full) {
        refuse_bad(call, GRPC_RESOURCE_EXHAUSTED, "the message is too large");
        grpc_drop_request(call);
    }
}

/* Decides the call by its message, or refuses it. */
static void decide(struct grpc_call *call)
{
    struct weir_text body = buffer_text(&call->request);
    const unsigned char *b = (const unsigned char *)body.at;
    uint64_t len = body.len < PREFIX ? UINT64_MAX
                                     : (uint64_t)b[1] << 24 | (uint64_t)b[2] << 16 |
                                           (uint64_t)b[3] << 8 | (uint64_t)b[4];
    if (body.len >= PREFIX && b[0] != 0) {
        refuse_bad(call, b[0] == 1 ? GRPC_UNIMPLEMENTED : GRPC_INTERNAL,
                   "found a compressed message, expected a plain one");
    } else if (len != body.len - PREFIX) {
        refuse_bad(call, GRPC_INTERNAL,
                   "found no message, several, or one that is cut short; expected exactly one");
    } else if (is_late(call)) {
        grpc_refuse(call, REQUEST_ERROR, GRPC_DEADLINE_EXCEEDED,
                    "the message came after the deadline of the call; nothing was taken");
    } else {
        call->method->run(call, text_after(body, PREFIX));
    }
}

void grpc_run(struct grpc_call *call)
{
    if (call->answered) {
        return;
    }
    if (connection_has_room(call->connection)) {
        decide(call);
        grpc_drop_request(call);
    } else {
        call->waits = true;
        grpc_session_of(call->connection)->waiting++;
    }
}

/* ---- methods ---- */

static const struct grpc_method *find(const struct grpc_method *methods, size_t count,
                                      struct weir_text service, struct weir_text name)
{
    for (size_t i = 0; i < count; i++) {
        if (text_is(service, methods[i].service) && text_is(name, methods[i].name)) {
            return &methods[i];
        }
    }
    return NULL;
}

const struct grpc_method *grpc_method(struct weir_text path)
{
    size_t count;
    const struct grpc_method *methods = grpc_limiter_methods(&count);
    if (path.len == 0 || path.at[0] != '/') {
        return NULL;
    }
    struct weir_text name = text_after(path, 1);
    struct weir_text service = text_cut(&name, '/');
    const struct grpc_method *found = find(grpc_rls_methods, GRPC_RLS_METHODS, service, name);
    found = found != NULL ? found : find(methods, count, service, name);
    return found != NULL ? found : find(grpc_health_methods, GRPC_HEALTH_METHODS, service, name);
}
