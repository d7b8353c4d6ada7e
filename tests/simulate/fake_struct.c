/* The library `struct` of Redis, for unsigned and signed integers: "<", ">", In, in, B, b, H, h. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "simulate/fake_inside.h"

struct format {
    const char *at;
    bool big;
};

struct field {
    size_t size;
    bool is_signed;
};

static size_t digits(const char **at, size_t otherwise)
{
    size_t n = 0;
    if (**at < '0' || **at > '9') {
        return otherwise;
    }
    while (**at >= '0' && **at <= '9') {
        n = n * 10 + (size_t)(*(*at)++ - '0');
    }
    return n;
}

/* Reads the next field. Returns false at the end. */
static bool next_field(lua_State *lua, struct format *f, struct field *out)
{
    while (*f->at == '<' || *f->at == '>' || *f->at == ' ') {
        f->big = *f->at == '>' || (f->big && *f->at == ' ');
        f->at++;
    }
    if (*f->at == '\0') {
        return false;
    }
    char c = *f->at++;
    size_t usual = c == 'b' || c == 'B' ? 1 : c == 'h' || c == 'H' ? 2 : 4;
    bool integer = c == 'i' || c == 'I';
    if (!integer && usual == 4) {
        return luaL_error(lua, "the fake's struct does not know the option %c", c) != 0;
    }
    out->size = integer ? digits(&f->at, usual) : usual;
    out->is_signed = c >= 'a';
    if (out->size == 0 || out->size > 8) {
        return luaL_error(lua, "integral size is larger than limit of 8") != 0;
    }
    return true;
}

static int pack(lua_State *lua)
{
    struct format f = {luaL_checkstring(lua, 1), false};
    struct field field;
    luaL_Buffer out;
    luaL_buffinit(lua, &out);
    for (int arg = 2; next_field(lua, &f, &field); arg++) {
        lua_Number n = luaL_checknumber(lua, arg);
        uint64_t value = n < 0 ? (uint64_t)(int64_t)n : (uint64_t)n;
        for (size_t i = 0; i < field.size; i++) {
            size_t byte = f.big ? field.size - 1 - i : i;
            luaL_addchar(&out, (char)(value >> (8 * byte) & 0xff));
        }
    }
    luaL_pushresult(&out);
    return 1;
}

static int unpack(lua_State *lua)
{
    struct format f = {luaL_checkstring(lua, 1), false};
    size_t len;
    const char *bytes = luaL_checklstring(lua, 2, &len);
    size_t at = (size_t)luaL_optinteger(lua, 3, 1) - 1;
    struct field field;
    lua_settop(lua, 2);
    while (next_field(lua, &f, &field)) {
        luaL_argcheck(lua, at <= len && field.size <= len - at, 2, "data string too short");
        uint64_t value = 0;
        for (size_t i = 0; i < field.size; i++) {
            size_t byte = f.big ? i : field.size - 1 - i;
            value = value << 8 | (unsigned char)bytes[at + byte];
        }
        unsigned unused = (unsigned)(8 * (8 - field.size));
        luaL_checkstack(lua, 2, "too many results");
        lua_pushnumber(lua, field.is_signed ? (lua_Number)((int64_t)(value << unused) >> unused)
                                            : (lua_Number)value);
        at += field.size;
    }
    lua_pushinteger(lua, (lua_Integer)at + 1);
    return lua_gettop(lua) - 2;
}

void fake_struct_open(lua_State *lua)
{
    static const luaL_Reg functions[] = {{"pack", pack}, {"unpack", unpack}, {NULL, NULL}};
    fake_register(lua, "struct", functions);
}
