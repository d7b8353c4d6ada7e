// test-labels: nosan
// test-timeout: 900
/*
 * A process is killed while it makes a file, opens one that is a copy or of
 * another boot, or opens one with a change: around each instruction that another
 * process could notice, and at each one in the long tests. The file is then not
 * there, or complete; its keys are all there, once; time goes on; and nothing
 * else is left in its directory.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_image.h"
#include "support/engine/process_step.h"

#define QUOTA 5
#define KEYS 30

static uint64_t chance;

struct file {
    const char *dir;
    char path[4096];
    struct weir_options o;
    struct image image;
    uint64_t t0; /* Unix time when the image was made */
    unsigned residents[KEYS];
    uint64_t left[KEYS];
    void *mapping; /* what a survivor sees; without the lock that users of a file hold */
};

static void file_init(struct file *f, const char *dir)
{
    memset(f, 0, sizeof *f);
    f->dir = dir;
    strcpy(f->path, process_path(dir, "limits"));
    f->o = process_limit(WEIR_TOKEN_BUCKET, QUOTA);
    f->o.memory = WEIR_FILE;
    f->o.path = f->path;
    f->o.flags = 0;
}

static void open_it(void *arg)
{
    struct file *f = arg;
    struct weir *w;
    if (weir_open(&w, &f->o, NULL) == 0) {
        weir_close(w);
    }
}

/* ---- making ---- */

/* A new file is synced: ten thousand times on a disk would take minutes. */
static int dir_in_memory_make(void **state)
{
    const char *shared_memory = "/dev/shm";
    const char *tmp = getenv("TMPDIR");
    char *before = tmp != NULL ? strdup(tmp) : NULL;
    if (access(shared_memory, W_OK) == 0) {
        (void)setenv("TMPDIR", shared_memory, 1);
    }
    int result = process_dir_make(state);
    if (before != NULL) {
        (void)setenv("TMPDIR", before, 1);
    } else {
        (void)unsetenv("TMPDIR");
    }
    free(before);
    return result;
}

static void remove_it(void *arg)
{
    struct file *f = arg;
    (void)unlink(f->path);
    assert_int_equal(process_dir_entries(f->dir), 0);
}

static void require_absent_or_complete(void *arg)
{
    struct file *f = arg;
    bool exists = access(f->path, F_OK) == 0;
    REQUIRE(process_dir_entries(f->dir) == exists);
    struct weir_options o = f->o;
    o.flags |= exists ? WEIR_MUST_EXIST : 0;
    struct weir *w = process_open(&o);
    uint64_t now;
    REQUIRE(weir_now(w, &now) == 0);
    for (unsigned i = 0; i < QUOTA; i++) {
        REQUIRE(process_take(w, 1, now) == WEIR_ALLOW);
    }
    REQUIRE(process_take(w, 1, now) == WEIR_DENY);
    weir_close(w);
    REQUIRE(process_dir_entries(f->dir) == 1);
}

static void killed_while_making_a_file(void **state)
{
    struct file f;
    file_init(&f, *state);
    int fd = open(f.dir, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) {
        skip(); /* this file system needs a second name for a file in the making */
    }
    (void)close(fd);
    struct step_plan plan = {.name = "making a file",
                             .prepare = remove_it,
                             .act = open_it,
                             .verify = require_absent_or_complete,
                             .arg = &f};
    (void)process_step(&plan, &chance);
}

/* ---- opening what somebody else left ---- */

static void make_image(struct file *f)
{
    struct weir *w = process_open(&f->o);
    struct table_key place[KEYS];
    REQUIRE(weir_now(w, &f->t0) == 0);
    for (unsigned i = 0; i < KEYS; i++) {
        f->residents[i] = i;
        for (unsigned n = 0; n <= i % QUOTA; n++) {
            REQUIRE(process_take(w, i, f->t0) == WEIR_ALLOW);
        }
        f->left[i] = process_left(w, i, f->t0);
        place[i] = scene_place(w, i);
    }
    image_take(&f->image, f->path);
    weir_close(w);
    for (unsigned i = 0; i < KEYS; i += 2) {
        (void)image_interrupt_move(&f->image, place[i], (enum image_mark)(i / 2 % 4));
    }
    image_hold_locks(&f->image);
}

static void write_it(void *arg)
{
    struct file *f = arg;
    process_write(f->path, f->image.bytes, f->image.size);
}

static const void *mapped(void *arg, size_t *bytes)
{
    struct file *f = arg;
    *bytes = f->image.size;
    return f->mapping;
}

static void require_once_each(struct weir *w)
{
    for (unsigned i = 0; i < KEYS; i++) {
        REQUIRE(scene_slots_of(w, scene_place(w, i).tag, false) == 1);
    }
    REQUIRE(scene_slots_of(w, 0, true) == 0);
}

static void require_recovered(void *arg)
{
    struct file *f = arg;
    struct weir_stats stats = {.size = sizeof stats};
    struct weir *w = process_open(&f->o);
    uint64_t now;
    REQUIRE(weir_now(w, &now) == 0 && now >= f->t0 && now - f->t0 < WEIR_HOUR);
    require_once_each(w);
    REQUIRE(weir_stats_read(w, &stats) == 0 && stats.keys == KEYS);
    for (unsigned i = 0; i < KEYS; i++) {
        REQUIRE(process_left(w, i, f->t0) == f->left[i]);
    }
    for (unsigned i = KEYS; i < KEYS + 10; i++) {
        REQUIRE(process_take(w, i, now) == WEIR_ALLOW);
    }
    REQUIRE(weir_change(w, QUOTA + 1, 0, NULL) == 0);
    weir_close(w);
    REQUIRE(process_dir_entries(f->dir) == 1);
}

static void map_it(struct file *f)
{
    int fd = open(f->path, O_RDWR | O_CLOEXEC);
    f->mapping = mmap(NULL, f->image.size, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(fd >= 0 && f->mapping != MAP_FAILED);
    (void)close(fd);
}

static void step_through_open(struct file *f, const char *name)
{
    map_it(f);
    struct step_plan plan = {.name = name,
                             .prepare = write_it,
                             .act = open_it,
                             .verify = require_recovered,
                             .arg = f,
                             .watched = mapped};
    (void)process_step(&plan, &chance);
    (void)munmap(f->mapping, f->image.size);
    image_free(&f->image);
}

static void killed_while_recovering_a_file_of_another_boot(void **state)
{
    struct file f;
    file_init(&f, *state);
    make_image(&f);
    image_of_other_boot(&f.image, f.t0);
    step_through_open(&f, "opening a file of another boot");
}

static void killed_while_recovering_a_copy(void **state)
{
    struct file f;
    file_init(&f, *state);
    make_image(&f);
    image_anchor(&f.image)->identity.inode++;
    step_through_open(&f, "opening a copy");
}

/* ---- opening with a change ---- */

static void open_with_change(void *arg)
{
    struct file *f = arg;
    struct weir *w;
    struct weir_options o = f->o;
    o.flags |= WEIR_CHANGE;
    o.count = 2 * QUOTA;
    if (weir_open(&w, &o, NULL) == 0) {
        weir_close(w);
    }
}

static void require_old_or_new(void *arg)
{
    struct file *f = arg;
    struct weir_options o = f->o;
    struct weir *w;
    int e = weir_open(&w, &o, NULL);
    if (e == WEIR_EMISMATCH) {
        o.count = 2 * QUOTA;
        e = weir_open(&w, &o, NULL);
    }
    REQUIRE(e == 0);
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t left = process_left(w, i, f->t0);
        REQUIRE(left >= f->left[i] && left <= 2 * QUOTA);
    }
    weir_close(w);
    w = NULL;
    open_with_change(f);
    o.count = 2 * QUOTA;
    weir_close(process_open(&o));
}

static void killed_while_opening_with_a_change(void **state)
{
    struct file f;
    file_init(&f, *state);
    make_image(&f);
    image_free(&f.image);
    image_take(&f.image, f.path); /* nobody has died: the bytes that its first user left */
    struct step_plan plan = {.name = "opening with a change",
                             .prepare = write_it,
                             .act = open_with_change,
                             .verify = require_old_or_new,
                             .arg = &f,
                             .watched = mapped};
    map_it(&f);
    (void)process_step(&plan, &chance);
    (void)munmap(f.mapping, f.image.size);
    image_free(&f.image);
}

static int get_seed(void **state)
{
    chance = process_seed();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_while_making_a_file, dir_in_memory_make,
                                        process_dir_remove),
        cmocka_unit_test_setup_teardown(killed_while_recovering_a_file_of_another_boot,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test_setup_teardown(killed_while_recovering_a_copy, process_dir_make,
                                        process_dir_remove),
        cmocka_unit_test_setup_teardown(killed_while_opening_with_a_change, process_dir_make,
                                        process_dir_remove),
    };
    return cmocka_run_group_tests(tests, get_seed, NULL);
}
