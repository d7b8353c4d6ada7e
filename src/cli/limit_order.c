#include "cli/limit_order.h"

#include <stdlib.h>

#include "cli/admin_client.h"

/* A limit, and its place in the server's list, which has the order of the rule file. */
struct ranked {
    json_t *limit;
    size_t place;
};

static int by_denied(const void *a, const void *b)
{
    static const char *const rates[] = {"denied_rate", "decided_rate"};
    const struct ranked *one = a;
    const struct ranked *two = b;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        double x = json_number(one->limit, rates[i]);
        double y = json_number(two->limit, rates[i]);
        if (x != y) {
            return x > y ? -1 : 1;
        }
    }
    return one->place < two->place ? -1 : one->place > two->place;
}

json_t *limits_by_denied(const json_t *limits)
{
    size_t n = json_array_size(limits);
    json_t *out = json_array();
    struct ranked *ranked = calloc(n + 1, sizeof *ranked);
    for (size_t i = 0; ranked != NULL && i < n; i++) {
        ranked[i] = (struct ranked){json_array_get(limits, i), i};
    }
    if (ranked != NULL) {
        qsort(ranked, n, sizeof *ranked, by_denied);
    }
    for (size_t i = 0; ranked != NULL && i < n; i++) {
        (void)json_array_append(out, ranked[i].limit);
    }
    free(ranked);
    return out;
}
