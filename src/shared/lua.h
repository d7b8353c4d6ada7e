/* The pieces of the scripts, src/shared/lua/, embedded by the build. Each ends with a 0 byte. */
#ifndef WEIR_SHARED_LUA_H
#define WEIR_SHARED_LUA_H

#include <stddef.h>

#define LUA_PIECES(X)                                                                              \
    X(clock)                                                                                       \
    X(common)                                                                                      \
    X(lease)                                                                                       \
    X(bucket)                                                                                      \
    X(token_bucket)                                                                                \
    X(leaky_bucket)                                                                                \
    X(fixed_window)                                                                                \
    X(sliding_window)                                                                              \
    X(sliding_log)                                                                                 \
    X(sync)                                                                                        \
    X(leased_bucket)                                                                               \
    X(leased_window)                                                                               \
    X(decide)                                                                                      \
    X(members)

#define LUA_DECLARE(name)                                                                          \
    extern const char lua_##name[];                                                                \
    extern const size_t lua_##name##_size;
LUA_PIECES(LUA_DECLARE)
#undef LUA_DECLARE

#endif
