/*
 * Writes a replay's messages to standard error: complaints, a progress bar on a terminal, a
 * summary.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/maths.h"
#include "cli/output/progress_bar.h"
#include "cli/replay/replay_command.h"

static void clear_bar(struct replay *r)
{
    if (r->drawn_ns != 0) {
        progress_bar_clear();
        r->drawn_ns = 0;
    }
}

void replay_complain(struct replay *r, uint64_t line, const char *text)
{
    clear_bar(r);
    r->bad++;
    (void)cli_complain(&cli_replay, "line %" PRIu64 ": %s", line, text);
}

static void draw(const struct replay *r)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%" PRIu64 " requests", r->allowed + r->denied);
    progress_bar_draw(*r->done, r->total, text);
}

void replay_progress(struct replay *r)
{
    uint64_t now_ns = r->bar ? clock_boot_ns() : 0;
    if (now_ns >= r->drawn_ns + PROGRESS_BAR_NS) {
        draw(r);
        r->drawn_ns = now_ns;
    }
}

void replay_report_begin(struct replay *r, const uint64_t *done, uint64_t total)
{
    /* No bar if the decisions go to a terminal too: they would break it up. */
    r->bar = !r->settings->quiet && progress_bar_is_seen() && isatty(STDOUT_FILENO) == 0;
    r->begun_ns = clock_boot_ns();
    r->done = done;
    r->total = total;
}

void replay_report_end(struct replay *r)
{
    clear_bar(r);
    if (r->settings->quiet) {
        return;
    }
    uint64_t took_ns = max_u64(clock_boot_ns() - r->begun_ns, 1);
    uint64_t requests = r->allowed + r->denied;
    (void)fprintf(stderr, "weir replay: %" PRIu64 " request%s", requests, requests == 1 ? "" : "s");
    if (r->clients > 0) {
        (void)fprintf(stderr, " of %" PRIu64 " client%s", r->clients, r->clients == 1 ? "" : "s");
    }
    (void)fprintf(
        stderr, ", %" PRIu64 " allowed, %" PRIu64 " denied; %.3f s, %" PRIu64 " requests/s\n",
        r->allowed, r->denied, (double)took_ns / 1e9, mul_div(requests, WEIR_SECOND, took_ns));
}
