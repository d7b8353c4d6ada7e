#include "redis/script_call.h"

#include <stdint.h>

#include "wire/resp.h"

enum { CALL_HEAD = 2 }; /* the command, and the hash or the text */

void script_put_load(struct buffer *b, const struct script *script)
{
    resp_put_array(b, 3);
    resp_put_bulk(b, TEXT("SCRIPT"));
    resp_put_bulk(b, TEXT("LOAD"));
    resp_put_bulk(b, script->text);
}

void script_put_head(struct buffer *b, const struct script *script, enum script_how how,
                     unsigned count)
{
    bool text = how == SCRIPT_BY_TEXT;
    resp_put_array(b, CALL_HEAD + (size_t)count);
    resp_put_bulk(b, text ? TEXT("EVAL") : TEXT("EVALSHA"));
    resp_put_bulk(b, text ? script->text : (struct text){script->sha1, SCRIPT_SHA});
}
