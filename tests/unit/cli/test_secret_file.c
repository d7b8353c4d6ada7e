#include "cli/secret_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/engine/threads_run.h"
#include "support/engine/unit_limiter.h"

#define SERVERS 4
#define ROUNDS 500

/* A server that starts again and again, beside others that have the same folder. */
static void write_and_read(unsigned index, void *arg)
{
    char address[32];
    char secret[SECRET_HEX + 1];
    char path[PATH_MAX];
    struct secret_found found;
    (void)arg;
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", 8082 + index);
    for (unsigned i = 0; i < ROUNDS; i++) {
        threads_require(secret_make(secret));
        threads_require(secret_file_write(address, NULL, secret, path));
        secret_file_find(address, &found);
        threads_require(strcmp(found.path, path) == 0 && strcmp(found.secret, secret) == 0);
    }
}

static void servers_that_start_together_have_each_their_own_secret(void **state)
{
    char *folder = unit_folder();
    assert_int_equal(unsetenv("RUNTIME_DIRECTORY"), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
    threads_run(SERVERS, write_and_read, NULL);
    unit_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_that_start_together_have_each_their_own_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
