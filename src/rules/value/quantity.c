#include "rules/value/quantity.h"

#include "rules/value/number.h"

/* ---- durations ---- */

/* Adds f * times to *ns. */
static bool add_part(struct number_reader *r, struct fraction f, uint64_t times, uint64_t *ns)
{
    uint64_t part;
    if (!number_multiply(r, &f, times) || !number_to_whole(r, &f, "it is finer than 1ns", &part)) {
        return false;
    }
    return !__builtin_add_overflow(*ns, part, ns) || number_stop(r, number_too_large, TEXT(""));
}

/* Reads a duration such as "1h30m" up to the end of the text. */
static bool read_duration(struct number_reader *r, uint64_t *ns)
{
    uint64_t larger = UINT64_MAX;
    *ns = 0;
    do {
        struct fraction f;
        const struct unit *unit;
        struct weir_text part = r->rest;
        if (!number_read(r, &f) || !number_read_unit(r, units_of_time, &unit)) {
            return false;
        }
        if (unit->times >= larger) {
            return number_stop(r, "larger units must come first, each once, not", part);
        }
        larger = unit->times;
        if (!add_part(r, f, unit->times, ns)) {
            return false;
        }
        number_skip_blanks(r);
    } while (number_digit_at(r->rest, 0));
    return number_read_end(r);
}

/* ---- rates ---- */

static bool read_slash(struct number_reader *r)
{
    number_skip_blanks(r);
    if (r->rest.len == 0 || r->rest.at[0] != '/') {
        return NUMBER_MISSING(r, "a slash");
    }
    r->rest = text_after(r->rest, 1);
    number_skip_blanks(r);
    return true;
}

/* Reads a unit alone, which means one of it. */
static bool read_one(struct number_reader *r, uint64_t *ns)
{
    const struct unit *unit;
    if (!number_read_name(r, units_of_time, &unit) || !number_read_end(r)) {
        return false;
    }
    bool month = strcmp(unit->symbol, "month") == 0;
    *ns = month ? WEIR_MONTH : unit->times;
    return *ns != 0 || number_stop(r, number_varies, TEXT(""));
}

/* Reads a number if nothing else is left, and returns true; otherwise reads nothing. */
static bool read_bare(struct number_reader *r, struct fraction *f)
{
    struct number_reader ahead = *r;
    if (!number_read(&ahead, f) || !number_read_end(&ahead)) {
        return false;
    }
    *r = ahead;
    return true;
}

/* Reads the period after the slash. */
static bool read_period(struct number_reader *r, uint64_t bare_ns, uint64_t *ns)
{
    struct fraction f;
    *ns = 0;
    if (r->rest.len == 0) {
        return NUMBER_MISSING(r, "a period");
    }
    if (number_letter_at(r->rest, 0)) {
        return read_one(r, ns);
    }
    if (read_bare(r, &f)) {
        return bare_ns != 0 ? add_part(r, f, bare_ns, ns) : NUMBER_MISSING(r, "a unit");
    }
    return read_duration(r, ns);
}

/* Makes a rate. A count that is not whole is turned into a whole count over more periods. */
static bool to_rate(struct number_reader *r, const struct fraction *count, uint64_t period_ns,
                    struct rate *rate)
{
    if (period_ns == 0) {
        return number_stop(r, "the period is zero", TEXT(""));
    }
    if (period_ns == WEIR_MONTH && count->bottom != 1) {
        return number_stop(r, "a count per month must be whole", TEXT(""));
    }
    if (count->top > UINT64_MAX || count->bottom > UINT64_MAX / period_ns) {
        return number_stop(r, number_too_large, TEXT(""));
    }
    *rate = (struct rate){(uint64_t)count->top, (uint64_t)count->bottom * period_ns};
    return true;
}

static int parse_rate(struct weir_text text, uint64_t bare_ns, bool may_be_zero, struct rate *out,
                      struct weir_error *error)
{
    struct number_reader r = {.rest = text};
    struct fraction count;
    uint64_t period_ns;
    number_skip_blanks(&r);
    bool good = number_read_scaled(&r, units_of_count, &count) && read_slash(&r) &&
                read_period(&r, bare_ns, &period_ns);
    if (good && count.top == 0 && !may_be_zero) {
        good = number_stop(&r, "the count is zero", TEXT(""));
    }
    if (!good || !to_rate(&r, &count, period_ns, out)) {
        return number_refuse(&r, text, "a count per period such as 5/min", error);
    }
    return 0;
}

int rate_parse(struct weir_text text, uint64_t bare_ns, struct rate *out, struct weir_error *error)
{
    return parse_rate(text, bare_ns, false, out, error);
}

int rate_parse_limit(struct weir_text text, struct rate *out, struct weir_error *error)
{
    if (text_is(text_trim(text), "unlimited")) {
        *out = (struct rate){UINT64_MAX, WEIR_SECOND};
        return 0;
    }
    return parse_rate(text, 0, true, out, error);
}

/* ---- counts, sizes, percentages ---- */

static bool read_whole(struct number_reader *r, const struct unit *rows, const char *why,
                       uint64_t *out)
{
    struct fraction f;
    return number_read_scaled(r, rows, &f) && number_read_end(r) &&
           number_to_whole(r, &f, why, out);
}

static bool read_count(struct number_reader *r, uint64_t *count)
{
    return read_whole(r, units_of_count, "it is not whole", count);
}

static bool read_size(struct number_reader *r, uint64_t *bytes)
{
    return read_whole(r, units_of_size, "it is not a whole number of bytes", bytes);
}

/* Reads an optional percent sign and the end. */
static bool read_sign(struct number_reader *r)
{
    number_skip_blanks(r);
    if (r->rest.len > 0 && r->rest.at[0] == '%') {
        r->rest = text_after(r->rest, 1);
    }
    return number_read_end(r);
}

static bool read_percent(struct number_reader *r, uint64_t *hundredths)
{
    struct fraction f;
    if (!number_read(r, &f) || !read_sign(r)) {
        return false;
    }
    u128 whole = f.top / f.bottom;
    if (whole > 100 || (whole == 100 && f.bottom > 1)) {
        return number_stop(r, "it is more than 100%", TEXT(""));
    }
    if (100 % f.bottom != 0) {
        return number_stop(r, "it is finer than 0.01%", TEXT(""));
    }
    *hundredths = (uint64_t)(f.top * (100 / f.bottom));
    return true;
}

const struct quantity quantity_count = {read_count, count_print};
const struct quantity quantity_size = {read_size, size_print};
const struct quantity quantity_duration = {read_duration, duration_print};
const struct quantity quantity_percent = {read_percent, percent_print};

int quantity_parse(const struct quantity *quantity, struct weir_text text, const char *expected,
                   uint64_t *number, struct weir_error *error)
{
    struct number_reader r = {.rest = text};
    uint64_t read;
    number_skip_blanks(&r);
    if (!quantity->read(&r, &read)) {
        return number_refuse(&r, text, expected, error);
    }
    *number = read;
    return 0;
}

int count_parse(struct weir_text text, uint64_t *count, struct weir_error *error)
{
    return quantity_parse(&quantity_count, text, "a whole number such as 100 or 1.5k", count,
                          error);
}

int duration_parse(struct weir_text text, uint64_t *ns, struct weir_error *error)
{
    return quantity_parse(&quantity_duration, text, "a duration such as 90s or 1h30m", ns, error);
}
