/*
 * Scripts of the fake: EVAL, EVALSHA, SCRIPT LOAD, and the conversions of redis.call().
 *
 * It is compiled for Lua 5.1, which Redis has, and for Lua 5.4, which Dragonfly has. There
 * whole numbers are a type of their own, which wraps around at 2^63, and a store may write a
 * number of the other type as 5.0 or 1e+15. So with Lua 5.4 such a number in a command or a
 * reply is an error.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "simulate/fake_inside.h"
#include "wire/resp.h"

#if LUA_VERSION_NUM < 504
#define lua_pushglobaltable(lua) lua_pushvalue(lua, LUA_GLOBALSINDEX)
#define lua_isinteger(lua, i) (lua_type(lua, i) == LUA_TNUMBER)
#endif

static char address; /* its address is the key of the fake in Lua's registry */

/* ---- memory ---- */

#define SMALL ((size_t)16)
#define SMALLS 16u

/* Blocks that Lua has freed, by size: a script makes and drops thousands of small objects. */
static struct free_block {
    struct free_block *next;
} * blocks[SMALLS];

static void *take_block(size_t at)
{
    struct free_block *b = blocks[at];
    if (b == NULL) {
        return malloc((at + 1) * SMALL);
    }
    blocks[at] = b->next;
    return b;
}

static void give_block(void *block, size_t at)
{
    struct free_block *b = block;
    b->next = blocks[at];
    blocks[at] = b;
}

static void *allocate(void *arg, void *old, size_t old_size, size_t size)
{
    (void)arg;
    size_t from = old != NULL ? (old_size - 1) / SMALL : SMALLS;
    size_t to = size > 0 ? (size - 1) / SMALL : SMALLS;
    if (old != NULL && size > 0 && from == to && from < SMALLS) {
        return old;
    }
    if (from >= SMALLS && to >= SMALLS && size > 0) {
        return realloc(old, size);
    }
    void *fresh = size == 0 ? NULL : to < SMALLS ? take_block(to) : malloc(size);
    if (old != NULL && fresh != NULL) {
        memcpy(fresh, old, old_size < size ? old_size : size);
    }
    if (old != NULL && (fresh != NULL || size == 0)) {
        if (from < SMALLS) {
            give_block(old, from);
        } else {
            free(old);
        }
    }
    return fresh;
}

/* ---- a command's reply becomes a value of Lua ---- */

struct cursor {
    const char *at;
};

static long long line_number(struct cursor *c)
{
    char *end;
    long long n = strtoll(c->at, &end, 10);
    c->at = end + 2;
    return n;
}

static void push_line(lua_State *lua, struct cursor *c, const char *field)
{
    const char *end = strstr(c->at, "\r\n");
    lua_createtable(lua, 0, 1);
    lua_pushlstring(lua, c->at, (size_t)(end - c->at));
    lua_setfield(lua, -2, field);
    c->at = end + 2;
}

/* The reply is complete, because the fake itself made it. */
static void push_reply(lua_State *lua, struct cursor *c)
{
    char type = *c->at++;
    long long n;
    switch (type) {
    case ':':
        lua_pushinteger(lua, (lua_Integer)line_number(c));
        break;
    case '$':
        n = line_number(c);
        if (n < 0) {
            lua_pushboolean(lua, 0);
        } else {
            lua_pushlstring(lua, c->at, (size_t)n);
            c->at += n + 2;
        }
        break;
    case '*':
        n = line_number(c);
        lua_createtable(lua, (int)n, 0);
        for (int i = 1; i <= n; i++) {
            push_reply(lua, c);
            lua_rawseti(lua, -2, i);
        }
        break;
    default:
        push_line(lua, c, type == '+' ? "ok" : "err");
    }
}

/* ---- redis.* ---- */

static struct fake_redis *fake_of(lua_State *lua)
{
    lua_pushlightuserdata(lua, &address);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    struct fake_redis *r = lua_touserdata(lua, -1);
    lua_pop(lua, 1);
    return r;
}

static int raise(lua_State *lua, const char *text)
{
    lua_createtable(lua, 0, 1);
    lua_pushstring(lua, text);
    lua_setfield(lua, -2, "err");
    return lua_error(lua);
}

/* Replaces a number argument by its text, which lives as long as the argument. */
static bool argument(lua_State *lua, int i, struct weir_text *out)
{
    char digits[64];
    if (lua_isinteger(lua, i)) {
        (void)snprintf(digits, sizeof digits, "%.17g", lua_tonumber(lua, i));
        lua_pushstring(lua, digits);
        lua_replace(lua, i);
    } else if (lua_type(lua, i) != LUA_TSTRING) {
        return false;
    }
    out->at = lua_tolstring(lua, i, &out->len);
    return true;
}

static int run_command(lua_State *lua, bool raises)
{
    struct fake_redis *r = fake_of(lua);
    struct weir_text argv[FAKE_ARGS];
    int n = lua_gettop(lua);
    if (n == 0) {
        return raise(lua, "ERR Please specify at least one argument for this redis lib call");
    }
    for (int i = 0; i < n; i++) {
        if (i == FAKE_ARGS || !argument(lua, i + 1, &argv[i])) {
            return raise(lua, "ERR Lua redis lib command arguments must be strings or integers");
        }
    }
    buffer_take(&r->scratch, buffer_len(&r->scratch));
    fake_command(r, argv, (size_t)n, &r->scratch);
    buffer_put_char(&r->scratch, '\0');
    struct cursor c = {buffer_text(&r->scratch).at};
    bool failed = *c.at == '-';
    push_reply(lua, &c);
    return failed && raises ? lua_error(lua) : 1;
}

static int redis_call(lua_State *lua)
{
    return run_command(lua, true);
}

static int redis_pcall(lua_State *lua)
{
    return run_command(lua, false);
}

static int one_field(lua_State *lua, const char *field)
{
    luaL_checkstring(lua, 1);
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, field);
    return 1;
}

static int redis_error_reply(lua_State *lua)
{
    return one_field(lua, "err");
}

static int redis_status_reply(lua_State *lua)
{
    return one_field(lua, "ok");
}

static int no_such_global(lua_State *lua)
{
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                      lua_tostring(lua, 2));
}

static int no_new_global(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

static void guard_globals(lua_State *lua)
{
    lua_pushglobaltable(lua);
    lua_createtable(lua, 0, 2);
    lua_pushcfunction(lua, no_such_global);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, no_new_global);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_pop(lua, 1);
}

static void open_libraries(lua_State *lua)
{
    static const luaL_Reg libraries[] = {{"_G", luaopen_base},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_MATHLIBNAME, luaopen_math},
                                         {NULL, NULL}};
    for (const luaL_Reg *l = libraries; l->func != NULL; l++) {
#if LUA_VERSION_NUM < 504
        lua_pushcfunction(lua, l->func);
        lua_pushstring(lua, l->name);
        lua_call(lua, 1, 0);
#else
        luaL_requiref(lua, l->name, l->func, 1);
        lua_pop(lua, 1);
#endif
    }
}

void fake_register(lua_State *lua, const char *name, const luaL_Reg *functions)
{
    lua_createtable(lua, 0, 4);
    for (const luaL_Reg *f = functions; f->func != NULL; f++) {
        lua_pushcfunction(lua, f->func);
        lua_setfield(lua, -2, f->name);
    }
    lua_setglobal(lua, name);
}

void fake_lua_start(struct fake_redis *r)
{
    static const luaL_Reg functions[] = {{"call", redis_call},
                                         {"pcall", redis_pcall},
                                         {"error_reply", redis_error_reply},
                                         {"status_reply", redis_status_reply},
                                         {NULL, NULL}};
    r->lua = lua_newstate(allocate, NULL);
    if (r->lua == NULL) {
        abort();
    }
    (void)lua_gc(r->lua, LUA_GCSETPAUSE, 1000); /* a run is short: speed matters more than memory */
    open_libraries(r->lua);
    fake_register(r->lua, "redis", functions);
    fake_struct_open(r->lua);
    lua_pushlightuserdata(r->lua, &address);
    lua_pushlightuserdata(r->lua, r);
    lua_rawset(r->lua, LUA_REGISTRYINDEX);
    guard_globals(r->lua);
}

void fake_lua_stop(struct fake_redis *r)
{
    lua_close(r->lua);
}

/* ---- texts ---- */

/* Pushes the script with this SHA-1 on the stack. Returns false if there is none. */
static bool push_script(lua_State *lua, struct weir_text sha)
{
    lua_pushlstring(lua, sha.at, sha.len);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    if (!lua_isfunction(lua, -1)) {
        lua_pop(lua, 1);
        return false;
    }
    return true;
}

/* Compiles a text and stores it under its SHA-1. Returns false if it does not compile. */
static bool load(struct fake_redis *r, struct weir_text text, char sha[], struct buffer *b)
{
    fake_sha1(text, sha);
    if (push_script(r->lua, (struct weir_text){sha, FAKE_SHA_DIGITS})) {
        lua_pop(r->lua, 1);
        return true;
    }
    if (luaL_loadbuffer(r->lua, text.at, text.len, "@user_script") != 0) {
        resp_put_errorf(b, "ERR Error compiling script (new function): %s",
                        lua_tostring(r->lua, -1));
        lua_pop(r->lua, 1);
        return false;
    }
    lua_setfield(r->lua, LUA_REGISTRYINDEX, sha);
    return true;
}

void fake_script(struct fake_redis *r, const struct weir_text *argv, size_t argc, struct buffer *b)
{
    char sha[FAKE_SHA_DIGITS + 1];
    if (text_is_word(argv[1], "FLUSH")) {
        fake_lua_stop(r);
        fake_lua_start(r);
        resp_put_simple(b, TEXT("OK"));
    } else if (!text_is_word(argv[1], "LOAD") || argc != 3) {
        resp_put_error(b, TEXT("ERR unknown subcommand"));
    } else if (load(r, argv[2], sha, b)) {
        resp_put_bulk(b, text_of(sha));
    }
}

/* ---- a value of Lua becomes a reply ---- */

static bool put_field(lua_State *lua, const char *field,
                      void (*put)(struct buffer *, struct weir_text), struct buffer *b)
{
    struct weir_text text;
    lua_pushstring(lua, field);
    lua_rawget(lua, -2);
    bool there = lua_type(lua, -1) == LUA_TSTRING;
    if (there) {
        text.at = lua_tolstring(lua, -1, &text.len);
        put(b, text);
    }
    lua_pop(lua, 1);
    return there;
}

static void put_value(lua_State *lua, struct buffer *b);

static void put_table(lua_State *lua, struct buffer *b)
{
    int n = 0;
    if (put_field(lua, "err", resp_put_error, b) || put_field(lua, "ok", resp_put_simple, b)) {
        return;
    }
    for (;; n++) { /* up to the first nil, independent of # */
        lua_rawgeti(lua, -1, n + 1);
        bool end = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (end) {
            break;
        }
    }
    resp_put_array(b, (size_t)n);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(lua, -1, i);
        put_value(lua, b);
        lua_pop(lua, 1);
    }
}

static int64_t whole(lua_Number n)
{
    bool fits = n > -9223372036854775808.0 && n < 9223372036854775808.0;
    return fits ? (int64_t)n : INT64_MIN; /* as x86 converts a number that does not fit */
}

static void put_value(lua_State *lua, struct buffer *b)
{
    struct weir_text text;
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text.at = lua_tolstring(lua, -1, &text.len);
        resp_put_bulk(b, text);
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(lua, -1)) {
            resp_put_integer(b, whole(lua_tonumber(lua, -1)));
        } else {
            resp_put_error(b, TEXT("ERR a number of the reply is not an integer"));
        }
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(lua, -1)) {
            resp_put_integer(b, 1);
        } else {
            resp_put_null(b, 2);
        }
        break;
    case LUA_TTABLE:
        put_table(lua, b);
        break;
    default:
        resp_put_null(b, 2);
    }
}

/* ---- a call ---- */

static void set_list(lua_State *lua, const char *name, const struct weir_text *list, size_t n)
{
    lua_pushglobaltable(lua);
    lua_pushstring(lua, name);
    lua_createtable(lua, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushlstring(lua, list[i].at, list[i].len);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_rawset(lua, -3);
    lua_pop(lua, 1);
}

/* Runs the script on top of the stack. */
static void run(struct fake_redis *r, const char *sha, struct buffer *b)
{
    r->in_script = true;
    if (lua_pcall(r->lua, 0, 1, 0) == 0) {
        put_value(r->lua, b);
    } else if (lua_istable(r->lua, -1)) { /* the error of a command */
        put_table(r->lua, b);
    } else {
        resp_put_errorf(b, "ERR %s script: %s, on @user_script.", lua_tostring(r->lua, -1), sha);
    }
    r->in_script = false;
    lua_settop(r->lua, 0);
}

void fake_eval(struct fake_redis *r, const struct weir_text *argv, size_t argc, struct buffer *b)
{
    char sha[FAKE_SHA_DIGITS + 1];
    int64_t keys;
    if (!resp_to_i64(argv[2], &keys)) {
        resp_put_error(b, TEXT("ERR value is not an integer or out of range"));
        return;
    }
    if (keys < 0 || (size_t)keys > argc - 3) {
        resp_put_error(b, TEXT("ERR Number of keys can't be greater than number of args"));
        return;
    }
    if (text_is_word(argv[0], "EVAL")) {
        if (!load(r, argv[1], sha, b)) {
            return;
        }
    } else {
        (void)snprintf(sha, sizeof sha, "%.*s", TEXT_ARGS(argv[1]));
    }
    if (!push_script(r->lua, text_of(sha))) {
        resp_put_error(b, TEXT("NOSCRIPT No matching script. Please use EVAL."));
        return;
    }
    r->keys = argv + 3;
    r->keys_n = (size_t)keys;
    set_list(r->lua, "KEYS", argv + 3, (size_t)keys);
    set_list(r->lua, "ARGV", argv + 3 + keys, argc - 3 - (size_t)keys);
    run(r, sha, b);
}
