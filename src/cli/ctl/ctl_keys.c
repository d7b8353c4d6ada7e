/* weir ctl key ...: shows and changes one key of one limit. */
#include <limits.h>

#include "cli/answer_json.h"
#include "cli/ctl/ctl.h"
#include "rules/value/quantity.h"

/* ---- showing ---- */

static void print_key(const struct ctl *ctl, const json_t *said)
{
    (void)ctl;
    answer_print(said);
}

static int run_get(struct ctl *ctl)
{
    struct buffer target;
    buffer_init(&target, CTL_TARGET_MAX);
    key_target(&target, ctl->operands, ctl->count, ctl->tier, ctl->by);
    int code =
        target.full
            ? cli_complain(&cli_ctl,
                           "found a key that is too long, expected a target of at most %d bytes",
                           CTL_TARGET_MAX)
            : ctl_get(ctl, buffer_text(&target).at, print_key);
    buffer_finish(&target);
    return code;
}

/* ---- changing ---- */

/* Prints a line such as "search alice: not blocked". */
static void print_done(const struct ctl *ctl, const json_t *said)
{
    char text[QUANTITY_MAX];
    (void)said;
    for (int i = 0; i < ctl->count; i++) {
        (void)fputs(i > 0 ? " " : "", stdout);
        safe_print(stdout, text_of(ctl->operands[i]), false);
    }
    if (ctl->block_ns > 0) {
        (void)printf(": blocked for %s\n", duration_print(ctl->block_ns, text));
    } else if ((ctl->row->takes & CTL_TAKES(CTL_UNITS)) != 0) {
        (void)printf(": %llu unit%s %s\n", (unsigned long long)ctl->units,
                     ctl->units == 1 ? "" : "s", ctl->row->done);
    } else {
        (void)printf(": %s\n", ctl->row->done);
    }
}

/* "key block" is POST /v1/keys/block, and so on. */
static int run_change(struct ctl *ctl)
{
    char target[64];
    json_t *body = key_question(ctl->operands, ctl->count, ctl->tier);
    json_int_t block_ms = (json_int_t)(ctl->block_ns / WEIR_MILLISECOND);
    (void)snprintf(target, sizeof target, "/v1/keys/%s", ctl->row->name + strlen("key "));
    if (block_ms > 0) { /* without it, a block has no end */
        (void)json_object_set_new(body, "for_ms", json_integer(block_ms));
    }
    if ((ctl->row->takes & CTL_TAKES(CTL_UNITS)) != 0) {
        (void)json_object_set_new(body, "units", json_integer((json_int_t)ctl->units));
    }
    if ((ctl->why != NULL && json_object_set_new(body, "why", json_string(ctl->why)) != 0) ||
        (ctl->by != NULL && json_object_set_new(body, "by", json_string(ctl->by)) != 0)) {
        json_decref(body);
        body = NULL;
    }
    return ctl_send(ctl, "POST", target, body, print_done);
}

#define ONE_KEY (CTL_TAKES(CTL_TIER) | CTL_TAKES(CTL_BY))
#define FOR CTL_TAKES(CTL_FOR)
#define UNITS CTL_TAKES(CTL_UNITS)
#define WHY CTL_TAKES(CTL_WHY)

const struct ctl_row ctl_key_rows[] = {
    {"key get LIMIT KEY...", "print what a check would answer, and blocks; takes nothing",
     "key get", 1, INT_MAX, ONE_KEY, .run = run_get},
    {"key reset LIMIT KEY...", "forget what the key has used", "key reset", 1, INT_MAX, ONE_KEY,
     .run = run_change, .done = "reset; it has its whole quota again"},
    {"key block LIMIT KEY... [--for D] [--why TEXT]",
     "deny the key, for a time or until it is unblocked", "key block", 1, INT_MAX,
     ONE_KEY | FOR | WHY, .run = run_change, .done = "blocked until it is unblocked"},
    {"key unblock LIMIT KEY...", "end a block or a ban, and forget its denials", "key unblock", 1,
     INT_MAX, ONE_KEY, .run = run_change, .done = "not blocked"},
    {"key refund LIMIT KEY... [--units N]", "give units back", "key refund", 1, INT_MAX,
     ONE_KEY | UNITS, .run = run_change, .done = "given back"},
    {"key penalize LIMIT KEY... [--units N]", "take units, into debt if need be", "key penalize", 1,
     INT_MAX, ONE_KEY | UNITS, .run = run_change, .done = "taken"},
    {.name = NULL},
};
