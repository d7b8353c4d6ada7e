/*
 * Lines of a trace of attributes: refused with a printable text, or read the same whatever space
 * stands around them, with attributes that a question may carry and a time that is exact in any
 * unit.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/replay/replay_trace.h"
#include "common/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static struct replay_event event;
static struct replay_event padded;

/* Nothing of the input that does more on a terminal than show itself. */
static void check_visible(const char *text)
{
    struct weir_text rest = text_of(text);
    while (rest.len > 0) {
        uint32_t c = 0;
        size_t n = utf8_next(rest, &c);
        require(n > 0 && utf8_visible(c));
        rest = text_after(rest, n);
    }
}

static void check_error(int e, const struct weir_error *error)
{
    require(e == WEIR_EINVAL);
    require(strncmp(error->text, "found ", 6) == 0 && strstr(error->text, " expected ") != NULL);
    check_visible(error->text);
}

static void check_event(const struct replay_event *e)
{
    require(e->time_ns <= INT64_MAX && e->attributes_count <= WEIR_RULES_ATTRIBUTES_MAX);
    for (size_t i = 0; i < e->attributes_count; i++) {
        const struct weir_rules_attribute *a = &e->attributes[i];
        require(strlen(a->name) == a->name_len && strcmp(a->name, "time") != 0);
        require(a->value != NULL && a->value[a->value_len] == 0);
    }
}

static void check_padded(struct weir_text line)
{
    struct weir_error error;
    char *copy = malloc(line.len + 3);
    require(copy != NULL);
    memcpy(copy, " \t", 2);
    memcpy(copy + 2, line.at, line.len);
    copy[line.len + 2] = '\r';
    require(replay_event_parse(&padded, (struct weir_text){copy, line.len + 3}, WEIR_MICROSECOND,
                               &error) == 0);
    require(padded.time_ns == event.time_ns && padded.cost == event.cost);
    require(padded.attributes_count == event.attributes_count);
    replay_event_finish(&padded);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_text line = {(const char *)data, size};
    struct weir_error error = {0, ""};
    int e = replay_event_parse(&event, line, WEIR_MICROSECOND, &error);
    if (e != 0) {
        check_error(e, &error);
        require(event.object == NULL);
        return 0;
    }
    check_event(&event);
    check_padded(line);
    if (replay_event_parse(&padded, line, WEIR_MILLISECOND, &error) == 0) {
        require(padded.time_ns == 1000 * event.time_ns);
        replay_event_finish(&padded);
    } else {
        require(event.time_ns > INT64_MAX / 1000);
    }
    replay_event_finish(&event);
    return 0;
}
