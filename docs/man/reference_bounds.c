#include <inttypes.h>
#include <stdio.h>

#include "reference.h"
#include "rules/live/call_ask.h"
#include "server/operations/rls.h"
#include "server/loop/server.h"

struct bound_row {
    const char *group; /* NULL: it belongs to the last one */
    const char *name;
    uint64_t value;
    const char *unit;
    const char *cells[4]; /* at it, who loses, the same address, another address */
};

#define BOUND_GROUP(id, title) {.group = (title)},
#define BOUND(file, row, number, of, ...)                                                          \
    {.name = #row, .value = (number), .unit = (of), .cells = {__VA_ARGS__}},
#define BOUND_OPTION BOUND
#define BOUND_EXCEPTION(file, name, why)

static const struct bound_row rows[] = {
#include "server/bounds.def"
};

static const char head[] =
    "<!-- Generated from src/server/bounds.def by `make reference`; do not edit. -->\n"
    "# Bounds\n"
    "\n"
    "Everything that bounds what clients, operators and stores can take of `weir serve`: what\n"
    "happens at the bound, who loses by it, and what an honest neighbour gets, of the same "
    "address\n"
    "and of another one. Each row has a driver in `tests/bounds`, which goes to the bound and\n"
    "beyond. A name in capitals is a constant of the source, any other an option.\n";

/* Puts "16 MB of replies" for 16777216 bytes of replies, and "5 ms of a step" for 5000000 ns of
 * it. */
static void put_value(FILE *f, const struct bound_row *row)
{
    static const char *const units[] = {"bytes", "KB", "MB"};
    uint64_t value = row->value;
    const char *rest = row->unit;
    unsigned i = 0;
    if (strncmp(rest, "bytes ", 6) == 0) {
        for (; i < 2 && value >= 1024 && value % 1024 == 0; i++) {
            value /= 1024;
        }
        rest += 6;
        (void)fprintf(f, "%" PRIu64 " %s %s", value, units[i], rest);
    } else if (strncmp(rest, "ns ", 3) == 0 && value % WEIR_MILLISECOND == 0) {
        (void)fprintf(f, "%" PRIu64 " ms %s", value / WEIR_MILLISECOND, rest + 3);
    } else {
        (void)fprintf(f, "%" PRIu64 " %s", value, rest);
    }
}

char *reference_bounds(void)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL) {
        return NULL;
    }
    (void)fputs(head, f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct bound_row *row = &rows[i];
        if (row->group != NULL) {
            (void)fprintf(f,
                          "\n## %s\n\n| bound | at it | who loses | the same address | another "
                          "address |\n|---|---|---|---|---|\n",
                          row->group);
            continue;
        }
        (void)fprintf(f, "| `%s`: ", row->name);
        put_value(f, row);
        for (size_t j = 0; j < 4; j++) {
            (void)fprintf(f, " | %s", row->cells[j]);
        }
        (void)fputs(" |\n", f);
    }
    return fclose(f) == 0 ? text : NULL;
}
