#include "server/operations/operations.h"

#include <stdio.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/maths.h"
#include "common/log.h"
#include "server/operations/key_ask.h"
#include "server/operations/reservations.h"
#include "server/operations/throttle_ask.h"

#define MS_MAX (INT64_MAX / WEIR_MILLISECOND)

const uint64_t ask_absent[ASK_MEMBERS] = {
    [ASK_TTL] = RESERVATION_TTL_MS,
    [ASK_UNITS] = 1,
    [ASK_FOR] = ASK_FOREVER,
    [ASK_COUNT] = 1,
    [ASK_PERIOD] = 1,
};

const struct ask_member_row ask_members[ASK_MEMBERS] = {
    [ASK_LIMIT] = {"limit", ASK_TEXT, .least = 1, .about = "the name of a limit"},
    [ASK_KEY] = {"key", ASK_PARTS, .least = 1,
                 .about = "as many parts as the limit's key has; a single part need not be a list"},
    [ASK_TIER] = {.name = "tier",
                  .kind = ASK_TEXT,
                  .about = "for limits with tiers; default: the limit's default tier"},
    [ASK_COST] = {"cost", ASK_NUMBER, .least = 1, .most = UINT64_MAX,
                  .about =
                      "units; default: the limit's own cost, or 1; required with a key of a limit "
                      "whose cost is an attribute"},
    [ASK_MAX_WAIT] =
        {"max_wait_ms", ASK_NUMBER, .most = MS_MAX,
         .about = "allow the request, with a delay_ms, if no bucket that applies makes it wait "
                  "longer than this"},
    [ASK_ATTRIBUTES] = {.name = "attributes",
                        .kind = ASK_PAIRS,
                        .about =
                            "attributes of the request, which the rules match: texts; JSON may "
                            "have whole numbers too"},
    [ASK_TTL] =
        {"ttl_ms", ASK_NUMBER, 1, RESERVATION_TTL_MAX_MS,
         .about =
             "how long the reservation can be settled; after that the estimate stays charged; at "
             "most server.reservation_ttl of the rule file, by default ten minutes"},
    [ASK_RESERVATION] = {"reservation", ASK_TEXT, .least = 1, .about = "the id of a reservation"},
    [ASK_ACTUAL] = {"actual", ASK_NUMBER, .most = INT64_MAX, .about = "units that were used"},
    [ASK_UNITS] = {"units", ASK_NUMBER, 1, INT64_MAX, .about = "units"},
    [ASK_FOR] = {"for_ms", ASK_NUMBER, 1, MS_MAX, .endless = true,
                 .about = "null or absent: until it is unblocked"},
    [ASK_WHY] = {"why", ASK_TEXT, .least = 1,
                 .about = "a reason, for the list of blocks; at most 127 bytes"},
    [ASK_BURST] = {"burst", ASK_NUMBER, .most = INT64_MAX,
                   .about = "units beyond the first that may be taken at once"},
    [ASK_COUNT] = {"count", ASK_NUMBER, 1, INT64_MAX, .about = "units that come back each period"},
    [ASK_PERIOD] = {"period_ms", ASK_NUMBER, 1, MS_MAX, .about = "the period"},
    [ASK_BY] = {"by", ASK_TEXT, .least = 1,
                .about = "for a key such as user|ip: the later alternative whose value is given, "
                         "such as ip; several are separated by commas; default: the first one"},
};

void ask_init(struct ask *ask)
{
    static const struct weir_text none[ASK_MEMBERS] = {[0 ... ASK_MEMBERS - 1] = {"", 0}};
    memcpy(ask->text, none, sizeof none);
    memcpy(ask->number, ask_absent, sizeof ask_absent);
    ask->parts_count = 0;
    ask->attributes_count = 0;
    ask->given = 0;
}

static struct weir_rules_key key_of(const struct ask *ask)
{
    struct weir_text limit = ask->text[ASK_LIMIT];
    struct weir_text tier = ask->text[ASK_TIER];
    struct weir_text by = ask->text[ASK_BY];
    return (struct weir_rules_key){.limit = {limit.at, limit.len},
                                   .parts = ask->parts,
                                   .parts_count = ask->parts_count,
                                   .tier = {tier.at, tier.len},
                                   .by = {by.at, by.len}};
}

/* ---- check, peek ---- */

/* Either a limit with its key and tier, or attributes. */
static int check_shape(const struct ask *ask, struct weir_error *error)
{
    bool by_name = (ask->given & ASK_BIT(ASK_LIMIT)) != 0;
    bool by_attributes = (ask->given & ASK_BIT(ASK_ATTRIBUTES)) != 0;
    if (by_name == by_attributes) {
        return fail(error, WEIR_EINVAL, "found %s limit %s attributes, expected one of them",
                    by_name ? "both" : "neither", by_name ? "and" : "nor");
    }
    if (by_attributes && (ask->given & (ASK_BIT(ASK_KEY) | ASK_BIT(ASK_TIER))) != 0) {
        return fail(error, WEIR_EINVAL, "key and tier belong to limit, not to attributes");
    }
    return 0;
}

static int on_checked(struct key_ask *k, int error, const struct remote_answer *said)
{
    if (error == 0) {
        key_answer(k, &said->answer);
    }
    if (error == 0 && k->verb != REMOTE_PEEK) {
        key_note(k, &said->answer);
    }
    return error;
}

struct check_request {
    int verb;
    uint64_t cost; /* 0: the limit's own */
    uint64_t max_wait_ns;
    struct weir_error *error; /* for begin_check() only, because it does not outlive the request */
};

static int begin_check(struct key_ask *k)
{
    const struct check_request *c = k->data;
    uint64_t cost;
    int e = key_cost(k, c->cost, &cost, c->error);
    return e != 0 ? e : key_ask(k, c->verb, cost, c->max_wait_ns, on_checked);
}

static int run_check(struct asker *asker, enum operation operation, const struct ask *ask,
                     struct answer *answer, struct weir_error *error)
{
    struct check_request check = {.verb = operation_rows[operation].verb,
                                  .cost = ask->number[ASK_COST],
                                  .max_wait_ns = ask->number[ASK_MAX_WAIT] * WEIR_MILLISECOND,
                                  .error = error};
    int e = check_shape(ask, error);
    if (e != 0) {
        return e;
    }
    if ((ask->given & ASK_BIT(ASK_LIMIT)) != 0) {
        struct weir_rules_key key = key_of(ask);
        return key_begin(asker, &key, begin_check, &check, sizeof check, answer, error);
    }
    struct weir_rules_question question = {.attributes = ask->attributes,
                                           .attributes_count = ask->attributes_count,
                                           .cost = check.cost,
                                           .max_wait_ns = check.max_wait_ns,
                                           .mode =
                                               check.verb == REMOTE_PEEK ? WEIR_PEEK : WEIR_CHECK,
                                           .flags = asker->flags};
    return answer_ask(asker, &question, answer, error);
}

/* ---- reservations ---- */

static int run_reserve(struct asker *asker, enum operation operation, const struct ask *ask,
                       struct answer *answer, struct weir_error *error)
{
    struct weir_rules_key key = key_of(ask);
    bool timed = (ask->given & ASK_BIT(ASK_TTL)) != 0;
    (void)operation;
    return reservation_make(asker, &key, ask->number[ASK_COST], timed ? ask->number[ASK_TTL] : 0,
                            answer, error);
}

/* A reservation that is cancelled has used nothing. */
static int run_settle(struct asker *asker, enum operation operation, const struct ask *ask,
                      struct answer *answer, struct weir_error *error)
{
    uint64_t actual = operation == OPERATION_CANCEL ? 0 : ask->number[ASK_ACTUAL];
    return reservation_settle(asker, ask->text[ASK_RESERVATION], actual, answer, error);
}

/* ---- the audit log: who has changed a key ---- */

/* A change and the client that makes it. It refers to nothing of the request, which it outlives. */
struct audit {
    enum operation operation;
    struct server *server;
    enum role role;
    char peer[ADDRESS_MAX];
    char limit[WEIR_RULES_NAME];
    char tier[WEIR_RULES_NAME];
    char by[WEIR_RULES_NAME]; /* which alternatives the parts of the key are; "": the first ones */
    char key[256];            /* its parts, separated by commas; cut if it is too long */
    size_t key_len;
    uint64_t units;
    uint64_t for_ms;
    char why[BLOCK_WHY_MAX];
};

/* Writes the parts of a key: "alice", "tenant,alice"; cut if they are too long. */
static void join_parts(const struct ask *ask, struct audit *a)
{
    size_t most = sizeof a->key;
    size_t n = 0;
    for (size_t i = 0; i < ask->parts_count && n < most; i++) {
        if (i > 0) {
            a->key[n++] = ',';
        }
        size_t len = ask->parts[i].len < most - n ? ask->parts[i].len : most - n;
        memcpy(a->key + n, ask->parts[i].at, len);
        n += len;
    }
    a->key_len = n;
}

static void audit_init(struct audit *a, enum operation operation, const struct ask *ask,
                       const struct asker *asker)
{
    const struct actor *by = &asker->by;
    *a = (struct audit){.operation = operation,
                        .server = asker->server,
                        .role = by->role,
                        .units = ask->number[ASK_UNITS],
                        .for_ms = ask->number[ASK_FOR]};
    char peer[ADDRESS_MAX];
    (void)snprintf(a->peer, sizeof a->peer, "%s", peer_print(by->peer, peer));
    (void)snprintf(a->limit, sizeof a->limit, "%.*s", TEXT_ARGS(ask->text[ASK_LIMIT]));
    (void)snprintf(a->tier, sizeof a->tier, "%.*s", TEXT_ARGS(ask->text[ASK_TIER]));
    (void)snprintf(a->by, sizeof a->by, "%.*s", TEXT_ARGS(ask->text[ASK_BY]));
    (void)snprintf(a->why, sizeof a->why, "%.*s", TEXT_ARGS(ask->text[ASK_WHY]));
    join_parts(ask, a);
}

static void audit_tell(const struct audit *a)
{
    const struct operation_row *row = &operation_rows[a->operation];
    struct log_field fields[10] = {
        LOG_STRING("verb", row->name),
        LOG_STRING("address", a->peer),
        LOG_STRING("role", role_names[a->role]),
        LOG_STRING("limit", a->limit),
        LOG_KEY("key", ((struct weir_text){a->key, a->key_len})),
    };
    size_t n = 5;
    if (a->tier[0] != 0) {
        fields[n++] = LOG_STRING("tier", a->tier);
    }
    if (a->by[0] != 0) {
        fields[n++] = LOG_STRING("by", a->by);
    }
    if ((row->members & ASK_BIT(ASK_UNITS)) != 0) {
        fields[n++] = LOG_COUNT("units", a->units > INT64_MAX ? INT64_MAX : a->units);
    }
    if ((row->members & ASK_BIT(ASK_FOR)) != 0) {
        fields[n++] = a->for_ms > INT64_MAX ? LOG_STRING("for_ms", "forever")
                                            : LOG_COUNT("for_ms", a->for_ms);
    }
    if (a->why[0] != 0) {
        fields[n++] = LOG_STRING("why", a->why);
    }
    log_event(LEVEL_AUDIT, "key changed", fields, n);
}

/* ---- one key: inspecting it, and changing it ---- */

static int on_block(struct key_ask *k, int error, const struct remote_answer *said)
{
    if (error == 0 && (said->answer.flags & WEIR_FLAG_BLOCKED) != 0) {
        uint64_t ns = said->answer.retry_after_ns;
        k->answer->blocked_ms =
            ns == WEIR_FOREVER ? -1
                               : (int64_t)(ns / WEIR_MILLISECOND + (ns % WEIR_MILLISECOND != 0));
    }
    return error;
}

/* Removes the quota from an answer of the built-in limit: the numbers that its table was opened
 * with are not those of any caller. */
static void hide_numbers(const struct weir_answer *from, struct answer *answer)
{
    bool blocked = (from->flags & WEIR_FLAG_BLOCKED) != 0;
    answer->verdict = blocked ? answer->verdict : WEIR_ALLOW;
    answer->reason = blocked ? answer->reason : WEIR_REASON_LIMIT;
    answer->retry_after_ms = blocked ? answer->retry_after_ms : 0;
    answer->quota = 0;
    answer->remaining = -1;
}

/* The answer has the longer of the block and the time until there are units: if the key is blocked,
 * a peek of 0 units asks for the block alone. */
static int on_looked(struct key_ask *k, int error, const struct remote_answer *said)
{
    if (error != 0) {
        return error;
    }
    key_answer(k, &said->answer);
    k->answer->removed = k->removed;
    k->answer->blocked_ms = 0;
    if (k->found.told.limit == NULL) { /* the built-in one */
        hide_numbers(&said->answer, k->answer);
    }
    return (said->answer.flags & WEIR_FLAG_BLOCKED) != 0 ? key_ask(k, REMOTE_PEEK, 0, 0, on_block)
                                                         : 0;
}

static int begin_look(struct key_ask *k)
{
    return key_ask(k, REMOTE_PEEK, 1, 0, on_looked);
}

static int run_inspect(struct asker *asker, enum operation operation, const struct ask *ask,
                       struct answer *answer, struct weir_error *error)
{
    struct weir_rules_key key = key_of(ask);
    (void)operation;
    return key_begin_any(asker, &key, begin_look, NULL, 0, answer, error);
}

static uint64_t block_ns(const struct audit *a)
{
    return a->for_ms > UINT64_MAX / WEIR_MILLISECOND ? WEIR_FOREVER : a->for_ms * WEIR_MILLISECOND;
}

/* Keeps the list of blocks as it is in the table: notes a block, forgets one that was ended. */
static void note_change(const struct key_ask *k, const struct audit *a)
{
    struct block_note note = {.since_ns = k->now_ns, .until_ns = add_sat(k->now_ns, block_ns(a))};
    struct block_notes *notes =
        k->found.told.limit == NULL ? &a->server->adhoc_notes : rules_block_notes(&k->found);
    (void)snprintf(note.by, sizeof note.by, "%s %s", role_names[a->role], a->peer);
    (void)snprintf(note.why, sizeof note.why, "%s", a->why);
    if (a->operation == OPERATION_BLOCK) {
        block_notes_put(notes, k->key, &note);
    } else if (a->operation == OPERATION_UNBLOCK) {
        block_notes_drop(notes, k->key);
        key_forget_denials(k, a->server->rules);
    }
}

static int on_changed(struct key_ask *k, int error, const struct remote_answer *said)
{
    if (error != 0) {
        return error;
    }
    k->removed = said->found != 0;
    audit_tell(k->data);
    note_change(k, k->data);
    return begin_look(k);
}

static int begin_change(struct key_ask *k)
{
    const struct audit *a = k->data;
    const struct operation_row *row = &operation_rows[a->operation];
    bool units = (row->members & ASK_BIT(ASK_UNITS)) != 0;
    bool timed = (row->members & ASK_BIT(ASK_FOR)) != 0;
    return key_ask(k, row->verb, units ? a->units : 0, timed ? block_ns(a) : 0, on_changed);
}

/* The answer is that of a peek of 1 unit after the change. */
static int run_change(struct asker *asker, enum operation operation, const struct ask *ask,
                      struct answer *answer, struct weir_error *error)
{
    struct weir_rules_key key = key_of(ask);
    const struct operation_row *row = &operation_rows[operation];
    struct audit audit;
    if ((row->members & ASK_BIT(ASK_UNITS)) != 0 &&
        server_is_adhoc(asker->server, ask->text[ASK_LIMIT])) {
        return fail(
            error, WEIR_ENOTSUP,
            "%s: found limit '%s', expected a limit of the rule file: a unit of '%s' has no "
            "fixed size, because each call brings its own rate",
            row->name, SERVER_ADHOC, SERVER_ADHOC);
    }
    if (ask->text[ASK_WHY].len >= BLOCK_WHY_MAX) {
        return fail(error, WEIR_EINVAL, "why: found %zu bytes, expected at most %d",
                    ask->text[ASK_WHY].len, BLOCK_WHY_MAX - 1);
    }
    audit_init(&audit, operation, ask, asker);
    return key_begin_any(asker, &key, begin_change, &audit, sizeof audit, answer, error);
}

/* ---- rows ---- */

#define KEY (ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY) | ASK_BIT(ASK_TIER))
#define ONE_KEY (KEY | ASK_BIT(ASK_BY))
#define COST (ASK_BIT(ASK_COST) | ASK_BIT(ASK_MAX_WAIT))
#define RATE (ASK_BIT(ASK_COUNT) | ASK_BIT(ASK_PERIOD))
#define ID ASK_BIT(ASK_RESERVATION)
#define NAMED ASK_BIT(ASK_LIMIT)
#define CLIENTS (BY_COMMAND | BY_CLIENTS)
#define OPERATORS (BY_COMMAND | BY_OPERATORS)

const struct operation_row operation_rows[OPERATIONS] = {
    [OPERATION_CHECK] = {"check", "asks whether this may pass now, and takes units",
                         KEY | COST | ASK_BIT(ASK_ATTRIBUTES), 0, CLIENTS, ROLE_CHECK, EXTRA_NONE,
                         true, REMOTE_CHECK, run_check},
    [OPERATION_PEEK] = {"peek", "tells what a check would say, and takes nothing",
                        KEY | COST | ASK_BIT(ASK_ATTRIBUTES), 0, CLIENTS, ROLE_CHECK, EXTRA_NONE,
                        false, REMOTE_PEEK, run_check},
    [OPERATION_ASK] = {"ask", "checks a request by its attributes, which the rules match",
                       COST | ASK_BIT(ASK_ATTRIBUTES), ASK_BIT(ASK_ATTRIBUTES), BY_COMMAND,
                       ROLE_CHECK, EXTRA_NONE, true, REMOTE_CHECK, run_check},
    [OPERATION_THROTTLE] = {"throttle", "checks a key at a rate that comes with the question",
                            ASK_BIT(ASK_KEY) | ASK_BIT(ASK_BURST) | RATE | ASK_BIT(ASK_COST),
                            ASK_BIT(ASK_KEY) | RATE, BY_CLIENTS, ROLE_CHECK, EXTRA_NONE, true,
                            REMOTE_CHECK, throttle_run},
    [OPERATION_RESERVE] = {"reserve", "takes units that are settled later",
                           KEY | ASK_BIT(ASK_COST) | ASK_BIT(ASK_TTL), NAMED, CLIENTS, ROLE_CHECK,
                           EXTRA_RESERVATION, true, REMOTE_CHECK, run_reserve},
    [OPERATION_SETTLE] = {"settle", "replaces the units of a reservation by what was used",
                          ID | ASK_BIT(ASK_ACTUAL), ID | ASK_BIT(ASK_ACTUAL), CLIENTS, ROLE_CHECK,
                          EXTRA_NONE, false, REMOTE_PEEK, run_settle},
    [OPERATION_CANCEL] = {"cancel", "gives the units of a reservation back", ID, ID, CLIENTS,
                          ROLE_CHECK, EXTRA_NONE, false, REMOTE_PEEK, run_settle},
    [OPERATION_INSPECT] = {"inspect", "tells what a check of 1 unit would say, and the block",
                           ONE_KEY, NAMED, 0, ROLE_ADMIN, EXTRA_BLOCKED, false, REMOTE_PEEK,
                           run_inspect},
    [OPERATION_REFUND] = {"refund", "gives units back", ONE_KEY | ASK_BIT(ASK_UNITS), NAMED,
                          OPERATORS, ROLE_ADMIN, EXTRA_BLOCKED, false, REMOTE_REFUND, run_change},
    [OPERATION_PENALIZE] = {"penalize", "takes units, into debt if need be",
                            ONE_KEY | ASK_BIT(ASK_UNITS), NAMED, OPERATORS, ROLE_ADMIN,
                            EXTRA_BLOCKED, false, REMOTE_PENALIZE, run_change},
    [OPERATION_BLOCK] = {"block", "denies the key, for a time or until it is unblocked",
                         ONE_KEY | ASK_BIT(ASK_FOR) | ASK_BIT(ASK_WHY), NAMED, OPERATORS,
                         ROLE_ADMIN, EXTRA_BLOCKED, false, REMOTE_BLOCK, run_change},
    [OPERATION_UNBLOCK] = {"unblock", "ends a block or a ban, and forgets its denials", ONE_KEY,
                           NAMED, OPERATORS, ROLE_ADMIN, EXTRA_BLOCKED, false, REMOTE_UNBLOCK,
                           run_change},
    [OPERATION_RESET] = {"reset", "forgets what the key has used", ONE_KEY, NAMED, OPERATORS,
                         ROLE_ADMIN, EXTRA_BLOCKED, false, REMOTE_RESET, run_change},
};

enum operation operation_by_name(struct weir_text name)
{
    unsigned i = 0;
    while (i < OPERATIONS && !text_is(name, operation_rows[i].name)) {
        i++;
    }
    return (enum operation)i;
}

int operation_run(struct asker *asker, enum operation operation, const struct ask *ask,
                  struct answer *answer, struct weir_error *error)
{
    const struct operation_row *row = &operation_rows[operation];
    error->text[0] = 0;
    return asker->by.role < row->role
               ? fail(error, WEIR_EACCES, "%s: found the role %s, expected %s", row->name,
                      role_names[asker->by.role], role_names[row->role])
               : row->run(asker, operation, ask, answer, error);
}
