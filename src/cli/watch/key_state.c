#include "cli/watch/key_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/admin_client.h"

#define ROUNDING_MS 2 /* the server rounds times up to a ms, and clocks have grains of their own */

#define NUMBER_BYTES 40

/* ---- polls ---- */

/* Returns a member that is a number; -1 if it is null or missing. */
static double number_in(const json_t *answer, const char *name)
{
    const json_t *member = json_object_get(answer, name);
    return json_is_number(member) ? json_number_value(member) : -1;
}

void key_poll_read(const json_t *answer, struct key_poll *poll)
{
    const char *verdict = json_string_value(json_object_get(answer, "verdict"));
    const json_t *blocked = json_object_get(answer, "blocked_ms");
    (void)snprintf(poll->verdict, sizeof poll->verdict, "%s",
                   verdict != NULL ? verdict : "not known");
    poll->quota = number_in(answer, "quota");
    poll->remaining = number_in(answer, "remaining");
    poll->known = poll->remaining >= 0 && strcmp(json_text(answer, "reason"), "store") != 0;
    poll->retry_ms = number_in(answer, "retry_after_ms");
    poll->reset_ms = number_in(answer, "reset_after_ms");
    poll->blocked_ms = json_is_number(blocked) ? json_number_value(blocked) : 0;
}

void key_polls_add(struct key_polls *polls, const struct key_poll *poll)
{
    if (polls->count == KEY_POLLS) {
        memmove(polls->polls, polls->polls + 1, (KEY_POLLS - 1) * sizeof *poll);
        polls->count--;
    }
    polls->polls[polls->count++] = *poll;
}

double key_even(const char *algorithm, double count, double period_ms)
{
    return strstr(algorithm, "bucket") != NULL && count > 0 && period_ms > 0 ? count / period_ms
                                                                             : 0;
}

/* ---- in use ---- */

/* What was taken between two polls. */
struct taken {
    bool comparable; /* the two can be compared */
    bool seen;       /* something was taken */
    bool counted;    /* `units` is known */
    double units;
    double time_ms;
};

/* The server answered at some time between `sent_ms` and `came_ms`, so at least `least` ms have
 * passed between the answers. */
static struct taken taken_between(const struct key_poll *a, const struct key_poll *b, double even)
{
    double least = b->sent_ms - a->came_ms;
    struct taken t = {.counted = true, .time_ms = (least + b->came_ms - a->sent_ms) / 2};
    double drop = a->remaining - b->remaining;
    double late = b->reset_ms - fmax(0, a->reset_ms - least);
    t.comparable =
        a->known && b->known && a->quota == b->quota && a->blocked_ms == 0 && b->blocked_ms == 0;
    t.seen = t.comparable && (drop > 0 || late > ROUNDING_MS);
    if (t.seen && even > 0) {
        /* A bucket that was full in between hides what was taken before. */
        t.counted = a->reset_ms > t.time_ms;
        t.units = fmax(0, b->reset_ms - a->reset_ms + t.time_ms) * even;
    } else if (t.seen) {
        t.counted = drop > 0;
        t.units = drop;
    }
    return t;
}

/* Returns whether the polls show use. Sets *rate to the units per second, of the pauses up to the
 * last in which they can be told; 0: not known. */
static bool find_use(const struct key_polls *polls, double even, double *rate)
{
    double units = 0;
    double time_ms = 0;
    bool seen = false;
    for (size_t i = 1; i < polls->count; i++) {
        struct taken t = taken_between(&polls->polls[i - 1], &polls->polls[i], even);
        seen = seen || t.seen;
        if (t.comparable) {
            units = t.counted ? units + t.units : 0;
            time_ms = t.counted ? time_ms + t.time_ms : 0;
        }
    }
    *rate = seen && units > 0 && time_ms > 0 ? 1000 * units / time_ms : 0;
    return seen;
}

/* ---- words ---- */

/* Formats a whole number with a comma at each thousand. */
static const char *with_commas(double number, char text[NUMBER_BYTES])
{
    char digits[NUMBER_BYTES];
    int n = snprintf(digits, sizeof digits, "%.0f", number);
    char *to = text;
    for (int i = 0; i < n && to + 2 < text + NUMBER_BYTES; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            *to++ = ',';
        }
        *to++ = digits[i];
    }
    *to = 0;
    return text;
}

/* Formats a whole number with three digits at most: 7, 999, 1.23k, 45.6M. */
static const char *with_unit(double number, char text[NUMBER_BYTES])
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    unsigned unit = 0;
    while (number >= 999.5 && unit < 4) {
        number /= 1000;
        unit++;
    }
    int digits = number >= 99.95 || number == floor(number) ? 0 : number >= 9.995 ? 1 : 2;
    (void)snprintf(text, NUMBER_BYTES, "%.*f%s", digits, number, units[unit]);
    return text;
}

/* Formats a long time as two units at most: 2 min 5 s, 3 h 20 min, 4 d 2 h. */
static void put_units(double ms, char *text, size_t size)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    double left = round(ms / 1000);
    size_t len = 0;
    unsigned used = 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0] && used < 2 && len < size; i++) {
        double n = floor(left / units[i].seconds);
        left -= n * units[i].seconds;
        used += n > 0 || used > 0;
        if (n > 0) {
            len += (size_t)snprintf(text + len, size - len, "%s%.0f %s", len > 0 ? " " : "", n,
                                    units[i].name);
        }
    }
}

/* Formats "in 1.5 s", `zero` for 0, or "never" for a negative time. */
static void put_time(double ms, const char *zero, char *text, size_t size)
{
    if (ms < 0) {
        (void)snprintf(text, size, "never");
    } else if (ms == 0) {
        (void)snprintf(text, size, "%s", zero);
    } else if (ms < 100) {
        (void)snprintf(text, size, "in %.0f ms", ms);
    } else if (ms < 59950) {
        (void)snprintf(text, size, "in %.1f s", ms / 1000);
    } else {
        (void)snprintf(text, size, "in ");
        put_units(ms, text + 3, size - 3);
    }
}

/* Returns the level of a bucket, which is below 0 if it owes units. */
static double level_of(const struct key_poll *p, double even)
{
    return even > 0 && p->known && p->blocked_ms == 0 ? p->quota - fmax(0, p->reset_ms) * even
                                                      : p->remaining;
}

static void put_left(const struct key_poll *p, double level, char *text, size_t size)
{
    char remaining[NUMBER_BYTES];
    char quota[NUMBER_BYTES];
    char owed[NUMBER_BYTES];
    if (p->blocked_ms != 0) {
        (void)snprintf(text, size, "blocked");
    } else if (!p->known) {
        (void)snprintf(text, size, "not known on this node");
    } else {
        bool owes = level < -0.999;
        (void)snprintf(text, size, "%s of %s left%s%s", with_commas(p->remaining, remaining),
                       with_commas(p->quota, quota), owes ? ", owes " : "",
                       owes ? with_commas(round(-level), owed) : "");
    }
}

static void put_use(bool known, bool in_use, double rate, char *text, size_t size)
{
    char number[NUMBER_BYTES];
    if (!known) {
        (void)snprintf(text, size, "use not known");
    } else if (!in_use || rate <= 0) {
        (void)snprintf(text, size, "%s", in_use ? "in use" : "no use seen");
    } else if (rate >= 0.095 && rate < 0.95) {
        (void)snprintf(text, size, "in use, about %.1f/s", rate);
    } else {
        (void)snprintf(text, size, "in use, about %s/s",
                       rate < 0.095 ? "less than 0.1" : with_unit(round(rate), number));
    }
}

void key_state_tell(const struct key_polls *polls, double even, struct key_state *state)
{
    const struct key_poll *p = &polls->polls[polls->count - 1];
    double rate;
    double level = level_of(p, even);
    state->verdict = p->verdict;
    state->blocked = p->blocked_ms != 0;
    state->in_use = find_use(polls, even, &rate);
    state->part =
        state->blocked || !p->known || p->quota <= 0 ? 0 : fmax(0, fmin(1, level / p->quota));
    put_left(p, level, state->left, sizeof state->left);
    put_use(p->known, state->in_use, rate, state->use, sizeof state->use);
    (void)snprintf(state->retry, sizeof state->retry, "-");
    (void)snprintf(state->reset, sizeof state->reset, "-");
    if (p->known) {
        put_time(p->retry_ms, "now", state->retry, sizeof state->retry);
        put_time(p->reset_ms, "fresh", state->reset, sizeof state->reset);
    }
}
