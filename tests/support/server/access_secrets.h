/* Secrets that a test gives to a server as texts. */
#ifndef WEIR_TESTS_SUPPORT_ACCESS_SECRETS_H
#define WEIR_TESTS_SUPPORT_ACCESS_SECRETS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/access/access.h"

/* The secrets of tests are short. */
static inline void ignore_warning(void *arg, const struct access_warning *warning)
{
    (void)arg;
    (void)warning;
}

static inline struct access *secrets(const char *check, const char *admin)
{
    struct access_sources from = {.text = {[ROLE_CHECK] = check, [ROLE_ADMIN] = admin},
                                  .warn = ignore_warning};
    struct weir_error error = {0};
    struct access *access = NULL;
    if (access_open(&access, &from, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return access;
}

#endif
