/*
 * Rules whose limiters live in a folder: finds the folder, follows the files' clock, opens limiters
 * that are not of the rules.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "rules/live/live.h"

int live_open_state(struct weir_rules *r, const struct config *config, struct weir_error *error)
{
    bool named = (r->options.flags & WEIR_RULES_SERVER_STATE) != 0 && config->server.state.len > 0;
    const char *given = r->options.state;
    if (given == NULL && !named) {
        return 0;
    }
    char *path = given == NULL ? config_beside(config, config->server.state) : NULL;
    if (given == NULL && path == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for the state");
    }
    r->options.state = NULL; /* owned by the caller, who may free it */
    int e = state_open(&r->state, given != NULL ? given : path, error);
    free(path);
    return e;
}

int live_check_process(const struct weir_rules *r, struct weir_error *error)
{
    if (r->state != NULL && r->state->process != getpid()) {
        return fail(error, WEIR_ENOTSUP,
                    "the rules' state belongs to process %ld, expected that one to change them",
                    (long)r->state->process);
    }
    return 0;
}

/* ---- time ---- */

static bool is_beyond(struct weir *limiter, uint64_t now_ns)
{
    struct weir_question peek = {.key = "x", .key_len = 1, .mode = WEIR_PEEK};
    struct weir_answer answer;
    return weir_ask_at(limiter, &peek, now_ns, &answer) == WEIR_ETIME;
}

/*
 * Sets the rules' clock forward if it is before the limiter's time line; called before any
 * question. If the machine's clock was set back by more than a day, or the machine boots in 1970,
 * our time would be before that of the file, and every question would be an error. The file's time
 * is better.
 */
static void follow_clock(struct weir_rules *r, struct weir *limiter, struct problems *problems)
{
    uint64_t theirs;
    uint64_t since = clock_boot_ns() - r->anchor_boot_ns;
    bool own = r->options.clock == NULL && (r->options.flags & WEIR_EXPLICIT_TIME) == 0;
    if (!own || r->state == NULL || !is_beyond(limiter, r->anchor_unix_ns + since) ||
        weir_now(limiter, &theirs) != 0 || theirs - since <= r->anchor_unix_ns) {
        return;
    }
    warning(problems, (struct place){r->state->folder, 0, 0},
            "the system's clock is %llu s behind the state: going on from there",
            (unsigned long long)((theirs - since - r->anchor_unix_ns) / WEIR_SECOND));
    r->anchor_unix_ns = theirs - since;
}

void live_settle_state(struct weir_rules *r, struct ruleset *set, struct problems *problems)
{
    if (r->state == NULL) {
        return;
    }
    state_settle(r->state, set, r->set != set ? r->set : NULL, problems);
    for (size_t i = 0; i < set->rules_count; i++) {
        for (size_t j = 0; r->set == set && j < set->rules[i].variants_count; j++) {
            const struct holder *holder = set->rules[i].variants[j].holder;
            if (holder != NULL && holder->remote == NULL) {
                follow_clock(r, holder->limiter, problems);
            }
        }
    }
}

/* ---- others ---- */

int live_open_beside(struct weir_rules *r, const char *name, struct weir_options *o,
                     struct weir **limiter, struct weir_error *error)
{
    struct problems problems = {.tell = r->options.message, .arg = r->options.message_arg};
    struct state_file file = {0};
    if (r->state == NULL) {
        return weir_open(limiter, o, error);
    }
    (void)snprintf(file.name, sizeof file.name, "%s.weir", name);
    (void)pthread_mutex_lock(&r->reload);
    int e = live_check_process(r, error);
    e = e != 0 ? e : state_limiter(r->state, o, false, &problems, &file, limiter, error);
    if (e == 0) {
        state_keep(r->state, &file, &problems);
        follow_clock(r, *limiter, &problems);
    }
    (void)pthread_mutex_unlock(&r->reload);
    problems_finish(&problems);
    return e;
}

void live_close_beside(struct weir *limiter)
{
    state_limiter_close(limiter);
}
