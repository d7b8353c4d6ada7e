/*
 * Opens the store of weir serve. The rules cannot be opened without it, so the rule file is read
 * twice: here only for its section `store`. All its errors are reported by the second reading.
 */
#include <stdlib.h>

#include "cli/serve/serve.h"
#include "common/log.h"
#include "fleet/fleet.h"
#include "rules/compiled/state.h"
#include "rules/file/config.h"

/* Texts of the section `store`, and the options of a fleet that get copies of them. */
static const struct {
    size_t from; /* in struct store_config */
    size_t to;   /* in struct weir_fleet_options */
    bool path;   /* relative to the rule file */
} rows[] = {
#define ROW(name, option, path)                                                                    \
    {                                                                                              \
        offsetof(struct store_config, name), offsetof(struct weir_fleet_options, option), path     \
    }
    ROW(url, url, false),
    ROW(user, user, false),
    ROW(prefix, prefix, false),
    ROW(sentinel_user, sentinel_user, false),
    ROW(password_file, password_file, true),
    ROW(sentinel_password_file, sentinel_password_file, true),
    ROW(tls.ca, tls_ca, true),
    ROW(tls.cert, tls_cert, true),
    ROW(tls.key, tls_key, true),
    ROW(tls.server_name, tls_server_name, false),
};
#define ROWS (sizeof rows / sizeof rows[0])

static const char **option_at(struct weir_fleet_options *o, size_t row)
{
    return (const char **)(void *)((char *)o + rows[row].to);
}

/* Returns the networks as weir_fleet_options has them; to be freed. NULL: out of memory. */
static char *join_networks(const struct networks *networks)
{
    char *list = calloc(networks->count + 1, CIDR_MAX + 1);
    char text[CIDR_MAX];
    size_t len = 0;
    for (size_t i = 0; list != NULL && i < networks->count; i++) {
        len += (size_t)snprintf(list + len, CIDR_MAX + 1, "%s%s", i > 0 ? "," : "",
                                cidr_print(&networks->at[i], text));
    }
    return list;
}

/* Takes the options from the rule file. Returns false if out of memory. */
static bool take_file(const struct serve_settings *s, struct weir_fleet_options *o,
                      unsigned *connections)
{
    struct problems problems = {0};
    struct config config = {0};
    bool good = true;
    (void)config_read(&config, s->config, &problems);
    for (size_t i = 0; i < ROWS; i++) {
        struct weir_text from =
            *(const struct weir_text *)((const char *)&config.store + rows[i].from);
        if (from.len > 0) {
            *option_at(o, i) =
                rows[i].path ? config_beside(&config, from) : strndup(from.at, from.len);
            good = good && *option_at(o, i) != NULL;
        }
    }
    if (config.store.networks.given) {
        o->networks = join_networks(&config.store.networks);
        good = good && o->networks != NULL;
    }
    o->deadline_ns = config.store.deadline_ns;
    o->fleet_size = config.store.fleet_size;
    *connections = (unsigned)config.store.connections;
    o->memory_high = config.store.memory_high != 0 ? (unsigned)config.store.memory_high
                                                   : WEIR_FLEET_MEMORY_IGNORED;
    problems_finish(&problems);
    config_finish(&config);
    return good;
}

/*
 * Checks the URL. The message names its source (--store, WEIR_STORE or the rule file), so that
 * the user does not look for the error in another place.
 */
static int check_url(const struct serve_settings *s, const char *url)
{
    struct weir_error error = {0};
    struct store_url parts;
    if (store_url_read(text_of(url), &parts, &error) == 0) {
        return CLI_OK;
    }
    return s->store != NULL ? cli_complain(&cli_serve, "%s: %s", s->store_from, error.text)
                            : cli_complain(&cli_serve, "%s: store.url: %s", s->config, error.text);
}

static int open_fleet(const struct serve_settings *s, const struct weir_fleet_options *o,
                      struct weir_fleet **fleet)
{
    struct weir_error error = {0};
    int code = o->url != NULL ? check_url(s, o->url) : CLI_OK;
    if (o->url == NULL || code != CLI_OK) {
        return code;
    }
    int e = fleet_open_bare(fleet, o, &error);
    if (e != 0) {
        (void)cli_complain(&cli_serve, "store: %s", error.text);
    }
    return e == 0 ? CLI_OK : e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED;
}

void serve_keep_nodes(struct weir_fleet *fleet, const struct state *state)
{
    char path[PATH_MAX];
    struct weir_error error;
    if (fleet == NULL || state == NULL) {
        return;
    }
    int n = snprintf(path, sizeof path, "%s/fleet.nodes", state->folder);
    if (n >= (int)sizeof path || fleet_keep_nodes(fleet, path, &error) != 0) {
        LOG(LEVEL_WARNING, "the number of nodes is not kept over restarts",
            LOG_STRING("reason", n >= (int)sizeof path ? "the path is too long" : error.text));
    }
}

int serve_open_fleet(const struct serve_settings *s, struct weir_fleet **fleet)
{
    struct weir_fleet_options of_file = WEIR_FLEET_OPTIONS_INIT;
    unsigned connections = 0;
    *fleet = NULL;
    if (s->store != NULL && strcmp(s->store, "off") == 0) {
        return CLI_OK;
    }
    bool good = s->config == NULL || take_file(s, &of_file, &connections);
    struct weir_fleet_options o = of_file;
    o.url = s->store != NULL ? s->store : o.url;
    int code = good ? open_fleet(s, &o, fleet) : cli_fail(&cli_serve, "out of memory");
    if (*fleet != NULL) {
        (*fleet)->connections = connections;
    }
    for (size_t i = 0; i < ROWS; i++) {
        free((void *)(uintptr_t)*option_at(&of_file, i));
    }
    free((void *)(uintptr_t)of_file.networks);
    return code;
}
