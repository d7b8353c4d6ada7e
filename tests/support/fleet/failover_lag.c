#include "support/fleet/failover_lag.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/maths.h"
#include "support/fleet/failover_keys.h"
#include "support/fleet/failover_ledger.h"

#define DEADLINE (50 * WEIR_MILLISECOND) /* of the crowd: much shorter than a failover */
#define CROWDED 100                      /* number of its key in the slot */

static struct crowd *crowd;

static void start_crowd(const char *url, unsigned slot)
{
    struct crowd_options o = {.url = url,
                              .nodes = 2,
                              .threads = 1,
                              .deadline_ns = DEADLINE,
                              .quota = 1000000,
                              .grants = 1000000,
                              .key_count = 1};
    crowd_key_in_slot(slot, CROWDED, o.keys[0]);
    crowd = crowd_start(&o);
    crowd_await_progress(crowd, 200);
}

/* Returns how many grants of the old master were asked and answered at or after these times. */
static uint64_t granted_since(uint64_t asked_ns, uint64_t answered_ns, uint64_t died_ns)
{
    size_t count;
    const struct crowd_grant *g = crowd_grants(crowd, &count);
    uint64_t n = 0;
    for (size_t i = 0; i < count; i++) {
        n +=
            g[i].asked_ns < died_ns && g[i].asked_ns >= asked_ns && g[i].answered_ns >= answered_ns;
    }
    return n;
}

/* The lost units must be those granted within the lag, neither more nor fewer (except units that
 * the new master may have granted first without a reply), and the charged units must be those that
 * the new master knew of or granted. */
static void judge_crowd(uint64_t before_cut_ns, uint64_t cut_ns, uint64_t died_ns)
{
    crowd_halt(crowd);
    struct ledger l = ledger_of(crowd, 0, died_ns);
    struct crowd_tally t = crowd_tally(crowd);
    ledger_print(&l, "under load");
    assert_in_range(l.lost, sub_floor0(granted_since(cut_ns, 0, died_ns), t.unknown),
                    granted_since(0, before_cut_ns, died_ns));
    assert_true(l.lost > 0 && l.first_lost_ns >= before_cut_ns);
    assert_true(l.again <= l.lost && l.lost <= l.within);
    assert_in_range(crowd_charged(crowd, 0), l.kept + l.by_new, l.kept + l.by_new + t.unknown);
}

static void set_password(struct redis_node *replica, const char *password)
{
    const char *const words[] = {"CONFIG", "SET", "masterauth", password};
    assert_string_equal(redis_node_do(replica, words, 4), "OK");
}

/* Closes the replica's connection and prevents a new one: the replica then sends a password to a
 * master without one. (A stopped process would later read what waits in the kernel's buffer, and
 * Sentinels would not choose it for a while.) */
static void cut_off(struct redis_node *replica, struct redis_node *master)
{
    set_password(replica, "wrong");
    assert_string_equal(redis_node_run(master, "CLIENT KILL TYPE replica"), "1");
}

void failover_with_lag(struct redis_world *w, int master, int replica, unsigned slot)
{
    failover_keys_open(w->url, slot);
    start_crowd(w->url, slot);
    failover_keys_take_before();
    assert_true(redis_world_await_replica(w, master));
    uint64_t before_cut_ns = clock_monotonic_ns();
    cut_off(&w->node[replica], &w->node[master]);
    uint64_t cut_ns = clock_monotonic_ns();
    failover_keys_take_within();
    redis_world_expect_failover(w);
    redis_node_kill(&w->node[master]);
    uint64_t died_ns = clock_monotonic_ns();
    set_password(&w->node[replica], "");
    print_message("  kill -9, %.1f ms behind: the store answers again after %" PRIu64 " ms\n",
                  (double)(died_ns - cut_ns) / 1e6, failover_keys_await_store());
    failover_keys_take_the_rest();
    failover_keys_judge();
    judge_crowd(before_cut_ns, cut_ns, died_ns);
}

void failover_end(void)
{
    if (crowd != NULL) {
        crowd_end(crowd);
        crowd = NULL;
    }
    failover_keys_close();
}
