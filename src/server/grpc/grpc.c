#include "server/grpc/grpc.h"

#include <stdlib.h>

/* ---- calls of a connection ---- */

/* Returns a call without content: the spare one, with its empty buffers, or a new one. */
static struct grpc_call *take_call(struct grpc_session *s)
{
    struct grpc_call *call = s->spare != NULL ? s->spare : calloc(1, sizeof *call);
    if (s->spare == NULL && call != NULL) {
        buffer_init(&call->request, SERVER_REQUEST_BYTES);
        buffer_init(&call->reply, SERVER_REPLY_BYTES);
    }
    s->spare = NULL;
    return call;
}

static void free_call(struct grpc_call *call)
{
    if (call != NULL) {
        buffer_finish(&call->request);
        buffer_finish(&call->reply);
        free(call);
    }
}

/* Keeps an ended call as the spare one, or frees it. */
static void spare_call(struct grpc_session *s, struct grpc_call *call)
{
    if (s->spare != NULL) {
        free_call(call);
        return;
    }
    *call = (struct grpc_call){.request = call->request, .reply = call->reply};
    s->spare = call;
}

static struct grpc_call *create_call(struct connection *c, int32_t stream)
{
    struct grpc_session *s = grpc_session_of(c);
    struct grpc_call *call = take_call(s);
    if (call == NULL) {
        return NULL;
    }
    call->connection = c;
    call->stream = stream;
    call->begun_ms = uv_now(&c->worker->loop);
    call->deadline_ns = UINT64_MAX;
    call->role = access_role(c->worker->server->options.access, &c->pass);
    call->next = s->calls;
    call->from = &s->calls;
    if (s->calls != NULL) {
        s->calls->from = &call->next;
    }
    s->calls = call;
    c->session_kept += GRPC_CALL_BYTES;
    return call;
}

/* Takes the call out of its list, and frees it. */
static void destroy_call(struct grpc_call *call)
{
    *call->from = call->next;
    if (call->next != NULL) {
        call->next->from = call->from;
    }
    struct grpc_session *s = grpc_session_of(call->connection);
    s->waiting -= call->waits;
    call->connection->session_kept -= GRPC_CALL_BYTES;
    grpc_drop_request(call);
    grpc_drop_reply(call);
    spare_call(s, call);
}

/* ---- what nghttp2 tells ---- */

static struct grpc_call *call_of(nghttp2_session *h2, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(h2, stream);
}

/* Lets `n` more frames come. */
static void allow_frames(struct grpc_session *s, uint64_t n)
{
    s->frames = s->frames + n < GRPC_FRAMES ? s->frames + n : GRPC_FRAMES;
}

/* Counts a frame, whatever it is. */
static int count_frame(nghttp2_session *h2, struct connection *c)
{
    static struct log_limit limit;
    struct grpc_session *s = grpc_session_of(c);
    uint64_t now_ms = uv_now(&c->worker->loop);
    uint64_t more = (now_ms - s->frames_ms) * GRPC_FRAMES_SECOND / 1000;
    if (more > 0) {
        s->frames_ms = now_ms;
        allow_frames(s, more);
    }
    if (s->frames == 0) {
        connection_tell(c, &limit, LEVEL_WARNING, "connection ended",
                        "it sent too many frames for its calls");
        (void)nghttp2_session_terminate_session(h2, NGHTTP2_ENHANCE_YOUR_CALM);
        return NGHTTP2_ERR_CALLBACK_FAILURE; /* consume() ends the connection */
    }
    s->frames--;
    return 0;
}

/* nghttp2 calls this for every frame. on_frame() counts DATA, after the call that it ends. */
static int on_begin_frame(nghttp2_session *h2, const nghttp2_frame_hd *head, void *arg)
{
    struct grpc_session *s = grpc_session_of(arg);
    if (head->type == NGHTTP2_HEADERS) {
        s->heading = true;
        s->head = 0;
    } else if (head->type != NGHTTP2_CONTINUATION) {
        s->heading = false;
    }
    return head->type != NGHTTP2_DATA ? count_frame(h2, arg) : 0;
}

/* Ignores a frame of a type that is not known. on_begin_frame() has counted it. */
static int ignore_extension(nghttp2_session *h2, void **payload, const nghttp2_frame_hd *head,
                            void *arg)
{
    (void)h2;
    (void)payload;
    (void)head;
    (void)arg;
    return NGHTTP2_ERR_CANCEL;
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    struct grpc_call *call = create_call(arg, frame->hd.stream_id);
    return call != NULL ? nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, call)
                        : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *arg)
{
    struct grpc_call *call = call_of(h2, frame->hd.stream_id);
    (void)flags;
    (void)arg;
    if (call != NULL && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        grpc_take_field(call, (struct weir_text){(const char *)name, name_len},
                        (struct weir_text){(const char *)value, value_len});
    }
    return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t len, void *arg)
{
    struct grpc_call *call = call_of(h2, stream);
    (void)flags;
    (void)arg;
    if (call != NULL) {
        grpc_take_bytes(call, (struct weir_text){(const char *)data, len});
    }
    return 0;
}

/* Counts what nghttp2 keeps of a head that is not complete, after `len` more bytes have come: of a
 * field all of them, and a client may send 64 KB of one. */
static void count_head(struct connection *c, size_t len)
{
    struct grpc_session *s = grpc_session_of(c);
    s->head = s->heading ? s->head + len : 0;
    c->session_kept += GRPC_HEAD_COST * s->head - s->head_kept;
    s->head_kept = GRPC_HEAD_COST * s->head;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
    bool head = frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
    bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
                (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    struct grpc_call *call = head || ends ? call_of(h2, frame->hd.stream_id) : NULL;
    grpc_session_of(arg)->greeted = true;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        grpc_session_of(arg)->heading = false;
    }
    if (call != NULL && head) {
        call->headed = true;
        grpc_check_head(call);
    }
    if (call != NULL && ends) {
        call->complete = true;
        allow_frames(grpc_session_of(arg), GRPC_FRAMES_CALL);
        grpc_run(call);
    }
    return frame->hd.type == NGHTTP2_DATA ? count_frame(h2, arg) : 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t stream, uint32_t why, void *arg)
{
    struct grpc_call *call = call_of(h2, stream);
    (void)why;
    (void)arg;
    if (call != NULL) {
        destroy_call(call);
    }
    return 0;
}

/* ---- the session ---- */

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;

/* Makes what all sessions share. It lives as long as the process. */
static void make_shared(void)
{
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&options) != 0) {
        callbacks = NULL;
        return;
    }
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, ignore_extension);
    for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++) {
        nghttp2_option_set_user_recv_extension_type(options, (uint8_t)type);
    }
    nghttp2_option_set_no_closed_streams(options, 1); /* only priorities need closed streams */
}

static bool open_session(struct connection *c)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_STREAMS},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_FIELDS_BYTES},
    };
    static uv_once_t once = UV_ONCE_INIT;
    struct grpc_session *s = grpc_session_of(c);
    uv_once(&once, make_shared);
    s->frames = GRPC_FRAMES;
    s->frames_ms = uv_now(&c->worker->loop);
    return callbacks != NULL && nghttp2_session_server_new2(&s->h2, callbacks, c, options) == 0 &&
           nghttp2_submit_settings(s->h2, NGHTTP2_FLAG_NONE, settings, 2) == 0;
}

/* Returns whether the session has calls, or may get more. */
static bool goes_on(const struct grpc_session *s)
{
    return nghttp2_session_want_read(s->h2) != 0 || nghttp2_session_want_write(s->h2) != 0;
}

/* Moves ready frames into the thread's replies. Returns whether some are left, because those are
 * to be written first. */
static bool move_frames(struct connection *c)
{
    struct buffer *replies = &c->worker->replies;
    const uint8_t *bytes;
    ssize_t n = 1;
    while (buffer_len(replies) < SERVER_FLUSH_BYTES &&
           (n = nghttp2_session_mem_send(grpc_session_of(c)->h2, &bytes)) > 0) {
        buffer_put(replies, (struct weir_text){(const char *)bytes, (size_t)n});
    }
    replies->full = replies->full || n < 0;
    return n > 0;
}

/* Returns the oldest call that waits for room, or NULL. */
static struct grpc_call *oldest_waiting(const struct grpc_session *s)
{
    struct grpc_call *oldest = NULL;
    for (struct grpc_call *call = s->waiting > 0 ? s->calls : NULL; call != NULL;
         call = call->next) {
        oldest = call->waits ? call : oldest;
    }
    return oldest;
}

/* Runs the oldest call that waits for room, if there is room now. Returns whether it did. */
static bool run_waiting(struct connection *c)
{
    struct grpc_session *s = grpc_session_of(c);
    struct grpc_call *oldest = oldest_waiting(s);
    if (oldest == NULL || c->ending || !connection_has_room(c)) {
        return false;
    }
    oldest->waits = false;
    s->waiting--;
    grpc_run(oldest);
    return true;
}

void grpc_put_frames(struct connection *c)
{
    struct grpc_session *s = grpc_session_of(c);
    bool left;
    do {
        left = move_frames(c);
    } while (!left && run_waiting(c));
    c->session_waits = left || s->waiting > 0;
    c->ending = c->ending || !goes_on(s); /* an answer that came later may have been the last */
}

/* Answers a client of HTTP/1, for which the first bytes of HTTP/2 are a malformed reply. */
static int64_t refuse_old(struct connection *c)
{
    static const char words[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                                "Connection: close\r\n\r\n"
                                "found HTTP/1, expected gRPC (HTTP/2 with prior knowledge)\n";
    buffer_put(&c->worker->replies, (struct weir_text){words, sizeof words - 1});
    worker_count_requests(c->worker, c->protocol->kind, REQUEST_ERROR, 1);
    return CONNECTION_CLOSE;
}

/*
 * Takes all of the input: nghttp2 keeps the beginning of a frame, and calls whose replies would
 * be too many wait.
 */
static int64_t consume(struct connection *c, struct weir_text input)
{
    struct grpc_session *s = grpc_session_of(c);
    bool first = s->h2 == NULL;
    if (first && !open_session(c)) {
        return CONNECTION_CLOSE;
    }
    s->stale = input.len > 0 && worker_is_stale(c->worker, input.at + input.len - 1);
    ssize_t n = nghttp2_session_mem_recv(s->h2, (const uint8_t *)input.at, input.len);
    count_head(c, input.len);
    if (n == NGHTTP2_ERR_BAD_CLIENT_MAGIC && first) {
        return refuse_old(c);
    }
    if (n < 0) {
        (void)nghttp2_session_terminate_session(
            s->h2, n == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR);
    }
    grpc_put_frames(c);
    return n < 0 || !goes_on(s) ? CONNECTION_CLOSE : (int64_t)input.len;
}

/* Tells the client that the connection ends: first that it should begin no more calls here, and at
 * the end which was the last call that was answered. */
static void farewell(struct connection *c, bool last)
{
    struct grpc_session *s = grpc_session_of(c);
    if (s->h2 == NULL) {
        return;
    }
    if (last) {
        (void)nghttp2_session_terminate_session(s->h2, NGHTTP2_NO_ERROR);
    } else {
        grpc_health_ends(s);
        (void)nghttp2_submit_shutdown_notice(s->h2);
    }
    grpc_put_frames(c);
}

/* Answers a call whose message has not come in time. If the client does not end its stream then,
 * the stream is reset at the next look; nghttp2 would drop the answer if that was done at once. */
static void cut_call(struct grpc_call *call)
{
    static struct log_limit limit;
    if (call->answered) {
        call->complete = true;
        (void)nghttp2_submit_rst_stream(grpc_session_of(call->connection)->h2, NGHTTP2_FLAG_NONE,
                                        call->stream, NGHTTP2_NO_ERROR);
    } else {
        connection_tell(call->connection, &limit, LEVEL_WARNING, "call ended",
                        "its request does not end");
        grpc_refuse(call, REQUEST_ERROR, GRPC_DEADLINE_EXCEEDED,
                    "the message was not complete in time");
    }
}

/* A head that does not end holds up all other frames, so the connection ends with it. */
static bool late(struct connection *c, uint64_t now_ms)
{
    struct grpc_session *s = grpc_session_of(c);
    const uint64_t most_ms = c->worker->server->options.request_ms;
    bool ends = s->h2 != NULL && !s->greeted && now_ms - c->accepted_ms > most_ms;
    bool cut = false;
    for (struct grpc_call *call = s->calls; call != NULL && !ends; call = call->next) {
        if (!call->complete && now_ms - call->begun_ms > most_ms) {
            ends = !call->headed;
            cut = true;
            if (call->headed) {
                cut_call(call);
            }
        }
    }
    if (cut && !ends) {
        grpc_put_frames(c);
    }
    return ends;
}

static void finish(struct connection *c)
{
    struct grpc_session *s = grpc_session_of(c);
    for (struct grpc_call *call = s->calls; call != NULL;) {
        struct grpc_call *next = call->next;
        free_call(call);
        call = next;
    }
    c->session_kept = 0;
    s->head_kept = 0;
    s->waiting = 0;
    free_call(s->spare);
    s->calls = NULL;
    s->spare = NULL;
    nghttp2_session_del(s->h2);
    s->h2 = NULL;
}

const struct protocol protocol_grpc = {
    .name = "grpc",
    .address = "off",
    .roles = {[ROLE_CHECK] = true},
    .kind = PROTOCOL_GRPC,
    .alpn = {"h2"},
    .session_bytes = sizeof(struct grpc_session),
    .unordered = true,
    .consume = consume,
    .farewell = farewell,
    .late = late,
    .finish = finish,
};
