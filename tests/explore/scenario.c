#include "explore/scenario.h"

#include <stdio.h>
#include <string.h>

#include "explore/oracle.h"

#define STEPS_MAX 20000000

static const struct scenario *present;
static struct outcome outcome;

static void live(unsigned user)
{
    const struct op *script = present->script[user];
    for (unsigned i = 0; i < script_length(script); i++) {
        outcome.told[user][i] = world_do(script[i]);
        outcome.done[user] = i + 1;
    }
}

/* What is granted is in bits 8 to 15, what remains in 16 to 23: see world.c. */
static unsigned granted(uint64_t told)
{
    return (unsigned)(told >> 8 & 255);
}

static unsigned remaining(uint64_t told)
{
    return (unsigned)(told >> 16 & 255);
}

/* What users did to one key. */
struct total {
    bool known; /* nothing but checks */
    unsigned granted;
    unsigned open; /* units of checks that somebody died in */
};

static struct total total_of(const struct scenario *s, unsigned key)
{
    struct total t = {true, 0, 0};
    for (unsigned u = 0; u < s->users; u++) {
        for (unsigned i = 0; i < script_length(s->script[u]); i++) {
            struct op op = s->script[u][i];
            bool here = op.key == key && op.kind != SWEEP && op.kind != CHANGE;
            t.known = t.known && (!here || op.kind == CHECK || op.kind == PEEK);
            if (here && op.kind == CHECK && i < outcome.done[u]) {
                t.granted += granted(outcome.told[u][i]);
            } else if (here && op.kind == CHECK && i == outcome.done[u]) {
                t.open += op.units;
            }
        }
    }
    return t;
}

static const char *check_totals(const struct scenario *s)
{
    uint64_t before[KEYS_MAX];
    world_reset();
    world_survey(before);
    for (unsigned key = 0; key < s->world.keys; key++) {
        struct total t = total_of(s, key);
        unsigned used = remaining(before[key]) - remaining(outcome.left[key]);
        if (t.known && (used < t.granted || used > t.granted + t.open)) {
            return "a key was not charged for exactly what was granted";
        }
    }
    return NULL;
}

static const char *judge(const struct scenario *s)
{
    switch (s->judge) {
    case BY_ORDERS:
        return oracle_accepts(s, &outcome) ? NULL : "no order of whole operations has this outcome";
    case BY_TOTALS:
        return check_totals(s);
    default:
        return NULL;
    }
}

bool scenario_begin(const struct scenario *s)
{
    scheduler_forget();
    oracle_forget();
    present = s;
    return world_make(&s->world);
}

const char *scenario_attempt(void *arg, struct strategy *strategy, struct run *run)
{
    const struct scenario *s = arg;
    struct task task = {s->users, live, world_changed, STEPS_MAX};
    memset(&outcome, 0, sizeof outcome);
    world_reset();
    *run = scheduler_run(&task, strategy);
    if (run->failure != NULL) {
        return run->failure;
    }
    outcome.dead = run->dead;
    const char *wrong = world_check_end(run->dead);
    if (wrong != NULL) {
        return wrong;
    }
    world_survey(outcome.left);
    return judge(s);
}

static void print_seen(uint64_t seen)
{
    printf(" verdict %u flags %u granted %u remaining %u of %u;", (unsigned)(seen & 15),
           (unsigned)(seen >> 4 & 15), (unsigned)(seen >> 8 & 255), (unsigned)(seen >> 16 & 255),
           (unsigned)(seen >> 24 & 255));
}

void scenario_print(const struct scenario *s, const char *failure)
{
    printf("%s\n  %s", s->name, failure);
    scheduler_print(world_name);
    for (unsigned u = 0; u < s->users; u++) {
        for (unsigned i = 0; i < script_length(s->script[u]); i++) {
            char text[64];
            world_name_op(s->script[u][i], text, sizeof text);
            printf("  %c %s:", 'A' + u, text);
            if (i < outcome.done[u]) {
                print_seen(outcome.told[u][i]);
            } else {
                printf(" did not return");
            }
            printf("\n");
        }
    }
    for (unsigned i = 0; i < s->world.keys; i++) {
        printf("  key %u afterwards:", i);
        print_seen(outcome.left[i]);
        printf("\n");
    }
    printf("  the table before:");
    world_reset();
    world_print();
}
