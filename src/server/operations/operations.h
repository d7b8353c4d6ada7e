/*
 * What can be asked of the server, in no protocol's words: one request (struct ask), and the
 * operations as rows. A protocol reads the members that a row names into a struct ask, runs the
 * operation and writes the answer. Names, bounds, roles and what is needed come from the rows.
 */
#ifndef WEIR_SERVER_OPERATIONS_OPERATIONS_H
#define WEIR_SERVER_OPERATIONS_OPERATIONS_H

#include "rules/file/config.h"
#include "server/operations/answer.h"

/* ---- one request ---- */

/* The numbers of members are fields of messages (weir.v1): new members go to the end. */
enum ask_member {
    ASK_LIMIT,
    ASK_KEY,
    ASK_TIER,
    ASK_COST,
    ASK_MAX_WAIT,
    ASK_ATTRIBUTES,
    ASK_TTL,
    ASK_RESERVATION,
    ASK_ACTUAL,
    ASK_UNITS,
    ASK_FOR,
    ASK_WHY,
    ASK_BURST,
    ASK_COUNT,
    ASK_PERIOD,
    ASK_BY,
    ASK_MEMBERS
};

#define ASK_BIT(member) (1u << (member))

/* The value of ASK_FOR that stands for a block without end. */
#define ASK_FOREVER UINT64_MAX

enum ask_kind { ASK_TEXT, ASK_NUMBER, ASK_PARTS, ASK_PAIRS };

struct ask_member_row {
    const char *name; /* "max_wait_ms" */
    enum ask_kind kind;
    uint64_t least; /* of a number; of a text, or of each part, its length */
    uint64_t most;  /* of a number */
    bool endless;   /* ASK_FOREVER is allowed too: null, "forever" */
    const char *about;
};

extern const struct ask_member_row ask_members[ASK_MEMBERS];
extern const uint64_t ask_absent[ASK_MEMBERS]; /* what a number is if it is not given */

/* Texts belong to the request. */
struct ask {
    struct weir_text text[ASK_MEMBERS]; /* by member: limit, tier, reservation */
    uint64_t number[ASK_MEMBERS];
    struct weir_text parts[CONFIG_KEY_PARTS_MAX];
    size_t parts_count;
    struct weir_rules_attribute attributes[WEIR_RULES_ATTRIBUTES_MAX];
    size_t attributes_count;
    unsigned given; /* ASK_BIT() of each member that was there */
};

/* Sets every member to what it is if it is not given. */
void ask_init(struct ask *ask);

/* ---- operations ---- */

enum operation {
    OPERATION_CHECK,
    OPERATION_PEEK,
    OPERATION_ASK,
    OPERATION_THROTTLE,
    OPERATION_RESERVE,
    OPERATION_SETTLE,
    OPERATION_CANCEL,
    OPERATION_INSPECT,
    OPERATION_REFUND,
    OPERATION_PENALIZE,
    OPERATION_BLOCK,
    OPERATION_UNBLOCK,
    OPERATION_RESET,
    OPERATIONS
};

/* How clients reach an operation. */
#define BY_COMMAND 0x1u   /* as a command of its own, WEIR.NAME */
#define BY_CLIENTS 0x2u   /* POST /v1/NAME on the listener for clients */
#define BY_OPERATORS 0x4u /* POST /v1/keys/NAME on the listener for operators */

/* The member that the answers of an operation have in addition to the nine of all answers. */
enum operation_extra { EXTRA_NONE, EXTRA_RESERVATION, EXTRA_BLOCKED };

struct operation_row {
    const char *name; /* "check" */
    const char *summary;
    unsigned members; /* ASK_BIT()s that it takes */
    unsigned needed;  /* those of `members` that it must have */
    unsigned reach;   /* BY_... */
    enum role role;
    enum operation_extra extra;
    bool decides; /* whether the request may pass is what was asked: a denial is told as one */
    int verb;     /* enum remote_verb, for `run` */
    int (*run)(struct asker *asker, enum operation operation, const struct ask *ask,
               struct answer *answer, struct weir_error *error);
};

extern const struct operation_row operation_rows[OPERATIONS];

/* Returns the operation of that name, or OPERATIONS. */
enum operation operation_by_name(struct weir_text name);

/*
 * Runs it, if the client's role allows it (otherwise WEIR_EACCES; protocols that have an answer of
 * their own for that check the role first). Members outside the row's are ignored; those that it
 * needs must be there, and numbers must be within the bounds of their rows. Returns 0,
 * ANSWER_LATER, RESERVATION_FULL, RESERVATION_NONE, or WEIR_E... with the reason in *error.
 */
int operation_run(struct asker *asker, enum operation operation, const struct ask *ask,
                  struct answer *answer, struct weir_error *error);

/* Returns how a request counts whose operation ended with an error (WEIR_E...) or an answer. */
static inline enum request_result operation_result(enum operation operation, int error,
                                                   const struct answer *answer)
{
    if (error != 0) {
        return REQUEST_ERROR;
    }
    if (!operation_rows[operation].decides) {
        return REQUEST_OTHER;
    }
    return answer->verdict == WEIR_ALLOW ? REQUEST_ALLOW : REQUEST_DENY;
}

#endif
