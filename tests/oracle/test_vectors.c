/*
 * The shared decision vectors: the library answers each line of tests/vectors as
 * it says there, and the files are what the oracle makes of their cases.
 */
#include <inttypes.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oracle/vector_cases.h"
#include "support/oracle/oracle_vector.h"

#define FOLDER WEIR_SOURCE_DIR "/tests/vectors/"

static FILE *open_vector(const char *name)
{
    char path[4096];
    assert_true(snprintf(path, sizeof path, "%s%s", FOLDER, name) < (int)sizeof path);
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        fail_msg("%s: cannot be opened", path);
    }
    return in;
}

/* ---- replaying ---- */

static bool same(const struct oracle_expected *a, const struct oracle_expected *b)
{
    return a->verdict == b->verdict && a->remaining == b->remaining && a->retry == b->retry &&
           a->reset == b->reset && a->delay == b->delay;
}

static void differs(const char *name, const struct oracle_op *op, size_t line,
                    const struct oracle_expected *got, const struct oracle_expected *expected)
{
    fail_msg("%s, section that ends before the next limit, call %zu (time %" PRIu64
             " ns, cost %" PRIu64 "): got %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
             ", expected %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
             name, line + 1, op->time_ns, op->cost, got->verdict, got->remaining, got->retry,
             got->reset, got->delay, expected->verdict, expected->remaining, expected->retry,
             expected->reset, expected->delay);
}

static void replay_limit(const char *name, const struct oracle_vector *v)
{
    struct weir_options o = oracle_options(&v->trace.rule);
    struct weir_error error;
    struct weir *w;
    if (weir_open(&w, &o, &error) != 0) {
        fail_msg("%s: %s", name, error.text);
    }
    for (size_t i = 0; i < v->trace.n; i++) {
        const struct oracle_op *op = &v->trace.ops[i];
        struct weir_answer a;
        assert_int_equal(oracle_call(w, v->keys[op->key], op, &a), 0);
        struct oracle_expected got = oracle_expect(&a, v->unit);
        if (!same(&got, &v->expected[i])) {
            differs(name, op, i, &got, &v->expected[i]);
        }
    }
    weir_close(w);
}

/*
 * Returns the number of calls in the file. Stepped buckets are not the library's:
 * tests/unit/cli/test_replay_engine.c replays their file through the program.
 */
static size_t replay_file(const char *name)
{
    struct oracle_reader reader = {.in = open_vector(name)};
    struct oracle_vector v;
    size_t calls = 0;
    int more;
    while ((more = oracle_vector_read(&reader, &v)) == 1) {
        if (v.stepped) {
            assert_string_equal(name, "stepped_bucket.vec");
        } else {
            replay_limit(name, &v);
            calls += v.trace.n;
        }
        oracle_vector_finish(&v);
    }
    if (more < 0) {
        fail_msg("%s:%u: not a line of a vector", name, reader.number);
    }
    (void)fclose(reader.in);
    return calls;
}

/* Every file in the folder, also ones that were put there by hand. */
static void the_library_answers_every_vector_as_written(void **state)
{
    DIR *folder = opendir(FOLDER);
    size_t calls = 0;
    unsigned files = 0;
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        size_t len = strlen(e->d_name);
        if (len > 4 && strcmp(e->d_name + len - 4, ".vec") == 0) {
            calls += replay_file(e->d_name);
            files++;
        }
    }
    (void)closedir(folder);
    print_message("# %zu calls in %u files\n", calls, files);
    assert_true(files >= 8 && calls >= 1000);
}

/* ---- the files and the generator ---- */

static char *contents(const char *name)
{
    FILE *in = open_vector(name);
    size_t size = 1 << 20;
    char *text = malloc(size);
    assert_non_null(text);
    size_t n = fread(text, 1, size - 1, in);
    assert_true(n > 0 && n < size - 1);
    text[n] = '\0';
    (void)fclose(in);
    return text;
}

static void the_vectors_are_what_the_oracle_makes_of_them(void **state)
{
    for (const struct vector_file *f = vector_files; f->name != NULL; f++) {
        char *made = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&made, &size);
        assert_non_null(out);
        f->print(out);
        assert_int_equal(fclose(out), 0);
        char *kept = contents(f->name);
        if (strcmp(made, kept) != 0) {
            fail_msg("tests/vectors/%s differs: run `ninja -C build vectors` and look at the diff",
                     f->name);
        }
        free(kept);
        free(made);
    }
}

/* A reader that takes anything would make the first test worthless. */
static void a_line_that_is_no_vector_is_refused(void **state)
{
    static const char *const bad[] = {
        "0 alice 1 -> allow 1 0 0 0\n", /* no limit before it */
        "limit no_such_thing count=1 period=1\n",
        "limit fixed_window period=1\n",
        "limit fixed_window count=1 period=1 colour=2\n",
        "limit fixed_window count=x period=1\n",
        "limit fixed_window count=1 period=1\n0 alice 1\n",
        "limit fixed_window count=1 period=1\n0 alice 1 -> maybe 1 0 0 0\n",
        "limit fixed_window count=1 period=1\n0 alice 1 -> allow 1 0 0\n",
        "limit fixed_window count=1 period=1\n0 alice 1 -> allow 1 0 0 0 0\n",
        "limit fixed_window count=1 period=1\n0 alice 1 steal -> allow 1 0 0 0\n",
        "limit fixed_window count=1 period=1\n0 alice -> allow 1 0 0 0\n",
        "limit fixed_window count=1 period=1\nnoon alice 1 -> allow 1 0 0 0\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "%s", bad[i]);
        struct oracle_reader reader = {.in = fmemopen(text, strlen(text), "r")};
        struct oracle_vector v;
        assert_non_null(reader.in);
        assert_int_equal(oracle_vector_read(&reader, &v), -1);
        (void)fclose(reader.in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_answers_every_vector_as_written),
        cmocka_unit_test(the_vectors_are_what_the_oracle_makes_of_them),
        cmocka_unit_test(a_line_that_is_no_vector_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
