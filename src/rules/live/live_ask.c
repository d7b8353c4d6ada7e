/* Asks rules in use, and counts the answers. */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "rules/live/live.h"

/*
 * Adds to a counter of the slot. The last slot is shared by all threads that have no slot of their
 * own.
 */
static void count(struct weir_rules *rules, struct slot *slot, uint64_t *counter, uint64_t n)
{
    if (n == 0) {
        return;
    }
    if (slot == &rules->slots[THREAD_OWN]) {
        (void)fetch_add(counter, n);
    } else {
        count_own(counter, n);
    }
}

void rules_count(struct weir_rules *rules, struct slot *slot, const struct tally *tally, bool bad)
{
    count(rules, slot, &slot->bad, bad);
    count(rules, slot, &slot->unmatched, tally->unmatched);
    count(rules, slot, &slot->allow_listed, tally->allow_listed);
    count(rules, slot, &slot->block_listed, tally->block_listed);
    count(rules, slot, &slot->missing, tally->missing);
    count(rules, slot, &slot->tier_unknown, tally->tier_unknown);
    count(rules, slot, &slot->shadow_denied, tally->shadow_denied);
    count(rules, slot, &slot->shadow_failed, tally->shadow_failed);
}

static int ask(struct weir_rules *rules, const struct weir_rules_question *question,
               uint64_t now_ns, const struct waiter *waiter, struct weir_rules_answer *answer,
               struct weir_error *error)
{
    struct tally tally = {0};
    if (rules == NULL || question == NULL || answer == NULL) {
        return fail(error, WEIR_EINVAL, "the rules, the question or the answer is NULL");
    }
    struct slot *slot = gate_enter(rules);
    int e = ruleset_ask(rules->set, question, now_ns, waiter, answer, &tally, error);
    count(rules, slot, &slot->asked, 1);
    rules_count(rules, slot, &tally, e < 0);
    gate_leave(slot);
    return e;
}

int weir_rules_ask_at(struct weir_rules *rules, const struct weir_rules_question *question,
                      uint64_t now_ns, struct weir_rules_answer *answer, struct weir_error *error)
{
    return ask(rules, question, now_ns, NULL, answer, error);
}

int rules_ask_in(struct weir_rules *rules, void *where, struct arena *memory,
                 const struct weir_rules_question *question, uint64_t now_ns,
                 struct weir_rules_answer *answer, weir_rules_done_fn done, void *arg,
                 struct weir_error *error)
{
    struct waiter waiter = {rules, where, memory, done, arg};
    int e = ask(rules, question, now_ns, &waiter, answer, error);
    return e == 0 ? 1 : e == RULESET_PENDING ? 0 : e;
}

int weir_rules_ask_async(struct weir_rules *rules, void *where,
                         const struct weir_rules_question *question, uint64_t now_ns,
                         struct weir_rules_answer *answer, weir_rules_done_fn done, void *arg,
                         struct weir_error *error)
{
    return done == NULL
               ? fail(error, WEIR_EINVAL, "there is no function to call with the answer")
               : rules_ask_in(rules, where, NULL, question, now_ns, answer, done, arg, error);
}

static uint64_t now(const struct weir_rules *rules)
{
    return rules->options.clock != NULL
               ? rules->options.clock(rules->options.clock_arg)
               : rules->anchor_unix_ns + (clock_boot_ns() - rules->anchor_boot_ns);
}

int weir_rules_now(struct weir_rules *rules, uint64_t *now_ns)
{
    if (rules == NULL || now_ns == NULL || (rules->options.flags & WEIR_EXPLICIT_TIME) != 0) {
        return WEIR_EINVAL;
    }
    *now_ns = now(rules);
    return 0;
}

int weir_rules_ask(struct weir_rules *rules, const struct weir_rules_question *question,
                   struct weir_rules_answer *answer, struct weir_error *error)
{
    if (rules == NULL || (rules->options.flags & WEIR_EXPLICIT_TIME) != 0) {
        return fail(error, WEIR_EINVAL,
                    rules == NULL ? "the rules are NULL"
                                  : "the rules have WEIR_EXPLICIT_TIME: use weir_rules_ask_at()");
    }
    return weir_rules_ask_at(rules, question, now(rules), answer, error);
}

struct weir_fleet *weir_rules_fleet(struct weir_rules *rules)
{
    return rules != NULL ? rules->options.fleet : NULL;
}
