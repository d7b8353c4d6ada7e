#include "rules/value/quantity.h"

#include <stdio.h>

#include "rules/value/units.h"

/* No 64-bit number is longer than 20 digits, so a longer form is never the shortest. */
#define DIGITS_MAX 22

struct number {
    char digits[DIGITS_MAX + 1];
    size_t len;
    bool has_point;
    const char *unit;
};

/* Writes value / times in decimals; false if they are too many, or never end. */
static bool in_unit(uint64_t value, const struct unit *unit, struct number *n)
{
    uint64_t rest = value % unit->times;
    n->len = (size_t)snprintf(n->digits, sizeof n->digits, "%llu",
                              (unsigned long long)(value / unit->times));
    n->has_point = rest > 0;
    n->unit = unit->symbol;
    if (n->has_point) {
        n->digits[n->len++] = '.';
    }
    for (; rest > 0 && n->len < DIGITS_MAX; rest %= unit->times) {
        rest *= 10; /* fits: no unit is larger than 2^60 */
        n->digits[n->len++] = (char)('0' + rest / unit->times);
    }
    n->digits[n->len] = 0;
    return rest == 0;
}

/*
 * Returns the value in the unit that takes the fewest bytes of number: 90s, not 1.5min. If two take
 * as many, the larger one is used.
 */
static struct number shortest(uint64_t value, const struct unit *unit)
{
    struct number best;
    struct number n;
    (void)in_unit(value, unit, &best);
    for (unit++; unit->symbol != NULL && unit->times != 0 && unit->times <= value; unit++) {
        if (in_unit(value, unit, &n) && (n.len < best.len || (n.len == best.len && !n.has_point))) {
            best = n;
        }
    }
    return best;
}

static const char *print(uint64_t value, const struct unit *rows, char *buffer)
{
    struct number n = shortest(value, rows);
    (void)snprintf(buffer, QUANTITY_MAX, "%s%s", n.digits, n.unit);
    return buffer;
}

const char *count_print(uint64_t count, char *buffer)
{
    return print(count, units_of_count, buffer);
}

const char *size_print(uint64_t bytes, char *buffer)
{
    return print(bytes, units_of_size, buffer);
}

const char *size_print_short(uint64_t bytes, char *buffer)
{
    static const char *const units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t times = 1000;
    size_t unit = 0;
    if (bytes < times) {
        return size_print(bytes, buffer);
    }
    while (bytes / times >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        times *= 1000;
        unit++;
    }
    unsigned scale = bytes / times < 10 ? 100 : bytes / times < 100 ? 10 : 1;
    unsigned __int128 shown = ((unsigned __int128)bytes * scale + times - 1) / times;
    (void)snprintf(buffer, QUANTITY_MAX, "%g%s", (double)shown / scale, units[unit]);
    return buffer;
}

const char *duration_print(uint64_t ns, char *buffer)
{
    if (ns == 0) {
        (void)snprintf(buffer, QUANTITY_MAX, "0s");
        return buffer;
    }
    return print(ns, units_of_time, buffer);
}

const char *percent_print(uint64_t hundredths, char *buffer)
{
    (void)snprintf(buffer, QUANTITY_MAX, "%g%%", (double)hundredths / 100);
    return buffer;
}

/* One of a unit is printed as the unit alone: 5/min. */
const char *rate_print(struct rate rate, char *buffer)
{
    struct number count = shortest(rate.count, units_of_count);
    struct number period = shortest(rate.period_ns, units_of_time);
    bool month = rate.period_ns == WEIR_MONTH;
    bool one = strcmp(period.digits, "1") == 0 || month;
    if (rate_kind(rate) == RATE_UNLIMITED) {
        (void)snprintf(buffer, QUANTITY_MAX, "unlimited");
    } else {
        (void)snprintf(buffer, QUANTITY_MAX, "%s%s/%s%s", count.digits, count.unit,
                       one ? "" : period.digits, month ? "month" : period.unit);
    }
    return buffer;
}
