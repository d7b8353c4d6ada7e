/*
 * A rule file after reading and checking: what weir.yaml(5) describes, with every default filled
 * in. No limiter has been made yet.
 *
 * Everything is allocated in the arenas of `struct source`. There is one source for each text that
 * was read. Sources are counted by reference, because limits that are put in one by one come from
 * texts of their own and may outlive others.
 */
#ifndef WEIR_RULES_FILE_CONFIG_H
#define WEIR_RULES_FILE_CONFIG_H

#include "base/algorithms.h"
#include "base/hash.h"
#include "common/arena.h"
#include "rules/yaml/problems.h"
#include "rules/value/address.h"
#include "rules/value/quantity.h"
#include "common/text_map.h"

#define CONFIG_LIMITS_MAX 4096   /* of one rule set */
#define CONFIG_TIERS_MAX 64      /* of one limit */
#define CONFIG_RATES_MAX 1024    /* different overrides of one limit */
#define CONFIG_KEY_PARTS_MAX 8   /* of one key */
#define CONFIG_ATTRIBUTES_MAX 32 /* under `attributes` */
#define CONFIG_SOURCES_MAX 8     /* of one attribute */
#define CONFIG_PATTERNS_MAX 1000 /* values with wildcards in one condition: compared one by one */
#define CONFIG_FILE_MAX (64u << 20) /* bytes of a file that the rules name */

struct file_values;

/*
 * A file that a rule file names. It is read once, however often it is named, so that a long list
 * costs its memory once and cannot change between two places.
 */
struct source_file {
    const char *path;
    struct weir_text content; /* what was read; at == NULL: reading failed, or it was freed */
    bool was_read;
    struct hash hash;           /* of what was read, by hash_mix() */
    struct file_values *values; /* of conditions.c */
    uint64_t bytes;             /* memory that it takes, with the values that were read from it */
    struct source_file *next;
};

struct node;

struct source {
    struct arena arena;
    struct source_file *files;
    const struct node *root; /* the text, parsed; NULL: it could not be, or is one limit */
    bool damaged;            /* parts of the text could not be parsed */
    struct weir_text domain; /* of a file for Envoy's reference server; len 0: weir's own format */
    struct weir_text folder; /* where relative paths of the text start */
    unsigned references;
};

struct source *source_create(void); /* with one reference; NULL: out of memory */
void source_release(struct source *source);

struct texts {
    struct weir_text *at;
    size_t count;
};

/* ---- what is written in several places ---- */

enum value_kind {
    VALUE_EXACT,   /* text: normalised as values of requests are */
    VALUE_PATTERN, /* text: with wildcards */
    VALUE_NETWORK  /* network */
};

struct value {
    enum value_kind kind;
    struct weir_text text;
    union {
        struct cidr network;
        struct weir_text
            named; /* of a path: the pattern with names in braces; len 0: it has none */
    };
};

/* A test that one attribute has one of these values. */
struct condition {
    struct weir_text attribute;
    struct value *values;
    size_t count;
    bool shared;          /* values belong to all conditions that name the same file */
    struct texts written; /* the values as in the file, for `config show` */
};

/* All of the conditions must hold. */
struct conditions {
    struct condition *at;
    size_t count;
    struct place place; /* of the map */
};

/* One of the entries must hold. */
struct list_config {
    struct conditions *entries;
    size_t count;
};

/* ---- limits ---- */

/* The numbers in which a limit, its tiers and its overrides differ. */
struct setting {
    struct rate rate;
    uint64_t burst; /* leaky_bucket: the queue; 0 for windows */
    uint64_t max_keys;
    uint64_t
        rows; /* overrides whose rows are one key each: rows that max_keys must hold; otherwise 0 */
};

struct tier {
    struct weir_text name;
    struct setting setting;
};

/* The content of the overrides' file: each value of the attribute has one of the settings. */
struct overrides {
    struct weir_text by; /* attribute that is looked up; len 0: none */
    struct weir_text file;
    struct setting *settings; /* the different ones */
    size_t settings_count;
    struct text_map *values; /* value -> number in settings */
};

struct key_attribute {
    struct texts alternatives; /* names of attributes; the first that is present is used */
};

/* `align` besides WEIR_ALIGN_CLOCK and WEIR_ALIGN_KEY: config_options() turns it into an offset. */
#define LIMIT_ALIGN_EPOCH 2

enum on_missing { MISSING_SKIP, MISSING_DENY };
enum consistency {
    CONSISTENCY_DEFAULT,
    CONSISTENCY_LOCAL, /* from here on in the order of enum remote_mode */
    CONSISTENCY_EXACT,
    CONSISTENCY_LEASED,
    CONSISTENCY_SYNCED
};

/* Denials of a key that ban it: so many in a window of `within` ban it for `for`. */
struct ban_config {
    uint64_t denials; /* 0: no ban */
    uint64_t within_ns;
    uint64_t for_ns;
};

/* The lines that a limit adds to the log. */
struct log_config {
    struct rate denied; /* the most lines about denials; count 0: none */
};

/* The reply of /v1/auth to a request that the limit denies. */
struct deny_config {
    uint32_t status;          /* 0: the server's */
    struct weir_text message; /* len 0: none */
};

struct limit_config {
    struct source *source; /* holds a reference */
    struct place place;
    struct place rate_place;
    struct place consistency_place;
    struct place sync_place; /* line 0: not given */
    struct weir_text name;
    struct conditions when;
    struct list_config unless;
    struct key_attribute key[CONFIG_KEY_PARTS_MAX];
    size_t key_parts;
    struct texts key_written; /* the parts as in the file, for `config show` */
    int algorithm;            /* 0 only while it is read: the name is unknown */
    struct setting base;
    struct weir_text group; /* len 0: none */
    uint64_t cost;          /* 0: the cost that the request states */
    struct weir_text cost_attribute;
    uint64_t max_blocks; /* 0: derived from max_keys */
    uint64_t undelayed;  /* leaky_bucket; a tier's queue may be shorter */
    int on_full;
    int on_missing;
    int on_store_failure; /* enum remote_failure */
    int consistency;
    struct texts shard_by;  /* attributes of the key */
    uint64_t deny_cache_ns; /* 0: off */
    uint64_t sync_ns;
    int align;
    uint32_t retry_jitter; /* hundredths of a percent */
    unsigned ipv4_prefix;
    unsigned ipv6_prefix;
    bool shadow;
    bool quota_mode;
    struct weir_text label; /* told by Envoy's rate limit service; len 0: none */
    struct texts replaces;  /* names and labels of limits */
    bool expose;            /* clients may be told its name and numbers */
    struct deny_config deny;
    struct log_config log;
    struct weir_text tier_by; /* len 0: no tiers */
    struct weir_text tier_default;
    struct tier *tiers;
    size_t tiers_count;
    struct overrides overrides;
    struct ban_config ban;
    struct place ban_place;
};

/* Returns whether `limit` replaces `other`, by its name or its label. */
bool limit_replaces(const struct limit_config *limit, const struct limit_config *other);

/* Returns whether the limit can make a request wait (max_wait): whether it is a bucket. */
static inline bool limit_can_wait(const struct limit_config *limit)
{
    return algorithm_has(limit->algorithm, IS_BUCKET);
}

/* Returns whether the limit has a queue at this rate, which may be 0 or unlimited. */
static inline bool limit_has_queue(const struct limit_config *limit, struct rate rate)
{
    return algorithm_has(limit->algorithm, HAS_QUEUE) && rate_kind(rate) == RATE_COUNTS;
}

/* ---- the rest of the file ---- */

enum source_kind { FROM_HEADER, FROM_QUERY, FROM_COOKIE, FROM_PATH, FROM_FILE };

/* The attribute that cookies are taken from. */
#define COOKIES "header:cookie"

/* A place where an attribute's value is taken from if the request does not carry it. */
struct attribute_source {
    enum source_kind kind;
    struct weir_text
        name; /* "header:x-user-id", "query:api_key", "cookie:sid"; FROM_FILE: the file */
    struct weir_text by;   /* the attribute that it is taken from; len 0: `name` */
    struct weir_text part; /* FROM_COOKIE: the cookie; FROM_PATH: the name in braces, len 0: none */
    unsigned segment;      /* FROM_PATH without a name: the number of the segment, from 1 */
    struct text_map *values; /* FROM_FILE: value -> number in answers */
    struct texts answers;
};

struct attribute_config {
    struct weir_text name;
    struct place place;
    struct attribute_source *sources;
    size_t count;
    struct texts written; /* the sources as in the file, for `config show` */
};

struct networks {
    bool given; /* may be given and empty */
    struct cidr *at;
    size_t count;
};

/* The header field in which proxies name the client. */
enum client_field {
    CLIENT_FIELD_ANY, /* those that are present must name the same client */
    CLIENT_FIELD_X_FORWARDED_FOR,
    CLIENT_FIELD_FORWARDED, /* RFC 7239 */
    CLIENT_FIELD_X_REAL_IP,
    CLIENT_FIELDS
};

extern const char *const client_field_names[CLIENT_FIELDS + 1]; /* lower case; the last is NULL */

extern const char *const listener_names[]; /* that may speak TLS; the last is NULL */

/* Whether operators get a page for browsers. */
enum page_choice { PAGE_ON, PAGE_OFF, PAGE_CHOICES };

extern const char *const page_names[PAGE_CHOICES + 1]; /* the last is NULL */

/* How the server asks clients for certificates. */
enum client_cert { CLIENT_CERT_NONE, CLIENT_CERT_OPTIONAL, CLIENT_CERT_REQUIRED, CLIENT_CERTS };
extern const char *const client_cert_names[CLIENT_CERTS + 1];

/* TLS on listeners. The paths may be relative to the rule file. */
struct server_tls_config {
    struct weir_text cert; /* len 0: no TLS */
    struct weir_text key;  /* len 0: in the file of the certificate */
    struct weir_text client_ca;
    int client_cert;        /* enum client_cert */
    struct texts listeners; /* none: all */
};

struct server_config {
    struct weir_text http; /* "off" or an address */
    struct weir_text resp;
    struct weir_text admin;
    struct weir_text grpc;
    struct weir_text metrics;
    int page; /* enum page_choice */
    struct weir_text state;
    struct weir_text check_secrets; /* path of a file; len 0: none */
    struct weir_text admin_secrets;
    struct server_tls_config tls;
    struct texts check_names; /* of client certificates that give a role */
    struct texts admin_names;
    unsigned socket_mode;
    struct weir_text socket_group; /* len 0: that of the process */
    uint64_t memory;
    struct networks trusted; /* not given: loopback only */
    int client_field;        /* enum client_field */
    struct texts hosts;      /* further names of this server */
    int headers;             /* enum ratelimit_format */
    uint64_t reservation_ttl_ns;
    uint64_t hold_max_ns; /* the longest time for which /v1/auth holds a reply */
};

/* Texts are empty if they are not given; the first three are paths. */
struct store_tls_config {
    struct weir_text ca;
    struct weir_text cert;
    struct weir_text key;
    struct weir_text server_name;
    struct place place;
};

struct store_config {
    struct weir_text url; /* len 0: none */
    struct place url_place;
    struct weir_text password_file;
    struct weir_text user;
    struct weir_text sentinel_password_file;
    struct weir_text sentinel_user;
    struct weir_text prefix;
    uint64_t deadline_ns;
    uint64_t fleet_size;  /* 0: auto */
    uint64_t memory_high; /* percent; 0: off */
    uint64_t connections; /* to each primary; 0: one of each thread */
    struct networks networks;
    struct store_tls_config tls;
};

/* The built-in limit of CL.THROTTLE. */
struct adhoc_config {
    bool off;
    uint64_t max_keys;
    int on_full;
    int consistency;      /* enum consistency: DEFAULT, LOCAL or EXACT */
    int on_store_failure; /* enum remote_failure */
    struct place place;
};

/* The units that a call of Envoy's rate limit service takes if one of its descriptors is denied. */
enum envoy_charge {
    CHARGE_TOGETHER, /* nothing */
    CHARGE_EACH,     /* the others, and what is left of those that deny */
    CHARGES
};

/* What a call gets that cannot be decided because of what is in it. */
enum envoy_bad_call {
    BAD_CALL_ERROR, /* an error: Envoy does what failure_mode_deny says */
    BAD_CALL_DENY,  /* OVER_LIMIT */
    BAD_CALLS
};

struct envoy_config {
    int charge;         /* enum envoy_charge */
    int on_bad_call;    /* enum envoy_bad_call */
    bool negative_hits; /* calls of the role check may give units back to limits of Envoy's files */
};

/* What decides limits whose consistency is not local. */
enum config_fleet {
    FLEET_NONE,    /* every limit is decided in this process; "store" is ignored */
    FLEET_AS_FILE, /* a fleet, if the file names a store: for showing rules */
    FLEET_GIVEN    /* a fleet, whatever store the file names */
};

/* A sandbox: rules that somebody tries out, beside those in use. Its tables need at most so many
 * bytes, are at most so many, and have room for at most so many keys each. */
#define CONFIG_SANDBOX_BYTES (16u << 20)
#define CONFIG_SANDBOX_TABLES 256
#define CONFIG_SANDBOX_KEYS 1000
/* Bytes of all values with wildcards, each as often as a request may be compared with it. A
 * comparison takes up to the product of both lengths, so a request of a sandbox takes at most some
 * tenths of a second. */
#define CONFIG_SANDBOX_WILD 65536

/* Values of a text that must not name files, including those of aliases: it comes from afar, and
 * must not take long to be read. */
#define CONFIG_TEXT_VALUES 65536

/* Memory in which a server counts the keys that are denied most (server/record/top_panes.h). */
#define CONFIG_TOP_BYTES 8000000

struct config {
    enum config_fleet fleet; /* these four are set before reading */
    bool no_files;           /* the text must not name files, as in config_put() */
    bool sandbox;            /* the bounds of a sandbox apply instead of server.memory */
    bool gateways;           /* /v1/auth asks: reading calls config_warn_undeclared() */
    struct source **sources; /* each holds a reference */
    size_t sources_count;
    struct server_config server;
    struct place server_place;
    struct store_config store;
    struct place store_place;
    struct adhoc_config adhoc;
    struct envoy_config envoy;
    const struct node *declared; /* the section `attributes`; NULL: there is none */
    struct attribute_config *attributes;
    size_t attributes_count;
    struct list_config allow;
    struct list_config block;
    struct limit_config **limits;
    size_t limits_count;
    struct weir_text folder; /* folder of the first file; relative paths start there */
    uint64_t files_bytes;    /* memory of the files that the rules name */
    uint64_t files_most;     /* most that it may be: server.memory */
    unsigned seen;           /* sections that were read and may be in one file only: bits */
    size_t limits_written;   /* items under `limits`, also those that were refused */
    bool has_limits;
    bool memory_is_wrong; /* server.memory cannot be read */
};

/*
 * Reads files and folders of *.yaml (config_each_file()); or a text. Returns 0, WEIR_ERULES after
 * adding all problems to *problems, or WEIR_ENOMEM. *config must be 0 except for the members that
 * are set before, and must be finished in any case.
 */
int config_read(struct config *config, const char *path, struct problems *problems);
int config_read_text(struct config *config, const char *name, struct weir_text text,
                     struct problems *problems);

/*
 * Makes *next from *config with one limit added, replaced or removed; the rest is shared.
 * config_put() returns 0, WEIR_ERULES or WEIR_ENOMEM; config_remove() 0, WEIR_ENOLIMIT or
 * WEIR_ENOMEM.
 */
int config_put(const struct config *config, struct weir_text yaml, struct config *next,
               struct problems *problems);
int config_remove(const struct config *config, struct weir_text name, struct config *next);

/* Set the defaults, and add a source, which is taken over also if that fails. For config_head.c. */
void config_init(struct config *config, struct problems *problems);
int config_keep_source(struct config *config, struct source *source);

/*
 * Reads server, store, adhoc and envoy of *config again, into *head, which shares no memory with
 * it: lists of millions of lines must not stay for a few settings. Returns 0 or WEIR_ENOMEM.
 */
int config_read_head(const struct config *config, struct config *head);

/* Frees everything but paths and hashes of the files that the rules name. Without memory for them,
 * frees these too. */
void config_keep_files(struct config *config);

/*
 * Calls fn with each path of a list such as "weir.yaml:/etc/ratelimit". A list that is the path of
 * a file or folder is that one path. Stops if fn does not return 0, and returns its last result.
 */
typedef int (*config_file_fn)(void *arg, const char *path);
int config_each_path(const char *list, config_file_fn fn, void *arg);

/*
 * Calls fn with each file that the paths of a list stand for: the file itself or, if it is a
 * folder, its *.yaml files that are not hidden, sorted by the bytes of their names. Stops if fn
 * does not return 0. Returns the last result of fn; for a folder WEIR_ENOENT if it has no such
 * file, WEIR_EACCES if it cannot be read, or WEIR_ENOMEM.
 */
int config_each_file(const char *list, config_file_fn fn, void *arg);

/*
 * Returns the path of a file that the rules name: relative ones begin in the folder of the first
 * rule file. The caller frees it. NULL: out of memory.
 */
char *config_beside(const struct config *config, struct weir_text path);

/*
 * Calls fn with each path that has names in braces: of the limits in their order, then of the
 * lists.
 */
typedef void (*config_named_fn)(void *arg, const struct value *path);
void config_each_named(const struct config *config, config_named_fn fn, void *arg);

/* Warns of each key of server, store and adhoc whose change takes effect only after a restart. */
void config_compare(const struct config *old, const struct config *next, const char *name,
                    struct problems *problems);

/*
 * Warns of rules that are read without error but probably do not do what was meant. `name` is the
 * path of the rules. It warns of
 *   - each limit whose key has a part that clients write, in a header or the query, so that a
 *     client can make up a new key for each request, unless a limit by address bounds that; only an
 *     operator can know whether a gateway prevents it,
 *   - each limit that no request reaches,
 *   - a name in braces that no attribute takes,
 *   - each leaky_bucket that can delay requests by more than server.hold_max,
 *   - unless server.http is off, attributes that are not declared.
 */
void config_warn(const struct config *config, const char *name, struct problems *problems);

/*
 * Without a section `attributes`, warns of all names that limits and lists use and that /v1/auth
 * does not send, in one message: a section that declared only some of them would make the others
 * errors. `only`: of this limit's names; NULL: of all.
 */
void config_warn_undeclared(const struct config *config, const struct limit_config *only,
                            struct problems *problems);

void config_finish(struct config *config);

/* Sets the options for the limiter of one setting of a limit. */
void config_options(const struct limit_config *limit, const struct setting *setting,
                    struct weir_options *options);

/* Returns a limit's consistency with the default filled in. */
int config_consistency(const struct config *config, int given);

/* True if there is a store that limits can be shared by. */
bool config_has_store(const struct config *config);

/* True if a fleet decides the limit: then it needs no table here. */
bool config_is_shared(const struct config *config, const struct limit_config *limit);

/*
 * True if the keys of a setting are in this process: those of a local limit, and those whose rate
 * is 0 or unlimited, about which no other node has to be asked.
 */
bool setting_is_local(const struct config *config, const struct limit_config *limit,
                      const struct setting *setting);

/* Returns the bytes of all tables in this process. Reports sizes that are impossible. */
uint64_t config_bytes(const struct config *config, struct problems *problems);

/* Reports problems of the rules as a whole; `name` is their path. Returns 0 or WEIR_ERULES. */
int config_check(const struct config *config, const char *name, struct problems *problems);

/*
 * Reports the names in `replaces` of a limit that no limit has. A limit of a file for Envoy's
 * reference server, which ignores them, gets a warning, and its list does not keep them.
 */
void replaces_check(const struct config *config, struct limit_config *limit,
                    struct problems *problems);

#endif
