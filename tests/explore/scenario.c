#include "explore/scenario.h"

#include <stdio.h>
#include <string.h>

#include "explore/oracle.h"

#define STEPS_MAX 20000000

static const struct scenario *present;
static struct outcome outcome;
static struct range ranges[WORLD_RANGES + 1];
static unsigned range_count;

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

unsigned scenario_count_ops(const struct scenario *s, enum op_kind kind)
{
    unsigned n = 0;
    for (unsigned u = 0; u < s->users; u++) {
        for (unsigned i = 0; i < script_length(s->script[u]); i++) {
            n += s->script[u][i].kind == kind;
        }
    }
    return n;
}

static void reset(void *arg)
{
    (void)arg;
    memset(&outcome, 0, sizeof outcome);
    world_reset();
}

static const char *judge_end(void *arg, unsigned dead)
{
    outcome.dead = dead;
    if (!world_rest_untouched(ranges, range_count)) {
        return "memory was changed that is no part of a state";
    }
    const char *wrong = world_check_end(dead);
    if (wrong != NULL) {
        return wrong;
    }
    world_survey(outcome.left);
    return judge(arg);
}

bool scenario_begin(const struct scenario *s, struct subject *subject)
{
    oracle_forget();
    present = s;
    if (!world_make(&s->world)) {
        return false;
    }
    range_count = world_ranges(s->users, scenario_count_ops(s, CHANGE), ranges);
    ranges[range_count++] = (struct range){&outcome, sizeof outcome, false};
    *subject = (struct subject){
        .task = {s->users, live, world_changed, STEPS_MAX, ranges, range_count},
        .reset = reset,
        .judge = judge_end,
        .arg = (void *)(uintptr_t)s,
    };
    return true;
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

/* ---- exploring ---- */

/* Far more than any takes: who needs so many is not explored, and fails. */
#define STATES_MOST UINT64_C(40000000)

struct found scenario_explore(const struct scenario *s, unsigned kills)
{
    struct subject subject;
    struct how how = {kills, true, STATES_MOST};
    if (!scenario_begin(s, &subject)) {
        return (struct found){.failure = "there are no such keys"};
    }
    struct found f = search_all(&subject, &how);
    if (f.failure != NULL) {
        scenario_print(s, f.failure);
    }
    printf("    %u deaths: %s, %llu states, %llu steps, %llu schedules, %llu ends\n", kills,
           f.complete ? "exhaustive" : "NOT EXHAUSTIVE", (unsigned long long)f.states,
           (unsigned long long)f.steps, (unsigned long long)f.schedules,
           (unsigned long long)f.ends);
    return f;
}

bool scenario_walk(const struct scenario *s, unsigned kills, unsigned walks)
{
    struct subject subject;
    bool known = scenario_begin(s, &subject);
    for (uint64_t seed = 0; known && seed < walks; seed++) {
        known = search_knew_end(search_walk(&subject, kills, seed));
    }
    return known;
}
