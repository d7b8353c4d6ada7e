#include "rules/value/number.h"

#include <stdio.h>

#include "base/error.h"
#include "rules/value/quote.h"

const char number_too_large[] = "it does not fit into 64 bits";
const char number_varies[] = "month and year vary in length: use 30day or 365day";

bool number_stop(struct number_reader *r, const char *why, struct weir_text where)
{
    r->why = why;
    r->where = where;
    return false;
}

/* ---- what was found, what was expected ---- */

#define SHOWN_MAX 48

#define LIST_MAX 64

/* Writes " (k, M, G, T)": the symbols of the units that can be used. */
static const char *listed(const struct unit *rows, char *buffer)
{
    size_t n = 0;
    buffer[0] = 0;
    for (; rows != NULL && rows->symbol != NULL && n < LIST_MAX; rows++) {
        if (rows->times != 0 && rows->symbol[0] != 0) {
            n += (size_t)snprintf(buffer + n, LIST_MAX - n, "%s%s", n == 0 ? " (" : ", ",
                                  rows->symbol);
        }
    }
    if (n > 0 && n < LIST_MAX) {
        (void)snprintf(buffer + n, LIST_MAX - n, ")");
    }
    return buffer;
}

int number_refuse(const struct number_reader *r, struct weir_text text, const char *expected,
                  struct weir_error *error)
{
    char found[SHOWN_MAX];
    char where[SHOWN_MAX];
    char units[LIST_MAX];
    if (text.len == 0) {
        return fail(error, WEIR_EINVAL, "found nothing, expected %s", expected);
    }
    return fail(error, WEIR_EINVAL, "found %s, expected %s; %s%s%s%s",
                quote_ascii(text, found, sizeof found), expected, r->why,
                r->where.len > 0 ? " " : "",
                r->where.len > 0 ? quote_ascii(r->where, where, sizeof where) : "",
                listed(r->units, units));
}

/* ---- fractions ---- */

static u128 common_divisor(u128 a, u128 b)
{
    while (b != 0) {
        u128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void reduce(struct fraction *f)
{
    u128 common = common_divisor(f->top, f->bottom);
    f->top /= common;
    f->bottom /= common;
}

bool number_multiply(struct number_reader *r, struct fraction *f, uint64_t factor)
{
    u128 common = common_divisor(f->bottom, factor);
    f->bottom /= common;
    if (!__builtin_mul_overflow(f->top, (u128)factor / common, &f->top)) {
        return true;
    }
    return number_stop(r, f->bottom == 1 ? number_too_large : "it has too many digits", TEXT(""));
}

bool number_to_whole(struct number_reader *r, const struct fraction *f, const char *why,
                     uint64_t *out)
{
    if (f->bottom != 1 || f->top > UINT64_MAX) {
        return number_stop(r, f->bottom != 1 ? why : number_too_large, TEXT(""));
    }
    *out = (uint64_t)f->top;
    return true;
}

/* ---- numbers ---- */

bool number_digit_at(struct weir_text t, size_t i)
{
    return i < t.len && t.at[i] >= '0' && t.at[i] <= '9';
}

void number_skip_blanks(struct number_reader *r)
{
    while (r->rest.len > 0 && (r->rest.at[0] == ' ' || r->rest.at[0] == '\t')) {
        r->rest = text_after(r->rest, 1);
    }
}

/* Takes digits, which may have a single _ between two of them. */
static struct weir_text take_digits(struct number_reader *r)
{
    struct weir_text all = r->rest;
    size_t n = 0;
    while (number_digit_at(all, n) ||
           (n > 0 && n < all.len && all.at[n] == '_' && number_digit_at(all, n + 1))) {
        n++;
    }
    r->rest = text_after(all, n);
    return (struct weir_text){all.at, n};
}

/* Appends digits; `shift` is 1 before the point, 10 after it. */
static bool append(struct fraction *f, struct weir_text digits, unsigned shift)
{
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.at[i] == '_') {
            continue;
        }
        if (__builtin_mul_overflow(f->top, (u128)10, &f->top) ||
            __builtin_add_overflow(f->top, (u128)(digits.at[i] - '0'), &f->top) ||
            __builtin_mul_overflow(f->bottom, (u128)shift, &f->bottom)) {
            return false;
        }
    }
    return true;
}

/*
 * Removes zeros at the end of the decimals, which do not change the number, however many there are.
 */
static struct weir_text without_last_zeros(struct weir_text digits)
{
    while (digits.len > 0 &&
           (digits.at[digits.len - 1] == '0' || digits.at[digits.len - 1] == '_')) {
        digits.len--;
    }
    return digits;
}

bool number_read(struct number_reader *r, struct fraction *f)
{
    *f = (struct fraction){0, 1};
    if (!number_digit_at(r->rest, 0)) {
        return NUMBER_MISSING(r, "a number");
    }
    if (!append(f, take_digits(r), 1)) {
        return number_stop(r, number_too_large, TEXT(""));
    }
    if (r->rest.len == 0 || r->rest.at[0] != '.') {
        return true;
    }
    r->rest = text_after(r->rest, 1);
    if (!number_digit_at(r->rest, 0)) {
        return NUMBER_MISSING(r, "a digit");
    }
    if (!append(f, without_last_zeros(take_digits(r)), 10)) {
        return number_stop(r, "it has too many digits", TEXT(""));
    }
    reduce(f);
    return true;
}

/* ---- units ---- */

bool number_letter_at(struct weir_text t, size_t i)
{
    unsigned char c = i < t.len ? (unsigned char)t.at[i] : 0;
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

bool number_read_name(struct number_reader *r, const struct unit *rows, const struct unit **unit)
{
    number_skip_blanks(r);
    struct weir_text name = {r->rest.at, 0};
    while (number_letter_at(r->rest, name.len)) {
        name.len++;
    }
    if (name.len == 0) {
        return NUMBER_MISSING(r, "a unit");
    }
    r->rest = text_after(r->rest, name.len);
    *unit = unit_find(rows, name);
    if (*unit == NULL) {
        r->units = rows;
        return number_stop(r, "unknown unit", name);
    }
    return true;
}

bool number_read_unit(struct number_reader *r, const struct unit *rows, const struct unit **unit)
{
    return number_read_name(r, rows, unit) &&
           ((*unit)->times != 0 || number_stop(r, number_varies, TEXT("")));
}

bool number_read_scaled(struct number_reader *r, const struct unit *rows, struct fraction *f)
{
    const struct unit *unit;
    if (!number_read(r, f)) {
        return false;
    }
    number_skip_blanks(r);
    return !number_letter_at(r->rest, 0) ||
           (number_read_unit(r, rows, &unit) && number_multiply(r, f, unit->times));
}

bool number_read_end(struct number_reader *r)
{
    number_skip_blanks(r);
    return r->rest.len == 0 || number_stop(r, "unexpected", r->rest);
}
