/* The group of unix sockets is found by its name, however many members it has. */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/loop/worker.h"

/* Stands for that of libc: the group "crowd" needs 300,000 bytes for the names of its members. */
int getgrnam_r(const char *name, struct group *entry, char *room, size_t size, struct group **found)
{
    *found = NULL;
    if (strcmp(name, "crowd") != 0) {
        return 0;
    }
    if (size < 300000) {
        return ERANGE;
    }
    room[size - 1] = 0;
    entry->gr_gid = 4711;
    *found = entry;
    return 0;
}

static int check_group(const char *name, struct weir_error *error)
{
    struct server_options o = {.socket_group = name};
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        o.listen[i] = "unix:/nowhere/socket";
    }
    return listener_check_permissions(&o, error);
}

static void a_group_with_many_members_is_found(void **state)
{
    (void)state;
    struct weir_error error = {0};
    assert_int_equal(check_group("crowd", &error), 0);
}

static void a_number_is_a_group_and_an_unknown_name_is_not(void **state)
{
    (void)state;
    struct weir_error error = {0};
    assert_int_equal(check_group("4711", &error), 0);
    assert_int_equal(check_group("0", &error), 0);
    assert_int_equal(check_group("99", &error), 0);
    assert_int_equal(check_group("4294967294", &error), 0);
    assert_int_equal(check_group("4294967295", &error), WEIR_EINVAL); /* means none */
    assert_int_equal(check_group("4711x", &error), WEIR_EINVAL);
    assert_int_equal(check_group("-1", &error), WEIR_EINVAL);
    assert_int_equal(check_group("", &error), WEIR_EINVAL);
    assert_int_equal(check_group("no-such-group", &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "found 'no-such-group', expected a group of this system"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_with_many_members_is_found),
        cmocka_unit_test(a_number_is_a_group_and_an_unknown_name_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
