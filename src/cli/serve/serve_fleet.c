/*
 * Opens the store of weir serve. The rules cannot be opened without it, so the rule file is read
 * twice: here only for its section `store`. All its errors are reported by the second reading.
 */
#include <stdlib.h>

#include "cli/serve/serve.h"
#include "fleet/fleet.h"
#include "rules/file/config.h"

/* The fleet's options, in memory of their own. */
struct wanted {
    char *url;
    char *user;
    char *prefix;
    char *password_file;
    char *sentinel_user;
    char *sentinel_password_file;
    uint64_t deadline_ns;
    uint64_t fleet_size;
    bool failed; /* out of memory */
};

/* Returns a copy of the text, or NULL for an empty one. */
static char *copy(struct wanted *w, struct text text)
{
    char *copied = text.len > 0 ? strndup(text.at, text.len) : NULL;
    w->failed = w->failed || (text.len > 0 && copied == NULL);
    return copied;
}

static char *copy_path(const struct serve_settings *s, struct wanted *w, struct text path)
{
    char *copied = path.len > 0 ? serve_beside_config(s, path) : NULL;
    w->failed = w->failed || (path.len > 0 && copied == NULL);
    return copied;
}

static void take_file(const struct serve_settings *s, struct wanted *w)
{
    struct problems problems = {0};
    struct config config = {0};
    (void)config_read(&config, s->config, &problems);
    const struct store_config *from = &config.store;
    w->url = copy(w, from->url);
    w->user = copy(w, from->user);
    w->prefix = copy(w, from->prefix);
    w->deadline_ns = from->deadline_ns;
    w->fleet_size = from->fleet_size;
    w->sentinel_user = copy(w, from->sentinel_user);
    w->password_file = copy_path(s, w, from->password_file);
    w->sentinel_password_file = copy_path(s, w, from->sentinel_password_file);
    problems_finish(&problems);
    config_finish(&config);
}

static void finish(struct wanted *w)
{
    free(w->url);
    free(w->user);
    free(w->prefix);
    free(w->password_file);
    free(w->sentinel_user);
    free(w->sentinel_password_file);
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

static int open_wanted(const struct serve_settings *s, const struct wanted *w,
                       struct weir_fleet **fleet)
{
    struct weir_fleet_options o = WEIR_FLEET_OPTIONS_INIT;
    struct weir_error error = {0};
    o.url = s->store != NULL ? s->store : w->url;
    o.user = w->user;
    o.password_file = w->password_file;
    o.sentinel_user = w->sentinel_user;
    o.sentinel_password_file = w->sentinel_password_file;
    o.prefix = w->prefix;
    o.deadline_ns = w->deadline_ns;
    o.fleet_size = w->fleet_size;
    int code = o.url != NULL ? check_url(s, o.url) : CLI_OK;
    if (o.url == NULL || code != CLI_OK) {
        return code;
    }
    int e = fleet_open_bare(fleet, &o, &error);
    return e == 0 ? CLI_OK
                  : (cli_complain(&cli_serve, "store: %s", error.text),
                     e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED);
}

int serve_open_fleet(const struct serve_settings *s, struct weir_fleet **fleet)
{
    struct wanted w = {.url = NULL};
    int code = CLI_OK;
    *fleet = NULL;
    if (s->store != NULL && strcmp(s->store, "off") == 0) {
        return CLI_OK;
    }
    if (s->config != NULL) {
        take_file(s, &w);
    }
    code = w.failed ? cli_fail(&cli_serve, "out of memory") : open_wanted(s, &w, fleet);
    finish(&w);
    return code;
}
