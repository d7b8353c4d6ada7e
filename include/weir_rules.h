/*
 * Rules: limits per endpoint, tier and key, from a file. Needs weir.h and libweir.
 *
 *     struct weir_rules *rules;
 *     struct weir_error error;
 *     if (weir_rules_open(&rules, "weir.yaml", NULL, &error) != 0) {
 *         complain(error.text);
 *     }
 *
 *     struct weir_rules_attribute with[] = {
 *         WEIR_RULES_ATTRIBUTE("path", "/search/cats"),
 *         WEIR_RULES_ATTRIBUTE("method", "GET"),
 *         WEIR_RULES_ATTRIBUTE("ip", "203.0.113.7"),
 *         WEIR_RULES_ATTRIBUTE("tier", "pro"),
 *     };
 *     struct weir_rules_question q = {.attributes = with};
 *     q.attributes_count = 4;
 *     struct weir_rules_answer a;
 *     int e = weir_rules_ask(rules, &q, &a, &error);
 *     if (e == 0 && a.answer.verdict == WEIR_ALLOW) { serve(); }
 *
 * weir.yaml(5) describes the file. `weir config check FILE` checks it as
 * weir_rules_open() does, `weir config show FILE` prints it with all defaults.
 *
 * THE REQUEST is a list of attributes: names and values. `path`, `method`, `host`
 * and `ip` are normalised, so that one resource or client has one spelling:
 * weir.yaml(5) says how. All other values are compared byte by byte. An empty
 * value counts as missing. Names that no rule uses are ignored. The sources in
 * the file's `attributes` section may be passed as attributes themselves
 * ("header:X-User-Id", "query:api_key"; header names in any case): the rules
 * then derive the attribute. Cookies are taken from "header:Cookie", which may be
 * longer than other values. A file with that section must declare there every
 * other attribute that its rules use (`NAME: request` if callers send it).
 *
 * THE ORDER: the block list, then the allow list, then the limits. All enforced
 * limits that apply are charged together or not at all (weir_check_several()).
 * If the request was allowed, each shadow limit is then asked separately.
 *
 * BANS. A limit with `ban: {denials: 20, within: 1min, for: 10min}` blocks a key for ten
 * minutes when the key has been denied 20 times in a minute. Each process counts, exactly and
 * in fixed windows, the DENY verdicts that this enforced limit has given to WEIR_CHECK. Blocked
 * calls, shadow limits, peeks, NEVER, full tables and answers without the store
 * (WEIR_FLAG_DEGRADED) do not count. The denial that bans, and later ones, have
 * WEIR_FLAG_BLOCKED and WEIR_FLAG_BANNED, and say when the ban ends; calls meanwhile do not
 * extend it. This is the one exception to "a denied call writes nothing". The counts are in
 * memory, also with STATE; a ban is stored as other blocks are, and shared if the limit is.
 *
 * THREADS. Every function may be called from any thread at any time, except that
 * weir_rules_close() must be the last. Asking allocates nothing, and takes no
 * lock; it waits only while rules are being switched. A reload prepares
 * everything while requests run. Then it stops new requests, waits for those in
 * progress (they are decisions, not I/O), and switches: no request sees a mixture
 * of old and new rules.
 *
 * FORK. A child has its own copy of everything, counts included. A fork waits
 * until reloads in progress have ended. With STATE the limits' keys are shared
 * instead, and reload, put and remove return WEIR_ENOTSUP in a child.
 *
 * STATE. With options.state each limit, tier and rate of overrides is stored in a
 * file of that folder (weir.h: WEIR_FILE). A process that opens the same rules
 * there continues where the previous one ended or was killed. The folder must
 * exist, belong to the caller's user, and be writable only by that user. One
 * process uses it at a time (another waits for a second, then gets WEIR_EACCES
 * with the number of the first). If the rules have changed meanwhile, limits that
 * would keep their keys in a reload keep them; the others start afresh, with a
 * warning that says why. A limit whose max_keys has changed starts afresh too:
 * keys are hashes, which fit a table of one size only. A reload removes the files
 * of limits that it drops; weir_rules_open() reports files without a limit and
 * keeps them. A file that cannot be used (damaged, truncated, of another version
 * or owner, accessible to others) is renamed NAME.bad (then .bad.2, up to .bad.4),
 * reported as a warning and counted; its limit starts afresh. A full disk is
 * WEIR_ENOSPC, and nothing is created.
 *
 * FLEET. With options.fleet (weir_fleet.h) the store of a fleet decides limits whose
 * `consistency` is not local; use weir_rules_ask_async(). Such a limit has no keys
 * in this process, even with STATE. A child process cannot use rules with a fleet.
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

enum weir_rules_severity {
    WEIR_RULES_ERROR = 0,
    WEIR_RULES_WARNING = 1,
    WEIR_RULES_NOTE = 2 /* what a reload, put or remove has changed:
                           "search: rate 100/min -> 200/min; keys kept" */
};

/* An error, a warning or a note about a file. Valid only during the call. */
struct weir_rules_message {
    int severity;     /* enum weir_rules_severity */
    const char *file; /* the rule file, or a file that it names */
    unsigned line;    /* from 1; 0: the file as a whole */
    unsigned column;  /* from 1 */
    const char *text; /* what was found and what was expected */
};

/*
 * Called by the thread that loads, before the call returns, with no lock held.
 * Also called for every later reload and put until the rules are closed.
 */
typedef void (*weir_rules_message_fn)(void *arg, const struct weir_rules_message *message);

/* options.flags: if `state` is NULL, use the folder server.state of the rule file. */
#define WEIR_RULES_SERVER_STATE 0x10000u

/* A denial by a limit. Valid only during the call that gets it. */
struct weir_rules_denial {
    size_t size; /* of the members that this library fills in */
    const char *limit;
    const void *key; /* weir_rules_key_text() makes it readable */
    size_t key_len;
    int verdict; /* WEIR_DENY or WEIR_NEVER */
    int reason;  /* enum weir_rules_reason */
    uint64_t retry_after_ns;
    uint64_t now_ns;        /* the time of the question */
    uint64_t log_count;     /* of `log: {denied: 10/s}` of the limit; 0: log nothing */
    uint64_t log_period_ns; /* the time in which at most log_count lines may be logged */
};

/*
 * Called by the thread that asks, inside weir_rules_ask(), when an enforced limit answers
 * a WEIR_CHECK with DENY or NEVER. It must not wait, nor call these rules. It is not called
 * for lists, shadow limits and missing keys.
 */
typedef void (*weir_rules_denied_fn)(void *arg, const struct weir_rules_denial *denial);

/*
 * Called in the same way when the block list denies a request, with the rule file and the line at
 * which the entry begins. They are for the operator's log: a client should not learn them.
 */
typedef void (*weir_rules_listed_fn)(void *arg, const char *file, unsigned line);

/*
 * Called in the same way when a question has an attribute that no rule uses, and whose name is one
 * edit away from an attribute that the rules use and the question does not have, which is `meant`:
 * "usr", "user". Letter case does not count, and names of one or two letters are not edited. It is
 * called for every such question. `name` comes from the caller and may be any bytes.
 */
typedef void (*weir_rules_misspelt_fn)(void *arg, const char *name, size_t name_len,
                                       const char *meant);

/*
 * Start with WEIR_RULES_OPTIONS_INIT and set what you need; zero means the default. The
 * struct may grow at its end: `size` says which fields the caller knows.
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
    weir_rules_denied_fn denied; /* called for every denial by a limit; may be NULL */
    void *denied_arg;
    const char *state;        /* a folder for files with the limits' keys; NULL: in memory. See
                          STATE above. Copied */
    struct weir_fleet *fleet; /* decides limits whose `consistency` is not local; must outlive the
                                 rules. NULL: all limits are local */
    weir_rules_listed_fn listed; /* called for every denial by the block list; may be NULL */
    void *listed_arg;
    weir_rules_misspelt_fn misspelt; /* called for names that are probably misspelt; may be NULL */
    void *misspelt_arg;
};

/* The initial value of a struct weir_rules_options. */
#define WEIR_RULES_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct weir_rules_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                \
    }

/*
 * Reads a rule file, or a folder of *.yaml files in the order of their names
 * (limits and lists are joined; any other section may be in only one of them),
 * and creates its limits. options may be NULL.
 *
 * Returns 0, or WEIR_ERULES if the rules have errors: options->message gets all
 * of them, and *error (may be NULL; this call and those below clear it first)
 * the first, as "file:line:column: text". Also WEIR_EINVAL, WEIR_ENOMEM,
 * WEIR_EIO. After an error nothing was created.
 */
WEIR_API int weir_rules_open(struct weir_rules **rules, const char *path,
                             const struct weir_rules_options *options, struct weir_error *error);

/*
 * Does the same with rules in memory. Messages use `name` as the file's name, and relative
 * files are searched in its folder.
 */
WEIR_API int weir_rules_open_text(struct weir_rules **rules, const char *name, const char *text,
                                  size_t text_len, const struct weir_rules_options *options,
                                  struct weir_error *error);

/*
 * Closes the rules and their limits. NULL is allowed. Pending questions (FLEET) are still answered;
 * `denied` and `message` are no longer called.
 */
WEIR_API void weir_rules_close(struct weir_rules *rules);

/*
 * Reads the rules again (path NULL: from the same place) and switches to them. A
 * limit that remains, with the same algorithm, period, key, address prefixes,
 * max_keys, on_full and align, keeps the state of its keys, and so does each of
 * its tiers; a changed count, burst or queue applies at once, as weir_change()
 * says. If weir_change() cannot make the change, the limit starts afresh. Limits
 * added by weir_rules_put() are removed, unless the file has them. On an error the
 * old rules stay. A relative path is resolved from the current folder at each
 * reload. Changed settings that only a restart of the server applies cause a
 * warning. For a moment the tables of both rule sets exist.
 */
WEIR_API int weir_rules_reload(struct weir_rules *rules, const char *path,
                               struct weir_error *error);
WEIR_API int weir_rules_reload_text(struct weir_rules *rules, const char *name, const char *text,
                                    size_t text_len, struct weir_error *error);

/*
 * Adds one limit at the end, or replaces the limit of the same name in its place:
 * YAML as one item under `limits`, which must not name files (overrides, file:PATH): the text may
 * come from someone who cannot read them. State is kept as in a reload. Returns the errors of
 * weir_rules_open().
 */
WEIR_API int weir_rules_put(struct weir_rules *rules, const char *yaml, size_t yaml_len,
                            struct weir_error *error);

/* Removes one limit and its keys. Returns 0, or WEIR_ENOLIMIT if none has that name. */
WEIR_API int weir_rules_remove(struct weir_rules *rules, const char *name,
                               struct weir_error *error);

/*
 * The kill switch. on 1: the limit acts as a shadow limit: it is charged as one and never
 * denies, and neither does `on_missing: deny`. on 0: the limit acts as the rules say; a
 * shadow limit of the rules stays one. limit NULL: all limits, including those that a
 * reload or put will add; the block list does not change. The last call counts: one limit
 * may be switched back by its name while the others stay switched.
 *
 * Applies at once and to all threads: each request is decided in one mode. Reloads, puts
 * and removes keep the switch, by the limit's name; that of a removed limit is forgotten.
 * The limit keeps its place in its group. The generation does not change.
 *
 * Returns 0, WEIR_ENOLIMIT if no limit has that name, or WEIR_EINVAL.
 */
WEIR_API int weir_rules_shadow_set(struct weir_rules *rules, const char *limit, int on,
                                   struct weir_error *error);

/* Returns 1 if the limit, or all (NULL), is switched to shadow, otherwise 0; or WEIR_ENOLIMIT,
 * WEIR_EINVAL. */
WEIR_API int weir_rules_shadow_get(struct weir_rules *rules, const char *limit);

/* ---- asking ------------------------------------------------------------ */

struct weir_rules_attribute {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};

/* Makes an attribute of two C strings. */
#define WEIR_RULES_ATTRIBUTE(name, value)                                                          \
    {                                                                                              \
        (name), strlen(name), (value), strlen(value)                                               \
    }

/* The most attributes of one question, and the longest value. */
#define WEIR_RULES_ATTRIBUTES_MAX 256
#define WEIR_RULES_VALUE_MAX 4096

/* One question. Set the fields that you do not use to 0. */
struct weir_rules_question {
    const struct weir_rules_attribute *attributes;
    size_t attributes_count;
    uint64_t cost;        /* for limits without their own `cost`; 0: 1 */
    uint64_t max_wait_ns; /* as in struct weir_question, for each limit that is a bucket; other
                             limits decide at once. The call waits for the slowest */
    int mode;             /* WEIR_CHECK or WEIR_PEEK */
    unsigned flags;       /* of the following */
};

/* question.flags: if the limit that binds is hidden, find the one that clients may be told
 * (answer.shown). */
#define WEIR_RULES_SHOW 0x1u
/* The caller waits for answer.delay_ns before it lets the request pass, but no longer than
 * server.hold_max of the rules: a leaky_bucket denies, and charges nothing, where the delay would
 * be longer. With NO_DELAY it allows only requests that need no delay. */
#define WEIR_RULES_HOLD 0x2u
#define WEIR_RULES_NO_DELAY 0x4u

/* Why a request was allowed or denied. */
enum weir_rules_reason {
    WEIR_REASON_UNMATCHED = 0,  /* allowed: no limit applies, apart from shadow limits */
    WEIR_REASON_LIMIT = 1,      /* allowed or denied: by the units of a limit */
    WEIR_REASON_ALLOW_LIST = 2, /* allowed: by the allow list */
    WEIR_REASON_BLOCK_LIST = 3, /* NEVER: by the block list */
    WEIR_REASON_MISSING = 4,  /* NEVER: the key has no value, and the limit has on_missing: deny */
    WEIR_REASON_BLOCKED = 5,  /* denied: the key is blocked (WEIR_FLAG_BLOCKED) */
    WEIR_REASON_BAN = 6,      /* denied: the key is banned (BANS, WEIR_FLAG_BANNED) */
    WEIR_REASON_OVERLOAD = 7, /* denied: the table is full (WEIR_FLAG_FULL), or WEIR_RULES_NO_DELAY
                                 forbids a delay that WEIR_RULES_HOLD would allow */
    WEIR_REASON_STORE = 8,    /* denied: the store did not answer, on_store_failure: closed */
    WEIR_REASON_SHADOW = 9,   /* allowed, but a shadow limit would have denied */
    WEIR_REASON_DEGRADED = 10 /* allowed without the store (WEIR_FLAG_DEGRADED) */
};

/*
 * Returns the word that weir's protocols use for a reason: "unmatched", "limit", "allow_list",
 * "block_list", "missing", "blocked", "ban", "overload", "store", "shadow" or "degraded"; "unknown"
 * for any other number.
 */
WEIR_API const char *weir_rules_reason_name(int reason);

/* answer.flags: a shadow limit would have denied. */
#define WEIR_FLAG_SHADOW 0x100u

/*
 * answer.flags: an enforced limit that matched was skipped, because the request has no value for
 * its key (on_missing: skip), and no other limit of its group applied: it has limited nothing. A
 * limit without a group is alone in it. The flag is not set where another limit of the group
 * applied, as [ip] does after [user] for anonymous requests, nor where a limit that applied
 * replaces the skipped one. answer.missing counts every skipped limit.
 */
#define WEIR_FLAG_MISSING 0x800u

/* answer.quota and answer.remaining if no limit decided. */
#define WEIR_UNLIMITED UINT64_MAX

/* Names of limits and tiers have up to 63 bytes. */
#define WEIR_RULES_NAME 64

/* The longest `message` of a limit's `deny`, with the final 0. */
#define WEIR_RULES_MESSAGE 256

/* A limit that clients may be told, and its numbers as in struct weir_answer. */
struct weir_rules_shown {
    char limit[WEIR_RULES_NAME]; /* "": none */
    uint64_t quota;
    uint64_t remaining;
    uint64_t reset_after_ns;
    uint64_t window_ns;
};

struct weir_rules_answer {
    struct weir_answer answer;
    int reason;                    /* enum weir_rules_reason */
    unsigned applied;              /* enforced limits that applied */
    unsigned missing;              /* limits skipped because their key had no value */
    unsigned shadow_denied;        /* shadow limits that would have denied */
    char limit[WEIR_RULES_NAME];   /* the limit that decided; "" if none did */
    char tier[WEIR_RULES_NAME];    /* its tier; "" if it has none */
    char shadow[WEIR_RULES_NAME];  /* the first shadow limit that would have denied; "" */
    uint64_t window_ns;            /* the time that answer.quota is for: the limit's period, or the
                                     time in which an empty bucket fills. 0: no limit */
    unsigned retry_jitter;         /* the limit's `retry_jitter`, in hundredths of a percent: for
                                     programs that tell many clients when to retry */
    int hidden;                    /* the limit has `expose: false`: clients must not be told its
                                     name and numbers. They may be told `shown`: of the other
                                     limits, on deny the one that binds of those that deny, on allow
                                     the one with the least remaining */
    struct weir_rules_shown shown; /* set if `hidden` is and the question has WEIR_RULES_SHOW */
    unsigned deny_status;          /* `deny` of the limit that denies: its status, or 0, and */
    char deny_message[WEIR_RULES_MESSAGE]; /* its message, or "" */
};

/*
 * Decides whether a request may pass now. The short form reads the clock.
 *
 * Returns 0, or WEIR_EATTRIBUTE if a value cannot be used (an invalid ip, an ambiguous path, a cost
 * attribute that is missing or not a whole number from 1 up, a value that is too long),
 * WEIR_EINVAL, WEIR_ETIME, WEIR_ENOTSUP (max_wait, but no limit that applies is a bucket; a limit
 * that a fleet decides). After an error nothing was charged, the answer has no verdict, and *error
 * (may be NULL) says what was found.
 */
WEIR_API int weir_rules_ask(struct weir_rules *rules, const struct weir_rules_question *question,
                            struct weir_rules_answer *answer, struct weir_error *error);
WEIR_API int weir_rules_ask_at(struct weir_rules *rules, const struct weir_rules_question *question,
                               uint64_t now_ns, struct weir_rules_answer *answer,
                               struct weir_error *error);

/*
 * Called once with the answer to a pending question. error: 0, or WEIR_E... as above, and answer is
 * NULL. It must not wait; it may ask, and may close the rules.
 */
typedef void (*weir_rules_done_fn)(void *arg, int error, const struct weir_rules_answer *answer);

/*
 * Does what weir_rules_ask() does, for rules with a fleet. Returns 1 if *answer is complete, as
 * always if only local limits apply: `done` will not be called. Returns 0 if `done` will be called
 * once with the answer, on the thread of `where`, never within this call (where NULL: on the
 * fleet's own thread, possibly before this call returns); *answer is not set. Otherwise returns
 * WEIR_E... as above, or WEIR_ENOMEM: nothing was charged, and `done` will not be called.
 *
 * Enforced limits are asked together, local ones at the time now_ns; then the shadow limits, all at
 * once. If rules are switched or limits removed while a question is pending, the rules at the time
 * of the question answer it. `denied` is called on the thread that calls `done`, before it. The
 * answer's flags may have WEIR_FLAG_DEGRADED (weir_fleet.h).
 */
WEIR_API int weir_rules_ask_async(struct weir_rules *rules, void *where,
                                  const struct weir_rules_question *question, uint64_t now_ns,
                                  struct weir_rules_answer *answer, weir_rules_done_fn done,
                                  void *arg, struct weir_error *error);

/* The most questions that may be pending at once; more get WEIR_ENOMEM. */
#define WEIR_RULES_PENDING_MAX 1000000

/* Returns options.fleet. */
WEIR_API struct weir_fleet *weir_rules_fleet(struct weir_rules *rules);

/* Gets the present time of the rules' clock. Returns WEIR_EINVAL with WEIR_EXPLICIT_TIME. */
WEIR_API int weir_rules_now(struct weir_rules *rules, uint64_t *now_ns);

/* ---- one limit by its name -------------------------------------------- */

/* A key of one limit: as many parts as the limit's `key` has; for a|b, the value of a, or of b if
 * `by` names it. */
struct weir_rules_key {
    struct weir_text limit;
    const struct weir_text *parts;
    size_t parts_count;
    struct weir_text tier; /* len 0: the default tier */
    struct weir_text by;   /* later alternatives whose values are given, separated by
                                     commas: "b", "b,d"; len 0: none */
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
    struct weir_text tier; /* len 0: none */
    uint64_t cost;         /* the limit's own cost; 0: none, or that of an attribute */
    int shadow;            /* the limit never denies, by the rules or switched: ask with
                                     WEIR_SHADOW, and let the request pass */
    unsigned retry_jitter; /* these two as in struct weir_rules_answer */
    uint64_t window_ns;
    void *limit;        /* for weir_rules_limit_keep() */
    int consistency;    /* enum weir_rules_consistency, as in the rules */
    int hidden;         /* as in struct weir_rules_answer */
    uint64_t log_count; /* these two as in struct weir_rules_denial */
    uint64_t log_period_ns;
    struct weir_text cost_attribute; /* the limit takes its cost from this attribute, and a
                                               key has none: the caller has to know it; len 0:
                                               none */
};

/*
 * Called with the limiter and the key that were found. It may make any call of weir.h that decides
 * or reads, but must not close or keep the limiter, which is NULL if a fleet decides the limit.
 * weir_rules_use() returns its return value.
 */
typedef int (*weir_rules_use_fn)(void *arg, struct weir *limiter, const void *key, size_t key_len,
                                 const struct weir_rules_found *found);

/* Returns how many parts the key of a limit has, or WEIR_ENOLIMIT, WEIR_EINVAL. */
WEIR_API int weir_rules_key_parts(struct weir_rules *rules, const char *limit, size_t limit_len);

/*
 * Calls fn with the limiter and the key that weir_rules_ask() would use for a request with these
 * attributes, normalised in the same way. Rules cannot change while fn runs, so it must not wait,
 * fork, or call these rules. Overrides are found if they are by an attribute of the key.
 *
 * Returns what fn returned, or WEIR_ENOLIMIT; WEIR_EKEY for a wrong number of parts, an empty part,
 * or a name in `by` that is not in the limit's key; WEIR_EATTRIBUTE; WEIR_EINVAL; WEIR_ENOTSUP if
 * the rate is 0, because every request is denied.
 */
WEIR_API int weir_rules_use(struct weir_rules *rules, const struct weir_rules_key *key,
                            weir_rules_use_fn fn, void *arg, struct weir_error *error);

/*
 * For use inside fn, after a check of the limiter: counts the answer for the limit's `ban`, as
 * weir_rules_ask() does, if it is a denial that counts; if that bans the key, *answer tells so.
 */
WEIR_API void weir_rules_count_denied(const struct weir_rules_found *found, const void *key,
                                      size_t key_len, uint64_t now_ns, struct weir_answer *answer);

/*
 * weir_rules_limit_keep(), for use inside fn, keeps found->limit even if the rules change. Each
 * call needs one weir_rules_limit_let_go(), on any thread.
 */
WEIR_API void weir_rules_limit_keep(void *limit);
WEIR_API void weir_rules_limit_let_go(void *limit);

/*
 * Writes a key as readable text, for logs and lists: addresses in their usual form, several parts
 * with | between them ("user=alice|/search"); invisible characters, and | and \ themselves,
 * become \xNN. Text that does not fit `size` is cut after a whole character and ends with "...".
 * A 0 follows the text (if size is not 0). Returns the length of the text. Different keys may
 * have the same text.
 */
WEIR_API size_t weir_rules_key_text(const void *key, size_t key_len, char *text, size_t size);

/* ---- statistics -------------------------------------------------------- */

/* Counted since weir_rules_open(), over reloads. */
struct weir_rules_stats {
    size_t size; /* in: sizeof(struct weir_rules_stats) */
    uint64_t asked;
    uint64_t unmatched; /* no limit applied, apart from shadow limits */
    uint64_t allow_listed;
    uint64_t block_listed;
    uint64_t missing;        /* limits skipped, or requests denied, because a key had no value */
    uint64_t tier_unknown;   /* tier values that the limit does not have: its default was used */
    uint64_t shadow_denied;  /* requests that a shadow limit would have denied */
    uint64_t shadow_failed;  /* shadow limits that could not be asked: no cost, a key too long */
    uint64_t bad;            /* questions that got an error */
    uint64_t generation;     /* 1, plus one for each reload, put and remove */
    uint64_t bytes;          /* memory of all limits */
    uint64_t state_unusable; /* files of options.state that could not be used: STATE */
};

/* Returns 0, or WEIR_EINVAL if an argument is NULL or the size is wrong. */
WEIR_API int weir_rules_stats_read(struct weir_rules *rules, struct weir_rules_stats *stats);

/* One limiter of the rules: a limit, one of its tiers, or a rate of its overrides. */
struct weir_rules_limit {
    size_t size; /* of the members that this library fills in */
    const char *name;
    const char *tier; /* "" if the limit has none */
    int algorithm;
    int shadow;     /* by the rules */
    uint64_t count; /* WEIR_UNLIMITED: the rate is unlimited; 0: every request is denied */
    uint64_t period_ns;
    uint64_t burst; /* leaky_bucket: the queue */
    struct weir_stats stats;
    uint64_t
        missing;  /* requests without a value for its key, skipped or denied; counted, as `stats`
                       * is, for as long as the limit's keys are kept */
    int switched; /* to shadow, by weir_rules_shadow_set() */
    unsigned reserved;
    const char *rate; /* count and period_ns in the form of the file: "100/min" */
    int consistency;  /* enum weir_rules_consistency in effect: EXACT if the limit is too small for
                       * leases */
    int on_store_failure; /* 0 local, 1 open, 2 closed */
    /* What this process has asked of a limit that a fleet decides. `stats` then has allowed,
     * denied, never, shadow_denied, keys (leased, synced: those that this process holds),
     * full_allowed and full_denied (keys that a full store does not have, decided here); its
     * other members are 0. */
    uint64_t degraded[3]; /* answers that did not come from the store, by on_store_failure */
    uint64_t remembered;  /* denials that repeat a remembered one */
    /* BANS. These count as `stats` does; stats.bytes includes the memory for counting denials. */
    uint64_t bans;            /* bans that this process has made */
    uint64_t bans_failed;     /* that it could not make: max_blocks are in force, or no store */
    uint64_t denials_evicted; /* keys whose denials were forgotten for lack of room */
    uint64_t uncovered; /* of `missing`: requests that were skipped, and to which no other limit of
                           its group applied, as for WEIR_FLAG_MISSING */
};

/* Returns 0 to continue; any other value ends the list. Must not call the same rules. */
typedef int (*weir_rules_limit_fn)(void *arg, const struct weir_rules_limit *limit);

/* Calls fn for each limiter, in the order of the file. Returns 0, WEIR_EINVAL, or fn's result. */
WEIR_API int weir_rules_limits(struct weir_rules *rules, weir_rules_limit_fn fn, void *arg);

/* A key that is blocked. Valid only during the call. */
struct weir_rules_block {
    size_t size; /* of the members that this library fills in */
    const char *limit;
    const char *tier; /* "" if the limit has none */
    const void *key;  /* weir_rules_key_text() makes it readable */
    size_t key_len;
    uint64_t since_ns; /* Unix time */
    uint64_t until_ns; /* WEIR_FOREVER: until it is unblocked */
    int banned;        /* by the limit's `ban`: BANS */
    unsigned reserved;
    const char *by;  /* "ban", or the client that blocked it */
    const char *why; /* "20 denials within 1min"; "" if it is not known */
};

/* As weir_rules_limit_fn. */
typedef int (*weir_rules_block_fn)(void *arg, const struct weir_rules_block *block);

/*
 * Calls fn for the blocked keys that this process knows by name, limit by limit, the newest first:
 * those that it has banned (BANS) or that the server's operators have blocked through it, at most
 * 1000 for each limiter. The tables themselves hold hashes: blocks of earlier processes, of other
 * nodes and of weir_block() are in force, but not listed. A block that another node has ended is
 * listed until its time is over. fn runs under a lock and must not use the rules. Returns 0,
 * WEIR_EINVAL, or what fn returned.
 */
WEIR_API int weir_rules_blocks(struct weir_rules *rules, uint64_t now_ns, weir_rules_block_fn fn,
                               void *arg);

#ifdef __cplusplus
}
#endif

#endif
