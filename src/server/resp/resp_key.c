/* What the commands about a limit have in common: reading its key and options,
 * putting the answer. */
#include <inttypes.h>
#include <stdio.h>

#include "server/ask/key_verbs.h"
#include "server/ask/reservations.h"
#include "server/resp/resp_commands.h"

/* ---- the answer ---- */

static struct text flags_text(unsigned flags, char *text)
{
    size_t n = 0;
    for (unsigned i = 0; i < ANSWER_FLAGS; i++) {
        if ((flags >> i & 1) != 0) {
            size_t len = strlen(answer_flag_names[i]);
            if (n > 0) {
                text[n++] = ',';
            }
            memcpy(text + n, answer_flag_names[i], len);
            n += len;
        }
    }
    return (struct text){text, n};
}

void resp_put_name(struct command *c, const char *name)
{
    if (c->proto == 3) {
        resp_put_bulk(c->out, text_of(name));
    }
}

void resp_put_answer(struct command *c, const struct answer *a, unsigned more)
{
    char flags[32];
    if (c->proto == 3) {
        resp_put_map(c->out, 3, 8 + more);
    } else {
        resp_put_array(c->out, 8 + more);
    }
    resp_put_name(c, "verdict");
    resp_put_bulk(c->out, text_of(answer_verdict_names[a->verdict]));
    resp_put_name(c, "limit");
    if (a->limit[0] != 0) {
        resp_put_bulk(c->out, text_of(a->limit));
    } else {
        resp_put_null(c->out, c->proto);
    }
    resp_put_name(c, "quota");
    resp_put_integer(c->out, a->quota > INT64_MAX ? INT64_MAX : (int64_t)a->quota);
    resp_put_name(c, "remaining");
    resp_put_integer(c->out, a->remaining);
    resp_put_name(c, "retry_after_ms");
    resp_put_integer(c->out, a->retry_after_ms);
    resp_put_name(c, "reset_after_ms");
    resp_put_integer(c->out, (int64_t)a->reset_after_ms);
    resp_put_name(c, "delay_ms");
    resp_put_integer(c->out, (int64_t)a->delay_ms);
    resp_put_name(c, "flags");
    resp_put_bulk(c->out, flags_text(a->flags, flags));
}

void resp_put_failure(struct command *c, int e, const struct weir_error *error)
{
    const char *text = error->text[0] != 0 ? error->text : weir_strerror(e);
    switch (e) {
    case WEIR_ENOLIMIT:
        resp_put_errorf(c->out, "NOLIMIT %s", text);
        break;
    case WEIR_EKEY:
    case WEIR_EATTRIBUTE:
        resp_put_errorf(c->out, "BADKEY %s", text);
        break;
    case WEIR_EIO:
        resp_put_errorf(c->out, "UNAVAILABLE %s", error->text[0] != 0 ? text : ANSWER_NO_STORE);
        break;
    default:
        resp_put_errorf(c->out, "ERR %s", text);
        break;
    }
}

static void put_later(struct deferred *d)
{
    struct command c = resp_resume(d);
    struct weir_error error = {0};
    resp_put_result(&c, d->error, &d->answer, NULL, &error);
}

void resp_put_result(struct command *c, int e, const struct answer *a, const struct later *later,
                     const struct weir_error *error)
{
    if (e == ANSWER_LATER) {
        resp_keep(c, later, put_later);
    } else if (e != 0) {
        resp_put_failure(c, e, error);
    } else {
        resp_put_answer(c, a, 0);
    }
}

/* ---- options after the key ---- */

#define MS_MAX (INT64_MAX / 1000000)

static const struct {
    const char *name;
    const char *value; /* name of its value in error messages */
    uint64_t least;
    uint64_t most;
    const char *word; /* a word that means UINT64_MAX; NULL: there is none */
} rows[RESP_OPTIONS] = {
    [RESP_COST] = {"COST", "n", 1, UINT64_MAX, NULL},
    [RESP_MAXWAIT] = {"MAXWAIT", "ms", 0, MS_MAX, NULL},
    [RESP_TIER] = {"TIER", "t", 0, 0, NULL},
    [RESP_UNITS] = {"UNITS", "n", 1, INT64_MAX, NULL},
    [RESP_FOR] = {"FOR", "ms|forever", 1, MS_MAX, "FOREVER"},
    [RESP_TTL] = {"TTL", "ms", 1, RESERVATION_TTL_MAX_MS, NULL},
};

static bool read_value(unsigned row, struct text value, struct resp_options *o)
{
    if (row == RESP_TIER) {
        o->tier = value;
        return true;
    }
    if (rows[row].word != NULL && text_is_word(value, rows[row].word)) {
        o->number[row] = UINT64_MAX;
        return true;
    }
    return resp_to_u64(value, &o->number[row]) && o->number[row] >= rows[row].least &&
           o->number[row] <= rows[row].most;
}

/* Lists options for a message: "COST n, MAXWAIT ms or TIER t". */
static void put_expected(unsigned allowed, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < RESP_OPTIONS; i++) {
        bool last = allowed >> i == 1;
        if ((allowed >> i & 1) != 0 && n < size) {
            n += (size_t)snprintf(text + n, size - n, "%s%s %s",
                                  n == 0 ? ""
                                  : last ? " or "
                                         : ", ",
                                  rows[i].name, rows[i].value);
        }
    }
}

static bool complain(struct command *c, struct text found, unsigned allowed)
{
    char expected[96];
    put_expected(allowed, expected, sizeof expected);
    resp_put_errorf(c->out, "ERR syntax error at '%.*s', expected %s",
                    (int)(found.len > 64 ? 64 : found.len), found.at, expected);
    return false;
}

/* Reports a known option with a wrong value. */
static bool complain_value(struct command *c, unsigned row, struct text found)
{
    char word[16] = "";
    if (rows[row].word != NULL) {
        (void)snprintf(word, sizeof word, ", or %s", rows[row].word);
    }
    resp_put_errorf(
        c->out, "ERR %s: found '%.*s', expected a whole number from %" PRIu64 " to %" PRIu64 "%s",
        rows[row].name, (int)(found.len > 64 ? 64 : found.len), found.at, rows[row].least,
        rows[row].most, word);
    return false;
}

bool resp_read_options(struct command *c, unsigned i, unsigned allowed, struct resp_options *o)
{
    for (; i < c->argc; i += 2) {
        unsigned row = 0;
        while (row < RESP_OPTIONS &&
               ((allowed >> row & 1) == 0 || !text_is_word(c->argv[i], rows[row].name))) {
            row++;
        }
        if (row == RESP_OPTIONS || i + 1 >= c->argc) {
            return complain(c, c->argv[i], allowed);
        }
        if (!read_value(row, c->argv[i + 1], o)) {
            return complain_value(c, row, c->argv[i + 1]);
        }
        o->given |= 1u << row;
    }
    return true;
}

bool resp_read_key(struct command *c, unsigned allowed, struct resp_key *k)
{
    struct text limit = c->argv[1];
    int n = verb_key_parts(c->server, limit);
    if (n < 0) {
        resp_put_errorf(c->out, "NOLIMIT no limit named '%.*s'",
                        (int)(limit.len > 64 ? 64 : limit.len), limit.at);
        return false;
    }
    if (c->argc < 2 + (unsigned)n) {
        resp_put_errorf(c->out, "BADKEY found %u parts of a key, expected %d", c->argc - 2, n);
        return false;
    }
    for (unsigned i = 0; i < (unsigned)n; i++) {
        k->parts[i] = (struct weir_rules_value){c->argv[2 + i].at, c->argv[2 + i].len};
    }
    k->options = (struct resp_options){.given = 0};
    if (!resp_read_options(c, 2 + (unsigned)n, allowed, &k->options)) {
        return false;
    }
    k->key = (struct weir_rules_key){.limit = {limit.at, limit.len},
                                     .parts = k->parts,
                                     .parts_count = (size_t)n,
                                     .tier = {k->options.tier.at, k->options.tier.len}};
    return true;
}
