/*
 * What the tests of answers that come later share: a server whose limits a fleet decides that
 * answers when it is told to (support/server/server_fleet.h), and the words of a check.
 */
#ifndef WEIR_TESTS_SERVER_PENDING_STORY_H
#define WEIR_TESTS_SERVER_PENDING_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_fleet.h"
#include "support/engine/threads_run.h"

static const char rules[] =
    "attributes: {user: ['header:X-User']}\n"
    "limits:\n"
    "  - {name: api, when: {path: /api}, key: [user], rate: 100/day, consistency: exact}\n"
    "  - {name: here, key: [user], when: {path: /here}, rate: 1000000/day, consistency: local}\n"
    "  - {name: quiet, key: [user], when: {path: /quiet}, rate: 1/day, consistency: exact,\n"
    "     shadow: true}\n";

static struct slow_scene *scene;

static inline int start(void **state)
{
    scene = calloc(1, sizeof *scene);
    slow_start(scene, rules, NULL);
    return 0;
}

static inline int stop(void **state)
{
    slow_stop(scene);
    free(scene);
    return 0;
}

static inline void sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

static inline void say_check(struct server_client *c, unsigned cost)
{
    char words[64];
    (void)snprintf(words, sizeof words, "WEIR.CHECK api alice COST %u", cost);
    assert_true(server_say(c, words));
}

static inline void get_check(struct server_client *c, unsigned cost)
{
    char expected[128];
    (void)snprintf(expected, sizeof expected, "['allow' 'api' 1000000 %u 0 0 0 '' 'limit']", cost);
    assert_string_equal(server_reply(c), expected);
}

static inline void send_post(int fd, const char *path, const char *fields, const char *body)
{
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s", path,
                     fields, strlen(body), body);
    http_send(fd, text, (size_t)n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

#endif
