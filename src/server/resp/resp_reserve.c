/* Reservations, units taken in advance: WEIR.RESERVE, WEIR.SETTLE, WEIR.CANCEL. */
#include "server/ask/reservations.h"
#include "server/resp/resp_commands.h"

static void fail_with(struct command *c, int e, const struct weir_error *error)
{
    if (e == RESERVATION_NONE) {
        resp_put_errorf(c->out, "NORESERVATION %s", error->text);
    } else if (e == RESERVATION_FULL) {
        resp_put_errorf(c->out, "OVERLOAD %s", error->text);
    } else {
        resp_put_failure(c, e, error);
    }
}

static void put_reserved(struct command *c, int e, const struct answer *a, const char *id,
                         const struct weir_error *error)
{
    if (e != 0) {
        fail_with(c, e, error);
        return;
    }
    resp_put_answer(c, a, 1);
    resp_put_name(c, "reservation");
    if (id[0] != 0) {
        resp_put_bulk(c->out, text_of(id));
    } else {
        resp_put_null(c->out, c->proto);
    }
}

static void put_reserved_later(struct deferred *d)
{
    struct command c = resp_resume(d);
    struct weir_error error = {0};
    put_reserved(&c, d->error, &d->answer, d->wire.id, &error);
}

/* WEIR.RESERVE limit key [key ...] [COST n] [TTL ms] [TIER t] */
static void run_reserve(struct command *c)
{
    struct later later = {.worker = c->connection->worker};
    char id[RESERVATION_ID];
    struct weir_error error = {0};
    struct answer a;
    struct resp_key k;
    if (!resp_read_key(c, 1u << RESP_COST | 1u << RESP_TTL | 1u << RESP_TIER, &k)) {
        return;
    }
    uint64_t ttl = k.options.number[RESP_TTL];
    int e = reservation_make(c->server->reservations, c->server->rules, &k.key,
                             k.options.number[RESP_COST], ttl != 0 ? ttl : RESERVATION_TTL_MS,
                             c->now_ns, &later, &a, id, &error);
    if (e == ANSWER_LATER) {
        resp_keep(c, &later, put_reserved_later);
    } else {
        put_reserved(c, e, &a, id, &error);
    }
}

static void settle(struct command *c, uint64_t actual)
{
    struct later later = {.worker = c->connection->worker};
    struct weir_error error = {0};
    struct answer a;
    int e = reservation_settle(c->server->reservations, c->server->rules, c->argv[1], actual,
                               c->now_ns, &later, &a, &error);
    if (e == RESERVATION_NONE || e == RESERVATION_FULL) {
        fail_with(c, e, &error);
    } else {
        resp_put_result(c, e, &a, &later, &error);
    }
}

/* WEIR.SETTLE id actual */
static void run_settle(struct command *c)
{
    uint64_t actual;
    if (!resp_to_u64(c->argv[2], &actual) || actual > INT64_MAX) {
        resp_put_errorf(c->out, "ERR found '%.*s', expected how many units were used",
                        (int)(c->argv[2].len > 64 ? 64 : c->argv[2].len), c->argv[2].at);
        return;
    }
    settle(c, actual);
}

static void run_cancel(struct command *c)
{
    settle(c, 0);
}

const struct command_row resp_reserve_commands[] = {
    {"WEIR.RESERVE", 2, 0, ROLE_CHECK, run_reserve,
     "limit key ... [COST n] [TTL ms] [TIER t]: takes units that are settled later"},
    {"WEIR.SETTLE", 3, 3, ROLE_CHECK, run_settle,
     "reservation actual: replaces its estimate by what was used"},
    {"WEIR.CANCEL", 2, 2, ROLE_CHECK, run_cancel, "reservation: gives its units back"},
    {NULL, 0, 0, ROLE_NONE, NULL, NULL},
};
