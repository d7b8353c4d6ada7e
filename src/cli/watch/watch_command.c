/* weir watch: one key of a limit, live. */
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "cli/admin_client.h"
#include "cli/answer_json.h"
#include "cli/buffer_format.h"
#include "cli/grid.h"
#include "cli/watch/watch_view.h"

#define WATCH_TIMEOUT_MS 5000
#define TARGET_BYTES 65536

struct watch_arguments {
    struct admin_options to;
    const char *tier;
    const char *by;
    uint64_t interval_ns;
    uint64_t count; /* 0: until it is ended */
};

#define TO(member) .to = offsetof(struct watch_arguments, member)

static const struct cli_option options[] = {
    {"--admin", "ADDR:PORT", ADMIN_HELP, cli_read_text, TO(to.admin)},
    {"--secret-file", "FILE", ADMIN_SECRET_HELP, cli_read_text, TO(to.secret_file)},
    CLIENT_TLS_ROWS(struct watch_arguments, to.tls),
    {"--tier", "T", "tier of the key; default the limit's default tier", cli_read_text, TO(tier)},
    {"--by", "ATTRIBUTE",
     "for a key such as user|ip: KEY is the value of this later alternative, such as ip",
     cli_read_text, TO(by)},
    {"--interval", "DURATION", "time between two looks, 100ms to 1h; default 1s", cli_read_duration,
     TO(interval_ns), 100 * WEIR_MILLISECOND, WEIR_HOUR},
    {"--count", "N", "end after so many looks; default: go on until Ctrl-C", cli_read_count,
     TO(count), 1, INT64_MAX},
};

struct watched_key {
    struct admin_client client;
    const struct watch_arguments *asked;
    struct buffer key;   /* target of the question about the key */
    struct buffer limit; /* target of the question about the limit */
    struct key_polls polls;
    double even;
    char reason[32];
};

/* ---- signals ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Ctrl-C is delivered only while wait_until() waits, so that no line is cut. *before gets the mask
 * for that. */
static void hold_interrupts(sigset_t *before)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigprocmask(SIG_BLOCK, &set, before);
}

/* Waits. Returns false if Ctrl-C has ended it. */
static bool wait_until(uint64_t until_ns, const sigset_t *before)
{
    while (interrupted == 0) {
        uint64_t now = clock_monotonic_ns();
        uint64_t left = until_ns > now ? until_ns - now : 0;
        struct timespec time = {(time_t)(left / WEIR_SECOND), (long)(left % WEIR_SECOND)};
        if (ppoll(NULL, 0, &time, before) == 0 && interrupted == 0) {
            return true;
        }
    }
    return false;
}

/* ---- looking ---- */

static double now_ms(void)
{
    return (double)clock_monotonic_ns() / 1e6;
}

static int fetch(const struct watched_key *w, const struct buffer *target, json_t **out,
                 struct buffer *why)
{
    struct http_call call = {.method = "GET", .target = buffer_text(target).at};
    int code = admin_call_json(&w->client, &call, out, NULL, why);
    return code == CLI_OK && !json_is_object(*out)
               ? admin_fail(&w->client, TEXT("found another answer, expected a JSON object"), why)
               : code;
}

/* Returns how fast units come back to the key, from the item of its tier. Without --tier, the
 * server has taken the default tier, which is known by its quota; two tiers with the same one
 * are not told apart. */
static double find_even(const struct watched_key *w, const json_t *limits, double quota)
{
    double even = 0;
    for (size_t i = 0; i < json_array_size(limits); i++) {
        const json_t *item = json_array_get(limits, i);
        double here = key_even(json_text(item, "algorithm"), json_number(item, "count"),
                               json_number(item, "period_ms"));
        const char *tier = json_text(item, "tier");
        if (w->asked->tier != NULL && strcmp(tier, w->asked->tier) == 0) {
            return here;
        }
        if (w->asked->tier == NULL &&
            (json_array_size(limits) == 1 || json_number(item, "burst") == quota)) {
            even = even == 0 || even == here ? here : -1;
        }
    }
    return even > 0 ? even : 0;
}

/* Asks about the key and its limit. Returns CLI_OK, or an exit code and the reason in `why`. */
static int look(struct watched_key *w, struct buffer *why)
{
    json_t *answer = NULL;
    json_t *limit = NULL;
    struct key_poll poll = {.sent_ms = now_ms()};
    int code = fetch(w, &w->key, &answer, why);
    poll.came_ms = now_ms();
    code = code == CLI_OK ? fetch(w, &w->limit, &limit, why) : code;
    if (code == CLI_OK) {
        key_poll_read(answer, &poll);
        key_polls_add(&w->polls, &poll);
        w->even = find_even(w, json_object_get(limit, "limits"), poll.quota);
        (void)snprintf(w->reason, sizeof w->reason, "%s", json_text(answer, "reason"));
    } else {
        w->polls.count = 0; /* the time between looks would be too long to tell the use */
    }
    json_decref(answer);
    json_decref(limit);
    return code;
}

/* Looks once, and shows what was found. Returns false if nothing can be written any more. */
static bool look_and_show(struct watched_key *w, struct watch_view *view, int *code)
{
    struct key_state state;
    struct buffer why;
    buffer_init(&why, TARGET_BYTES);
    admin_renew_secret(&w->client);
    *code = look(w, &why);
    bool good;
    if (*code == CLI_OK) {
        key_state_tell(&w->polls, w->even, &state);
        good = watch_view_show(view, &state, w->reason);
    } else {
        good = watch_view_fail(view, buffer_text(&why));
    }
    buffer_finish(&why);
    return good;
}

/* Looks until Ctrl-C, or as often as was asked. Returns the code of the last look. */
static int watch_key(struct watched_key *w, struct watch_view *view)
{
    sigset_t before;
    int code = CLI_OK;
    hold_interrupts(&before);
    uint64_t next_ns = clock_monotonic_ns();
    for (uint64_t n = 1; look_and_show(w, view, &code); n++) {
        next_ns += w->asked->interval_ns;
        if (n == w->asked->count || !wait_until(next_ns, &before)) {
            return code;
        }
        uint64_t now = clock_monotonic_ns();
        next_ns = now > next_ns + w->asked->interval_ns ? now : next_ns;
    }
    return CLI_FAILED;
}

/* ---- the command ---- */

static void put_title(struct buffer *title, const struct cli_given *given, const char *address)
{
    for (int i = 0; i < given->count; i++) {
        safe_put(title, text_of(given->operands[i]), false);
        buffer_put_char(title, ' ');
    }
    buffer_put(title, TEXT("at "));
    safe_put(title, text_of(address), false);
    buffer_put_char(title, 0);
}

/* Asks once before anything is shown: what cannot be answered at all is an error. */
static int try_once(struct watched_key *w)
{
    json_t *answer = NULL;
    int code = fetch(w, &w->key, &answer, NULL);
    json_decref(answer);
    return code;
}

static int run(const struct cli_given *given, void *settings)
{
    const struct watch_arguments *asked = settings;
    struct watched_key w = {.asked = asked};
    struct watch_view view;
    struct buffer title;
    int code = admin_open(&w.client, &cli_watch, &asked->to);
    if (code != CLI_OK) {
        return code;
    }
    w.client.peer.timeout_ms = WATCH_TIMEOUT_MS;
    buffer_init(&w.key, TARGET_BYTES);
    buffer_init(&w.limit, TARGET_BYTES);
    buffer_init(&title, TARGET_BYTES);
    key_target(&w.key, given->operands, given->count, asked->tier, asked->by);
    buffer_put(&w.limit, TEXT("/v1/limits/"));
    http_put_encoded(&w.limit, text_of(given->operands[0]));
    buffer_put_char(&w.limit, 0);
    put_title(&title, given, w.client.peer.address);
    if (w.key.full || w.limit.full || title.full) {
        code = cli_complain(&cli_watch, "found a key that is too long, expected at most %d bytes",
                            TARGET_BYTES);
    } else if ((code = try_once(&w)) == CLI_OK) {
        watch_view_init(&view, buffer_text(&title).at);
        code = watch_key(&w, &view);
        watch_view_finish(&view);
    }
    buffer_finish(&title);
    buffer_finish(&w.limit);
    buffer_finish(&w.key);
    return code;
}

static const struct watch_arguments defaults = {.interval_ns = WEIR_SECOND};

const struct cli_command cli_watch =
    CLI_COMMAND("watch", "LIMIT [KEY...]",
                "show one key live: what it has left, and whether it is in use; Ctrl-C ends it",
                options, defaults, run);
