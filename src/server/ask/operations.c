#include "server/ask/operations.h"

#include "base/error.h"
#include "server/ask/reservations.h"

#define MS_MAX (INT64_MAX / WEIR_MILLISECOND)

const struct ask_member_row ask_members[ASK_MEMBERS] = {
    [ASK_LIMIT] = {.name = "limit", .kind = ASK_TEXT},
    [ASK_KEY] = {.name = "key", .kind = ASK_PARTS},
    [ASK_TIER] = {.name = "tier", .kind = ASK_TEXT},
    [ASK_COST] = {"cost", ASK_NUMBER, .least = 1, .most = UINT64_MAX},
    [ASK_MAX_WAIT] = {"max_wait_ms", ASK_NUMBER, .most = MS_MAX},
    [ASK_ATTRIBUTES] = {.name = "attributes", .kind = ASK_PAIRS},
    [ASK_TTL] = {"ttl_ms", ASK_NUMBER, 1, RESERVATION_TTL_MAX_MS, .absent = RESERVATION_TTL_MS},
    [ASK_RESERVATION] = {.name = "reservation", .kind = ASK_TEXT},
    [ASK_ACTUAL] = {"actual", ASK_NUMBER, .most = INT64_MAX},
    [ASK_UNITS] = {"units", ASK_NUMBER, 1, INT64_MAX, .absent = 1},
    [ASK_FOR] = {"for_ms", ASK_NUMBER, 1, MS_MAX, .absent = ASK_FOREVER, .endless = true},
};

void ask_init(struct ask *ask)
{
    for (unsigned i = 0; i < ASK_MEMBERS; i++) {
        ask->text[i] = (struct text){"", 0};
        ask->number[i] = ask_members[i].absent;
    }
    ask->parts_count = 0;
    ask->attributes_count = 0;
    ask->given = 0;
}

static struct weir_rules_key key_of(const struct ask *ask)
{
    struct text limit = ask->text[ASK_LIMIT];
    struct text tier = ask->text[ASK_TIER];
    return (struct weir_rules_key){.limit = {limit.at, limit.len},
                                   .parts = ask->parts,
                                   .parts_count = ask->parts_count,
                                   .tier = {tier.at, tier.len}};
}

/* ---- check, peek ---- */

/* Either a limit with its key and tier, or attributes. */
static int check_shape(const struct ask *ask, struct weir_error *error)
{
    bool by_name = (ask->given & ASK_BIT(ASK_LIMIT)) != 0;
    bool by_attributes = (ask->given & ASK_BIT(ASK_ATTRIBUTES)) != 0;
    if (by_name == by_attributes) {
        return fail(error, WEIR_EINVAL, "expected either limit or attributes");
    }
    if (by_attributes && (ask->given & (ASK_BIT(ASK_KEY) | ASK_BIT(ASK_TIER))) != 0) {
        return fail(error, WEIR_EINVAL, "key and tier belong to limit, not to attributes");
    }
    return 0;
}

static int run_check(const struct asker *asker, enum operation operation, const struct ask *ask,
                     struct answer *answer, struct weir_error *error)
{
    int mode = operation == OPERATION_PEEK ? WEIR_PEEK : WEIR_CHECK;
    uint64_t max_wait_ns = ask->number[ASK_MAX_WAIT] * WEIR_MILLISECOND;
    int e = check_shape(ask, error);
    if (e != 0) {
        return e;
    }
    if ((ask->given & ASK_BIT(ASK_LIMIT)) != 0) {
        struct direct direct = {.key = key_of(ask),
                                .cost = ask->number[ASK_COST],
                                .max_wait_ns = max_wait_ns,
                                .mode = mode};
        return answer_check(asker->server->rules, &direct, asker->now_ns, asker->later, answer,
                            error);
    }
    struct weir_rules_question question = {.attributes = ask->attributes,
                                           .attributes_count = ask->attributes_count,
                                           .cost = ask->number[ASK_COST],
                                           .max_wait_ns = max_wait_ns,
                                           .mode = mode};
    return answer_ask(asker->server->rules, &question, asker->now_ns, asker->later, answer, error);
}

/* ---- reservations ---- */

static int run_reserve(const struct asker *asker, enum operation operation, const struct ask *ask,
                       struct answer *answer, struct weir_error *error)
{
    struct weir_rules_key key = key_of(ask);
    (void)operation;
    return reservation_make(asker->server->reservations, asker->server->rules, &key,
                            ask->number[ASK_COST], ask->number[ASK_TTL], asker->now_ns,
                            asker->later, answer, answer->reservation, error);
}

/* A reservation that is cancelled has used nothing. */
static int run_settle(const struct asker *asker, enum operation operation, const struct ask *ask,
                      struct answer *answer, struct weir_error *error)
{
    uint64_t actual = operation == OPERATION_CANCEL ? 0 : ask->number[ASK_ACTUAL];
    return reservation_settle(asker->server->reservations, asker->server->rules,
                              ask->text[ASK_RESERVATION], actual, asker->now_ns, asker->later,
                              answer, error);
}

/* ---- one key ---- */

static int run_inspect(const struct asker *asker, enum operation operation, const struct ask *ask,
                       struct answer *answer, struct weir_error *error)
{
    struct weir_rules_key key = key_of(ask);
    (void)operation;
    return verb_inspect(asker->server, &key, asker->now_ns, asker->later, answer,
                        &answer->blocked_ms, error);
}

static int run_verb(const struct asker *asker, enum operation operation, const struct ask *ask,
                    struct answer *answer, struct weir_error *error)
{
    struct verb_call call = {.verb = (enum verb)(operation - OPERATION_REFUND),
                             .key = key_of(ask),
                             .units = ask->number[ASK_UNITS],
                             .for_ms = ask->number[ASK_FOR]};
    return verb_run(asker->server, &call, &asker->by, asker->now_ns, asker->later, answer, error);
}

/* ---- rows ---- */

#define KEY (ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY) | ASK_BIT(ASK_TIER))
#define CHECK (KEY | ASK_BIT(ASK_COST) | ASK_BIT(ASK_MAX_WAIT) | ASK_BIT(ASK_ATTRIBUTES))
#define RESERVE (KEY | ASK_BIT(ASK_COST) | ASK_BIT(ASK_TTL))
#define UNITS (KEY | ASK_BIT(ASK_UNITS))
#define ID ASK_BIT(ASK_RESERVATION)
#define NAMED ASK_BIT(ASK_LIMIT)

const struct operation_row operation_rows[OPERATIONS] = {
    [OPERATION_CHECK] = {"check", CHECK, 0, ROLE_CHECK, EXTRA_NONE, true, run_check},
    [OPERATION_PEEK] = {"peek", CHECK, 0, ROLE_CHECK, EXTRA_NONE, false, run_check},
    [OPERATION_RESERVE] = {"reserve", RESERVE, NAMED, ROLE_CHECK, EXTRA_RESERVATION, true,
                           run_reserve},
    [OPERATION_SETTLE] = {"settle", ID | ASK_BIT(ASK_ACTUAL), ID | ASK_BIT(ASK_ACTUAL), ROLE_CHECK,
                          EXTRA_NONE, false, run_settle},
    [OPERATION_CANCEL] = {"cancel", ID, ID, ROLE_CHECK, EXTRA_NONE, false, run_settle},
    [OPERATION_INSPECT] = {"inspect", KEY, NAMED, ROLE_CHECK, EXTRA_BLOCKED, false, run_inspect},
    [OPERATION_REFUND] = {"refund", UNITS, NAMED, ROLE_ADMIN, EXTRA_BLOCKED, false, run_verb},
    [OPERATION_PENALIZE] = {"penalize", UNITS, NAMED, ROLE_ADMIN, EXTRA_BLOCKED, false, run_verb},
    [OPERATION_BLOCK] = {"block", KEY | ASK_BIT(ASK_FOR), NAMED, ROLE_ADMIN, EXTRA_BLOCKED, false,
                         run_verb},
    [OPERATION_UNBLOCK] = {"unblock", KEY, NAMED, ROLE_ADMIN, EXTRA_BLOCKED, false, run_verb},
    [OPERATION_RESET] = {"reset", KEY, NAMED, ROLE_ADMIN, EXTRA_BLOCKED, false, run_verb},
};

enum operation operation_by_name(struct text name)
{
    unsigned i = 0;
    while (i < OPERATIONS && !text_is(name, operation_rows[i].name)) {
        i++;
    }
    return (enum operation)i;
}

int operation_run(const struct asker *asker, enum operation operation, const struct ask *ask,
                  struct answer *answer, struct weir_error *error)
{
    error->text[0] = 0;
    return operation_rows[operation].run(asker, operation, ask, answer, error);
}
