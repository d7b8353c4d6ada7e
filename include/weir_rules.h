/*
 * Rules for weir: limits per endpoint, tier and key, from a file, for programs
 * that do not want to program them. Needs weir.h and libweir.
 *
 *     struct weir_rules *rules;
 *     struct weir_error error;
 *     if (weir_rules_open(&rules, "weir.yaml", NULL, &error) != 0) { complain(error.text); }
 *
 *     struct weir_rules_attribute with[] = {
 *         WEIR_RULES_ATTRIBUTE("path", "/search/cats"),
 *         WEIR_RULES_ATTRIBUTE("method", "GET"),
 *         WEIR_RULES_ATTRIBUTE("ip", "203.0.113.7"),
 *         WEIR_RULES_ATTRIBUTE("tier", "pro"),
 *     };
 *     struct weir_rules_question q = {.attributes = with, .attributes_count = 4};
 *     struct weir_rules_answer a;
 *     int e = weir_rules_ask(rules, &q, &a, &error);
 *     if (e == 0 && a.answer.verdict == WEIR_ALLOW) { serve(); }
 *
 * weir.yaml(5) describes the file. `weir config check FILE` reads it as
 * weir_rules_open() does, `weir config show FILE` prints what came of it.
 *
 * THE REQUEST is a list of attributes: names and values. `path`, `method`, `host`
 * and `ip` are normalised, so that one resource or client cannot be two:
 * weir.yaml(5) says how. Every other value counts as it is, byte by byte. An
 * empty value counts as missing. Names that no rule speaks of are ignored. The
 * sources that the file's `attributes` section names may be passed as attributes
 * themselves ("header:X-User-Id", "query:api_key"; header names in any case):
 * the rules then derive the attribute.
 *
 * THE ORDER: the block list, then the allow list, then the limits. All enforced
 * limits that apply are charged together or not at all (weir_check_several());
 * then the shadow limits, each for itself, if the request was allowed.
 *
 * THREADS. Every function may be called from any thread at any time, except that
 * weir_rules_close() must be the last. Asking allocates nothing, and takes no
 * lock; it waits only while rules are being switched. A reload prepares
 * everything beside the requests; then it lets no new request in, waits for those
 * inside (they are decisions, not I/O), switches, and goes on: no request sees a
 * mixture of old and new rules.
 *
 * FORK. A child has its own copy of everything, counts included. A fork waits
 * until reloads that are under way have ended. With STATE the limits' keys are
 * shared instead, and reload, put and remove in a child are WEIR_ENOTSUP.
 *
 * STATE. With options.state each limit, tier and rate of overrides lives in a
 * file of that folder (weir.h: WEIR_FILE), and whoever opens the same rules there
 * goes on where the process before was when it ended, or was killed. The folder
 * must be there, be ours, and be nobody else's to write; one process uses it at a
 * time (another waits for a second, then gets WEIR_EACCES with the number of the
 * first). The rules may have changed meanwhile: what would keep its keys in a
 * reload keeps them here, what would start afresh does so, with a warning that
 * says why, and so does a limit whose max_keys has changed: keys are hashes, which
 * fit a table of one size only. Files of limits that the rules no longer have go
 * with a reload; those found by weir_rules_open() are told and left alone. A file
 * that cannot be used (damaged, cut short, of another version, not ours, open to
 * others) is renamed NAME.bad (then .bad.2, up to .bad.4), told as a warning and
 * counted; its limit starts afresh. A full disk is WEIR_ENOSPC, and nothing is made.
 *
 * FLEET. With options.fleet (weir_fleet.h) limits whose `consistency` is not local are
 * decided by the store that a fleet shares: weir_rules_ask_async() asks. Such a limit has
 * no keys here, whatever STATE says. Rules with a fleet do not follow into a child.
 */
#ifndef WEIR_RULES_H
#define WEIR_RULES_H

#include <string.h>

#include <weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_rules;
struct weir_fleet; /* weir_fleet.h */

/* ---- loading ----------------------------------------------------------- */

enum weir_rules_severity { WEIR_RULES_ERROR = 0, WEIR_RULES_WARNING = 1 };

/* One thing to say about a file. Valid during the call only. */
struct weir_rules_message {
    int severity;     /* enum weir_rules_severity */
    const char *file; /* the rule file, or a file that it names */
    unsigned line;    /* from 1; 0: the file as a whole */
    unsigned column;  /* from 1 */
    const char *text; /* what was found and what was expected */
};

/*
 * Called by the thread that loads, before the call returns, with no lock held.
 * Kept, with its argument, for every later reload and put until the rules are closed.
 */
typedef void (*weir_rules_message_fn)(void *arg, const struct weir_rules_message *message);

/* options.flags: without `state`, the folder that the rule file names under server.state. */
#define WEIR_RULES_SERVER_STATE 0x10000u

/*
 * Called by the thread that asks, inside weir_rules_ask(), when an enforced limit said
 * DENY or NEVER to a WEIR_CHECK: which limit, and the bytes that it counts the request
 * under (weir_rules_key_text() makes them readable). Both are valid during the call only.
 * It is on the way of every refused request: it must not wait, nor call these rules.
 * Lists, shadow limits and missing keys are not told.
 */
typedef void (*weir_rules_denied_fn)(void *arg, const char *limit, const void *key, size_t key_len);

/*
 * Start with WEIR_RULES_OPTIONS_INIT, set what you need; zero means the default. The
 * struct may grow at its end: `size` tells the library which fields the caller knows.
 */
struct weir_rules_options {
    size_t size;    /* sizeof(struct weir_rules_options), set by WEIR_RULES_OPTIONS_INIT */
    unsigned flags; /* of WEIR_EXPLICIT_TIME, WEIR_PREFAULT, WEIR_HUGE_PAGES (both in memory only),
                       WEIR_RULES_SERVER_STATE */
    unsigned reserved;
    weir_clock_fn clock; /* the clock of the short forms; NULL: the system's */
    void *clock_arg;
    weir_rules_message_fn message; /* called for every error and warning, file by file,
                                      in the order of lines */
    void *message_arg;
    weir_rules_denied_fn denied; /* called for every refusal of a limit; NULL: nobody */
    void *denied_arg;
    const char *state; /* a folder in which the limits' keys live in files; NULL: in memory. See
                          STATE above. Copied */
    struct weir_fleet *fleet; /* who decides limits whose `consistency` is not local; must outlive
                                 the rules. NULL: all limits are decided here, each for itself */
};

#define WEIR_RULES_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct weir_rules_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                            \
    }

/*
 * Reads a rule file, or a folder of *.yaml files in the order of their names
 * (limits and lists follow each other, any other section may stand in one of
 * them only), and makes its limits. options may be NULL.
 *
 * 0 or WEIR_ERULES: the rules have errors. All of them went to options->message;
 * *error (may be NULL; this call and those below clear it first) has the first,
 * as "file:line:column: text". Also
 * WEIR_EINVAL, WEIR_ENOMEM, WEIR_EIO. Then nothing was made.
 */
WEIR_API int weir_rules_open(struct weir_rules **rules, const char *path,
                             const struct weir_rules_options *options, struct weir_error *error);

/*
 * The same from memory; `name` stands for the file in messages, and files are
 * looked for beside it.
 */
WEIR_API int weir_rules_open_text(struct weir_rules **rules, const char *name, const char *text,
                                  size_t text_len, const struct weir_rules_options *options,
                                  struct weir_error *error);

/*
 * Ends the rules and their limits. NULL is allowed. Questions that are out (FLEET) are still
 * answered, and what they need lives until then; `denied` and `message` are not called any more.
 */
WEIR_API void weir_rules_close(struct weir_rules *rules);

/*
 * Reads the rules again (path NULL: from where they came) and switches to them.
 * A limit that is still there, with the same algorithm, period, key, address
 * prefixes, max_keys, on_full and align, keeps its keys' state, and so does each of its tiers; a
 * changed count, burst or queue applies at once, as weir_change() says. What
 * weir_change() cannot do starts afresh. Limits put in by weir_rules_put() go,
 * unless the file has them. On an error the old rules stay as they are. A path is
 * kept as it was given: a relative one is looked for from the present folder.
 * What only a server uses, and a restart would take over, is told as a warning.
 * For a moment the tables of both rule sets exist.
 */
WEIR_API int weir_rules_reload(struct weir_rules *rules, const char *path,
                               struct weir_error *error);
WEIR_API int weir_rules_reload_text(struct weir_rules *rules, const char *name, const char *text,
                                    size_t text_len, struct weir_error *error);

/*
 * Adds one limit, or replaces that of the same name in its place: YAML as one item
 * under `limits`. A new one comes last. State is kept as in a reload.
 * WEIR_ERULES and the others as above.
 */
WEIR_API int weir_rules_put(struct weir_rules *rules, const char *yaml, size_t yaml_len,
                            struct weir_error *error);

/* Removes one limit and its keys. WEIR_ENOLIMIT if there is none of that name. */
WEIR_API int weir_rules_remove(struct weir_rules *rules, const char *name,
                               struct weir_error *error);

/*
 * The kill switch. on 1: the limit is decided as if the rules called it shadow: charged
 * as one, it never denies, and `on_missing: deny` does not either. on 0: what the rules
 * say counts again; a limit that they call shadow stays one. limit NULL: all limits,
 * those that a reload or put will add included; the block list stays as it is. The last
 * word counts: a limit may be switched back by its name while the others stay switched.
 *
 * Applies at once and to all threads: a request is decided by the one mode or the
 * other, never by both. Reloads, puts and removes keep it, by the limit's name; one
 * that they take away is forgotten. In its group a limit keeps its place. No generation.
 *
 * 0; WEIR_ENOLIMIT: there is none of that name; WEIR_EINVAL.
 */
WEIR_API int weir_rules_shadow_set(struct weir_rules *rules, const char *limit, int on,
                                   struct weir_error *error);

/* 1 if the limit, or all (NULL), is switched to shadow, else 0; WEIR_ENOLIMIT, WEIR_EINVAL. */
WEIR_API int weir_rules_shadow_get(struct weir_rules *rules, const char *limit);

/* ---- asking ------------------------------------------------------------ */

struct weir_rules_attribute {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};

/* From two C strings. */
#define WEIR_RULES_ATTRIBUTE(name, value)                                                          \
    {                                                                                              \
        (name), strlen(name), (value), strlen(value)                                               \
    }

/* The most attributes that one question may carry, and the longest value. */
#define WEIR_RULES_ATTRIBUTES_MAX 256
#define WEIR_RULES_VALUE_MAX 4096

/* One question. Zero what you do not use. */
struct weir_rules_question {
    const struct weir_rules_attribute *attributes;
    size_t attributes_count;
    uint64_t cost;        /* for limits that do not say their own `cost`; 0: 1 */
    uint64_t max_wait_ns; /* as in struct weir_question; only where one limit applies */
    int mode;             /* WEIR_CHECK or WEIR_PEEK */
    unsigned reserved;    /* 0 */
};

/* Who decided. */
enum weir_rules_reason {
    WEIR_RULES_NO_LIMIT = 0, /* no limit applies: allowed */
    WEIR_RULES_LIMIT = 1,    /* the limit that bound */
    WEIR_RULES_ALLOWED = 2,  /* the allow list */
    WEIR_RULES_BLOCKED = 3,  /* the block list: NEVER */
    WEIR_RULES_MISSING = 4   /* on_missing: deny, and the key has no value: NEVER */
};

/* answer.flags: a shadow limit would have denied. */
#define WEIR_FLAG_SHADOW 0x100u

/* answer.quota and answer.remaining where no limit bound. */
#define WEIR_UNLIMITED UINT64_MAX

/* Names of limits and tiers have up to 63 bytes. */
#define WEIR_RULES_NAME 64

struct weir_rules_answer {
    struct weir_answer answer;
    int reason;                   /* enum weir_rules_reason */
    unsigned applied;             /* enforced limits that applied */
    unsigned missing;             /* limits left out because their key had no value */
    unsigned shadow_denied;       /* shadow limits that would have denied */
    char limit[WEIR_RULES_NAME];  /* the limit that bound; "" where none did */
    char tier[WEIR_RULES_NAME];   /* its tier; "" where it has none */
    char shadow[WEIR_RULES_NAME]; /* the first shadow limit that would have denied; "" */
    uint64_t window_ns;           /* of the limit that bound: the time that answer.quota is for. The
                                     period; for buckets, in which an empty one fills. 0: none */
    unsigned retry_jitter;        /* its `retry_jitter`, in hundredths of a percent: for whoever
                                     tells many clients when to come again */
    unsigned reserved;
};

/*
 * May this request pass now? The short form reads the clock.
 *
 * 0; WEIR_EATTRIBUTE: a value cannot be used (an ip that is none, an ambiguous
 * path, a cost attribute that is missing or no whole number from 1 up, a value that is too long);
 * WEIR_EINVAL, WEIR_ETIME, WEIR_ENOTSUP (max_wait with several limits, or with a window; a limit
 * that a fleet decides applies).
 * Then nothing was charged, the answer has no verdict, and *error (may be NULL) says what was found.
 */
WEIR_API int weir_rules_ask(struct weir_rules *rules, const struct weir_rules_question *question,
                            struct weir_rules_answer *answer, struct weir_error *error);
WEIR_API int weir_rules_ask_at(struct weir_rules *rules, const struct weir_rules_question *question,
                               uint64_t now_ns, struct weir_rules_answer *answer,
                               struct weir_error *error);

/*
 * The answer to a question that was out, once. error: 0, or WEIR_E... as above, and answer is NULL.
 * It must not wait; it may ask, and may close the rules.
 */
typedef void (*weir_rules_done_fn)(void *arg, int error, const struct weir_rules_answer *answer);

/*
 * The same with limits that a fleet decides. 1: *answer is complete, `done` will not be called; so it
 * always is where only limits that are decided here apply. 0: `done` will be called once with the
 * answer, on the thread of `where`, never within this call (where NULL: on the fleet's own thread,
 * possibly before this call returns; then *answer is nothing). Or WEIR_E... as above: nothing was
 * charged, and `done` will not be called; WEIR_ENOMEM too.
 *
 * Enforced limits are asked together, those decided here as of now_ns; then the shadow limits, all at
 * once. Rules may be switched, and limits go, while a question is out: it is answered by the rules
 * that it was asked by. `denied` is called on the thread that calls `done`, before it. The answer's
 * flags may have WEIR_FLAG_DEGRADED (weir_fleet.h).
 */
WEIR_API int weir_rules_ask_async(struct weir_rules *rules, void *where,
                                  const struct weir_rules_question *question, uint64_t now_ns,
                                  struct weir_rules_answer *answer, weir_rules_done_fn done,
                                  void *arg, struct weir_error *error);

/* The most questions that may be out at once; more are WEIR_ENOMEM. */
#define WEIR_RULES_PENDING_MAX 1000000

/* options.fleet. */
WEIR_API struct weir_fleet *weir_rules_fleet(struct weir_rules *rules);

/* The rules' own time now. WEIR_EINVAL with WEIR_EXPLICIT_TIME. */
WEIR_API int weir_rules_now(struct weir_rules *rules, uint64_t *now_ns);

/* ---- one limit by its name -------------------------------------------- */

struct weir_rules_value {
    const char *at;
    size_t len;
};

/* A key of one limit: as many parts as the limit's `key` has, for a|b the value of a. */
struct weir_rules_key {
    struct weir_rules_value limit;
    const struct weir_rules_value *parts;
    size_t parts_count;
    struct weir_rules_value tier; /* len 0: the default one */
};

/* `consistency`, in the order of weir_fleet.h. */
enum weir_rules_consistency {
    WEIR_RULES_LOCAL = 0,
    WEIR_RULES_EXACT = 1,
    WEIR_RULES_LEASED = 2,
    WEIR_RULES_SYNCED = 3
};

/* What weir_rules_use() found besides the limiter and the key. */
struct weir_rules_found {
    struct weir_rules_value tier; /* len 0: none */
    uint64_t cost;                /* that the limit says itself; 0: none, or an attribute's */
    int shadow;                   /* the limit never denies: by the rules, or switched */
    unsigned retry_jitter;        /* these two as in struct weir_rules_answer */
    uint64_t window_ns;
    void *limit;     /* for weir_rules_count_shadow() */
    int consistency; /* enum weir_rules_consistency, as the rules say it */
    unsigned reserved;
};

/*
 * What to do with the limiter and the key that were found: any call of weir.h
 * that decides or looks, but none that closes or keeps the limiter, which is NULL if
 * a fleet decides the limit. What it returns, weir_rules_use() returns.
 */
typedef int (*weir_rules_use_fn)(void *arg, struct weir *limiter, const void *key, size_t key_len,
                                 const struct weir_rules_found *found);

/* How many parts the key of a limit has, or WEIR_ENOLIMIT, WEIR_EINVAL. */
WEIR_API int weir_rules_key_parts(struct weir_rules *rules, const char *limit, size_t limit_len);

/*
 * Calls fn with the limiter and the key that weir_rules_ask() would count a
 * request with these attributes under: the same normaliser, the same bucket.
 * Rules do not change while fn runs, so it must not wait for anything, nor fork,
 * nor call these rules. Overrides are found if they are by an attribute of the key.
 *
 * WEIR_ENOLIMIT; WEIR_EKEY: another number of parts, or an empty one; WEIR_EATTRIBUTE,
 * WEIR_EINVAL; or what fn returned.
 */
WEIR_API int weir_rules_use(struct weir_rules *rules, const struct weir_rules_key *key,
                            weir_rules_use_fn fn, void *arg, struct weir_error *error);

/*
 * Inside fn: the limit is a shadow one and said no, and nobody was denied. Counts it in
 * weir_rules_limit.shadow_denied, as weir_rules_ask() does.
 */
WEIR_API void weir_rules_count_shadow(const struct weir_rules_found *found);

/*
 * Inside fn: found->limit is kept, whatever happens to the rules, until somebody lets it go, once for
 * each time, on any thread. Of a kept one weir_rules_count_shadow() may be called outside of fn.
 */
WEIR_API void weir_rules_limit_keep(void *limit);
WEIR_API void weir_rules_limit_let_go(void *limit);

/*
 * The bytes of a key as text for people, for logs and lists: addresses as such, the parts of
 * a key of several with | between them ("user=alice|/search"), whatever is not a visible
 * character, and | and \ themselves, as \xNN. What does not fit `size` is cut behind a whole
 * character and ends with "...". text gets a 0 behind it (if size is not 0); returns its
 * length without that. Different keys may have the same text.
 */
WEIR_API size_t weir_rules_key_text(const void *key, size_t key_len, char *text, size_t size);

/* ---- looking at them --------------------------------------------------- */

/* Counted since weir_rules_open(), over reloads. */
struct weir_rules_stats {
    size_t size; /* in: sizeof(struct weir_rules_stats) */
    uint64_t asked;
    uint64_t unmatched; /* no limit applied */
    uint64_t allow_listed;
    uint64_t block_listed;
    uint64_t missing;        /* limits left out, or requests denied, because a key had no value */
    uint64_t tier_unknown;   /* tier values that the limit does not know: its default counted */
    uint64_t shadow_denied;  /* requests that a shadow limit would have denied */
    uint64_t shadow_failed;  /* shadow limits that could not be asked: no cost, a key too long */
    uint64_t bad;            /* questions that got an error */
    uint64_t generation;     /* 1, and one more for each reload, put and remove */
    uint64_t bytes;          /* memory of all limits */
    uint64_t state_unusable; /* files of options.state that could not be used; see there */
};

/* 0, or WEIR_EINVAL: NULL, or another size. */
WEIR_API int weir_rules_stats_read(struct weir_rules *rules, struct weir_rules_stats *stats);

/* One limiter of the rules: a limit, one of its tiers, or a rate of its overrides. */
struct weir_rules_limit {
    size_t size; /* of what this library fills in */
    const char *name;
    const char *tier; /* "" where the limit has none */
    int algorithm;
    int shadow; /* by the rules */
    uint64_t count;
    uint64_t period_ns;
    uint64_t burst; /* leaky_bucket: the queue */
    struct weir_stats stats;
    /* These two count, as `stats` does, for as long as the limit's keys are kept: */
    uint64_t missing;       /* its key had no value: left out, or refused */
    uint64_t shadow_denied; /* would have been denied; peeks do not count */
    int switched;           /* to shadow, by weir_rules_shadow_set() */
    unsigned reserved;
    const char *rate; /* count and period_ns as the file may say them: "100/min" */
    int consistency;  /* enum weir_rules_consistency: that by which it is decided, so `exact` of one
                       * that is too small for leases */
    int on_store_failure; /* 0 local, 1 open, 2 closed */
    /* What this process has asked of a limit that a fleet decides. Of `stats` then allowed, denied,
     * never and keys are filled in (leased, synced: those that are kept here), the rest is 0: */
    uint64_t degraded[3]; /* answers that the store has not given, by on_store_failure */
    uint64_t remembered;  /* denials out of the memory of denials */
};

/* Returns 0 to go on; anything else ends the list and is returned. Must not call the same rules. */
typedef int (*weir_rules_limit_fn)(void *arg, const struct weir_rules_limit *limit);

/* Calls fn for each of them, in the order of the file. 0, WEIR_EINVAL, or what fn returned. */
WEIR_API int weir_rules_limits(struct weir_rules *rules, weir_rules_limit_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
