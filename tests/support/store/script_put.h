/* Calls of scripts, and commands that load them, as the bytes of whole requests. */
#ifndef WEIR_TESTS_SUPPORT_SCRIPT_PUT_H
#define WEIR_TESTS_SUPPORT_SCRIPT_PUT_H

#include "shared/core/script.h"
#include "wire/resp.h"

static inline void script_put_load(struct buffer *b, const struct script *script)
{
    resp_put_array(b, 3);
    resp_put_bulk(b, TEXT("SCRIPT"));
    resp_put_bulk(b, TEXT("LOAD"));
    resp_put_bulk(b, script->text);
}

static inline void script_put_call(struct buffer *b, const struct script *script,
                                   enum script_how how, unsigned verb,
                                   const struct store_part *parts, size_t n)
{
    struct buffer arguments;
    buffer_init(&arguments, 1 << 18);
    unsigned count = script_put_arguments(&arguments, verb, parts, n);
    script_put_head(b, script, how, count);
    buffer_put(b, buffer_text(&arguments));
    buffer_finish(&arguments);
}

#endif
