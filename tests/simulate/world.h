/* What the parts of the simulator share; simulate.h describes the simulator. */
#ifndef WEIR_TESTS_SIMULATE_WORLD_H
#define WEIR_TESTS_SIMULATE_WORLD_H

#include "base/maths.h"
#include "shared/leased/lease_wait.h"
#include "shared/core/script.h"
#include "shared/store/stores.h"
#include "simulate/fake_redis.h"
#include "simulate/simulate.h"
#include "support/store/node_keys_of.h"
#include "support/oracle/oracle_trace.h"

enum { NODES_MAX = 1000, SUBJECTS_MAX = 4, LIMITS_MAX = 2, MESSAGE_REPLY = 512 };

#define SECOND_US UINT64_C(1000000)
#define NEVER_US UINT64_MAX
#define BLOCK_MOST_US (3 * SECOND_US)
#define LEASE_LIFE_US (2 * SECOND_US + SECOND_US / 4) /* the longest life: lua/leased_bucket.lua */

/* ---- what is drawn from a seed: plan.c ---- */

enum demand {
    DEMAND_STEADY,
    DEMAND_BURSTS,
    DEMAND_ONE_HOT,
    DEMAND_FLOOD,
    DEMAND_WAVES, /* all ask for a while, then none, so that leases are idle and buckets fill */
    DEMANDS
};

struct plan {
    unsigned nodes;
    unsigned limits;
    unsigned subjects;
    struct weir_options limit[LIMITS_MAX];
    bool calm;          /* nothing fails, and all nodes ask for more than there is: I4 */
    uint64_t length_us; /* the time in which questions come */
    uint64_t faults_until_us;
    uint64_t gap_us; /* average time between two questions of one node */
    unsigned burst;
    uint64_t cost_most;
    enum demand demand;
    uint64_t wave_us;  /* DEMAND_WAVES: nodes ask in the first third of each wave */
    uint64_t delay_us; /* minimum delay of the network, each way */
    uint64_t jitter_us;
    uint64_t slow_us;   /* occasional additional delay, at most */
    unsigned slow_in;   /* one message in this many is slow; 0: none */
    unsigned lose_in;   /* one message in this many is lost, each way */
    unsigned refuse_in; /* one call in this many is not even sent */
    uint64_t deadline_us;
    uint64_t late_us; /* timers fire up to this late */
    unsigned drift_ppm;
    uint64_t sync_us;
    unsigned deaths;
    unsigned pauses;
    unsigned partitions;
    unsigned flushes;
    unsigned steps;
    unsigned verbs;
};

void plan_draw(struct oracle_random *g, int mode, struct plan *plan);
void plan_describe(const struct plan *plan, char *text, size_t size);

/* ---- subjects: a limit and one of its keys ---- */

struct admission {
    uint64_t at_us;    /* time of the decision, at the node or in the store */
    uint64_t store_us; /* the store's clock at that time */
    uint64_t units;
    unsigned node;
    bool unaware;    /* synced: the node has not heard of the last step of the store's clock */
    int64_t setting; /* setting and number of its window: check_windows() */
    int64_t window;
};

enum extra_kind { EXTRA_LOST, EXTRA_STEP, EXTRA_GIVEN };

/* Units that may be admitted beyond the limit, and the reason. */
struct extra {
    uint64_t at_us;
    uint64_t store_us;
    uint64_t units;
    int64_t step_us; /* EXTRA_STEP */
    enum extra_kind kind;
};

/* A block, in world time. */
struct blocked {
    uint64_t from_us;
    uint64_t to_us;
};

/* One window, by the store's time: the units admitted, and those in exchanges that the store ran in
 * it. */
struct in_window {
    int64_t window;
    unsigned losses; /* value of subject.losses since which it counts */
    uint64_t admitted;
    uint64_t ran;
    bool unaware; /* some were admitted by another clock: see is_unaware() */
};

struct subject {
    struct in_window all; /* synced windows: of all nodes */
    unsigned losses; /* how often the store lost or forgot what it was told, or its clock was set */
    bool stepped;    /* the store's clock was set */
    struct store_limit *limit;
    const struct store_params *params;
    char name[16];
    struct store_key key;
    struct admission *admissions;
    size_t admitted_n;
    size_t admitted_room;
    struct extra extras[128];
    size_t extras_n;
    struct blocked blocks[16];
    size_t blocks_n;
    /* `synced` buckets: see check_synced.c */
    i128 level;
    i128 cut; /* `level` without the debt from before a step back of the store's clock */
    uint64_t level_us;
    uint64_t ran;   /* units of all nodes, in exchanges that the store has run */
    uint64_t gone;  /* units that will never be reported, because their node died */
    uint64_t q;     /* the largest lease */
    bool uncertain; /* data was lost, or the store's clock was set */
    uint64_t offered;
    uint64_t admitted;
};

/* ---- nodes ---- */

/* The state of one node and one subject, in `synced`. */
struct told {
    struct in_window here;         /* windows: units of this node, in this life */
    struct in_window made;         /* the same when the exchange in flight was first made */
    struct in_window known_window; /* units of others that the last answered exchange knew of */
    uint64_t admitted;             /* units, in this life */
    uint64_t told;                 /* those of them in exchanges that were answered */
    uint64_t ran;                  /* those of them in exchanges that the store has run */
    uint64_t heard;                /* units of others that the last answered exchange knew of */
    uint64_t known;                /* `admitted` when the last answered exchange was first made */
    uint64_t flight;               /* `admitted` when the exchange in flight was first made */
    bool again;                    /* the exchange was lost, and has to be made again */
    uint64_t most;       /* most ever admitted from the making of one to the end of the next */
    uint64_t waits_us;   /* since when units wait to be reported without an answered exchange */
    uint64_t blocked_us; /* end of a block that the node has heard of, by the store's time */
    int64_t setting_us;  /* setting of the store's clock when the last answered exchange ran */
    uint64_t past;       /* sum of `most` of its earlier lives: each life counts as a node */
    uint64_t least;      /* the least of them */
};

/* Tells a callback which node it belongs to. */
struct home {
    struct world *world;
    unsigned node;
};

struct node {
    unsigned life; /* how often it was started */
    bool up;
    bool ending;        /* it ends in good order */
    uint64_t offset_ns; /* its clock at world time 0 */
    int drift_ppm;
    uint64_t tick_us;
    uint64_t paused_us; /* it is paused until then */
    uint64_t cut_us;    /* it is cut off from the store until then */
    int cut;            /* flags of enum cut */
    struct node_keys *keys;
    struct lease_waits waits; /* of `leased` */
    struct home home;         /* likewise */
    struct told told[SUBJECTS_MAX];
};

enum cut { CUT_REQUESTS = 1, CUT_REPLIES = 2, CUT_HOLDS = 4 };

/* ---- messages: a call and its reply ---- */

enum message_kind { MESSAGE_LEASE, MESSAGE_SYNC, MESSAGE_EXACT };

struct message {
    enum message_kind kind;
    unsigned node;
    unsigned life;
    unsigned subject;
    unsigned references;
    bool open; /* the node waits for its end */
    bool asks; /* a question waits for it */
    bool executed;
    bool probe;
    uint64_t cost;
    uint64_t made_us;
    uint64_t executed_us;
    uint64_t executed_store_us;
    uint64_t admitted; /* synced: units of this node when the exchange was first made */
    uint64_t others;   /* synced: units of others that the store knew of when it ran */
    struct in_window made;
    struct in_window heard;
    unsigned verb; /* MESSAGE_EXACT */
    uint64_t time_ns;
    union {
        struct lease_flight lease;
        struct sync_call sync;
    } call;
    size_t reply_len;
    char reply[MESSAGE_REPLY];
};

/* ---- the world ---- */

enum event_kind {
    EVENT_DEMAND,
    EVENT_TICK,
    EVENT_ARRIVE,
    EVENT_REPLY,
    EVENT_DEADLINE,
    EVENT_DEATH,
    EVENT_START,
    EVENT_PAUSE,
    EVENT_PARTITION,
    EVENT_FLUSH,
    EVENT_STEP,
    EVENT_VERB,
    EVENT_END_OF_DEMAND,
    EVENT_PROBE
};

struct event {
    uint64_t at_us;
    uint64_t seq;
    enum event_kind kind;
    unsigned node;
    struct message *message;
};

struct world {
    const struct simulate_options *options;
    struct simulate_result *result;
    struct oracle_random random;
    struct plan plan;
    uint64_t now_us;
    uint64_t epoch_us; /* the store's clock at world time 0 */
    int64_t step_us;   /* how far the store's clock was set */
    struct fake_redis *redis;
    const struct scripts *scripts;
    struct store_limit *limits[LIMITS_MAX];
    struct subject subjects[SUBJECTS_MAX];
    struct node *nodes;
    struct event *heap;
    size_t heap_n;
    size_t heap_room;
    uint64_t seq;
    uint64_t open;        /* number of questions that wait */
    uint64_t most_way_us; /* longest round trip of a call whose reply was heard */
    uint64_t end_us;      /* end of the run */
    bool over;
    struct buffer arguments;
    struct buffer request;
    struct buffer reply;
    char (*lines)[160]; /* the last lines of the trace */
    size_t lines_n;
};

enum { TRACE_LINES = 60 };

/* Records the first violation; the run then ends. */
void world_fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_fail_at(struct world *w, uint64_t at_us, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void world_trace(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define TRACE(w, ...)                                                                              \
    do {                                                                                           \
        if ((w)->options->trace != NULL) {                                                         \
            world_trace((w), __VA_ARGS__);                                                         \
        }                                                                                          \
    } while (0)

static inline void world_print(struct world *w, uint64_t x)
{
    w->result->print = (w->result->print ^ x) * UINT64_C(1099511628211);
}

static inline uint64_t world_between(struct world *w, uint64_t low, uint64_t high)
{
    return oracle_between(&w->random, low, high);
}

static inline bool world_once_in(struct world *w, uint64_t n)
{
    return n != 0 && oracle_once_in(&w->random, n);
}

/* Returns the store's clock at a world time, with its present setting. */
static inline uint64_t store_us(const struct world *w, uint64_t at_us)
{
    return (uint64_t)((int64_t)(w->epoch_us + at_us) + w->step_us);
}

/* ---- events.c ---- */

void event_put(struct world *w, uint64_t at_us, enum event_kind kind, unsigned node,
               struct message *message);
bool event_next(struct world *w, struct event *out);

/* ---- asked.c: questions of `leased` ---- */

void asked_begin(struct world *w, unsigned node); /* at the start of a node's life */
void asked_leased(struct world *w, unsigned node, unsigned subject, uint64_t cost, bool probe);
void asked_replied(struct world *w, struct message *m, const struct store_reply *reply);
void asked_lost(struct world *w, struct message *m);
void asked_tick(struct world *w, unsigned node);
void asked_next(struct world *w, unsigned node); /* sends calls that no question has made */

/* ---- node.c ---- */

unsigned subject_of(const struct world *w, const struct store_key *key);
/* Handles the answer to a question. m is the call by which the store decided it; NULL: the node
 * decided it now. */
void answered(struct world *w, unsigned node, unsigned subject, uint64_t cost,
              const struct weir_answer *a, const struct message *m, bool probe);
void ask_exact(struct world *w, unsigned node, unsigned subject, uint64_t cost, bool probe);

void node_start(struct world *w, unsigned n);
uint64_t at_once(const struct world *w, unsigned subject, uint64_t units);
void node_stop(struct world *w, unsigned n); /* the node dies: what it knows is gone */
uint64_t node_ns(const struct world *w, unsigned n, uint64_t at_us);
uint64_t node_us(const struct world *w, unsigned n, uint64_t ns); /* first time at that ns */
void node_ask(struct world *w, unsigned n, unsigned subject, uint64_t cost, bool probe);
void node_verb(struct world *w, unsigned n, unsigned subject, unsigned verb, uint64_t cost,
               uint64_t time_ns);
void node_tick(struct world *w, unsigned n);
void node_replied(struct world *w, struct message *m);
void node_lost(struct world *w, struct message *m);
/* Sends what is due, and schedules the next tick. */
void node_pump(struct world *w, unsigned n);

/* ---- network.c ---- */

struct message *message_make(struct world *w, enum message_kind kind, unsigned node,
                             unsigned subject);
bool message_send(struct world *w, struct message *m); /* false: it was refused, and m is freed */
void message_release(struct message *m);
void network_arrive(struct world *w, struct message *m);
void network_reply(struct world *w, struct message *m);
void network_deadline(struct world *w, struct message *m);

/* ---- faults.c ---- */

void faults_plan(struct world *w);
void fault_happens(struct world *w, const struct event *e);

/* ---- check_*.c ---- */

void admit(struct world *w, unsigned subject, unsigned node, uint64_t units, uint64_t at_us,
           uint64_t store_at_us);
void extra_put(struct world *w, unsigned subject, enum extra_kind kind, uint64_t units,
               int64_t step_us);
void check_level(struct world *w, const struct message *m); /* I3 */
void check_spendable(struct world *w, unsigned subject, unsigned node);
void check_leased(struct world *w);
void check_synced(struct world *w);
void level_take(struct world *w, unsigned subject, unsigned node, uint64_t units);
void level_give(struct world *w, unsigned subject, uint64_t units);
void level_lost(struct world *w, unsigned subject);
void level_step(struct world *w, unsigned subject, int64_t step_us);
bool is_unaware(const struct world *w, unsigned subject, unsigned node);
void level_ran(struct world *w, struct message *m);
void level_made(struct world *w, struct message *m);
void check_told(struct world *w, unsigned subject); /* called when nothing is left to report: I6 */

/* Checks I2 with `more` units, and the refill of a time of `slack` parts, on top of the limit. */
void check_bucket(struct world *w, const struct subject *s, uint64_t more, i128 slack);
void check_windows(struct world *w, const struct subject *s, uint64_t more, uint64_t unsure_us);
int64_t window_of(const struct store_params *p, uint64_t store_at_us);

/* Returns the time of one unit, in STORE_PARTS of a microsecond. */
static inline i128 unit_parts(const struct store_params *p)
{
    return (i128)p->a * STORE_PARTS + p->b;
}

static inline bool is_bucket(const struct store_params *p)
{
    return p->algorithm == WEIR_TOKEN_BUCKET;
}

#endif
