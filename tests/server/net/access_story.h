/* What the tests of secrets share. */
#ifndef WEIR_TESTS_SERVER_ACCESS_STORY_H
#define WEIR_TESTS_SERVER_ACCESS_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/net/access.h"
#include "server/net/worker.h"
#include "support/server/server_client.h"
#include "support/server/server_http.h"

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000/day}]\n";

/* The secrets of these tests are short. */
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
    assert_int_equal(access_open(&access, &from, &error), 0);
    return access;
}

static inline bool starts(const char *reply, const char *with)
{
    return strncmp(reply, with, strlen(with)) == 0;
}

#endif
