/* Writes decisions as text without printf(), which would take most of a replay's time. */
#include "cli/replay/replay_command.h"

#include "base/algorithms.h"

/*
 * Writes value / scale exactly, without trailing zeros; scale is a power of ten. Returns the
 * end.
 */
static char *put_decimal(char *at, uint64_t value, uint64_t scale)
{
    uint64_t rest = value % scale;
    at = text_put_u64(at, value / scale);
    if (rest > 0) {
        *at++ = '.';
    }
    for (; rest > 0; rest %= scale) {
        scale /= 10;
        *at++ = (char)('0' + rest / scale);
    }
    return at;
}

static char *put_duration(char *at, const char *name, uint64_t value, uint64_t scale)
{
    at = stpcpy(at, name);
    return value == REPLAY_NEVER ? stpcpy(at, "never") : put_decimal(at, value, scale);
}

char *replay_print_details(char *at, const struct replay_answer *a, uint64_t scale, bool delay)
{
    at = text_put_u64(stpcpy(at, " remaining="), a->remaining);
    at = put_duration(at, " retry=", a->retry, scale);
    at = put_duration(at, " reset=", a->reset, scale);
    return delay ? put_duration(at, " delay=", a->delay, scale) : at;
}

size_t replay_print_answer(char *line, const struct replay_answer *a,
                           const struct replay_settings *s, uint64_t scale)
{
    char *at = stpcpy(line, a->allow ? "allow" : "deny");
    if (s->explain) {
        at = replay_print_details(at, a, scale, algorithm_has(s->limit.algorithm, HAS_QUEUE));
    }
    *at++ = '\n';
    return (size_t)(at - line);
}
