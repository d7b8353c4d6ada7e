/*
 * What a Cluster says about itself: any reply (redis/reply.h), read as a map of slots, and as a
 * refusal that redirects. No byte beyond the input is read (a copy of the exact size); what is
 * said of some bytes is said with more behind them; a map's ranges lie within the slots, and
 * come to an end.
 */
#include <stdlib.h>

#include "redis/reply.h"
#include "redis/slots.h"
#include "shared/core/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void require_host(struct weir_text host, unsigned port)
{
    require(host.len <= SLOTS_HOST_MAX && port > 0 && port <= 65535);
    for (size_t i = 0; i < host.len; i++) {
        require(host.at[i] > ' ' && host.at[i] <= '~');
    }
}

static void read_map(struct weir_text reply)
{
    struct slots_reader r;
    struct slots_range range;
    size_t count = 0;
    if (!slots_begin(&r, reply)) {
        return;
    }
    while (slots_next(&r, &range) == 1) {
        require(range.first <= range.last && range.last < SLOTS);
        require_host(range.host, range.port);
        require(++count <= reply.len);
    }
}

static void read_values(struct weir_text reply)
{
    struct store_value v;
    size_t left = reply.len;
    while (value_next(&reply, &v)) {
        require(reply.len < left && v.text.len <= left);
        left = reply.len;
    }
}

static int read_copy(const uint8_t *data, size_t size, size_t *used)
{
    char *copy = malloc(size > 0 ? size : 1);
    require(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    struct redirect to;
    if (redirect_read((struct weir_text){copy, size}, &to)) {
        require(to.slot < SLOTS);
        require_host(to.host, to.port);
    }
    struct store_reply reply;
    int result = store_reply_read((struct weir_text){copy, size}, &reply);
    if (result == STORE_REPLY) {
        *used = reply.whole.len;
        require(*used > 0 && *used <= size);
        read_map((struct weir_text){copy, *used});
        read_values((struct weir_text){copy, *used});
    }
    free(copy);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t whole = 0;
    size_t part = 0;
    int result = read_copy(data, size, &whole);
    int before = read_copy(data, size / 2, &part);
    require(before == STORE_MORE || before == result);
    require(before != STORE_REPLY || part == whole);
    return 0;
}
