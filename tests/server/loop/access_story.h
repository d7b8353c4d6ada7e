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

#include "server/loop/worker.h"
#include "support/server/access_secrets.h"
#include "support/server/server_client.h"
#include "support/server/server_http.h"

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000/day}]\n";

static inline bool starts(const char *reply, const char *with)
{
    return strncmp(reply, with, strlen(with)) == 0;
}

#endif
