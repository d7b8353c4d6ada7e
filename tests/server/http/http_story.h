/* What tests of the HTTP listener share: a server in this process, its rules, the last answer. */
#ifndef WEIR_TESTS_SERVER_HTTP_STORY_H
#define WEIR_TESTS_SERVER_HTTP_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/server/server_http.h"
#include "wire/http_request.h"

static const char rules[] =
    "allow: [{path: /healthz}]\n"
    "block: [{user: [mallory]}]\n"
    "limits:\n"
    "  - {name: api, when: {path: /api}, key: [user], rate: 1000/day}\n"
    "  - {name: pair, when: {path: /pair}, key: [user, ip], rate: 10/day}\n"
    "  - {name: one, when: {path: /one}, key: [ip], rate: 1/day}\n"
    "  - {name: tiers, key: [user], rate: 5/day, when: {path: /tiers},\n"
    "     tiers: {by: tier, default: free, free: {}, pro: {rate: 50/day}}}\n"
    "  - {name: queue, key: [user], algorithm: leaky_bucket, rate: 1/h, queue: 5,\n"
    "     when: {path: /queue}}\n"
    "  - {name: hundred, key: [user], rate: 100/day, when: {path: /hundred}}\n";

static struct http_server *server;
static struct http_answer a;

static inline int start(void **state)
{
    server = calloc(1, sizeof *server);
    http_server_start(server, rules, NULL);
    return 0;
}

static inline int stop(void **state)
{
    http_server_stop(server);
    free(server);
    return 0;
}

static inline void check(const char *body)
{
    http_ask(server, "POST /v1/check", "", body, &a);
}

static inline void assert_body_has(const char *part)
{
    if (strstr(a.body, part) == NULL) {
        fail_msg("not in the body: %s\nfound: %s", part, a.text);
    }
}

static inline void assert_status(int status)
{
    if (a.status != status) {
        fail_msg("expected %d, found: %s", status, a.text);
    }
}

#endif
