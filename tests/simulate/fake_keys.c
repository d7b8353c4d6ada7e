#include <stdlib.h>

#include "simulate/fake_inside.h"

#define VALUE_MAX ((size_t)16 << 20)

static size_t chain_of(struct weir_text key)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < key.len; i++) {
        h = (h ^ (unsigned char)key.at[i]) * UINT64_C(1099511628211);
    }
    return (size_t)(h >> 32) % FAKE_CHAINS;
}

static struct fake_entry **place_of(struct fake_redis *r, struct weir_text key)
{
    struct fake_entry **at = &r->chains[chain_of(key)];
    while (*at != NULL && !text_equal((*at)->key, key)) {
        at = &(*at)->next;
    }
    return at;
}

static void unlink_entry(struct fake_redis *r, struct fake_entry **at)
{
    struct fake_entry *e = *at;
    *at = e->next;
    buffer_finish(&e->value);
    free(e);
    r->count--;
}

struct fake_entry *fake_find(struct fake_redis *r, struct weir_text key)
{
    struct fake_entry **at = place_of(r, key);
    if (*at != NULL && (*at)->end_ms >= 0 && fake_now_ms(r) > (*at)->end_ms) {
        unlink_entry(r, at);
        return NULL;
    }
    return *at;
}

struct fake_entry *fake_make(struct fake_redis *r, struct weir_text key)
{
    struct fake_entry *e = fake_find(r, key);
    if (e != NULL) {
        return e;
    }
    e = malloc(sizeof *e + key.len);
    if (e == NULL) {
        abort();
    }
    memcpy(e->bytes, key.at, key.len);
    e->key = (struct weir_text){e->bytes, key.len};
    e->end_ms = -1;
    buffer_init(&e->value, VALUE_MAX);
    struct fake_entry **at = place_of(r, key);
    e->next = *at;
    *at = e;
    r->count++;
    return e;
}

bool fake_remove(struct fake_redis *r, struct weir_text key)
{
    if (fake_find(r, key) == NULL) {
        return false;
    }
    unlink_entry(r, place_of(r, key));
    return true;
}

void fake_redis_flush(struct fake_redis *r)
{
    for (size_t i = 0; i < FAKE_CHAINS; i++) {
        while (r->chains[i] != NULL) {
            unlink_entry(r, &r->chains[i]);
        }
    }
}

struct weir_text fake_redis_value(struct fake_redis *r, struct weir_text key)
{
    struct fake_entry *e = fake_find(r, key);
    return e != NULL ? buffer_text(&e->value) : (struct weir_text){NULL, 0};
}

struct fake_redis *fake_redis_create(void)
{
    struct fake_redis *r = calloc(1, sizeof *r);
    if (r == NULL) {
        abort();
    }
    buffer_init(&r->scratch, VALUE_MAX);
    fake_lua_start(r);
    return r;
}

void fake_redis_destroy(struct fake_redis *r)
{
    fake_redis_flush(r);
    fake_lua_stop(r);
    buffer_finish(&r->scratch);
    free(r);
}

void fake_redis_restart(struct fake_redis *r)
{
    fake_redis_flush(r);
    fake_lua_stop(r);
    fake_lua_start(r);
}

void fake_redis_set_time(struct fake_redis *r, uint64_t now_us)
{
    r->now_us = now_us;
}

void fake_redis_only_declared(struct fake_redis *r, bool only)
{
    r->only_declared = only;
}
