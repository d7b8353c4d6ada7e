/* What the parts of the fake Redis share. */
#ifndef WEIR_TESTS_SIMULATE_FAKE_INSIDE_H
#define WEIR_TESTS_SIMULATE_FAKE_INSIDE_H

#include "simulate/fake_redis.h"

struct lua_State;
struct luaL_Reg;

enum { FAKE_CHAINS = 4096, FAKE_ARGS = 128 };

struct fake_entry {
    struct fake_entry *next;
    struct weir_text key;
    struct buffer value;
    int64_t end_ms; /* when it expires, in the store's time; -1: never */
    char bytes[];   /* bytes of the key */
};

struct fake_redis {
    uint64_t now_us;
    struct fake_entry *chains[FAKE_CHAINS];
    size_t count;
    struct lua_State *lua;
    struct buffer scratch; /* the reply to a command of a script */
    bool only_declared;
    bool in_script;
    const struct weir_text *keys; /* the keys that a script has declared */
    size_t keys_n;
};

static inline int64_t fake_now_ms(const struct fake_redis *r)
{
    return (int64_t)(r->now_us / 1000);
}

/* ---- fake_keys.c ---- */

struct fake_entry *fake_find(struct fake_redis *r,
                             struct weir_text key); /* NULL: absent or expired */
struct fake_entry *fake_make(struct fake_redis *r, struct weir_text key); /* finds it or makes it */
bool fake_remove(struct fake_redis *r, struct weir_text key);

/* ---- fake_commands.c ---- */

void fake_command(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                  struct buffer *b);

/* ---- fake_lua.c ---- */

void fake_lua_start(struct fake_redis *r);
void fake_lua_stop(struct fake_redis *r);
void fake_script(struct fake_redis *r, const struct weir_text *argv, size_t argc, struct buffer *b);
void fake_eval(struct fake_redis *r, const struct weir_text *argv, size_t argc, struct buffer *b);

/* Makes a table of functions, which ends with NULL, a global one. */
void fake_register(struct lua_State *lua, const char *name, const struct luaL_Reg *functions);

/* ---- fake_sha1.c ---- */

enum { FAKE_SHA_DIGITS = 40 };

/* Writes the SHA-1 of the text in hexadecimal digits. */
void fake_sha1(struct weir_text text, char digits[FAKE_SHA_DIGITS + 1]);

/* ---- fake_struct.c ---- */

void fake_struct_open(struct lua_State *lua);

#endif
