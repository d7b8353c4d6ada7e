/* weir top: watches a running server. */
#include "cli/top/top_command.h"

#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "cli/grid.h"
#include "cli/terminal.h"

#define TOP_TIMEOUT_MS 2000 /* for one request; a pressed key may have to wait for it */

struct top_arguments {
    struct admin_options to;
    uint64_t interval_ns;
    int minutes; /* index in admin_minutes */
    bool once;
    bool json;
};

#define TO(member) .to = offsetof(struct top_arguments, member)

static const struct cli_option options[] = {
    {"--admin", "ADDR:PORT", ADMIN_HELP, cli_read_text, TO(to.admin)},
    {"--secret-file", "FILE", ADMIN_SECRET_HELP, cli_read_text, TO(to.secret_file)},
    CLIENT_TLS_ROWS(struct top_arguments, to.tls),
    {"--interval", "DURATION", "time between two samples, 100ms to 1h; default 1s",
     cli_read_duration, TO(interval_ns), 100 * WEIR_MILLISECOND, WEIR_HOUR},
    {"--minutes", "N", ADMIN_MINUTES_HELP, cli_read_choice, TO(minutes), .choices = admin_minutes},
    {"--once", NULL, "print one interval and end; default if there is no terminal", cli_read_switch,
     TO(once)},
    {"--json", NULL, "print one interval as JSON and end", cli_read_switch, TO(json)},
};

/* ---- once ---- */

static void print_report(const struct admin_client *client, const json_t *report, bool json)
{
    struct buffer out;
    if (json) {
        (void)json_dumpf(report, stdout,
                         JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));
        (void)putchar('\n');
        return;
    }
    buffer_init(&out, TOP_OUTPUT_MAX);
    top_view(report, client->peer.address, 0, 0, &out);
    (void)fwrite(buffer_text(&out).at, 1, buffer_len(&out), stdout);
    buffer_finish(&out);
}

static int watch_once(const struct admin_client *client, const struct top_arguments *asked,
                      const struct top_sample *first)
{
    struct top_sample second;
    (void)poll(NULL, 0, (int)(asked->interval_ns / WEIR_MILLISECOND));
    int code = top_sample_take(client, asked->minutes, &second, NULL);
    if (code == CLI_OK) {
        json_t *report = top_report(first, &second);
        print_report(client, report, asked->json);
        json_decref(report);
    }
    top_sample_finish(&second);
    return code;
}

/* ---- on a terminal ---- */

struct top_watch {
    struct admin_client *client;
    struct top_sample last;
    json_t *report;    /* NULL: none yet */
    int minutes;       /* index in admin_minutes */
    struct buffer why; /* why the last sample failed; empty: it did not */
};

static bool paint(const struct top_watch *w)
{
    unsigned width;
    unsigned rows;
    struct buffer out;
    buffer_init(&out, TOP_OUTPUT_MAX);
    terminal_size(&width, &rows);
    unsigned said = buffer_len(&w->why) > 0;
    if (said > 0) {
        buffer_put(&out, safe_cut(buffer_text(&w->why), width));
        buffer_put_char(&out, '\n');
    }
    if (w->report != NULL) {
        top_view(w->report, w->client->peer.address, width, rows > said + 1 ? rows - said : 1,
                 &out);
    } else if (said == 0) {
        buffer_put(&out, TEXT("waiting for the first sample ...\n"));
    }
    bool good = terminal_paint(safe_lines(buffer_text(&out), rows));
    buffer_finish(&out);
    return good;
}

/*
 * Takes a sample. If that fails, the last report stays on the screen with the reason, because
 * the server may come back.
 */
static void look(struct top_watch *w)
{
    struct top_sample now;
    buffer_take(&w->why, buffer_len(&w->why));
    admin_renew_secret(w->client);
    if (top_sample_take(w->client, w->minutes, &now, &w->why) == CLI_OK) {
        json_decref(w->report);
        w->report = top_report(&w->last, &now);
        top_sample_finish(&w->last);
        w->last = now;
    }
}

/* Runs until the user or a signal ends it. */
static void watch(struct top_watch *w, uint64_t interval_ms)
{
    uint64_t next_ms = clock_monotonic_ns() / WEIR_MILLISECOND + interval_ms;
    bool good = paint(w);
    while (good) {
        char key = 0;
        enum terminal_event event = terminal_wait(next_ms, &key);
        if (event == TERMINAL_ENDED || (event == TERMINAL_KEY && (key == 'q' || key == 'Q'))) {
            break;
        }
        if (event == TERMINAL_TIME) {
            look(w);
            next_ms = clock_monotonic_ns() / WEIR_MILLISECOND + interval_ms;
        }
        good = event == TERMINAL_KEY || paint(w);
    }
}

static int watch_terminal(struct admin_client *client, const struct top_arguments *asked,
                          struct top_sample *first)
{
    struct top_watch w = {.client = client, .last = *first, .minutes = asked->minutes};
    struct top_sample none = {.at_ms = 0};
    *first = none;
    buffer_init(&w.why, TOP_OUTPUT_MAX);
    /* This report covers the time since the server's start, until there are two samples. */
    w.report = top_report(&none, &w.last);
    if (!terminal_open()) {
        return cli_fail(&cli_top, "cannot use the terminal: %m");
    }
    watch(&w, asked->interval_ns / WEIR_MILLISECOND);
    terminal_close();
    top_sample_finish(&w.last);
    json_decref(w.report);
    buffer_finish(&w.why);
    return CLI_OK;
}

/* Ends the process by the signal that it received, so that its parent sees it. Ctrl-C is like q. */
static void end_by_signal(void)
{
    int number = terminal_signal();
    if (number != 0 && number != SIGINT) {
        sigset_t set;
        (void)signal(number, SIG_DFL);
        (void)sigemptyset(&set);
        (void)sigaddset(&set, number);
        (void)raise(number);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
}

/* ---- the command ---- */

static int run(const struct cli_given *given, void *settings)
{
    const struct top_arguments *asked = settings;
    struct admin_client client;
    struct top_sample first;
    (void)given;
    int code = admin_open(&client, &cli_top, &asked->to);
    if (code != CLI_OK) {
        return code;
    }
    client.peer.timeout_ms = TOP_TIMEOUT_MS;
    code = top_sample_take(&client, asked->minutes, &first, NULL);
    if (code == CLI_OK && (asked->once || asked->json || !terminal_is_there())) {
        code = watch_once(&client, asked, &first);
    } else if (code == CLI_OK) {
        code = watch_terminal(&client, asked, &first);
    }
    top_sample_finish(&first);
    end_by_signal();
    return code;
}

static const struct top_arguments defaults = {.interval_ns = WEIR_SECOND,
                                              .minutes = ADMIN_MINUTES_DEFAULT};

const struct cli_command cli_top =
    CLI_COMMAND("top", "", "watch a running server; q ends it", options, defaults, run);
