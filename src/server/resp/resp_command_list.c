/* COMMAND: the rows of the commands, as Redis tells its own. */
#include "server/resp/resp_commands.h"

/* ---- which commands ---- */

typedef void (*put_row_fn)(struct command *c, const struct command_row *row);

/* Calls `put`, if not NULL, for each command. Returns how many there are. */
static size_t put_all(struct command *c, put_row_fn put)
{
    size_t n = 0;
    for (const struct command_row *const *table = resp_commands(); *table != NULL; table++) {
        for (const struct command_row *row = *table; row->name != NULL; row++) {
            if (put != NULL) {
                put(c, row);
            }
            n++;
        }
    }
    return n;
}

/* ---- one command ---- */

static void put_name(struct command *c, const struct command_row *row)
{
    char name[COMMAND_NAME_BYTES];
    resp_put_bulk(c->out, resp_lower_name(row, name));
}

static void put_pair(struct command *c, const char *name, const char *value)
{
    resp_put_bulk(c->out, text_of(name));
    resp_put_bulk(c->out, text_of(value));
}

static void put_number(struct command *c, const char *name, int64_t value)
{
    resp_put_bulk(c->out, text_of(name));
    resp_put_integer(c->out, value);
}

/* Puts a set of words, without those that are NULL. */
static void put_words(struct command *c, const char *const *words, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < most; i++) {
        n += words[i] != NULL;
    }
    resp_put_set(c->out, c->proto, n);
    for (size_t i = 0; i < most; i++) {
        if (words[i] != NULL) {
            resp_put_simple(c->out, text_of(words[i]));
        }
    }
}

#define PUT_WORDS(c, words) put_words(c, words, sizeof(words) / sizeof(words)[0])

/* EVAL calls CL.THROTTLE and nothing else. */
static void put_flags(struct command *c, const struct command_row *row)
{
    const char *flags[] = {
        row->keys.first == 0 ? NULL
        : row->keys.written  ? "write"
                             : "readonly",
        row->role == ROLE_ADMIN ? "admin" : NULL,
        row->role == ROLE_NONE ? "no_auth" : NULL,
        row->run != resp_run_throttle ? "noscript" : NULL,
        row->keys.counted ? "movablekeys" : NULL,
    };
    PUT_WORDS(c, flags);
}

static void put_categories(struct command *c, const struct command_row *row)
{
    const char *categories[] = {
        row->keys.first == 0 ? "@connection"
        : row->keys.written  ? "@write"
                             : "@read",
        row->role == ROLE_ADMIN ? "@admin" : NULL,
    };
    PUT_WORDS(c, categories);
}

/* Puts the beginning of "begin_search" or "find_keys": its type, and a map of n numbers follows. */
static void put_search(struct command *c, const char *name, const char *type, size_t n)
{
    resp_put_bulk(c->out, text_of(name));
    resp_put_map(c->out, c->proto, 2);
    put_pair(c, "type", type);
    resp_put_bulk(c->out, TEXT("spec"));
    resp_put_map(c->out, c->proto, n);
}

/* Puts where the keys are: from an index to the last one, or after their number. */
static void put_key_places(struct command *c, const struct command_keys *keys)
{
    static const char *const reads[] = {"RO", "access"};
    static const char *const writes[] = {"RW", "access", "update"};
    resp_put_set(c->out, c->proto, keys->first != 0);
    if (keys->first == 0) {
        return;
    }
    resp_put_map(c->out, c->proto, 3);
    resp_put_bulk(c->out, TEXT("flags"));
    if (keys->written) {
        PUT_WORDS(c, writes);
    } else {
        PUT_WORDS(c, reads);
    }
    put_search(c, "begin_search", "index", 1);
    put_number(c, "index", keys->first);
    if (keys->counted) {
        put_search(c, "find_keys", "keynum", 3);
        put_number(c, "keynumidx", 0);
        put_number(c, "firstkey", 1);
        put_number(c, "keystep", 1);
    } else {
        put_search(c, "find_keys", "range", 3);
        put_number(c, "lastkey", keys->to_end ? -1 : 0);
        put_number(c, "keystep", 1);
        put_number(c, "limit", 0);
    }
}

/* Puts the ten values of COMMAND INFO. */
static void put_info(struct command *c, const struct command_row *row)
{
    const struct command_keys *keys = &row->keys;
    bool placed = keys->first != 0 && !keys->counted;
    resp_put_array(c->out, 10);
    put_name(c, row);
    resp_put_integer(c->out, row->args_max == row->args_min ? (int64_t)row->args_min
                                                            : -(int64_t)row->args_min);
    put_flags(c, row);
    resp_put_integer(c->out, placed ? keys->first : 0);
    resp_put_integer(c->out, !placed ? 0 : keys->to_end ? -1 : (int64_t)keys->first);
    resp_put_integer(c->out, placed);
    put_categories(c, row);
    resp_put_set(c->out, c->proto, 0); /* tips */
    put_key_places(c, keys);
    resp_put_set(c->out, c->proto, 0); /* subcommands */
}

static void put_docs(struct command *c, const struct command_row *row)
{
    put_name(c, row);
    resp_put_map(c->out, c->proto, 3);
    put_pair(c, "summary", row->summary);
    put_pair(c, "since", weir_version());
    put_pair(c, "group", "weir");
}

/* ---- subcommands ---- */

/* COMMAND, COMMAND INFO [name ...]: an unknown name is null. */
static void run_info(struct command *c)
{
    if (c->argc <= 2) {
        resp_put_array(c->out, put_all(c, NULL));
        (void)put_all(c, put_info);
        return;
    }
    resp_put_array(c->out, c->argc - 2);
    for (unsigned i = 2; i < c->argc; i++) {
        const struct command_row *row = resp_find_command(c->argv[i]);
        if (row != NULL) {
            put_info(c, row);
        } else {
            resp_put_null(c->out, c->proto);
        }
    }
}

/* COMMAND DOCS [name ...]: an unknown name is left out. */
static void run_docs(struct command *c)
{
    const struct command_row *rows[RESP_ARGS_MAX];
    size_t n = 0;
    if (c->argc <= 2) {
        resp_put_map(c->out, c->proto, put_all(c, NULL));
        (void)put_all(c, put_docs);
        return;
    }
    for (unsigned i = 2; i < c->argc; i++) {
        rows[n] = resp_find_command(c->argv[i]);
        n += rows[n] != NULL;
    }
    resp_put_map(c->out, c->proto, n);
    for (size_t i = 0; i < n; i++) {
        put_docs(c, rows[i]);
    }
}

static void run_list(struct command *c)
{
    if (c->argc > 2) {
        resp_put_error(c->out, TEXT("ERR COMMAND LIST: found an argument, expected none"));
        return;
    }
    resp_put_array(c->out, put_all(c, NULL));
    (void)put_all(c, put_name);
}

static void run_count(struct command *c)
{
    resp_put_integer(c->out, (int64_t)put_all(c, NULL));
}

/* Finds the keys among the arguments of a command. Returns how many there are; the first one is
 * argv[*first]. */
static unsigned find_keys(const struct command_keys *keys, unsigned argc,
                          const struct weir_text *argv, unsigned *first)
{
    int64_t n = 1;
    *first = keys->first + keys->counted;
    if (keys->first == 0 || keys->first >= argc) {
        return 0;
    }
    if (keys->to_end) {
        n = argc - keys->first;
    } else if (keys->counted &&
               (!resp_to_i64(argv[keys->first], &n) || n < 0 || n > argc - *first)) {
        n = 0;
    }
    return (unsigned)n;
}

/* COMMAND GETKEYS command arguments ... */
static void run_getkeys(struct command *c)
{
    unsigned argc = c->argc - 2;
    const struct weir_text *argv = c->argv + 2;
    const struct command_row *row = argc > 0 ? resp_find_command(argv[0]) : NULL;
    unsigned first;
    if (row == NULL) {
        resp_put_error(c->out, TEXT("ERR Invalid command specified"));
    } else if (row->keys.first == 0) {
        resp_put_error(c->out, TEXT("ERR The command has no key arguments"));
    } else if (!resp_takes(row, argc)) {
        resp_put_error(c->out, TEXT("ERR Invalid number of arguments specified for command"));
    } else {
        unsigned n = find_keys(&row->keys, argc, argv, &first);
        resp_put_array(c->out, n);
        for (unsigned i = 0; i < n; i++) {
            resp_put_bulk(c->out, argv[first + i]);
        }
    }
}

void resp_run_command_list(struct command *c)
{
    static const struct {
        const char *name;
        void (*run)(struct command *c);
    } rows[] = {{"INFO", run_info},
                {"DOCS", run_docs},
                {"LIST", run_list},
                {"COUNT", run_count},
                {"GETKEYS", run_getkeys}};
    if (c->argc == 1) {
        run_info(c);
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (text_is_word(c->argv[1], rows[i].name)) {
            rows[i].run(c);
            return;
        }
    }
    resp_put_errorf(c->out, "ERR unknown subcommand '%.*s'. Try COMMAND DOCS.",
                    TEXT_CUT(c->argv[1], 64));
}
