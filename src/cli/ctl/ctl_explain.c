/* weir ctl explain: which limits a request meets, and why it does not meet the others. */
#include <limits.h>

#include "cli/answer_json.h"
#include "cli/ctl/ctl.h"
#include "rules/value/quantity.h"

/* ---- the question ---- */

/* Returns the word cost=N, NULL if there is none. */
static const char *find_cost(const struct ctl *ctl)
{
    for (int i = 0; i < ctl->count; i++) {
        if (strncmp(ctl->operands[i], "cost=", 5) == 0) {
            return ctl->operands[i];
        }
    }
    return NULL;
}

static int check_words(const struct ctl *ctl)
{
    for (int i = 0; i < ctl->count; i++) {
        const char *equals = strchr(ctl->operands[i], '=');
        if (equals == NULL || equals == ctl->operands[i]) {
            return cli_complain(&cli_ctl,
                                "found '%s', expected NAME=VALUE, such as path=/search or "
                                "user=alice",
                                ctl->operands[i]);
        }
    }
    return CLI_OK;
}

/* Moves the cost from the attributes to its own member. */
static int take_cost(const char *word, json_t *body)
{
    uint64_t cost;
    if (!text_to_u64(text_of(word + 5), &cost) || cost == 0 || cost > INT64_MAX) {
        return cli_complain(&cli_ctl, "found '%s', expected cost=N, a whole number from 1", word);
    }
    (void)json_object_del(json_object_get(body, "attributes"), "cost");
    (void)json_object_set_new(body, "cost", json_integer((json_int_t)cost));
    return CLI_OK;
}

/* ---- the answer ---- */

static const struct grid_column columns[] = {
    {"LIMIT", false},    {"LINE", true},  {"MODE", false}, {"KEY", false},    {"VERDICT", false},
    {"REMAINING", true}, {"RETRY", true}, {"RESET", true}, {"BLOCKED", true}, {"WHY NOT", false},
};

#define COLUMNS (sizeof columns / sizeof columns[0])

static void put_word(struct grid *g, const json_t *limit, const char *name)
{
    const char *word = json_text(limit, name);
    grid_put(g, text_of(word[0] != 0 ? word : "-"));
}

static void put_time(struct grid *g, const json_t *limit, const char *name)
{
    char text[QUANTITY_MAX];
    uint64_t ms = ctl_count(limit, name);
    bool fits = ms > 0 && ms < UINT64_MAX / WEIR_MILLISECOND;
    bool endless = json_integer_value(json_object_get(limit, name)) < 0;
    grid_put(g, text_of(fits      ? duration_print(ms * WEIR_MILLISECOND, text)
                        : endless ? "without end"
                                  : "-"));
}

static void put_remaining(struct grid *g, const json_t *limit)
{
    char text[64];
    const json_t *remaining = json_object_get(limit, "remaining");
    if (!json_is_integer(remaining) || json_integer_value(remaining) < 0) {
        grid_put(g, TEXT("-"));
        return;
    }
    (void)snprintf(text, sizeof text, "%llu of %llu",
                   (unsigned long long)ctl_count(limit, "remaining"),
                   (unsigned long long)ctl_count(limit, "quota"));
    grid_put(g, text_of(text));
}

static void put_limit(struct grid *g, const json_t *limit)
{
    put_word(g, limit, "name");
    if (json_is_integer(json_object_get(limit, "line"))) {
        grid_put_count(g, ctl_count(limit, "line"));
    } else {
        grid_put(g, TEXT("-"));
    }
    put_word(g, limit, "mode");
    put_word(g, limit, "key");
    put_word(g, limit, "verdict");
    put_remaining(g, limit);
    put_time(g, limit, "retry_after_ms");
    put_time(g, limit, "reset_after_ms");
    put_time(g, limit, "blocked_ms");
    put_word(g, limit, "why");
}

static void print_explanation(const struct ctl *ctl, const json_t *said)
{
    const json_t *limits = json_object_get(said, "limits");
    struct grid g;
    (void)ctl;
    answer_print(said);
    if (json_array_size(limits) == 0) {
        return;
    }
    (void)putchar('\n');
    grid_init(&g, columns, COLUMNS);
    for (size_t i = 0; i < json_array_size(limits); i++) {
        put_limit(&g, json_array_get(limits, i));
    }
    ctl_print_grid(&g);
}

static int run_explain(struct ctl *ctl)
{
    const char *cost = find_cost(ctl);
    int code = check_words(ctl);
    if (code != CLI_OK) {
        return code;
    }
    json_t *body = attributes_question(ctl->operands, ctl->count);
    size_t found = json_object_size(json_object_get(body, "attributes"));
    if (body != NULL && found != (size_t)ctl->count) {
        code = cli_complain(&cli_ctl, "found a name twice, expected each attribute once");
    } else if (body != NULL && cost != NULL) {
        code = take_cost(cost, body);
    }
    if (code != CLI_OK) {
        json_decref(body);
        return code;
    }
    return ctl_send(ctl, "POST", "/v1/explain", body, print_explanation);
}

const struct ctl_row ctl_explain_rows[] = {
    {"explain NAME=VALUE... [cost=N]",
     "print which limits a request meets, by which key, and why the others do not apply; takes "
     "nothing",
     "explain", 1, INT_MAX, 0, .run = run_explain},
    {.name = NULL},
};
