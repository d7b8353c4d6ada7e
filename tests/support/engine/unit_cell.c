#include "support/engine/unit_cell.h"

struct limit_spec unit_spec(int algorithm, uint64_t quota, uint64_t period_ns, uint64_t max_debt)
{
    return (struct limit_spec){
        .algorithm = algorithm,
        .count = quota,
        .period_ns = period_ns,
        .burst = algorithm == WEIR_TOKEN_BUCKET ? quota : 0,
        .queue = algorithm == WEIR_LEAKY_BUCKET ? quota - 1 : 0,
        .max_debt = max_debt,
    };
}

struct unit_cell unit_cell(int algorithm, uint64_t quota, uint64_t period_ns, uint64_t max_debt)
{
    struct limit_spec spec = unit_spec(algorithm, quota, period_ns, max_debt);
    struct algo_layout layout = {0, 0, false};
    struct weir_error error = {0, ""};
    struct unit_cell c;
    memset(&c, 0, sizeof c);
    c.ops = algo_by_id(algorithm);
    c.params.spec = spec;
    if (c.ops->compile(&spec, &layout, &c.params, &error) != 0) {
        fail_msg("compile: %s", error.text);
    }
    assert_true(c.params.capacity <= CELL_RECORD);
    return c;
}

struct algo_step unit_cell_decide(struct unit_cell *c, uint64_t cost, uint64_t now)
{
    struct algo_ask ask = {now, cost, 0};
    return algo_decide(c->ops, &c->params, (struct algo_state){c->word, c->record}, &ask);
}

int unit_cell_take(struct unit_cell *c, uint64_t cost, uint64_t now)
{
    struct algo_step step = unit_cell_decide(c, cost, now);
    if (step.verdict == WEIR_ALLOW && c->ops->note != NULL) {
        c->ops->note(&c->params, (struct algo_state){step.word - cost, c->record}, now, cost);
    }
    if (step.verdict == WEIR_ALLOW || step.pulled) {
        c->word = step.word;
    }
    return step.verdict;
}

struct weir_answer unit_cell_peek(struct unit_cell *c, uint64_t cost, uint64_t now)
{
    struct algo_ask ask = {now, cost, 0};
    struct weir_answer a;
    memset(&a, 0, sizeof a);
    a.verdict = unit_cell_decide(c, cost, now).verdict;
    algo_describe(c->ops, &c->params, (struct algo_state){c->word, c->record}, &ask, &a);
    return a;
}

uint64_t unit_cell_charge(struct unit_cell *c, uint64_t units, uint64_t now)
{
    struct algo_ask ask = {now, units, 0};
    uint64_t charged;
    struct algo_step step =
        algo_penalize(c->ops, &c->params, (struct algo_state){c->word, c->record}, &ask, &charged);
    if (c->ops->note != NULL) {
        c->ops->note(&c->params, (struct algo_state){step.word - charged, c->record}, now, charged);
    }
    c->word = step.word;
    return charged;
}

void unit_cell_refund(struct unit_cell *c, uint64_t units, uint64_t charged_at, uint64_t now)
{
    struct algo_ask ask = {now, units, 0};
    struct algo_charge charge = {charged_at, c->params.step, 0};
    c->word = c->ops->refund(&c->params, (struct algo_state){c->word, c->record}, &ask, &charge);
}

uint64_t unit_cell_fresh_in(struct unit_cell *c, uint64_t now)
{
    /* Freshness is judged a second late. */
    struct debt debt;
    algo_owes(c->ops, &c->params, (struct algo_state){c->word, c->record}, now + ALGO_SLACK_NS,
              &debt);
    return debt.fresh_in;
}

uint64_t unit_cell_stamp(struct unit_cell *c, uint64_t now)
{
    struct algo_state s = {c->word, c->record};
    return c->ops->stamp != NULL ? c->ops->stamp(&c->params, s, now) : now;
}
