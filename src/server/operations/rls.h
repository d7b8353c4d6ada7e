/*
 * Envoy's rate limit service (envoy.service.ratelimit.v3), in no protocol's words: a call with its
 * descriptors, and how it is decided (rules/live/call_ask.h). A protocol reads a struct rls_ask and
 * writes what the struct call says.
 */
#ifndef WEIR_SERVER_OPERATIONS_RLS_H
#define WEIR_SERVER_OPERATIONS_RLS_H

#include "rules/live/call_ask.h"
#include "server/operations/answer.h"

/* The most entries of a descriptor. */
#define RLS_ENTRIES_MAX 100

/* The units of limits, as the messages number them. */
enum rls_unit {
    RLS_UNIT_UNKNOWN,
    RLS_SECOND,
    RLS_MINUTE,
    RLS_HOUR,
    RLS_DAY,
    RLS_MONTH,
    RLS_YEAR,
    RLS_WEEK,
    RLS_UNITS
};

extern const char *const rls_unit_names[RLS_UNITS];

/* The codes of the call and of its descriptors, likewise. */
enum rls_code { RLS_OK = 1, RLS_OVER_LIMIT = 2 };

struct rls_entry {
    struct weir_text key;
    struct weir_text value;
};

struct rls_descriptor {
    struct rls_entry *entries;
    size_t count;
    bool limited; /* it brings a limit of its own: */
    uint64_t requests;
    uint64_t unit; /* enum rls_unit, or a number that is none */
    bool hits_given;
    uint64_t hits; /* these two only if they are given: 0 looks, */
    bool back;     /* and `back` gives them back */
};

/* A call. Texts and arrays are in the memory of the request, or in that of its message. */
struct rls_ask {
    struct weir_text domain;
    struct rls_descriptor *descriptors;
    size_t count;
    uint64_t hits; /* of descriptors that give none; 0: 1 */
};

/*
 * Decides a call. `p` is the thread's spare object (awaited_spare()), in whose memory *ask may be;
 * the struct call is put there too. Returns 0, ANSWER_LATER (asker->pending is p, and
 * awaited_of(p)->call will be answered), or WEIR_E... with the reason in *error.
 */
int rls_run(struct asker *asker, struct pending *p, const struct rls_ask *ask,
            struct weir_error *error);

/*
 * Counts and logs a call that cannot be decided because of what is in it; `why` says what that is.
 * Returns whether it is to be answered with OVER_LIMIT; otherwise with an error.
 */
bool rls_bad_call(struct worker *w, const char *why);

/* Returns whether an error of rls_run() is one of the call. */
static inline bool rls_is_bad(int e)
{
    return e != 0 && answer_error(e)->status == 400;
}

/* What is told as dynamic metadata, by members that are true: the flags of the answer, then those
 * of call.oddities. Bit i of rls_flags() has the name rls_flag_name(i). */
#define RLS_FLAGS (ANSWER_FLAGS + 2)
unsigned rls_flags(const struct call *call);
const char *rls_flag_name(unsigned i);

/* Returns the code of a verdict. */
static inline enum rls_code rls_code(int verdict)
{
    return verdict == WEIR_ALLOW ? RLS_OK : RLS_OVER_LIMIT;
}

/* Returns the unit of a limit's period; UNKNOWN if it is none of the seven. */
enum rls_unit rls_unit_of(uint64_t period_ns);

/* The numbers of a status, as messages have them. */
struct rls_told {
    uint32_t requests;
    enum rls_unit unit;
    uint32_t remaining;
    uint64_t reset_s; /* rounded up, at least 1 */
};
struct rls_told rls_told(const struct call_status *status, uint64_t now_ns);

/* Calls fn with each header field that Envoy is to add to the response, and its number from 0 on.
 * Returns how many there are. */
size_t rls_each_field(const struct server *server, const struct call *call, answer_field_fn fn,
                      struct buffer *to);

#endif
