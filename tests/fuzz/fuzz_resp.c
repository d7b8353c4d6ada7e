/*
 * RESP requests. The first byte chooses the limits, the rest is what has arrived on a connection.
 * No byte beyond it is read (copies of the exact size); what is said of some bytes is said with
 * more behind them; of request_max bytes more are never wanted; the parts of a request lie where
 * they should; a request written again, as an array or as a line of escapes, reads the same.
 */
#include <stdlib.h>

#include "wire/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

struct outcome {
    int result;
    const char *complaint;
    struct resp_request request;
    char *copy;
};

static void parse(struct weir_text input, const struct resp_limits *limits, struct outcome *o)
{
    o->copy = malloc(input.len > 0 ? input.len : 1);
    require(o->copy != NULL);
    if (input.len > 0) {
        memcpy(o->copy, input.at, input.len);
    }
    o->complaint = NULL;
    o->result =
        resp_parse((struct weir_text){o->copy, input.len}, limits, &o->request, &o->complaint);
    require((o->result == RESP_BAD) == (o->complaint != NULL));
    require(o->result == RESP_REQUEST || (o->request.used == 0 && o->request.argc == 0));
    require(o->result != RESP_MORE || input.len < limits->request_max);
}

static bool lies_in(struct weir_text part, const char *at, size_t len)
{
    return part.at >= at && part.len <= len && (size_t)(part.at - at) <= len - part.len;
}

static void require_within_limits(const struct outcome *o, size_t len,
                                  const struct resp_limits *limits)
{
    const struct resp_request *r = &o->request;
    require(r->used > 0 && r->used <= len && r->used <= limits->request_max);
    require(r->argc <= limits->args_max && r->argc <= RESP_ARGS_MAX);
    for (unsigned i = 0; i < r->argc; i++) {
        require(r->argv[i].len <= limits->bulk_max);
        require(lies_in(r->argv[i], o->copy, r->used) ||
                lies_in(r->argv[i], r->scratch, sizeof r->scratch));
    }
}

static void require_same(const struct outcome *a, const struct outcome *b)
{
    require(a->result == b->result && a->request.argc == b->request.argc);
    require(a->result != RESP_BAD || strcmp(a->complaint, b->complaint) == 0);
    for (unsigned i = 0; i < a->request.argc; i++) {
        require(text_equal(a->request.argv[i], b->request.argv[i]));
    }
}

/* What the beginnings of the input are, against what all of it is. */
static void require_decided_once(struct weir_text input, const struct resp_limits *limits,
                                 const struct outcome *all)
{
    static struct outcome part;
    bool decided = false;
    size_t step = input.len / 100 + 1;
    for (size_t n = 0; n < input.len; n += step) {
        parse((struct weir_text){input.at, n}, limits, &part);
        require(!decided || part.result != RESP_MORE);
        decided = part.result != RESP_MORE;
        if (decided) {
            require_same(&part, all);
            require(part.request.used == all->request.used);
        }
        require(part.result != RESP_REQUEST || n >= all->request.used);
        free(part.copy);
    }
}

static void require_reads_back(struct buffer *b, const struct outcome *o)
{
    static const struct resp_limits wide = {.args_max = RESP_ARGS_MAX,
                                            .bulk_max = SIZE_MAX,
                                            .request_max = SIZE_MAX,
                                            .inline_commands = true};
    static struct outcome again;
    require(!b->full);
    parse(buffer_text(b), &wide, &again);
    require_same(o, &again);
    require(again.request.used == buffer_len(b));
    free(again.copy);
    buffer_finish(b);
}

static void require_array_reads_back(const struct outcome *o)
{
    struct buffer b;
    buffer_init(&b, SIZE_MAX / 4);
    resp_put_array(&b, o->request.argc);
    for (unsigned i = 0; i < o->request.argc; i++) {
        resp_put_bulk(&b, o->request.argv[i]);
    }
    require_reads_back(&b, o);
}

static bool is_http(struct weir_text word)
{
    return text_is_word(word, "POST") || text_is_word(word, "HOST:");
}

/* Any request that is not too long can be said in a line, each byte as \xHH. */
static void require_line_reads_back(const struct outcome *o)
{
    static const char hex[] = "0123456789abcdef";
    struct buffer b;
    buffer_init(&b, SIZE_MAX / 4);
    for (unsigned i = 0; i < o->request.argc; i++) {
        buffer_put(&b, TEXT(" \""));
        for (size_t k = 0; k < o->request.argv[i].len; k++) {
            unsigned char c = (unsigned char)o->request.argv[i].at[k];
            char escaped[] = {'\\', 'x', hex[c / 16], hex[c % 16]};
            buffer_put(&b, (struct weir_text){escaped, 4});
        }
        buffer_put_char(&b, '"');
    }
    buffer_put_char(&b, '\n');
    if (buffer_len(&b) > RESP_INLINE_MAX || (o->request.argc > 0 && is_http(o->request.argv[0]))) {
        buffer_finish(&b);
        return;
    }
    require_reads_back(&b, o);
}

static struct resp_limits choose(uint8_t bits)
{
    return (struct resp_limits){
        .inline_commands = bits & 1,
        .args_max = bits & 4 ? 3 : RESP_ARGS_MAX,
        .bulk_max = bits & 8 ? 9 : 4096,
        .request_max = bits & 16 ? 40 : 65536,
    };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct outcome o;
    if (size == 0) {
        return 0;
    }
    struct resp_limits limits = choose(data[0]);
    struct weir_text input = {(const char *)data + 1, size - 1};
    for (int requests = 0; requests < 100; requests++) {
        parse(input, &limits, &o);
        require_decided_once(input, &limits, &o);
        if (o.result != RESP_REQUEST) {
            free(o.copy);
            break;
        }
        require_within_limits(&o, input.len, &limits);
        require_array_reads_back(&o);
        require_line_reads_back(&o);
        free(o.copy);
        input = text_after(input, o.request.used);
    }
    return 0;
}
