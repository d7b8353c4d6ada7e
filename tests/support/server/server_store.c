#include "support/server/server_store.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fleet/fleet.h"
#include "support/engine/threads_run.h"

#define CLOCK_BYTES (2 * sizeof(int64_t))

static void start_redis(struct server_store *s)
{
    char path[] = "/tmp/weir-clock-XXXXXX";
    int fd = mkstemp(path);
    threads_require(fd >= 0 && ftruncate(fd, CLOCK_BYTES) == 0);
    s->clock = mmap(NULL, CLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    threads_require(s->clock != MAP_FAILED);
    (void)close(fd);
    (void)setenv("CLOCK_STEP_FILE", path, 1);
    (void)setenv("LD_PRELOAD", WEIR_BUILD_DIR "/tests/clock_step.so", 1);
    redis_world_alone(&s->redis, NULL);
    (void)unsetenv("LD_PRELOAD");
    (void)unlink(path);
}

void server_store_start(struct server_store *s)
{
    struct weir_fleet_options o = WEIR_FLEET_OPTIONS_INIT;
    struct weir_error error = {0};
    start_redis(s);
    o.url = s->redis.url;
    o.deadline_ns = 10 * WEIR_SECOND; /* no answer is degraded on a busy machine */
    o.fleet_size = 1;
    if (fleet_open_bare(&s->fleet, &o, &error) != 0) {
        threads_fail(__FILE__, __LINE__, error.text);
    }
}

void server_store_stop(struct server_store *s, uint64_t calls)
{
    struct weir_fleet_stats stats = {.size = sizeof stats};
    threads_require(weir_fleet_stats_read(s->fleet, &stats) == 0);
    threads_require(stats.calls >= calls && stats.degraded == 0);
    weir_fleet_close(s->fleet);
    redis_world_stop(&s->redis);
    (void)munmap(s->clock, CLOCK_BYTES);
}

void server_store_set_time(struct server_store *s, uint64_t now_ns)
{
    __atomic_store_n(&s->clock[1], (int64_t)(now_ns / WEIR_MICROSECOND) + 1, __ATOMIC_RELAXED);
}
