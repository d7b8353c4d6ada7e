/*
 * Every row of src/server/bounds.def has a driver, which goes to the bound and beyond. The drivers
 * run in random order; the seed is printed, and WEIR_SEED repeats it.
 */
// test-timeout: 900
// test-labels: notsan
#include <time.h>

#include "bounds/bounds_scene.h"
#include "cli/serve/serve.h"
#include "rules/compiled/ruleset.h"
#include "rules/live/call_ask.h"
#include "rules/live/live.h"
#include "server/operations/rls.h"

struct row {
    const char *file;
    const char *name;
    bool option;
    uint64_t value;
};

#define BOUND_GROUP(id, title)
#define BOUND(file, name, value, unit, ...) {file, #name, false, 0},
#define BOUND_OPTION(file, name, value, unit, ...) {file, #name, true, value},
#define BOUND_EXCEPTION(file, name, why)

static const struct row rows[] = {
#include "server/bounds.def"
};

#define ROWS (sizeof rows / sizeof rows[0])

static const struct driver *const tables[] = {drivers_connections, drivers_bytes, drivers_grpc,
                                              drivers_requests,    drivers_later, drivers_operators,
                                              drivers_kept,        drivers_store};

static const struct driver *driver_of(const struct row *row)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const struct driver *d = tables[i]; d->name != NULL; d++) {
            if (strcmp(d->name, row->name) == 0 && strcmp(d->file, row->file) == 0) {
                return d;
            }
        }
    }
    return NULL;
}

static void every_row_has_a_driver(void **state)
{
    size_t drivers = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (driver_of(&rows[i]) == NULL) {
            fail_msg("no driver for %s of %s: add one in tests/bounds/drive_*.c", rows[i].name,
                     rows[i].file);
        }
    }
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const struct driver *d = tables[i]; d->name != NULL; d++) {
            drivers++;
        }
    }
    assert_int_equal(drivers, ROWS); /* none is left over */
}

/* A bound that another test drives: the test is there, and speaks of it. */
static void check_elsewhere(const struct driver *d)
{
    char path[512];
    char line[4096];
    bool found = false;
    (void)snprintf(path, sizeof path, "%s/tests/%s", WEIR_SOURCE_DIR, d->elsewhere);
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        fail_msg("%s: there is no %s", d->name, path);
    }
    while (!found && fgets(line, sizeof line, f) != NULL) {
        found = strstr(line, d->word) != NULL;
    }
    (void)fclose(f);
    if (!found) {
        fail_msg("%s: '%s' is not in %s", d->name, d->word, path);
    }
}

static void each_bound_holds(void **state)
{
    static struct scene scene;
    const char *given = getenv("WEIR_SEED");
    const char *only = getenv("WEIR_BOUND");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    size_t order[ROWS];
    printf("seed %llu\n", (unsigned long long)seed);
    scene_seed(seed);
    for (size_t i = 0; i < ROWS; i++) {
        size_t j = scene_random((unsigned)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < ROWS; i++) {
        const struct driver *d = driver_of(&rows[order[i]]);
        if (only != NULL && strcmp(only, d->name) != 0) {
            continue;
        }
        printf("%s: %s%s\n", d->name, d->drive != NULL ? "driven" : "by ",
               d->drive != NULL ? "" : d->elsewhere);
        (void)fflush(stdout);
        if (d->drive != NULL) {
            d->drive(&scene);
        } else {
            check_elsewhere(d);
        }
    }
}

/* scripts/check-bounds compares the value of a macro with its row, but cannot find a default. */
static void options_have_the_defaults_of_their_rows(void **state)
{
    static struct scene scene;
    const struct serve_settings *serve = cli_serve.defaults;
    struct server_options o = scene_options();
    scene_start(&scene, "limits: [{name: api, key: [user], rate: 9/s}]", &o);
    const struct weir_rules *rules = scene.world.server.rules;
    const struct limit_config *limit = rules->set->config.limits[0];
    const struct {
        const char *name;
        uint64_t value;
    } defaults[] = {
        {"connections", serve->server.connections},
        {"connections_per_address", serve->server.connections_per_address},
        {"adhoc_keys", rules->started.adhoc.max_keys},
        {"hold_max_ns", rules->started.server.hold_max_ns},
        {"max_keys", limit->base.max_keys},
        {"max_blocks", limit->max_blocks},
    };
    for (size_t i = 0; i < ROWS; i++) {
        size_t k = 0;
        while (rows[i].option && strcmp(rows[i].name, defaults[k].name) != 0) {
            k++;
            assert_true(k < sizeof defaults / sizeof defaults[0]);
        }
        if (rows[i].option && rows[i].value != defaults[k].value) {
            fail_msg("%s is %llu by default, not %llu", rows[i].name,
                     (unsigned long long)defaults[k].value, (unsigned long long)rows[i].value);
        }
    }
    scene_stop(&scene);
}

/* A number of small.sed that has changed in the source would not be made smaller any more. */
static void every_small_number_is_in_the_copy(void **state)
{
    static const char command[] =
        "test $(for f in server fleet; do diff -r '" WEIR_SOURCE_DIR "/src/'$f '" BOUNDS_COPY
        "/'$f; done | grep -c '^>')"
        " -eq $(grep -v '^#' '" WEIR_SOURCE_DIR "/tests/bounds/small.sed' | grep -c 's/')";
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_a_driver),
        cmocka_unit_test(options_have_the_defaults_of_their_rows),
        cmocka_unit_test(every_small_number_is_in_the_copy),
        cmocka_unit_test(each_bound_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
