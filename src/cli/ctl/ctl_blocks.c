/* weir ctl blocks: lists keys that are blocked or banned. */
#include "cli/ctl/ctl.h"
#include "common/digits.h"
#include "rules/value/quantity.h"

static const struct grid_column columns[] = {
    {"LIMIT", false}, {"TIER", false}, {"KEY", false}, {"UNTIL", false},
    {"LEFT", true},   {"BY", false},   {"WHY", false},
};

#define COLUMNS (sizeof columns / sizeof columns[0])

static void put_word(struct grid *g, const json_t *block, const char *name)
{
    const char *word = json_text(block, name);
    grid_put(g, text_of(word[0] != 0 ? word : "-"));
}

/* Puts the end of the block, in whole seconds of UTC, and how long that is from now. */
static void put_end(struct grid *g, const json_t *block)
{
    char time[DIGITS_TIME_MAX];
    char left[QUANTITY_MAX];
    uint64_t seconds = ctl_count(block, "until_ms") / 1000;
    if (json_is_null(json_object_get(block, "until_ms")) || seconds > UINT64_MAX / WEIR_SECOND) {
        grid_put(g, TEXT("unblocked"));
        grid_put(g, TEXT("-"));
        return;
    }
    digits_time(seconds * WEIR_SECOND, time);
    memcpy(strchr(time, '.'), "Z", 2);
    grid_put(g, text_of(time));
    seconds = ctl_count(block, "blocked_ms") / 1000;
    grid_put(g, text_of(duration_print(seconds * WEIR_SECOND, left)));
}

static void print_rest(const char *what, uint64_t n, const char *why)
{
    if (n > 0) {
        (void)printf("%s%llu more %s\n", what, (unsigned long long)n, why);
    }
}

static void print_blocks(const struct ctl *ctl, const json_t *said)
{
    const json_t *blocks = json_object_get(said, "blocks");
    struct grid g;
    (void)ctl;
    grid_init(&g, columns, COLUMNS);
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        const json_t *block = json_array_get(blocks, i);
        put_word(&g, block, "limit");
        put_word(&g, block, "tier");
        put_word(&g, block, "key");
        put_end(&g, block);
        put_word(&g, block, "by");
        put_word(&g, block, "why");
    }
    ctl_print_grid(&g);
    print_rest("", ctl_count(said, "left_out"), "are blocked; name a limit to see its blocks");
    print_rest("up to ", ctl_count(said, "unnamed"),
               "are blocked whose keys this process does not know (see Blocked keys in weir(1))");
}

static int run_blocks(struct ctl *ctl)
{
    struct buffer target;
    buffer_init(&target, CTL_TARGET_MAX);
    buffer_put(&target, ctl->count > 0 ? TEXT("/v1/blocks?limit=") : TEXT("/v1/blocks"));
    if (ctl->count > 0) {
        http_put_encoded(&target, text_of(ctl->operands[0]));
    }
    buffer_put_char(&target, 0);
    int code = target.full ? cli_complain(&cli_ctl, "found a name that is too long for a limit")
                           : ctl_get(ctl, buffer_text(&target).at, print_blocks);
    buffer_finish(&target);
    return code;
}

const struct ctl_row ctl_block_rows[] = {
    {"blocks [LIMIT]", "print the keys that are blocked or banned: until when, by whom and why",
     "blocks", 0, 1, 0, .run = run_blocks},
    {.name = NULL},
};
