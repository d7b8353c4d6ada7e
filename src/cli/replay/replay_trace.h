/*
 * Reads one line of a trace of attributes: a JSON object with
 *
 *     time   a number in the unit of the replay, from 0 up; decimals are read exactly (12.345, no
 *            exponent), down to a nanosecond
 *     cost   a whole number from 1 up; optional
 *
 * and any other attributes, as strings or whole numbers. A member that is null counts as absent.
 */
#ifndef WEIR_CLI_REPLAY_REPLAY_TRACE_H
#define WEIR_CLI_REPLAY_REPLAY_TRACE_H

#include <stdint.h>

#include <weir_rules.h>

#include "common/text.h"

struct json_t;

/* The units of time that a replay knows; the last row has no name. */
extern const struct replay_unit {
    const char *name;
    uint64_t ns;
} replay_units[];

struct replay_event {
    uint64_t time_ns;
    uint64_t cost; /* 0: not given */
    size_t attributes_count;
    struct weir_rules_attribute attributes[WEIR_RULES_ATTRIBUTES_MAX];
    char numbers[WEIR_RULES_ATTRIBUTES_MAX][24]; /* attributes that are numbers, as text */
    struct json_t *object;                       /* memory that the attributes point into */
};

/*
 * Parses a line. Returns 0, and then the caller calls replay_event_finish(); or WEIR_EINVAL with
 * "found ..., expected ...".
 */
int replay_event_parse(struct replay_event *e, struct weir_text line, uint64_t unit_ns,
                       struct weir_error *error);
void replay_event_finish(struct replay_event *e);

#endif
