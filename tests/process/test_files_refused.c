// test-labels: notsan
/*
 * Files that are not what they should be are refused with a code and a text, and
 * left as they were to the last byte, whether they are damaged in place or
 * somebody's copy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_image.h"

#define NOBODY 65534

static struct weir_options limit(const char *path)
{
    struct weir_options o = process_limit(WEIR_TOKEN_BUCKET, 5);
    o.memory = WEIR_FILE;
    o.path = path;
    o.flags = 0;
    return o;
}

/* A good file with a few keys, and its bytes. */
static struct weir_options make_good(const char *dir, struct image *image)
{
    struct weir_options o = limit(process_path(dir, "limits"));
    struct weir *w = process_open(&o);
    uint64_t now;
    assert_int_equal(weir_now(w, &now), 0);
    for (unsigned key = 0; key < 20; key++) {
        (void)process_take(w, key, now);
    }
    weir_close(w);
    image_take(image, o.path);
    return o;
}

static void require_refused(const struct weir_options *o, int code)
{
    struct weir_error error = {0, ""};
    struct weir *w = (struct weir *)(uintptr_t)1;
    int e = weir_open(&w, o, &error);
    if (e != code) {
        fprintf(stderr, "%s, expected %s: %s\n", weir_errname(e), weir_errname(code), error.text);
    }
    REQUIRE(e == code);
    REQUIRE(w == NULL && error.code == code && error.text[0] != '\0');
}

/* Writes these bytes into the file and over a fresh copy; both are refused and not touched. */
static void require_both_refused(const struct weir_options *o, const void *bytes, size_t size,
                                 int code)
{
    char copy_path[4096];
    struct weir_options copy = *o;
    snprintf(copy_path, sizeof copy_path, "%s.copy", o->path);
    copy.path = copy_path;
    process_write(o->path, bytes, size);
    require_refused(o, code);
    REQUIRE(process_same(o->path, bytes, size));
    process_write(copy_path, bytes, size);
    require_refused(&copy, code);
    REQUIRE(process_same(copy_path, bytes, size));
    REQUIRE(unlink(copy_path) == 0);
}

static void any_damaged_byte_of_the_fixed_header_is_found(void **state)
{
    struct image image;
    struct weir_options o = make_good(*state, &image);
    size_t version = offsetof(struct region_fixed, version);
    for (size_t i = 0; i < sizeof(struct region_fixed); i++) {
        bool of_version = i >= version && i < version + sizeof(uint32_t);
        image.bytes[i] ^= 0x10;
        require_both_refused(&o, image.bytes, image.size,
                             of_version ? WEIR_EVERSION : WEIR_EDAMAGED);
        image.bytes[i] ^= 0x10;
    }
    process_write(o.path, image.bytes, image.size);
    weir_close(process_open(&o));
    image_free(&image);
}

/* The file is one that weir 0.1 made, with 27 keys and 8 blocks. */
static void a_file_of_weir_0_1_is_refused_by_its_format(void **state)
{
    struct weir_options o = limit(process_path(*state, "limits"));
    struct weir_error error;
    struct weir *w;
    size_t size;
    unsigned char *bytes = process_read(WEIR_SOURCE_DIR "/tests/process/format1.weir", &size);
    require_both_refused(&o, bytes, size, WEIR_EVERSION);
    o.flags |= WEIR_CHANGE | WEIR_RECOVER;
    require_both_refused(&o, bytes, size, WEIR_EVERSION);
    assert_int_equal(weir_open(&w, &o, &error), WEIR_EVERSION);
    assert_non_null(strstr(error.text, o.path));
    assert_non_null(
        strstr(error.text, "has format 1, expected 2 (to start afresh, remove the file"));
    assert_int_equal(process_dir_entries(*state), 1);
    free(bytes);
}

static void any_damaged_byte_of_the_parameters_is_found(void **state)
{
    struct image image;
    struct weir_options o = make_good(*state, &image);
    struct region_header *head = image_head(&image);
    unsigned char *params = head->spec[head->version % REGION_VERSIONS].bytes;
    for (size_t i = 0; i < sizeof(struct limit_spec); i++) {
        params[i] ^= 0x01;
        struct weir *w = NULL;
        struct weir_error error = {0, ""};
        process_write(o.path, image.bytes, image.size);
        int e = weir_open(&w, &o, &error);
        /* A count that could be a count is another limit, not damage. */
        assert_true(e == WEIR_EDAMAGED || e == WEIR_EMISMATCH);
        assert_null(w);
        assert_int_equal(error.code, e);
        require_both_refused(&o, image.bytes, image.size, e);
        params[i] ^= 0x01;
    }
    head->version += 5; /* a version that was never written */
    require_both_refused(&o, image.bytes, image.size, WEIR_EDAMAGED);
    image_free(&image);
}

static void a_file_of_another_size_is_refused(void **state)
{
    struct image image;
    struct weir_options o = make_good(*state, &image);
    unsigned char *longer = calloc(1, image.size + 8192);
    assert_non_null(longer);
    memcpy(longer, image.bytes, image.size);
    const size_t sizes[] = {
        0, 1, 7, 8, 100, sizeof(struct region_fixed), 4096, 8192, image.size - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        require_both_refused(&o, longer, sizes[i], WEIR_EDAMAGED);
    }
    require_both_refused(&o, longer, image.size + 1, WEIR_EDAMAGED);
    require_both_refused(&o, longer, image.size + 8192, WEIR_EDAMAGED);
    free(longer);
    image_free(&image);
}

static void what_was_never_a_weir_file_is_refused(void **state)
{
    static const char text[] = "#!/bin/sh\necho weir\n";
    struct weir_options o = limit(process_path(*state, "limits"));
    unsigned char zeros[16384] = {0};
    require_both_refused(&o, text, sizeof text, WEIR_EDAMAGED);
    require_both_refused(&o, zeros, sizeof zeros, WEIR_EDAMAGED);
}

static void other_parameters_are_refused_unless_a_change_is_asked_for(void **state)
{
    struct image image;
    struct weir_options o = make_good(*state, &image);
    struct weir_options other = o;
    other.count = 6;
    require_both_refused(&other, image.bytes, image.size, WEIR_EMISMATCH);
    other = o;
    other.period_ns = WEIR_MINUTE;
    other.flags = WEIR_CHANGE; /* the period is fixed with the file */
    require_both_refused(&other, image.bytes, image.size, WEIR_EMISMATCH);
    other = o;
    other.algorithm = WEIR_SLIDING_LOG;
    require_both_refused(&other, image.bytes, image.size, WEIR_EMISMATCH);
    other = o;
    other.max_keys = 51;
    require_both_refused(&other, image.bytes, image.size, WEIR_EMISMATCH);
    other = o;
    other.count = 6;
    other.flags = WEIR_CHANGE;
    weir_close(process_open(&other));
    require_refused(&o, WEIR_EMISMATCH);
    image_free(&image);
}

static void what_is_not_a_plain_file_of_ones_own_is_refused(void **state)
{
    struct image image;
    struct weir_options good = make_good(*state, &image);
    struct weir_options o = good;
    o.path = process_path(*state, "link");
    assert_int_equal(symlink(good.path, o.path), 0);
    require_refused(&o, WEIR_EACCES);
    o.path = process_path(*state, "fifo");
    assert_int_equal(mkfifo(o.path, 0600), 0);
    require_refused(&o, WEIR_EACCES);
    assert_int_equal(chmod(good.path, 0640), 0);
    require_refused(&good, WEIR_EACCES);
    assert_int_equal(chmod(good.path, 0600), 0);
    o.path = *state;
    require_refused(&o, WEIR_EACCES);
    assert_true(process_same(good.path, image.bytes, image.size));
    image_free(&image);
}

static void a_dangling_link_is_not_followed(void **state)
{
    struct weir_options o = limit(process_path(*state, "link"));
    assert_int_equal(symlink(process_path(*state, "elsewhere"), o.path), 0);
    require_refused(&o, WEIR_EACCES);
    assert_int_equal(process_dir_entries(*state), 1);
}

static void a_file_that_must_exist_is_never_made(void **state)
{
    struct weir_options o = limit(process_path(*state, "limits"));
    o.flags = WEIR_MUST_EXIST;
    require_refused(&o, WEIR_ENOENT);
    o.path = process_path(*state, "no/such/directory");
    o.flags = 0;
    require_refused(&o, WEIR_ENOENT);
    assert_int_equal(process_dir_entries(*state), 0);
}

/* ---- another user ---- */

static void be_nobody(void)
{
    REQUIRE(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
}

static void open_as_nobody(void *arg)
{
    be_nobody();
    require_refused(arg, WEIR_EACCES);
}

static void make_as_nobody(void *arg)
{
    be_nobody();
    weir_close(process_open(arg));
}

static void a_file_of_another_user_is_refused(void **state)
{
    struct image image;
    if (geteuid() != 0) {
        skip();
    }
    struct weir_options o = make_good(*state, &image);
    assert_int_equal(chmod(*state, 0777), 0);
    assert_true(process_run(open_as_nobody, &o));
    assert_true(process_same(o.path, image.bytes, image.size));
    image_free(&image);
    /* And the other way round: not even root uses what another can change. */
    o.path = process_path(*state, "nobodys");
    assert_true(process_run(make_as_nobody, &o));
    require_refused(&o, WEIR_EACCES);
}

static void a_directory_that_may_not_be_written_is_an_error(void **state)
{
    struct weir_options o = limit(process_path(*state, "limits"));
    assert_int_equal(chmod(*state, 0555), 0);
    if (geteuid() == 0) {
        assert_true(process_run(open_as_nobody, &o));
    } else {
        require_refused(&o, WEIR_EACCES);
    }
    assert_int_equal(process_dir_entries(*state), 0);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, process_dir_make, process_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(any_damaged_byte_of_the_fixed_header_is_found),
        IN_DIR(a_file_of_weir_0_1_is_refused_by_its_format),
        IN_DIR(any_damaged_byte_of_the_parameters_is_found),
        IN_DIR(a_file_of_another_size_is_refused),
        IN_DIR(what_was_never_a_weir_file_is_refused),
        IN_DIR(other_parameters_are_refused_unless_a_change_is_asked_for),
        IN_DIR(what_is_not_a_plain_file_of_ones_own_is_refused),
        IN_DIR(a_dangling_link_is_not_followed),
        IN_DIR(a_file_that_must_exist_is_never_made),
        IN_DIR(a_file_of_another_user_is_refused),
        IN_DIR(a_directory_that_may_not_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
