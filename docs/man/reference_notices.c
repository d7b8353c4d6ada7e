#include <stdio.h>

#include "reference.h"
#include "server/status/notices.h"

static const char head[] =
    "<!-- Generated from src/server/status/notices.def by `make reference`; do not edit. -->\n"
    "# Notices\n"
    "\n"
    "What operators must know at once. The page shows notices below its header, `weir ctl status`\n"
    "prints them first, and `/readyz` has a line for each, in the words of its column, because it "
    "is\n"
    "open to everybody. No notice makes a server unready: `/readyz` still says `ready`, with 200.\n"
    "The alerts are those of [packaging/prometheus](../../packaging/prometheus), with the same "
    "texts.\n"
    "[Operate](../guide/operate.md#notices) says who sees what.\n"
    "\n"
    "| notice | severity | at `/readyz` | clients get now | what to do | alert |\n"
    "|---|---|---|---|---|---|\n";

char *reference_notices(void)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL) {
        return NULL;
    }
    (void)fputs(head, f);
    for (enum notice i = 0; i < NOTICES; i++) {
        const struct notice_row *row = &notice_rows[i];
        (void)fprintf(f, "| `%s` | %s | %s | %s | %s | `%s` |\n", row->name, row->severity,
                      row->open, row->now, row->act, row->alert);
    }
    return fclose(f) == 0 ? text : NULL;
}
