/*
 * What a store answers. No byte beyond the input is read (a copy of the exact size); what is said
 * of some bytes is said with more behind them; a reply lies within its bytes, keeps to the maxima,
 * and is no answer of a script unless it can be one.
 */
#include <stdlib.h>

#include "shared/core/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static int read_copy(const uint8_t *data, size_t size, struct store_reply *out)
{
    char *copy = malloc(size > 0 ? size : 1);
    require(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    int result = store_reply_read((struct weir_text){copy, size}, out);
    if (result == STORE_REPLY) {
        require(out->whole.len > 0 && out->whole.len <= size && out->n <= STORE_INTEGERS_MAX);
        require(out->text.len <= STORE_TEXT_MAX);
        require(out->text.len == 0 ||
                (out->text.at >= copy && out->text.at + out->text.len <= copy + out->whole.len));
        require((out->type == '-') == (out->refusal != STORE_REFUSED_NOT));
    }
    free(copy);
    return result;
}

static void try_as_answer(const struct store_reply *reply)
{
    static const struct store_params params = {.algorithm = WEIR_TOKEN_BUCKET, .quota = 5, .a = 1};
    const struct store_part parts[] = {{&params, TEXT("a"), 1, 0}, {&params, TEXT("b"), 1, 0}};
    struct weir_answer a;
    if (script_answer(reply, parts, 2, &a, NULL) == 0) {
        require(a.verdict >= WEIR_ALLOW && a.verdict <= WEIR_NEVER && a.limit < 2);
        if (script_told(reply, parts, &a)) {
            require(a.verdict >= WEIR_ALLOW && a.verdict <= WEIR_NEVER && a.limit < 2);
        }
    }
    if (script_answer(reply, parts, 1, &a, NULL) == 0) {
        require(a.verdict >= WEIR_ALLOW && a.remaining <= STORE_MOST && a.limit == 0);
    }
    int done = script_done(reply, REMOTE_RESET);
    require(done == 0 || done == 1 || done == WEIR_EIO);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store_reply whole;
    struct store_reply part;
    int result = read_copy(data, size, &whole);
    if (result == STORE_REPLY) {
        try_as_answer(&whole);
    }
    size_t shorter = size / 2;
    int before = read_copy(data, shorter, &part);
    require(before == STORE_MORE || before == result);
    require(before != STORE_REPLY || part.whole.len == whole.whole.len);
    return 0;
}
