/*
 * One line of a trace of attributes: a JSON object with
 *
 *     time    a number in the unit of the replay, from 0 up; decimals count exactly (12.345, no
 *             exponent), down to a nanosecond
 *     cost    a whole number from 1 up; may be left out
 *
 * and any other attributes, as texts or whole numbers; null is as good as nothing.
 */
#ifndef WEIR_CLI_REPLAY_REPLAY_TRACE_H
#define WEIR_CLI_REPLAY_REPLAY_TRACE_H

#include <stdint.h>

#include <weir_rules.h>

#include "common/text.h"

struct json_t;

struct replay_event {
    uint64_t time_ns;
    uint64_t cost; /* 0: not said */
    size_t attributes_count;
    struct weir_rules_attribute attributes[WEIR_RULES_ATTRIBUTES_MAX];
    char numbers[WEIR_RULES_ATTRIBUTES_MAX][24]; /* those that are numbers, as text */
    struct json_t *object;                       /* what the attributes point into */
};

/*
 * 0, and the event is to be ended with replay_event_finish(); or WEIR_EINVAL with "found ...,
 * expected ..."
 */
int replay_event_parse(struct replay_event *e, struct text line, uint64_t unit_ns,
                       struct weir_error *error);
void replay_event_finish(struct replay_event *e);

#endif
