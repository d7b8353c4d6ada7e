/*
 * The smallest useful limiter: five logins an hour for each address.
 *
 *     cc -std=c11 embed.c $(pkg-config --cflags --libs weir) && ./a.out
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir.h>

static int try_login(struct weir *logins, const char *address)
{
    struct weir_answer a;
    int e = weir_check(logins, address, strlen(address), 1, &a);
    if (e != 0) { /* an error, for example bad input: nothing was decided */
        fprintf(stderr, "%s: %s\n", address, weir_strerror(e));
        return e;
    }
    if (a.verdict == WEIR_ALLOW) {
        printf("%-12s allowed, %" PRIu64 " of %" PRIu64 " left\n", address, a.remaining, a.quota);
    } else {
        /* Retry-After is in whole seconds: round up, or the client retries too early. */
        uint64_t seconds = (a.retry_after_ns + WEIR_SECOND - 1) / WEIR_SECOND;
        printf("%-12s denied, Retry-After: %" PRIu64 "\n", address, seconds);
    }
    return 0;
}

int main(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct weir *logins;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 5;
    o.period_ns = WEIR_HOUR;
    if (weir_open(&logins, &o, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    int e = 0;
    for (int i = 0; i < 6 && e == 0; i++) {
        e = try_login(logins, "203.0.113.7");
    }
    if (e == 0) {
        e = try_login(logins, "198.51.100.9"); /* another key has its own quota */
    }
    weir_close(logins);
    return e != 0;
}
