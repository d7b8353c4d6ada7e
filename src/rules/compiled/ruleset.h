/*
 * Rules compiled for asking: immutable once made (but for what mode.c switches while
 * nobody asks), read by any number of threads without a lock, nothing allocated. What
 * is asked goes this way:
 *
 *   request.c   attributes -> values by number, normalised, looked up
 *   match.c     values -> the limits that apply
 *   key.c       a limit and the values -> the key that it counts
 *   ask.c       -> decisions of the engine -> the answer
 *   out.c       -> or of a fleet, which answers later
 */
#ifndef WEIR_RULES_COMPILED_RULESET_H
#define WEIR_RULES_COMPILED_RULESET_H

#include "common/remote.h"
#include "rules/compiled/index.h"
#include "rules/compiled/state.h"
#include "rules/file/config.h"
#include "rules/value/normal.h"

/* Attributes have numbers, those of a request are bits of a word. */
#define ATTRIBUTES_MAX 64
#define NO_ATTRIBUTE ATTRIBUTES_MAX
enum { NUMBER_PATH = INDEX_PATH, NUMBER_METHOD, NUMBER_HOST, NUMBER_IP, NUMBERS_FIXED };

/* One condition: the attribute has one of these values. */
struct test {
    unsigned attribute;
    const unsigned char *few; /* exact values if they are few: lengths and bytes, 0 behind; */
    struct text_map *exact;   /* else they are here */
    struct text *patterns;
    size_t patterns_count;
    struct cidr_set *networks;
};

struct tests {
    struct test *at;
    size_t count;
};

/*
 * A limiter of the engine, or of a fleet, shared by the rule sets that have it (a reload hands it on)
 * and by the questions about it that are out. Whoever lets it go last ends it, on whatever thread:
 * it is in no rule set then, and its file, if it has one, has been settled.
 */
struct holder {
    struct weir *limiter;         /* NULL: remote */
    void *remote;                 /* a limit of the fleet; NULL: decided here */
    const struct remote_ops *ops; /* its */
    struct setting setting;       /* what it does now */
    uint64_t references;
    uint64_t missing; /* written by whoever asks, rarely */
    uint64_t shadow_denied;
    unsigned changes; /* of a limit of the fleet, to other numbers */
    struct state_file file;
    const struct state *state; /* NULL: in memory */
};

/* What a limit counts with: its own numbers, those of a tier, or of its overrides. */
struct variant {
    struct holder *holder; /* NULL: never used */
    const struct setting *setting;
    struct text tier; /* len 0: none */
    uint64_t window_ns;
};

/* What matching reads comes first: the rules of a large set are in no near cache. */
struct rule {
    struct tests when; /* without the condition that the index has answered */
    struct tests unless;
    unsigned group;    /* 0: none; limits that the rules call shadow have groups of their own */
    bool shadow;       /* decided as one: by the rules, or switched */
    bool switched;     /* to shadow, by hand */
    bool deny_missing; /* on_missing: deny */
    unsigned char key_parts;
    uint64_t key_bits[CONFIG_KEY_PARTS_MAX]; /* the alternatives, one of which must be present */
    const struct limit_config *config;
    unsigned cost_attribute;
    int mode;                                 /* enum remote_mode: who decides */
    unsigned char *key[CONFIG_KEY_PARTS_MAX]; /* alternatives, NO_ATTRIBUTE behind */
    unsigned char *shard;                     /* attributes, NO_ATTRIBUTE behind */
    unsigned tier_attribute;
    struct text_map *tiers; /* -> variants */
    unsigned variant_default;
    unsigned override_attribute;
    unsigned override_first; /* the first variant of the overrides */
    struct variant *variants;
    size_t variants_count;
};

/* An attribute that can be derived. */
struct derived {
    unsigned attribute;
    const struct attribute_config *config;
    unsigned char source[CONFIG_SOURCES_MAX]; /* the number of the header or of `by` */
};

/* A number of a limiter to be changed when the rules are switched. */
struct change {
    struct holder *holder;
    struct setting setting;
    const struct limit_config *limit;
};

struct shared_test {
    const struct value *values;
    struct test test;
};

struct ruleset {
    struct config config; /* owned */
    struct state *state;  /* where limiters live; NULL: in memory */
    struct weir_fleet *fleet;
    bool remote;            /* a limit is decided by the fleet */
    struct arena arena;     /* of all below */
    struct text_map *names; /* -> numbers of attributes */
    struct text *attributes;
    unsigned attributes_count;
    struct derived *derived;
    size_t derived_count;
    struct tests *allow; /* one of them must hold */
    size_t allow_count;
    struct tests *block;
    size_t block_count;
    struct rule *rules;
    size_t rules_count;
    struct text_map *limits; /* names -> rules */
    struct index *index;
    uint64_t indexed;          /* attributes besides the path to ask the index */
    struct index_found always; /* rules that the index does not know */
    struct change *changes;
    size_t changes_count;
    struct cidr_set **networks; /* to be destroyed */
    size_t networks_count;
    struct shared_test *shared; /* while it is compiled: of conditions that are `shared` */
    size_t shared_count;
    weir_rules_denied_fn denied; /* NULL: nobody */
    void *denied_arg;
};

/*
 * Compiles *config (taken over, also when it fails). Limiters of `old` (may be
 * NULL) that fit are shared; what is to be changed in them is listed in
 * changes, and not done. Without options no limiter is made: for looking at
 * rules, not for asking. state (may be NULL) is where limiters live; state_settle() is the
 * caller's. 0, WEIR_ERULES, WEIR_ENOMEM and what weir_open() says.
 */
int ruleset_create(struct config *config, const struct weir_rules_options *options,
                   struct state *state, const struct ruleset *old, struct problems *problems,
                   struct ruleset **out, struct weir_error *error);

/* Applies the changes. Nobody may be deciding by the old or the new rules. */
void ruleset_change(struct ruleset *set);

void ruleset_destroy(struct ruleset *set);

/* ---- a request ---- */

#define METHOD_MAX 64
#define HOST_MAX 256

struct request {
    uint64_t present;
    struct text value[ATTRIBUTES_MAX];
    struct address ip;
    char path[PATH_BYTES_MAX];
    char host[HOST_MAX];
    char method[METHOD_MAX];
};

/* 0; WEIR_EATTRIBUTE, WEIR_EINVAL with what was found. */
int request_read(const struct ruleset *set, const struct weir_rules_question *question,
                 struct request *request, struct weir_error *error);

static inline bool request_has(const struct request *request, unsigned attribute)
{
    return attribute < ATTRIBUTES_MAX && (request->present >> attribute & 1) != 0;
}

/* One value for one attribute, brought to its form; 0 or WEIR_EATTRIBUTE. */
int request_put(const struct ruleset *set, struct request *request, unsigned attribute,
                struct text value, struct weir_error *error);

/* Fills in what can be looked up from what is there. */
int request_derive(const struct ruleset *set, struct request *request, struct weir_error *error);

/* ---- matching ---- */

#define MATCHES_MAX WEIR_SEVERAL_MAX

struct matches {
    const struct rule *enforced[MATCHES_MAX];
    const struct rule *shadow[MATCHES_MAX];
    size_t enforced_count;
    size_t shadow_count;
    const struct rule *refused; /* on_missing: deny, and the key is missing */
    unsigned missing;           /* left out because the key is missing */
    unsigned shadow_dropped;    /* shadow limits beyond MATCHES_MAX */
};

bool tests_hold(const struct tests *tests, const struct request *request);

/* One of the entries of a list holds. */
bool list_holds(const struct tests *entries, size_t n, const struct request *request);

/* 0; WEIR_EINVAL: more limits apply than can be decided at once. */
int ruleset_match(const struct ruleset *set, const struct request *request, struct matches *matches,
                  struct weir_error *error);

/* ---- keys ---- */

/* True if every part has an attribute that is present. */
bool key_is_there(const struct rule *rule, const struct request *request);

/* The key's bytes into `to` (WEIR_KEY_MAX); 0 or WEIR_EATTRIBUTE: it is too long. */
int key_compose(const struct ruleset *set, const struct rule *rule, const struct request *request,
                char *to, size_t *len, struct weir_error *error);

/* `shard_by`: its bytes into `to` (WEIR_KEY_MAX), of a request whose key fits; 0: by the key itself. */
size_t shard_compose(const struct rule *rule, const struct request *request, char *to);

/* The variant that counts for a request; *unknown is set if its tier is not one of the limit's. */
const struct variant *rule_variant(const struct rule *rule, const struct request *request,
                                   bool *unknown);

/* ---- asking ---- */

/* What one question adds to the statistics. */
struct tally {
    unsigned unmatched, allow_listed, block_listed, missing, tier_unknown, shadow_denied,
        shadow_failed;
};

/* The rule of a limit by its name, NULL if there is none. */
const struct rule *ruleset_find(const struct ruleset *set, struct text name);

int ruleset_use(const struct ruleset *set, const struct weir_rules_key *key, weir_rules_use_fn fn,
                void *arg, struct weir_error *error);

/* Who waits for an answer that comes later. */
struct waiter {
    struct weir_rules *rules;
    void *where; /* common/remote.h */
    weir_rules_done_fn done;
    void *arg;
};

/* A question that is out: waiter->done will be called, *answer and *tally are no longer needed. */
#define RULESET_OUT 1

/* 0, WEIR_E..., RULESET_OUT. Without a waiter (NULL) limits of a fleet are WEIR_ENOTSUP. */
int ruleset_ask(const struct ruleset *set, const struct weir_rules_question *question,
                uint64_t now_ns, const struct waiter *waiter, struct weir_rules_answer *answer,
                struct tally *tally, struct weir_error *error);

#endif
