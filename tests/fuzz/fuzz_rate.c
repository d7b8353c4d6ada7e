/*
 * Every quantity parser on the same text: an error has a text and leaves the output alone; a value
 * prints as a text that reads back as it; blanks around the text change nothing; and a count
 * and a duration are read alike on their own and inside a rate.
 */
#include <stdlib.h>

#include "rules/value/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

typedef int parse_fn(struct weir_text text, uint64_t *out, struct weir_error *error);
typedef const char *print_fn(uint64_t value, char *buffer);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static void check_result(int e, const struct weir_error *error, bool untouched)
{
    require(e == 0 || e == WEIR_EINVAL);
    if (e != 0) {
        require(untouched && error->code == e);
        require(memchr(error->text, 0, sizeof error->text) != NULL);
        require(strncmp(error->text, "found ", 6) == 0);
        require(strstr(error->text, ", expected a") != NULL);
        for (const char *c = error->text; *c != 0; c++) {
            require(*c >= ' ' && *c <= '~');
        }
    }
}

/* The value, or UNTOUCHED and *ok false. */
static uint64_t parse(parse_fn *fn, struct weir_text text, bool *ok)
{
    struct weir_error error;
    memset(&error, 'x', sizeof error);
    uint64_t value = UNTOUCHED;
    int e = fn(text, &value, &error);
    check_result(e, &error, value == UNTOUCHED);
    require(fn(text, &(uint64_t){0}, NULL) == e);
    *ok = e == 0;
    return value;
}

static bool parse_rate(struct weir_text text, uint64_t bare_ns, struct rate *rate)
{
    struct weir_error error;
    memset(&error, 'x', sizeof error);
    *rate = (struct rate){UNTOUCHED, UNTOUCHED};
    int e = rate_parse(text, bare_ns, rate, &error);
    check_result(e, &error, rate->count == UNTOUCHED && rate->period_ns == UNTOUCHED);
    return e == 0;
}

static int percent(struct weir_text text, uint64_t *out, struct weir_error *error)
{
    int e =
        quantity_parse(&quantity_percent, text, "a percentage such as 25% or 12.5%", out, error);
    require(e != 0 || *out <= 10000);
    return e;
}

static int size_of(struct weir_text text, uint64_t *out, struct weir_error *error)
{
    return quantity_parse(&quantity_size, text, "a size such as 512KB or 1.5GiB", out, error);
}

static void check_printed(parse_fn *fn, print_fn *print, uint64_t value)
{
    char buffer[QUANTITY_MAX];
    bool ok;
    require(print(value, buffer) == buffer);
    require(parse(fn, text_of(buffer), &ok) == value && ok);
}

/* head + text + tail, until the next call. */
static struct weir_text join(const char *head, struct weir_text text, const char *tail)
{
    static char joined[4096];
    size_t before = strlen(head);
    size_t behind = strlen(tail);
    require(before + text.len + behind <= sizeof joined);
    memcpy(joined, head, before);
    if (text.len > 0) {
        memcpy(joined + before, text.at, text.len);
    }
    memcpy(joined + before + text.len, tail, behind);
    return (struct weir_text){joined, before + text.len + behind};
}

static void check_whole(parse_fn *fn, print_fn *print, struct weir_text text)
{
    bool ok;
    bool again;
    uint64_t value = parse(fn, text, &ok);
    require(parse(fn, join(" \t", text, "\t "), &again) == value && again == ok);
    if (ok && print != NULL) {
        check_printed(fn, print, value);
    }
}

static void check_rate(struct weir_text text, uint64_t bare_ns)
{
    char buffer[QUANTITY_MAX];
    struct rate rate;
    struct rate back;
    if (parse_rate(text, bare_ns, &rate)) {
        require(rate.count > 0 && rate.period_ns > 0);
        require(rate_print(rate, buffer) == buffer);
        if (rate_kind(rate) == RATE_UNLIMITED) { /* the largest count of all */
            require(strcmp(buffer, "unlimited") == 0);
            return;
        }
        require(parse_rate(text_of(buffer), 0, &back));
        require(back.count == rate.count && back.period_ns == rate.period_ns);
    }
}

/* With a unit for bare numbers more is a rate, and what was one stays the same. */
static void check_bare(struct weir_text text)
{
    struct rate without;
    struct rate with;
    if (parse_rate(text, 0, &without)) {
        require(parse_rate(text, 7, &with));
        require(with.count == without.count && with.period_ns == without.period_ns);
    }
}

static void check_inside(struct weir_text text)
{
    struct rate rate;
    bool ok;
    uint64_t count = parse(count_parse, text, &ok);
    if (ok) {
        require(parse_rate(join("", text, "/s"), 0, &rate) == (count > 0));
        require(count == 0 || (rate.count == count && rate.period_ns == 1000000000));
    }
    uint64_t ns = parse(duration_parse, text, &ok);
    if (ok) {
        require(parse_rate(join("3/", text, ""), 0, &rate) == (ns > 0));
        require(ns == 0 || (rate.count == 3 && rate.period_ns == ns));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t bare_ns[] = {0, 1, 1000, 1000000000, UINT64_MAX};
    struct weir_text text = {(const char *)data, size < 4000 ? size : 4000};
    check_whole(count_parse, count_print, text);
    check_whole(size_of, size_print, text);
    check_whole(duration_parse, duration_print, text);
    check_whole(percent, NULL, text);
    for (size_t i = 0; i < sizeof bare_ns / sizeof bare_ns[0]; i++) {
        check_rate(text, bare_ns[i]);
    }
    check_bare(text);
    check_inside(text);
    return 0;
}
