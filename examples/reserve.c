/*
 * Costs that are known only afterwards, such as the tokens of a language model.
 * Reserve the most that an answer may cost, then settle what it did cost; cancel
 * if there was no answer. The example passes its own times, so that the output is
 * always the same; the calls without _at read the clock.
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir.h>

#define USER "alice", 5
#define TTL (2 * WEIR_MINUTE) /* after that, a request stays charged with its estimate */

static int failed;

static void expect(const char *what, uint64_t got, uint64_t wanted)
{
    printf("  %-32s %6" PRIu64 "\n", what, got);
    failed |= got != wanted;
}

static void must(int e)
{
    if (e != 0) {
        printf("  %s: %s\n", weir_errname(e), weir_strerror(e));
        failed = 1;
    }
}

static void converse(struct weir *w, uint64_t now)
{
    struct weir_reservation first;
    struct weir_reservation second;
    struct weir_reservation third;
    struct weir_answer a;

    printf("reserve 4000, use 1500: the rest comes back\n");
    must(weir_reserve_at(w, USER, 4000, TTL, now, &first, &a));
    expect("remaining while it runs", a.remaining, 6000);
    must(weir_settle_at(w, &first, 1500, now, &a));
    expect("remaining when settled", a.remaining, 8500);

    printf("reserve 5000, and the client goes away: cancel\n");
    must(weir_reserve_at(w, USER, 5000, TTL, now, &second, &a));
    expect("remaining while it runs", a.remaining, 3500);
    must(weir_cancel_at(w, &second, now, &a));
    expect("remaining when cancelled", a.remaining, 8500);

    printf("reserve 8000, use 12000: the overrun is a debt\n");
    must(weir_reserve_at(w, USER, 8000, TTL, now, &third, &a));
    expect("remaining while it runs", a.remaining, 500);
    must(weir_settle_at(w, &third, 12000, now, &a));
    expect("charged on top of the estimate", a.granted, 4000);
    expect("remaining when settled", a.remaining, 0);
    expect("ms until one token is there", a.retry_after_ns / WEIR_MILLISECOND, 3501);

    printf("settle it twice: refused, nothing changes\n");
    expect("WEIR_ESTALE", weir_settle_at(w, &third, 0, now, &a) == WEIR_ESTALE, 1);
}

int main(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct weir *tokens;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 60000; /* tokens per minute: one each millisecond */
    o.period_ns = WEIR_MINUTE;
    o.burst = 10000;
    o.max_debt = 20000; /* how much an answer may exceed its estimate */
    o.flags = WEIR_EXPLICIT_TIME;
    if (weir_open(&tokens, &o, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    converse(tokens, 10 * WEIR_SECOND);
    weir_close(tokens);
    return failed;
}
