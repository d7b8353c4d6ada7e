/* Lines of networks: of each address near an edge the set says what a look at each network says. */
#include <stdlib.h>

#include "support/oracle/policy_slow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NETWORKS_MAX 100

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static size_t read_lines(struct weir_text text, struct cidr *cidrs)
{
    size_t n = 0;
    while (text.len > 0 && n < NETWORKS_MAX) {
        const char *end = memchr(text.at, '\n', text.len);
        struct weir_text line = {text.at, end == NULL ? text.len : (size_t)(end - text.at)};
        n += cidr_parse(line, &cidrs[n], NULL) == 0;
        text = text_after(text, line.len + (end != NULL));
    }
    return n;
}

static void require_same(const struct cidr_set *set, const struct cidr *cidrs, size_t n,
                         const struct address *a)
{
    bool has = false;
    for (size_t i = 0; i < n; i++) {
        has |= slow_in_network(&cidrs[i], a);
    }
    require(cidr_set_has(set, a) == has);
}

/* The next address, or the one before; around the end. */
static void step(struct address *a, int by)
{
    for (int i = a->family == 4 ? 3 : 15; i >= 0; i--) {
        a->bytes[i] = (uint8_t)(a->bytes[i] + by);
        if (a->bytes[i] != (by > 0 ? 0 : 255)) {
            return;
        }
    }
}

static struct address last_of(const struct cidr *c)
{
    struct address a = c->network;
    for (unsigned i = c->prefix; i < (a.family == 4 ? 32 : 128); i++) {
        a.bytes[i / 8] = (uint8_t)(a.bytes[i / 8] | 128 >> i % 8);
    }
    return a;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cidr cidrs[NETWORKS_MAX];
    struct cidr_set *set = NULL;
    size_t n = read_lines((struct weir_text){(const char *)data, size}, cidrs);
    require(cidr_set_create(cidrs, n, &set) == 0);
    for (size_t i = 0; i < n; i++) {
        struct address first = cidrs[i].network;
        struct address last = last_of(&cidrs[i]);
        require_same(set, cidrs, n, &first);
        require_same(set, cidrs, n, &last);
        step(&first, -1);
        step(&last, 1);
        require_same(set, cidrs, n, &first);
        require_same(set, cidrs, n, &last);
    }
    for (int family = 4; family <= 6; family += 2) {
        struct address a = {.family = (uint8_t)family};
        require_same(set, cidrs, n, &a);
        memcpy(a.bytes, data, size < 4 ? size : 4);
        require_same(set, cidrs, n, &a);
    }
    cidr_set_destroy(set);
    return 0;
}
