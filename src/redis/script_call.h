/* Scripts as a Redis knows them: by their text, or by the hash of it once they are loaded. */
#ifndef WEIR_REDIS_SCRIPT_CALL_H
#define WEIR_REDIS_SCRIPT_CALL_H

#include "common/buffer.h"
#include "common/text.h"
#include "wire/resp.h"

enum { SCRIPT_COUNT = 9, SCRIPT_SHA = 40 };

struct script {
    const char *name;
    struct weir_text text;
    char sha1[SCRIPT_SHA + 1]; /* of the text */
};

/* All scripts that a client calls. */
struct scripts {
    struct script row[SCRIPT_COUNT];
};

enum script_how { SCRIPT_BY_SHA, SCRIPT_BY_TEXT };

/*
 * Puts the head of a call into the buffer: EVALSHA and the script's hash, or EVAL and its text.
 * As always with a buffer, bytes that do not fit set b->full. `count` arguments must follow as bulk
 * strings; they can be kept and sent again after another head.
 */
static inline void script_put_head(struct buffer *b, const struct script *script,
                                   enum script_how how, unsigned count)
{
    bool text = how == SCRIPT_BY_TEXT;
    resp_put_array(b, 2 + (size_t)count);
    resp_put_bulk(b, text ? TEXT("EVAL") : TEXT("EVALSHA"));
    resp_put_bulk(b, text ? script->text : (struct weir_text){script->sha1, SCRIPT_SHA});
}

#endif
