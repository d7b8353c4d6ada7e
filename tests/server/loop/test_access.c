/* Secrets: where they come from, which role they give, and that they can change while others ask.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "common/log.h"
#include "server/access/access.h"

static char folder[] = "/tmp/weir-access-XXXXXX";
static char path[sizeof folder + 8];

static int make_folder(void **state)
{
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/secrets", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)unlink(path);
    return rmdir(folder);
}

/* Makes the file anew, as a tool that rotates secrets would. */
static void write_bytes(const char *bytes, size_t len, mode_t mode)
{
    char other[sizeof path + 4];
    (void)snprintf(other, sizeof other, "%s.new", path);
    int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(rename(other, path), 0);
}

static void write_file(const char *text)
{
    write_bytes(text, strlen(text), 0600);
}

static struct access *open_texts(const char *check, const char *admin)
{
    struct access_sources from = {.text = {[ROLE_CHECK] = check, [ROLE_ADMIN] = admin}};
    struct weir_error error = {0};
    struct access *access = NULL;
    if (access_open(&access, &from, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return access;
}

static enum role role_of(struct access *access, const char *secret)
{
    struct access_pass pass = {0};
    return access_show(access, text_of(secret), ROLE_NONE, &pass) ? pass.role : ROLE_NONE;
}

/* Returns the role of a client that has shown no secret. */
static enum role role_open(struct access *access)
{
    struct access_pass pass = {0};
    return access_role(access, &pass);
}

static void without_secrets_everybody_may_check_and_nobody_is_admin(void **state)
{
    struct access *access = open_texts(NULL, NULL);
    assert_int_equal(role_open(NULL), ROLE_ADMIN); /* a server of one's own, without this */
    assert_int_equal(role_open(access), ROLE_CHECK);
    assert_false(access_has_secrets(access, ROLE_CHECK));
    assert_false(access_has_secrets(NULL, ROLE_ADMIN));
    access_close(access);
    access_close(NULL);
}

static void a_role_with_secrets_is_closed_and_the_other_is_as_the_table_says(void **state)
{
    struct access *admin_only = open_texts(NULL, "a");
    struct access *check_only = open_texts("c", NULL);
    struct access *both = open_texts("c", "a");
    assert_int_equal(role_open(admin_only), ROLE_CHECK);
    assert_int_equal(role_of(admin_only, "a"), ROLE_ADMIN);
    assert_int_equal(role_open(check_only), ROLE_NONE);
    assert_int_equal(role_of(check_only, "c"), ROLE_CHECK);
    assert_int_equal(role_open(both), ROLE_NONE);
    assert_int_equal(role_of(both, "c"), ROLE_CHECK);
    assert_int_equal(role_of(both, "a"), ROLE_ADMIN);
    access_close(admin_only);
    access_close(check_only);
    access_close(both);
}

static void several_are_valid_at_once_and_nothing_near_them(void **state)
{
    struct access *access = open_texts("one\r\n\n  two \nthree", "four\n");
    static const char *const wrong[] = {"",    "on",     "ones",  "One",    "one\r",
                                        "two", "four\n", "one\n", "onetwo", "three\nfour"};
    assert_int_equal(role_of(access, "one"), ROLE_CHECK);
    assert_int_equal(role_of(access, "  two "), ROLE_CHECK); /* spaces are part of it */
    assert_int_equal(role_of(access, "three"), ROLE_CHECK);
    assert_int_equal(role_of(access, "four"), ROLE_ADMIN);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(role_of(access, wrong[i]), ROLE_NONE);
    }
    access_close(access);
}

static void a_secret_of_both_roles_gives_the_larger_one(void **state)
{
    struct access *access = open_texts("same\nother", "same");
    assert_int_equal(role_of(access, "same"), ROLE_ADMIN);
    access_close(access);
}

static void a_file_and_a_text_add_up_to_the_bound(void **state)
{
    char text[ACCESS_SECRETS_MAX * 4 + 1] = "";
    struct weir_error error = {0};
    struct access *access = NULL;
    struct access_sources from = {.file = {[ROLE_CHECK] = path}, .text = {[ROLE_CHECK] = text}};
    for (unsigned i = 0; i + 1 < ACCESS_SECRETS_MAX; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "t%02u\n", i);
    }
    write_file("of-the-file\n");
    assert_int_equal(access_open(&access, &from, &error), 0);
    assert_int_equal(role_of(access, "of-the-file"), ROLE_CHECK);
    assert_int_equal(role_of(access, "t00"), ROLE_CHECK);
    assert_int_equal(role_of(access, "t30"), ROLE_CHECK);
    write_file("of-the-file\nanother\n");
    assert_int_equal(access_reload(access, &error), WEIR_EINVAL);
    assert_string_equal(error.text, "WEIR_CHECK_SECRETS:31: found more than 32 "
                                    "secrets of the role check");
    access_close(access);
}

static void expect_refusal(const char *file, const char *text, int code, const char *words)
{
    struct access_sources from = {.file = {[ROLE_ADMIN] = file}, .text = {[ROLE_ADMIN] = text}};
    struct weir_error error = {0};
    struct access *access = NULL;
    assert_int_equal(access_open(&access, &from, &error), code);
    if (strstr(error.text, words) == NULL) {
        fail_msg("found \"%s\", expected \"%s\"", error.text, words);
    }
    assert_null(access);
}

static void invalid_files_of_secrets_are_refused_with_the_reason(void **state)
{
    static char long_one[ACCESS_SECRET_MAX + 3];
    static char too_many[ACCESS_SECRETS_MAX * (ACCESS_SECRET_MAX + 2) + 10];
    memset(long_one, 'x', ACCESS_SECRET_MAX + 1);
    memset(too_many, '\n', sizeof too_many);
    expect_refusal("/nowhere/secrets", NULL, WEIR_ENOENT, "/nowhere/secrets");
    expect_refusal(folder, NULL, WEIR_EACCES, "expected a file");
    expect_refusal("/dev/null", NULL, WEIR_EACCES, "expected a file");
    expect_refusal(NULL, "", WEIR_EINVAL, "found no secret"); /* else the role would be open */
    expect_refusal(NULL, "\n\r\n", WEIR_EINVAL, "found no secret");
    expect_refusal(NULL, long_one, WEIR_EINVAL, ":1: found a secret of 1025 bytes");
    write_file("");
    expect_refusal(path, NULL, WEIR_EINVAL, "found no secret");
    write_bytes("a\nb\0c\n", 6, 0600);
    expect_refusal(path, NULL, WEIR_EINVAL, "secrets:2: found a zero byte");
    write_bytes(too_many, sizeof too_many, 0600);
    expect_refusal(path, NULL, WEIR_EINVAL, "bytes, expected at most 32832");
    long_one[ACCESS_SECRET_MAX] = 0;
    struct access *access = open_texts(NULL, long_one); /* as long as may be */
    assert_int_equal(role_of(access, long_one), ROLE_ADMIN);
    access_close(access);
}

static void a_file_that_others_can_read_is_warned_of(void **state)
{
    static const struct {
        mode_t mode;
        bool warned;
    } rows[] = {{0600, false}, {0400, false}, {0644, true}, {0640, true}, {0604, true}};
    struct access_sources from = {.file = {[ROLE_CHECK] = path}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512] = "";
        int ends[2];
        struct access *access = NULL;
        struct weir_error error = {0};
        assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
        log_init(ends[1], LOG_AS_TEXT, LOG_KEYS_CUT);
        write_bytes("a-secret-that-is-long\n", 22, rows[i].mode);
        assert_int_equal(access_open(&access, &from, &error), 0);
        access_close(access);
        ssize_t n = read(ends[0], text, sizeof text - 1);
        assert_int_equal(n > 0, rows[i].warned);
        assert_int_equal(strstr(text, path) != NULL && strstr(text, " warning ") != NULL,
                         rows[i].warned);
        assert_null(strstr(text, "a-secret-that"));
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
    log_init(2, LOG_AS_TEXT, LOG_KEYS_CUT);
}

struct warned {
    unsigned count;
    char text[4][256];
};

static void note_warning(void *arg, const struct access_warning *w)
{
    struct warned *all = arg;
    assert_true(all->count < 4);
    (void)snprintf(all->text[all->count++], sizeof all->text[0], "%s:%u: %s: %s, expected %s",
                   w->where, w->line, w->what, w->found, w->expected);
}

static void short_secrets_and_those_of_both_roles_are_warned_of(void **state)
{
    struct warned all = {0};
    struct access_sources from = {.text = {[ROLE_CHECK] = "of-sixteen-bytes\nboth-of-the-roles\n",
                                           [ROLE_ADMIN] = "\nfifteen-bytes-x\nboth-of-the-roles\n"},
                                  .warn = note_warning,
                                  .warn_arg = &all};
    struct access *access = NULL;
    struct weir_error error = {0};
    assert_int_equal(access_open(&access, &from, &error), 0);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.text[0],
                        "WEIR_ADMIN_SECRETS:2: a secret is short enough to be guessed: 15 bytes, "
                        "expected at least 16 bytes");
    assert_string_equal(all.text[1], "WEIR_CHECK_SECRETS:0: a secret is valid for both roles: "
                                     "WEIR_ADMIN_SECRETS, expected different secrets, because "
                                     "one for checks also gives the rights of an operator");
    assert_int_equal(access_reload(access, &error), 0); /* and again, when they are read again */
    assert_int_equal(all.count, 4);
    access_close(access);
}

/* ---- passes ---- */

static void users_ask_for_roles(void **state)
{
    struct access *access = open_texts("c", "a");
    struct access_pass pass = {0};
    enum role asked;
    assert_true(access_user(TEXT(""), &asked) && asked == ROLE_NONE);
    assert_true(access_user(TEXT("default"), &asked) && asked == ROLE_NONE);
    assert_true(access_user(TEXT("check"), &asked) && asked == ROLE_CHECK);
    assert_true(access_user(TEXT("admin"), &asked) && asked == ROLE_ADMIN);
    assert_false(access_user(TEXT("Admin"), &asked));
    assert_false(access_user(TEXT("root"), &asked));
    assert_false(access_show(access, TEXT("c"), ROLE_ADMIN, &pass));
    assert_false(access_show(access, TEXT("x"), ROLE_NONE, &pass));
    assert_int_equal(access_role(access, &pass), ROLE_NONE);
    assert_true(access_show(access, TEXT("a"), ROLE_CHECK, &pass)); /* no more than asked for */
    assert_int_equal(access_role(access, &pass), ROLE_CHECK);
    assert_true(access_show(access, TEXT("a"), ROLE_NONE, &pass));
    assert_int_equal(access_role(access, &pass), ROLE_ADMIN);
    assert_false(access_show(access, TEXT("x"), ROLE_NONE, &pass)); /* what it had, it keeps */
    assert_int_equal(access_role(access, &pass), ROLE_ADMIN);
    access_close(access);
}

static void a_secret_that_is_gone_loses_its_role_and_one_that_stays_keeps_it(void **state)
{
    struct access_sources from = {.file = {[ROLE_ADMIN] = path}};
    struct weir_error error = {0};
    struct access *access = NULL;
    struct access_pass old = {0};
    struct access_pass stays = {0};
    struct access_pass silent = {0};
    write_file("old\nstays\n");
    assert_int_equal(access_open(&access, &from, &error), 0);
    assert_true(access_show(access, TEXT("old"), ROLE_NONE, &old));
    assert_true(access_show(access, TEXT("stays"), ROLE_NONE, &stays));
    write_file("stays\nnew\n");
    assert_int_equal(access_role(access, &old), ROLE_ADMIN); /* not read yet */
    assert_int_equal(access_reload(access, &error), 0);
    assert_int_equal(access_role(access, &old), ROLE_CHECK); /* as everybody */
    assert_int_equal(access_role(access, &stays), ROLE_ADMIN);
    assert_int_equal(access_role(access, &silent), ROLE_CHECK);
    assert_int_equal(role_of(access, "old"), ROLE_NONE);
    assert_int_equal(role_of(access, "new"), ROLE_ADMIN);
    access_close(access);
}

static void a_bad_reload_keeps_the_old_secrets(void **state)
{
    struct access_sources from = {.file = {[ROLE_CHECK] = path}};
    struct weir_error error = {0};
    struct access *access = NULL;
    write_file("good\n");
    assert_int_equal(access_open(&access, &from, &error), 0);
    write_file("\n");
    assert_int_equal(access_reload(access, &error), WEIR_EINVAL);
    assert_int_equal(role_of(access, "good"), ROLE_CHECK);
    (void)unlink(path);
    assert_int_equal(access_reload(access, &error), WEIR_ENOENT);
    assert_int_equal(role_of(access, "good"), ROLE_CHECK);
    assert_int_equal(role_open(access), ROLE_NONE);
    assert_int_equal(access_reload(NULL, &error), 0);
    access_close(access);
}

/* ---- while others ask ---- */

#define READERS 3
#define RELOADS 300

struct readers {
    struct access *access;
    uint64_t end;
    uint64_t wrong; /* answers that no state of the file gives */
    uint64_t asked;
};

/* In each state "always" is a check secret, the first or the last of many; "boss" is an admin. */
static void *ask(void *arg)
{
    struct readers *r = arg;
    struct access_pass pass = {0};
    uint64_t wrong = !access_show(r->access, TEXT("always"), ROLE_NONE, &pass);
    do {
        wrong += role_of(r->access, "always") != ROLE_CHECK;
        wrong += role_of(r->access, "boss") != ROLE_ADMIN;
        wrong += role_of(r->access, "never") != ROLE_NONE;
        wrong += role_open(r->access) != ROLE_NONE;
        wrong += access_role(r->access, &pass) != ROLE_CHECK;
        (void)fetch_add(&r->asked, 1);
    } while (load_acquire(&r->end) == 0);
    (void)fetch_add(&r->wrong, wrong);
    return NULL;
}

/* As many secrets as may be, and "even" or "odd" among them. */
static void write_state(bool even)
{
    char text[ACCESS_SECRETS_MAX * 8] = "";
    size_t n = 0;
    for (unsigned i = 0; i < ACCESS_SECRETS_MAX; i++) {
        const char *line = i == (even ? 0 : ACCESS_SECRETS_MAX - 1) ? "always"
                           : i == 7                                 ? (even ? "even" : "odd")
                                                                    : "filler";
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", line);
    }
    write_file(text);
}

static void readers_see_whole_states_while_secrets_change(void **state)
{
    struct readers r = {0};
    struct weir_error error = {0};
    pthread_t threads[READERS];
    struct access_sources from = {.file = {[ROLE_CHECK] = path}, .text = {[ROLE_ADMIN] = "boss"}};
    write_state(true);
    assert_int_equal(access_open(&r.access, &from, &error), 0);
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &r), 0);
    }
    for (unsigned i = 1; i <= RELOADS; i++) {
        write_state(i % 2 == 0);
        assert_int_equal(access_reload(r.access, &error), 0);
        assert_int_equal(role_of(r.access, "even"), i % 2 == 0 ? ROLE_CHECK : ROLE_NONE);
        assert_int_equal(role_of(r.access, "odd"), i % 2 == 0 ? ROLE_NONE : ROLE_CHECK);
    }
    store_release(&r.end, 1);
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(r.wrong, 0);
    assert_true(r.asked >= READERS);
    access_close(r.access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_secrets_everybody_may_check_and_nobody_is_admin),
        cmocka_unit_test(a_role_with_secrets_is_closed_and_the_other_is_as_the_table_says),
        cmocka_unit_test(several_are_valid_at_once_and_nothing_near_them),
        cmocka_unit_test(a_secret_of_both_roles_gives_the_larger_one),
        cmocka_unit_test(a_file_and_a_text_add_up_to_the_bound),
        cmocka_unit_test(invalid_files_of_secrets_are_refused_with_the_reason),
        cmocka_unit_test(a_file_that_others_can_read_is_warned_of),
        cmocka_unit_test(short_secrets_and_those_of_both_roles_are_warned_of),
        cmocka_unit_test(users_ask_for_roles),
        cmocka_unit_test(a_secret_that_is_gone_loses_its_role_and_one_that_stays_keeps_it),
        cmocka_unit_test(a_bad_reload_keeps_the_old_secrets),
        cmocka_unit_test(readers_see_whole_states_while_secrets_change),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
