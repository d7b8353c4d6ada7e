/* Making limiters: what the options mean, and where the state lives. */
#include "base/hash.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START (120 * WEIR_SECOND)

static void algorithms_have_names(void **state)
{
    static const char *const names[] = {"token_bucket", "leaky_bucket", "fixed_window",
                                        "sliding_window", "sliding_log"};
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        assert_string_equal(weir_algorithm_name(unit_algorithms[i]), names[i]);
        assert_int_equal(weir_algorithm_by_name(names[i]), unit_algorithms[i]);
    }
    assert_null(weir_algorithm_name(0));
    assert_null(weir_algorithm_name(6));
    assert_int_equal(weir_algorithm_by_name("token"), 0);
    assert_int_equal(weir_algorithm_by_name(""), 0);
    assert_int_equal(weir_algorithm_by_name(NULL), 0);
}

static void the_quota_is_burst_or_queue_plus_one_or_count(void **state)
{
    const struct {
        int algorithm;
        uint64_t burst, queue, quota;
    } rows[] = {{WEIR_TOKEN_BUCKET, 0, 0, 7},   {WEIR_TOKEN_BUCKET, 1, 0, 1},
                {WEIR_TOKEN_BUCKET, 30, 0, 30}, {WEIR_LEAKY_BUCKET, 0, 0, 1},
                {WEIR_LEAKY_BUCKET, 0, 20, 21}, {WEIR_FIXED_WINDOW, 0, 0, 7},
                {WEIR_SLIDING_WINDOW, 0, 0, 7}, {WEIR_SLIDING_LOG, 0, 0, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_options o = unit_options(rows[i].algorithm, 7, WEIR_SECOND);
        o.burst = rows[i].burst;
        o.queue = rows[i].queue;
        struct weir *w = unit_open(&o);
        struct weir_answer a = unit_peek(w, "k", 1, START);
        assert_int_equal(a.quota, rows[i].quota);
        assert_int_equal(a.remaining, rows[i].quota);
        assert_int_equal(unit_drain(w, "k", START), rows[i].quota);
        weir_close(w);
    }
}

static void windows_begin_at_multiples_of_the_period_plus_offset(void **state)
{
    struct weir_options o = unit_options(WEIR_FIXED_WINDOW, 5, WEIR_HOUR);
    for (int explicit_time = 0; explicit_time < 2; explicit_time++) {
        o.flags = explicit_time != 0 ? WEIR_EXPLICIT_TIME : 0;
        for (o.offset_ns = 0; o.offset_ns < WEIR_HOUR; o.offset_ns += 17 * WEIR_MINUTE) {
            struct weir *w = unit_open(&o);
            uint64_t now = 10000 * WEIR_HOUR;
            if (explicit_time == 0) {
                assert_int_equal(weir_now(w, &now), 0);
            }
            struct weir_answer a = unit_check(w, "k", 5, now);
            uint64_t end = now + a.reset_after_ns;
            assert_int_equal(end % WEIR_HOUR, o.offset_ns);
            assert_true(a.reset_after_ns <= WEIR_HOUR);
            assert_int_equal(unit_check(w, "k", 1, end - 1).verdict, WEIR_DENY);
            assert_int_equal(unit_check(w, "k", 1, end).verdict, WEIR_ALLOW);
            weir_close(w);
        }
    }
}

static void with_align_key_each_key_has_an_offset_of_its_own(void **state)
{
    struct weir_options o = unit_options(WEIR_FIXED_WINDOW, 5, WEIR_HOUR);
    o.align = WEIR_ALIGN_KEY;
    struct weir *w = unit_open(&o);
    uint64_t quarter[4] = {0, 0, 0, 0};
    for (unsigned i = 0; i < 400; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%u", i);
        struct weir_answer a = unit_check(w, key, 5, 1000 * WEIR_HOUR);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        uint64_t end = 1000 * WEIR_HOUR + a.reset_after_ns;
        quarter[end / (15 * WEIR_MINUTE) % 4]++;
        assert_int_equal(unit_check(w, key, 1, end - 1).retry_after_ns, 1);
        assert_int_equal(unit_drain(w, key, end), 5);
        assert_int_equal(unit_check(w, key, 1, end + WEIR_HOUR - 1).verdict, WEIR_DENY);
    }
    for (int i = 0; i < 4; i++) {
        assert_in_range(quarter[i], 50, 150); /* spread, not stampeding */
    }
    weir_close(w);
}

static void refunds_and_settlements_know_the_offset_of_a_key(void **state)
{
    struct weir_options o = unit_options(WEIR_FIXED_WINDOW, 5, WEIR_HOUR);
    o.align = WEIR_ALIGN_KEY;
    struct weir *w = unit_open(&o);
    for (unsigned i = 0; i < 50; i++) {
        char key[16];
        struct weir_answer a;
        struct weir_reservation r;
        uint64_t now = 1000 * WEIR_HOUR + i * WEIR_MINUTE;
        (void)snprintf(key, sizeof key, "k%u", i);
        size_t len = strlen(key);
        uint64_t left = unit_check(w, key, 1, now).reset_after_ns;
        assert_int_equal(weir_refund_at(w, key, len, 1, now, now + left - 1, &a), 0);
        assert_int_equal(a.remaining, 5);
        assert_int_equal(weir_reserve_at(w, key, len, 4, WEIR_HOUR, now, &r, &a), 0);
        assert_int_equal(weir_cancel_at(w, &r, now + left - 1, &a), 0);
        assert_int_equal(a.remaining, 5);
        (void)unit_check(w, key, 2, now);
        (void)unit_check(w, key, 1, now + left);
        assert_int_equal(weir_refund_at(w, key, len, 2, now, now + left, &a), 0);
        assert_int_equal(a.remaining, 4);
    }
    weir_close(w);
}

static void every_kind_of_memory_and_hash_limits_alike(void **state)
{
    const unsigned flags[] = {0, WEIR_PREFAULT, WEIR_HUGE_PAGES, WEIR_PREFAULT | WEIR_HUGE_PAGES};
    for (int i = 0; i < 16; i++) {
        struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 5, WEIR_HOUR);
        o.memory = i & 1 ? WEIR_SHARED : WEIR_PRIVATE;
        o.hash = i & 2 && hash_has_xxh3 ? WEIR_XXH3 : WEIR_SIPHASH;
        o.flags |= flags[i / 4];
        o.max_keys = i >= 8 ? 300000 : 100; /* large enough for large pages */
        struct weir *w = unit_open(&o);
        assert_int_equal(unit_drain(w, "a", START), 5);
        assert_int_equal(unit_drain(w, "b", START), 5);
        assert_int_equal(unit_stats(w).keys, 2);
        weir_close(w);
    }
}

/* The child's calls, and what the parent then sees. */
static void fork_and_drain(struct weir *w, uint64_t expected_in_child)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct weir_answer a;
        uint64_t n = 0;
        while (weir_check_at(w, "k", 1, 1, START, &a) == 0 && a.verdict == WEIR_ALLOW) {
            n++;
        }
        _exit(n == expected_in_child ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void fork_copies_private_memory_and_shares_the_rest(void **state)
{
    char *folder = unit_folder();
    char *path = unit_path(folder, "limit");
    for (int memory = WEIR_PRIVATE; memory <= WEIR_FILE; memory++) {
        struct weir_options o = unit_options(WEIR_SLIDING_LOG, 5, WEIR_HOUR);
        o.memory = memory;
        o.path = memory == WEIR_FILE ? path : NULL;
        struct weir *w = unit_open(&o);
        (void)unit_check(w, "k", 2, START);
        fork_and_drain(w, 3);
        assert_int_equal(unit_drain(w, "k", START), memory == WEIR_PRIVATE ? 3 : 0);
        weir_close(w);
    }
    free(path);
    unit_folder_remove(folder);
}

static void a_file_keeps_its_state_and_is_shared(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        char *folder = unit_folder();
        char *path = unit_path(folder, "limit");
        struct weir_options o = unit_options(unit_algorithms[i], 10, WEIR_HOUR);
        o.memory = WEIR_FILE;
        o.path = path;
        struct weir *a = unit_open(&o);
        (void)unit_check(a, "k", 4, START);
        o.flags |= WEIR_MUST_EXIST;
        struct weir *b = unit_open(&o);
        assert_int_equal(unit_check(b, "k", 3, START).remaining, 3);
        assert_int_equal(unit_peek(a, "k", 1, START).remaining, 3);
        struct weir_key key;
        struct weir_reservation r;
        struct weir_answer answer;
        assert_int_equal(weir_key_init(a, "k", 1, &key), 0);
        struct weir_question ask = {.hashed = &key, .cost = 1};
        assert_int_equal(unit_ask(b, &ask, START).remaining, 2); /* handles are the file's */
        assert_int_equal(weir_reserve_at(a, "k", 1, 2, WEIR_HOUR, START, &r, &answer), 0);
        weir_close(a);
        assert_int_equal(weir_cancel_at(b, &r, START, &answer), 0);
        assert_int_equal(answer.remaining, 2);
        assert_int_equal(weir_block_at(b, "x", 1, WEIR_FOREVER, START), 0);
        weir_close(b);
        a = unit_open(&o);
        assert_int_equal(unit_drain(a, "k", START), 2);
        assert_int_equal(unit_check(a, "x", 1, START).flags, WEIR_FLAG_BLOCKED);
        assert_int_equal(unit_stats(a).allowed, 2); /* counted by each for itself */
        weir_close(a);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_true((uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size); /* not sparse */
        free(path);
        unit_folder_remove(folder);
    }
}

static void a_copied_file_is_a_limiter_of_its_own_with_the_same_state(void **state)
{
    char *folder = unit_folder();
    char *path = unit_path(folder, "limit");
    char *copy = unit_path(folder, "copy");
    struct weir_options o = unit_options(WEIR_SLIDING_LOG, 10, WEIR_HOUR);
    o.memory = WEIR_FILE;
    o.path = path;
    struct weir *a = unit_open(&o);
    (void)unit_check(a, "k", 4, START);
    assert_int_equal(weir_block_at(a, "x", 1, WEIR_FOREVER, START), 0);
    size_t size;
    unsigned char *bytes = unit_read_file(path, &size);
    unit_write_file(copy, bytes, size);
    free(bytes);
    o.path = copy;
    struct weir *b = unit_open(&o);
    assert_int_equal(unit_drain(b, "k", START), 6);
    assert_int_equal(unit_check(b, "x", 1, START).flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(unit_stats(b).keys, 1);
    assert_int_equal(unit_stats(b).blocks, 1);
    assert_int_equal(unit_drain(a, "k", START), 6);
    weir_close(a);
    weir_close(b);
    free(path);
    free(copy);
    unit_folder_remove(folder);
}

static void a_relative_path_works(void **state)
{
    char *folder = unit_folder();
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 10, WEIR_HOUR);
    o.memory = WEIR_FILE;
    o.path = "limit";
    struct weir *w = unit_open(&o);
    assert_int_equal(access("limit", F_OK), 0);
    weir_close(w);
    assert_int_equal(chdir(before), 0);
    unit_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_have_names),
        cmocka_unit_test(the_quota_is_burst_or_queue_plus_one_or_count),
        cmocka_unit_test(windows_begin_at_multiples_of_the_period_plus_offset),
        cmocka_unit_test(with_align_key_each_key_has_an_offset_of_its_own),
        cmocka_unit_test(refunds_and_settlements_know_the_offset_of_a_key),
        cmocka_unit_test(every_kind_of_memory_and_hash_limits_alike),
        cmocka_unit_test(fork_copies_private_memory_and_shares_the_rest),
        cmocka_unit_test(a_file_keeps_its_state_and_is_shared),
        cmocka_unit_test(a_copied_file_is_a_limiter_of_its_own_with_the_same_state),
        cmocka_unit_test(a_relative_path_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
