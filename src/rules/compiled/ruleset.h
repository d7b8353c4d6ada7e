/*
 * Rules compiled for asking. They are immutable once made, except for what mode.c switches while no
 * thread asks. Any number of threads read them without a lock, and asking allocates no memory
 * unless a fleet decides. A question goes this way:
 *
 *   request.c      attributes -> values by number, normalised, looked up
 *   match.c        values -> the limits that apply
 *   key.c          a limit and the values -> the key that it counts
 *   ask.c          -> decisions of the engine -> the answer
 *   ask_shared.c   -> or of a fleet, which answers later
 */
#ifndef WEIR_RULES_COMPILED_RULESET_H
#define WEIR_RULES_COMPILED_RULESET_H

#include "common/block_notes.h"
#include "common/remote.h"
#include "rules/compiled/index.h"
#include "rules/compiled/state.h"
#include "rules/file/config.h"
#include "rules/value/normalize.h"

/* Attributes have numbers; those that a request has are the bits of a word. */
#define ATTRIBUTES_MAX 64
#define NO_ATTRIBUTE ATTRIBUTES_MAX
/* In the order of enum attribute_kind. */
enum { NUMBER_PATH = INDEX_PATH, NUMBER_METHOD, NUMBER_HOST, NUMBER_IP, NUMBERS_FIXED };

/* A condition: the attribute has one of these values. */
struct test {
    unsigned attribute;
    const unsigned char *few; /* exact values if they are few: lengths and bytes, then a 0; */
    struct text_map *exact;   /* otherwise NULL, and they are here */
    struct weir_text *patterns;
    size_t patterns_count;
    struct cidr_set *networks;
};

struct tests {
    struct test *at;
    size_t count;
};

/*
 * A limiter of the engine or of a fleet. It is shared by the rule sets that have it (a reload hands
 * it on) and by the pending questions about it. The last release ends it, on any thread: by then no
 * rule set has it, and its file, if it has one, has been settled.
 */
struct holder {
    struct weir *limiter;         /* NULL: remote */
    void *remote;                 /* a limit of the fleet; NULL: decided here */
    const struct remote_ops *ops; /* its functions */
    struct setting setting;       /* the numbers that it has now */
    uint64_t references;
    uint64_t missing;   /* counted by the threads that ask; rare */
    uint64_t uncovered; /* of these, those to which no other limit of the group applied */
    unsigned changes;   /* how often a limit of the fleet has changed its numbers */
    struct ban_config ban;
    struct weir *denials; /* counts those that ban (ban_options()); NULL: without `ban` */
    uint64_t bans;        /* bans that were made */
    uint64_t bans_failed; /* bans that could not be made: no room, or no store */
    struct block_notes notes;
    struct state_file file;
    const struct state *state; /* NULL: in memory */
};

/*
 * The limiter and numbers that a request counts with: the limit's own, those of a tier, or of its
 * overrides.
 */
struct variant {
    struct holder *holder; /* NULL: never used */
    const struct setting *setting;
    struct weir_text tier; /* len 0: none */
    uint64_t window_ns;
    /* leaky_bucket: the longest wait for WEIR_RULES_HOLD and WEIR_RULES_NO_DELAY; 0: its queue is
     * no longer than that */
    uint64_t hold_ns;
    uint64_t no_delay_ns;
    uint64_t held_ns;    /* the longest delay with WEIR_RULES_HOLD */
    enum rate_kind kind; /* of its rate */
};

/*
 * Members that matching reads come first: the rules of a large set do not fit into the near caches.
 */
struct rule {
    struct tests when;    /* without the condition that the index answers */
    struct tests *unless; /* the limit does not apply if one of them holds */
    size_t unless_count;
    unsigned group;    /* 0: none; shadow limits of the rule file have groups of their own */
    bool shadow;       /* decided as a shadow limit: by the rules, or switched */
    bool switched;     /* to shadow by hand */
    bool deny_missing; /* on_missing: deny */
    unsigned char key_parts;
    uint64_t key_bits[CONFIG_KEY_PARTS_MAX]; /* alternatives, one of which must be present */
    const struct limit_config *config;
    unsigned cost_attribute;
    int mode;         /* enum remote_mode: what decides it */
    bool partly_here; /* mode is not local, but variants whose rate is 0 or unlimited are */
    unsigned char *key[CONFIG_KEY_PARTS_MAX]; /* alternatives, then NO_ATTRIBUTE */
    unsigned char *shard;                     /* attributes, then NO_ATTRIBUTE */
    unsigned tier_attribute;
    struct text_map *tiers; /* name -> number in variants */
    unsigned variant_default;
    unsigned override_attribute;
    unsigned override_first; /* the first variant of the overrides */
    struct variant *variants;
    size_t variants_count;
    size_t indexed;             /* the condition of `when` that the index answers; SIZE_MAX: none */
    unsigned indexed_attribute; /* its attribute; NO_ATTRIBUTE: none */
};

/* A segment of paths that match a pattern; of all paths if the pattern is empty. */
struct capture {
    struct weir_text pattern;
    unsigned segment; /* from 1 */
};

struct captures {
    struct capture *at; /* the first whose pattern matches is used */
    size_t count;
};

/* An attribute that is derived if the request does not have it. */
struct derived {
    unsigned attribute;
    const struct attribute_config *config;
    unsigned char source[CONFIG_SOURCES_MAX];     /* number of the header, the query or `by` */
    struct captures captures[CONFIG_SOURCES_MAX]; /* of sources FROM_PATH */
};

/* New numbers of a limiter, which it gets when the rules are switched. */
struct change {
    struct holder *holder;
    struct setting setting;
    const struct limit_config *limit;
    struct weir *denials; /* for a ban that counts otherwise; after the switch, the one before */
};

struct shared_test {
    const struct value *values;
    struct test test;
};

struct ruleset {
    struct config config; /* owned */
    struct state *state;  /* the folder of the limiters; NULL: they are in memory */
    struct weir_fleet *fleet;
    struct arena arena;     /* memory of the members below, except index and networks */
    struct text_map *names; /* name -> number of the attribute */
    struct weir_text *attributes;
    unsigned attributes_count;
    unsigned cookies; /* number of the field that cookies are in; NO_ATTRIBUTE: not used */
    struct derived *derived;
    size_t derived_count;
    struct tests *allow; /* one of them must hold */
    size_t allow_count;
    struct tests *block;
    size_t block_count;
    struct rule *rules;
    size_t rules_count;
    bool replaces;           /* some rule has `replaces` */
    struct text_map *limits; /* name -> number in rules */
    struct index *index;
    uint64_t indexed;          /* attributes other than the path that the index has values of */
    struct index_found always; /* rules without an entry in the index */
    struct change *changes;
    size_t changes_count;
    struct cidr_set **networks; /* to be destroyed */
    size_t networks_count;
    struct shared_test *shared; /* while compiling: tests of conditions that are `shared` */
    size_t shared_count;
    weir_rules_denied_fn denied; /* may be NULL */
    void *denied_arg;
    weir_rules_listed_fn listed; /* may be NULL */
    void *listed_arg;
    weir_rules_misspelt_fn misspelt; /* may be NULL */
    void *misspelt_arg;
    struct unlike *unlike; /* names that are like no attribute (misspelt.c) */
};

/*
 * Compiles *config, which is taken over, also if this fails. Limiters of `old` (may be NULL) that
 * fit are shared. Changes to them are listed in `changes` but not made. Without options no limiter
 * is made: such a set is for looking at rules, not for asking. state (may be NULL) is the folder of
 * the limiters; the caller calls state_settle(). Returns 0, WEIR_ERULES, WEIR_ENOMEM or an error of
 * weir_open().
 */
int ruleset_create(struct config *config, const struct weir_rules_options *options,
                   struct state *state, const struct ruleset *old, struct problems *problems,
                   struct ruleset **out, struct weir_error *error);

/* Applies the changes. No thread may be deciding by the old or the new rules. */
void ruleset_change(struct ruleset *set);

/* Frees what the changes no longer need, or what those that were not made would have needed. */
void ruleset_forget_changes(struct ruleset *set);

void ruleset_destroy(struct ruleset *set);

/*
 * Returns whether the rules use the client's address (`ip`) and have no source for it under
 * `attributes`, so that the listener must know it.
 */
bool ruleset_needs_ip(const struct ruleset *set);

/* ---- a request ---- */

#define METHOD_MAX 64
#define HOST_MAX 256

/*
 * The values of an `opaque` request are bytes that clients of a gateway have chosen, and no value
 * is an error: a gateway lets requests pass for which its question fails. Values may have any
 * length; in keys, long ones are replaced (key.c). An attribute that cannot be read, such as a path
 * with a NUL, is not present but `unread`: limits that use it in `key` or `when` answer by their
 * on_missing.
 */
struct request {
    bool opaque;
    uint64_t present;
    uint64_t unread; /* only if it is opaque */
    struct weir_text value[ATTRIBUTES_MAX];
    struct address ip;
    char path[PATH_BYTES_MAX];
    char host[HOST_MAX];
    char method[METHOD_MAX];
};

/*
 * Reads the attributes of a question. Returns 0, or WEIR_EATTRIBUTE or WEIR_EINVAL with what was
 * found in *error.
 */
int request_read(const struct ruleset *set, const struct weir_rules_question *question,
                 struct request *request, struct weir_error *error);

/* The same for an opaque request. Of two values of an attribute the first counts. */
int request_read_opaque(const struct ruleset *set, const struct weir_rules_question *question,
                        struct request *request, struct weir_error *error);

/* Makes a request without attributes, which is not opaque. */
static inline void request_begin(struct request *request)
{
    request->opaque = false;
    request->present = 0;
    request->unread = 0;
}

static inline bool request_lacks(const struct request *request, unsigned attribute)
{
    return attribute < ATTRIBUTES_MAX && (request->unread >> attribute & 1) != 0;
}

/* ---- names that no rule uses (misspelt.c) ---- */

/* The longest name that is compared with others, and its final 0. */
#define MISSPELT_NAME 33

/*
 * Finds the attribute of the rules that a name was probably meant to be, as options.misspelt says,
 * and writes it into `meant`. Returns false if there is none.
 */
bool misspelt_find(const struct ruleset *set, const struct weir_rules_question *question,
                   struct weir_text name, char meant[MISSPELT_NAME]);

/* Calls set->misspelt if there is one and the name, which no rule uses, is misspelt. */
void misspelt_tell(const struct ruleset *set, const struct weir_rules_question *question,
                   struct weir_text name);

/* Makes set->unlike. Returns 0 or WEIR_E... */
int misspelt_init(struct ruleset *set);

static inline bool request_has(const struct request *request, unsigned attribute)
{
    return attribute < ATTRIBUTES_MAX && (request->present >> attribute & 1) != 0;
}

/* Sets one attribute to a value, normalised. Returns 0 or WEIR_EATTRIBUTE. */
int request_put(const struct ruleset *set, struct request *request, unsigned attribute,
                struct weir_text value, struct weir_error *error);

/*
 * Sets the attributes that can be derived from those that are present. Returns 0 or
 * WEIR_EATTRIBUTE.
 */
int request_derive(const struct ruleset *set, struct request *request, struct weir_error *error);

/* ---- matching ---- */

#define MATCHES_MAX WEIR_SEVERAL_MAX

struct matches {
    const struct rule *enforced[MATCHES_MAX];
    const struct rule *shadow[MATCHES_MAX];
    size_t enforced_count;
    size_t shadow_count;
    bool remote;                /* a fleet decides at least one of them, for some requests */
    const struct rule *refused; /* on_missing: deny, and its key is missing */
    unsigned missing;           /* limits left out because their key is missing */
    unsigned uncovered;         /* of these, enforced ones in whose place no other applies */
    unsigned shadow_dropped;    /* shadow limits beyond MATCHES_MAX */
};

bool tests_hold(const struct tests *tests, const struct request *request);

/* Returns the number of the first entry of a list that holds, or n. */
static inline size_t list_find(const struct tests *entries, size_t n, const struct request *request)
{
    size_t i = 0;
    while (i < n && !tests_hold(&entries[i], request)) {
        i++;
    }
    return i;
}

/*
 * Finds the limits that apply. Returns 0, or WEIR_EINVAL if they are more than can be decided at
 * once.
 */
int ruleset_match(const struct ruleset *set, const struct request *request, struct matches *matches,
                  struct weir_error *error);

/* Whether a limit applies to a request, or the first reason why it does not. */
enum fit {
    FIT_APPLIES,
    FIT_WHEN,     /* a condition of `when` does not hold */
    FIT_UNLESS,   /* an entry of `unless` holds */
    FIT_GROUP,    /* another limit of its group came first */
    FIT_REPLACED, /* another limit that applies replaces it */
    FIT_MISSING,  /* its key has no value */
    FIT_DROPPED   /* a shadow limit beyond MATCHES_MAX */
};

struct rule_fit {
    enum fit fit;
    size_t condition;         /* FIT_WHEN: the number of that condition */
    const struct rule *other; /* FIT_GROUP, FIT_REPLACED: that limit */
};

/*
 * Does the same as ruleset_match() by the same tests, and fills in `fits`, one for each limit, in
 * their order. Counts nothing.
 */
int ruleset_explain(const struct ruleset *set, const struct request *request,
                    struct matches *matches, struct rule_fit *fits, struct weir_error *error);

/* ---- keys ---- */

/* True if every part of the key has an attribute that is present. */
bool key_is_there(const struct rule *rule, const struct request *request);

/*
 * Writes the key's bytes into `to` (WEIR_KEY_MAX). Returns 0, or WEIR_EATTRIBUTE if it is too long.
 */
int key_compose(const struct ruleset *set, const struct rule *rule, const struct request *request,
                char *to, size_t *len, struct weir_error *error);

/*
 * Writes the bytes that `shard_by` gives into `to` (WEIR_KEY_MAX), for a request whose key fits.
 * Returns their number, 0 if the limit shards by its whole key.
 */
size_t shard_compose(const struct rule *rule, const struct request *request, char *to);

/*
 * Returns the variant that a request counts with. Sets *unknown if the request's tier is not one of
 * the limit's.
 */
const struct variant *rule_variant(const struct rule *rule, const struct request *request,
                                   bool *unknown);

/* True if a fleet decides the limit for this request. */
bool rule_is_shared(const struct rule *rule, const struct request *request);

/*
 * Returns the units to ask a limiter for if the request takes `cost`: see fixed_options(). A
 * question to a limiter whose rate has no count must not have a max_wait.
 */
static inline uint64_t rate_cost(enum rate_kind kind, uint64_t cost)
{
    return kind == RATE_COUNTS ? cost : kind == RATE_UNLIMITED ? 1 : UINT64_MAX;
}

/* Puts what the rate says into the limiter's answer: there is nothing, or as much as one likes. */
static inline void rate_answer(enum rate_kind kind, struct weir_answer *answer)
{
    if (kind != RATE_COUNTS) {
        bool unlimited = kind == RATE_UNLIMITED && answer->verdict == WEIR_ALLOW;
        answer->quota = unlimited ? WEIR_UNLIMITED : 0;
        answer->remaining = answer->quota;
        answer->reset_after_ns = 0;
    }
}

/* Returns the rule of a limit by its name, NULL if there is none. */
static inline const struct rule *ruleset_find(const struct ruleset *set, struct weir_text name)
{
    int64_t number = text_map_find(set->limits, name);
    return number >= 0 ? &set->rules[number] : NULL;
}

#endif
