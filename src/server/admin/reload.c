/* Reads the rules, the secrets and the certificate again, while requests are answered. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "common/log.h"
#include "rules/live/live.h"
#include "server/record/history.h"
#include "server/status/notices.h"
#include "server/http/http_routes.h"
#include "server/access/access.h"
#include "server/loop/server.h"

/* Puts "weir.yaml:3:5: warning: text" and a NUL; of a note the text alone. */
static void put_message(struct buffer *out, const struct weir_rules_message *m)
{
    if (m->severity == WEIR_RULES_NOTE) {
        buffer_put(out, text_of(m->text));
        buffer_put_char(out, 0);
        return;
    }
    buffer_put(out, text_of(m->file));
    if (m->line > 0) {
        buffer_put_char(out, ':');
        buffer_put_u64(out, m->line);
        buffer_put_char(out, ':');
        buffer_put_u64(out, m->column);
    }
    buffer_put(out, m->severity == WEIR_RULES_ERROR ? TEXT(": ") : TEXT(": warning: "));
    buffer_put(out, text_of(m->text));
    buffer_put_char(out, 0);
}

void server_log_message(void *arg, const struct weir_rules_message *message)
{
    enum log_level level = message->severity == WEIR_RULES_ERROR ? LEVEL_ERROR : LEVEL_WARNING;
    if (arg != NULL) {
        put_message(arg, message);
    }
    if (message->severity == WEIR_RULES_NOTE) {
        LOG(LEVEL_INFO, "rules changed", LOG_STRING("file", message->file),
            LOG_STRING("change", message->text));
    } else if (message->line > 0) {
        LOG(level, "rules", LOG_STRING("file", message->file), LOG_COUNT("line", message->line),
            LOG_COUNT("column", message->column), LOG_STRING("problem", message->text));
    } else {
        LOG(level, "rules", LOG_STRING("file", message->file),
            LOG_STRING("problem", message->text));
    }
}

uint64_t server_generation(const struct server *server)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    return weir_rules_stats_read(server->rules, &stats) == 0 ? stats.generation : 0;
}

static int reload_rules(struct server *server, struct buffer *messages, struct weir_error *error)
{
    int e = rules_reload(server->rules, NULL, server_log_message, messages, error);
    if (e != 0) {
        (void)fetch_add(&server->reloads_failed, 1);
        LOG(LEVEL_ERROR, "the old rules stay", LOG_STRING("why", error->text));
        return e;
    }
    (void)fetch_add(&server->reloads, 1);
    store_relaxed(&server->loaded_ns, clock_unix_ns());
    LOG(LEVEL_INFO, "rules reloaded", LOG_COUNT("generation", server_generation(server)));
    if (http_lacks_client(&server->options, server->rules)) {
        LOG(LEVEL_WARNING,
            "the new rules use 'ip', which a unix socket does not show: gateways are refused until "
            "a restart with --client-field or server.client_field");
    }
    return 0;
}

static int reload_secrets(struct server *server, struct weir_error *error)
{
    int e = access_reload(server->options.access, error);
    if (e != 0) {
        LOG(LEVEL_ERROR, "the old secrets stay", LOG_STRING("why", error->text));
    } else if (access_has_files(server->options.access)) {
        LOG(LEVEL_INFO, "secrets reloaded");
    }
    return e;
}

/* Rules, secrets and certificate are reloaded independently: an error in the rules must not keep a
 * secret valid that has been removed. The error says which of them are the old ones. */
static int reload_all(struct server *server, struct buffer *messages, struct weir_error *error)
{
    const struct weir_error none = {0};
    struct weir_error of_rules;
    struct weir_error of_secrets;
    struct weir_error of_tls;
    int tls = server_tls_reload(server, &of_tls);
    int secrets = reload_secrets(server, &of_secrets);
    int rules = reload_rules(server, messages, &of_rules);
    const struct {
        int e;
        const char *stays;
        const struct weir_error *why;
    } parts[] = {{rules, "the old rules stay", &of_rules},
                 {secrets, "the new rules are in effect, but the old secrets stay", &of_secrets},
                 {tls, "the new rules are in effect, but the old certificate stays", &of_tls},
                 {0, NULL, &none}};
    size_t i = 0;
    while (parts[i].e == 0 && parts[i].stays != NULL) {
        i++;
    }
    notices_reloaded(server->notices, parts[i].stays, parts[i].why->text, clock_unix_ns());
    return parts[i].e == 0 ? 0
                           : fail(error, parts[i].e, "%s: %s", parts[i].stays, parts[i].why->text);
}

/* Notes in the history what a reload has done, with the messages about the rules. */
static void note_reload(struct server *server, int e, const struct weir_error *error,
                        const struct buffer *messages)
{
    char done[64];
    (void)snprintf(done, sizeof done, "generation %" PRIu64, server_generation(server));
    if (e == 0) {
        history_note(server->history, HISTORY_RELOAD, done, messages);
    } else {
        history_note(server->history, HISTORY_RELOAD_FAILED, error->text, messages);
    }
}

/* Gives the memory of the old rules back to the system: the allocator keeps what lies below memory
 * in use, which may be most of a list of millions of lines. */
static void return_memory(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

static int reload_noted(struct server *server, struct buffer *messages, struct weir_error *error)
{
    const struct server_options *o = &server->options;
    struct weir_error why = {0};
    struct buffer own;
    buffer_init(&own, SERVER_REPLY_BYTES / 2);
    messages = messages != NULL ? messages : &own;
    if (o->reload_begins != NULL) {
        o->reload_begins(o->reload_arg);
    }
    int e = reload_all(server, messages, &why);
    if (o->reload_ended != NULL) {
        o->reload_ended(o->reload_arg);
    }
    note_reload(server, e, &why, messages);
    buffer_finish(&own);
    return_memory();
    if (e != 0 && error != NULL) {
        *error = why;
    }
    return e;
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

int server_reload_if(struct server *server, bool (*is_due)(void *arg), void *arg,
                     struct buffer *messages, struct weir_error *error)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&one_at_a_time);
    int e = is_due(arg) ? reload_noted(server, messages, error) : 0;
    (void)pthread_mutex_unlock(&one_at_a_time);
    return e;
}

int server_reload(struct server *server, struct buffer *messages, struct weir_error *error)
{
    return server_reload_if(server, always, NULL, messages, error);
}
