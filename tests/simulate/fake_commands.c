#include <inttypes.h>
#include <stdio.h>

#include "simulate/fake_inside.h"
#include "wire/resp.h"

#define NOT_A_NUMBER "ERR value is not an integer or out of range"
#define STRING_MAX ((int64_t)512 << 20)

static void put_error(struct buffer *b, const char *text)
{
    resp_put_error(b, text_of(text));
}

static void put_ok(struct buffer *b)
{
    resp_put_simple(b, TEXT("OK"));
}

static void set_value(struct fake_entry *e, struct weir_text value)
{
    buffer_take(&e->value, buffer_len(&e->value));
    buffer_put(&e->value, value);
}

static bool to_number(struct weir_text t, int64_t *n, struct buffer *b)
{
    if (!resp_to_i64(t, n)) {
        put_error(b, NOT_A_NUMBER);
        return false;
    }
    return true;
}

/* ---- the server ---- */

static void do_time(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                    struct buffer *b)
{
    char digits[24];
    resp_put_array(b, 2);
    (void)snprintf(digits, sizeof digits, "%" PRIu64, r->now_us / 1000000);
    resp_put_bulk(b, text_of(digits));
    (void)snprintf(digits, sizeof digits, "%" PRIu64, r->now_us % 1000000);
    resp_put_bulk(b, text_of(digits));
}

static void do_flushall(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                        struct buffer *b)
{
    fake_redis_flush(r);
    put_ok(b);
}

static void do_dbsize(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                      struct buffer *b)
{
    resp_put_integer(b, (int64_t)r->count);
}

/* ---- strings ---- */

static void do_get(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                   struct buffer *b)
{
    struct fake_entry *e = fake_find(r, argv[1]);
    if (e == NULL) {
        resp_put_null(b, 2);
    } else {
        resp_put_bulk(b, buffer_text(&e->value));
    }
}

struct set_options {
    int64_t end_ms;
    bool keep;
    bool if_new;
    bool if_there;
};

static bool read_options(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                         struct set_options *o, struct buffer *b)
{
    for (size_t i = 3; i < argc; i++) {
        bool px = text_is_word(argv[i], "PX");
        int64_t n;
        if ((px || text_is_word(argv[i], "EX")) && i + 1 < argc && o->end_ms < 0 && !o->keep) {
            if (!to_number(argv[++i], &n, b)) {
                return false;
            }
            if (n <= 0 || n > (INT64_MAX - fake_now_ms(r)) / (px ? 1 : 1000)) {
                put_error(b, "ERR invalid expire time in 'set' command");
                return false;
            }
            o->end_ms = fake_now_ms(r) + (px ? n : n * 1000);
        } else if (text_is_word(argv[i], "KEEPTTL") && o->end_ms < 0) {
            o->keep = true;
        } else if (text_is_word(argv[i], "NX") && !o->if_there) {
            o->if_new = true;
        } else if (text_is_word(argv[i], "XX") && !o->if_new) {
            o->if_there = true;
        } else {
            put_error(b, "ERR syntax error");
            return false;
        }
    }
    return true;
}

static void do_set(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                   struct buffer *b)
{
    struct set_options o = {.end_ms = -1};
    if (!read_options(r, argv, argc, &o, b)) {
        return;
    }
    bool there = fake_find(r, argv[1]) != NULL;
    if ((o.if_new && there) || (o.if_there && !there)) {
        resp_put_null(b, 2);
        return;
    }
    struct fake_entry *e = fake_make(r, argv[1]);
    set_value(e, argv[2]);
    e->end_ms = o.keep ? e->end_ms : o.end_ms;
    put_ok(b);
}

static void do_strlen(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                      struct buffer *b)
{
    struct fake_entry *e = fake_find(r, argv[1]);
    resp_put_integer(b, e != NULL ? (int64_t)buffer_len(&e->value) : 0);
}

static void do_getrange(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                        struct buffer *b)
{
    int64_t first;
    int64_t last;
    if (!to_number(argv[2], &first, b) || !to_number(argv[3], &last, b)) {
        return;
    }
    struct fake_entry *e = fake_find(r, argv[1]);
    struct weir_text value = e != NULL ? buffer_text(&e->value) : (struct weir_text){"", 0};
    int64_t len = (int64_t)value.len;
    first = first < 0 ? first + len : first;
    last = last < 0 ? last + len : last;
    first = first < 0 ? 0 : first;
    last = last < 0 ? 0 : last;
    last = last >= len ? len - 1 : last;
    bool none = first > last || len == 0;
    resp_put_bulk(b, none ? (struct weir_text){"", 0}
                          : (struct weir_text){value.at + first, (size_t)(last - first) + 1});
}

/* Makes the value at least `len` bytes long, and returns its bytes. */
static char *extend(struct fake_entry *e, size_t len)
{
    size_t had = buffer_len(&e->value);
    if (len > had) {
        char *room = buffer_room(&e->value, len - had);
        memset(room, 0, len - had);
        buffer_add(&e->value, len - had);
    }
    return e->value.at + e->value.begin;
}

static void do_setrange(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                        struct buffer *b)
{
    int64_t at;
    if (!to_number(argv[2], &at, b)) {
        return;
    }
    if (at < 0) {
        put_error(b, "ERR offset is out of range");
        return;
    }
    if (at + (int64_t)argv[3].len > STRING_MAX) {
        put_error(b, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        return;
    }
    if (argv[3].len == 0) {
        do_strlen(r, argv, argc, b);
        return;
    }
    struct fake_entry *e = fake_make(r, argv[1]);
    memcpy(extend(e, (size_t)at + argv[3].len) + at, argv[3].at, argv[3].len);
    resp_put_integer(b, (int64_t)buffer_len(&e->value));
}

static void do_append(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                      struct buffer *b)
{
    struct fake_entry *e = fake_make(r, argv[1]);
    buffer_put(&e->value, argv[2]);
    resp_put_integer(b, (int64_t)buffer_len(&e->value));
}

static void do_incrby(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                      struct buffer *b)
{
    int64_t n = 1;
    int64_t had = 0;
    char digits[24];
    struct fake_entry *e = fake_find(r, argv[1]);
    if ((argc > 2 && !to_number(argv[2], &n, b)) ||
        (e != NULL && !to_number(buffer_text(&e->value), &had, b))) {
        return;
    }
    if (__builtin_add_overflow(had, n, &had)) {
        put_error(b, "ERR increment or decrement would overflow");
        return;
    }
    (void)snprintf(digits, sizeof digits, "%" PRId64, had);
    set_value(fake_make(r, argv[1]), text_of(digits));
    resp_put_integer(b, had);
}

/* ---- any key ---- */

static void do_del(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                   struct buffer *b)
{
    int64_t n = 0;
    for (size_t i = 1; i < argc; i++) {
        n += fake_remove(r, argv[i]);
    }
    resp_put_integer(b, n);
}

static void do_exists(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                      struct buffer *b)
{
    int64_t n = 0;
    for (size_t i = 1; i < argc; i++) {
        n += fake_find(r, argv[i]) != NULL;
    }
    resp_put_integer(b, n);
}

static int64_t left_ms(struct fake_redis *r, struct weir_text key)
{
    struct fake_entry *e = fake_find(r, key);
    return e == NULL ? -2 : e->end_ms < 0 ? -1 : e->end_ms - fake_now_ms(r);
}

static void do_pttl(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                    struct buffer *b)
{
    resp_put_integer(b, left_ms(r, argv[1]));
}

static void do_ttl(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                   struct buffer *b)
{
    int64_t ms = left_ms(r, argv[1]);
    resp_put_integer(b, ms < 0 ? ms : (ms + 500) / 1000);
}

static void expire(struct fake_redis *r, const struct weir_text *argv, int64_t unit_ms,
                   struct buffer *b)
{
    int64_t n;
    if (!to_number(argv[2], &n, b)) {
        return;
    }
    struct fake_entry *e = fake_find(r, argv[1]);
    if (e == NULL) {
        resp_put_integer(b, 0);
    } else if (n <= 0) {
        resp_put_integer(b, fake_remove(r, argv[1]));
    } else {
        e->end_ms = fake_now_ms(r) + n * unit_ms;
        resp_put_integer(b, 1);
    }
}

static void do_pexpire(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                       struct buffer *b)
{
    expire(r, argv, 1, b);
}

static void do_expire(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                      struct buffer *b)
{
    expire(r, argv, 1000, b);
}

static void do_persist(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                       struct buffer *b)
{
    struct fake_entry *e = fake_find(r, argv[1]);
    bool had = e != NULL && e->end_ms >= 0;
    if (had) {
        e->end_ms = -1;
    }
    resp_put_integer(b, had);
}

/* ---- by name ---- */

static const struct command {
    const char *name;
    void (*run)(struct fake_redis *r, const struct weir_text *argv, size_t argc, struct buffer *b);
    size_t least; /* number of arguments, including the name */
    size_t most;
    size_t keys; /* how many arguments after the name are keys */
    bool in_scripts;
} commands[] = {
    {"TIME", do_time, 1, 1, 0, true},
    {"GET", do_get, 2, 2, 1, true},
    {"SET", do_set, 3, 9, 1, true},
    {"DEL", do_del, 2, FAKE_ARGS, FAKE_ARGS, true},
    {"EXISTS", do_exists, 2, FAKE_ARGS, FAKE_ARGS, true},
    {"STRLEN", do_strlen, 2, 2, 1, true},
    {"GETRANGE", do_getrange, 4, 4, 1, true},
    {"SETRANGE", do_setrange, 4, 4, 1, true},
    {"APPEND", do_append, 3, 3, 1, true},
    {"INCR", do_incrby, 2, 2, 1, true},
    {"INCRBY", do_incrby, 3, 3, 1, true},
    {"PTTL", do_pttl, 2, 2, 1, true},
    {"TTL", do_ttl, 2, 2, 1, true},
    {"PEXPIRE", do_pexpire, 3, 3, 1, true},
    {"EXPIRE", do_expire, 3, 3, 1, true},
    {"PERSIST", do_persist, 2, 2, 1, true},
    {"DBSIZE", do_dbsize, 1, 1, 0, true},
    {"FLUSHALL", do_flushall, 1, 2, 0, true},
    {"SCRIPT", fake_script, 2, 3, 0, false},
    {"EVAL", fake_eval, 3, FAKE_ARGS, 0, false},
    {"EVALSHA", fake_eval, 3, FAKE_ARGS, 0, false},
};

static bool declared(const struct fake_redis *r, const struct command *c,
                     const struct weir_text *argv, size_t argc)
{
    for (size_t i = 1; i < argc && i <= c->keys; i++) {
        size_t k = 0;
        while (k < r->keys_n && !text_equal(r->keys[k], argv[i])) {
            k++;
        }
        if (k == r->keys_n) {
            return false;
        }
    }
    return true;
}

static bool allowed(const struct fake_redis *r, const struct command *c,
                    const struct weir_text *argv, size_t argc, struct buffer *b)
{
    if (argc < c->least || argc > c->most) {
        put_error(b, r->in_script ? "ERR Wrong number of args calling Redis command from script"
                                  : "ERR wrong number of arguments");
        return false;
    }
    if (r->in_script && !c->in_scripts) {
        put_error(b, "ERR This Redis command is not allowed from script");
        return false;
    }
    if (r->in_script && r->only_declared && !declared(r, c, argv, argc)) {
        put_error(b, "ERR Script attempted to access a non local key in a cluster node");
        return false;
    }
    return true;
}

void fake_command(struct fake_redis *r, const struct weir_text *argv, size_t argc, struct buffer *b)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (text_is_word(argv[0], commands[i].name)) {
            if (allowed(r, &commands[i], argv, argc, b)) {
                commands[i].run(r, argv, argc, b);
            }
            return;
        }
    }
    put_error(b, r->in_script ? "ERR Unknown Redis command called from script"
                              : "ERR unknown command");
}

void fake_redis_request(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                        struct buffer *reply)
{
    r->in_script = false;
    fake_command(r, argv, argc, reply);
}
