#include "support/server/exposition.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of the reader. */
struct reading {
    struct exposition *e;
    char family[128];
    char type[32];
    char helped[128];    /* the metric of the last HELP */
    char seen[512][128]; /* metrics whose TYPE has been read */
    char group[256];     /* for buckets: the labels without le */
    double bound, count; /* of the previous bucket */
    bool closed;         /* +Inf has been read */
};

__attribute__((format(printf, 2, 3))) static bool complain(struct exposition *e, const char *format,
                                                           ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(e->complaint, sizeof e->complaint, format, args);
    va_end(args);
    return false;
}

/* Matches [a-zA-Z_:][a-zA-Z0-9_:]*; labels without the colon. */
static size_t name_length(const char *at, bool label)
{
    size_t n = 0;
    while (isalpha((unsigned char)at[n]) || at[n] == '_' || (at[n] == ':' && !label) ||
           (n > 0 && isdigit((unsigned char)at[n]))) {
        n++;
    }
    return n;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- comments ---- */

static bool read_help(struct reading *r, const char *line)
{
    size_t n = name_length(line, false);
    if (n == 0 || line[n] != ' ' || n >= sizeof r->helped) {
        return complain(r->e, "HELP without a name: %s", line);
    }
    for (const char *at = line; *at != 0; at++) {
        if (*at == '\\' && at[1] != '\\' && at[1] != 'n') {
            return complain(r->e, "a bad escape in HELP: %s", line);
        }
        at += *at == '\\';
    }
    (void)snprintf(r->helped, sizeof r->helped, "%.*s", (int)n, line);
    return true;
}

/* For OpenMetrics the name of a counter is the one without _total. */
static bool same_family(const char *a, const char *b)
{
    size_t n = strlen(a) - (ends_with(a, "_total") ? 6 : 0);
    size_t m = strlen(b) - (ends_with(b, "_total") ? 6 : 0);
    return n == m && strncmp(a, b, n) == 0;
}

static bool read_type(struct reading *r, const char *line)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    size_t n = name_length(line, false);
    bool known = false;
    if (n == 0 || line[n] != ' ' || n >= sizeof r->family) {
        return complain(r->e, "TYPE without a name: %s", line);
    }
    (void)snprintf(r->family, sizeof r->family, "%.*s", (int)n, line);
    (void)snprintf(r->type, sizeof r->type, "%s", line + n + 1);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        known = known || strcmp(types[i], r->type) == 0;
    }
    if (!known || strcmp(r->helped, r->family) != 0) {
        return complain(r->e, "TYPE unknown, or without its HELP before it: %s", line);
    }
    for (size_t i = 0; i < r->e->families; i++) {
        if (same_family(r->seen[i], r->family)) {
            return complain(r->e, "a second TYPE of %s", r->family);
        }
    }
    if (strcmp(r->type, "counter") == 0 && !ends_with(r->family, "_total")) {
        return complain(r->e, "a counter that is not called _total: %s", r->family);
    }
    (void)snprintf(r->seen[r->e->families++], sizeof r->seen[0], "%s", r->family);
    r->group[0] = 0;
    return true;
}

/* ---- samples ---- */

/* Returns the position after the labels; NULL after a complaint. *le gets the bound of a bucket, if
 * there is one. */
static const char *read_labels(struct reading *r, const char *at, char *others, char *le)
{
    size_t used = 0;
    others[0] = 0;
    for (at++; *at != '}';) {
        size_t n = name_length(at, true);
        const char *name = at;
        if (n == 0 || at[n] != '=' || at[n + 1] != '"' || strncmp(name, "__", 2) == 0) {
            (void)complain(r->e, "a bad label: %s", at);
            return NULL;
        }
        const char *value = at + n + 2;
        for (at = value; *at != '"'; at++) {
            if (*at == 0 || (*at == '\\' && strchr("\\\"n", at[1]) == NULL)) {
                (void)complain(r->e, "a value that does not end, or a bad escape: %s", name);
                return NULL;
            }
            at += *at == '\\';
        }
        if (n == 2 && strncmp(name, "le", 2) == 0) {
            (void)snprintf(le, 64, "%.*s", (int)(at - value), value);
        } else {
            used += (size_t)snprintf(others + used, 128 - used, "%.*s;", (int)(at - name), name);
        }
        at++;
        if (*at != ',' && *at != '}') {
            (void)complain(r->e, "labels without a comma: %s", name);
            return NULL;
        }
        at += *at == ',';
    }
    return at + 1;
}

static bool read_value(struct reading *r, const char *at, double *value)
{
    char *end;
    if (*at != ' ' || at[1] == ' ' || at[1] == 0) {
        return complain(r->e, "no value: '%s'", at);
    }
    *value = strtod(at + 1, &end);
    return *end == 0 ? true : complain(r->e, "a bad value: '%s'", at);
}

/* Buckets must be in order and end with +Inf; then come _sum, and _count with the same number. */
static bool check_histogram(struct reading *r, const char *suffix, const char *others,
                            const char *le, double value)
{
    if (strcmp(suffix, "_bucket") == 0) {
        bool fresh = strcmp(r->group, others) != 0;
        double bound = strcmp(le, "+Inf") == 0 ? INFINITY : strtod(le, NULL);
        if (le[0] == 0 || (!fresh && (r->closed || bound <= r->bound || value < r->count))) {
            return complain(r->e, "buckets out of order: %s le %s", r->family, le);
        }
        (void)snprintf(r->group, sizeof r->group, "%s", others);
        r->bound = bound;
        r->count = value;
        r->closed = isinf(bound);
        return true;
    }
    if (!r->closed || strcmp(r->group, others) != 0) {
        return complain(r->e, "%s%s without its buckets", r->family, suffix);
    }
    if (strcmp(suffix, "_count") == 0 && value != r->count) {
        return complain(r->e, "%s_count is not that of +Inf", r->family);
    }
    return strcmp(suffix, "_count") == 0 || strcmp(suffix, "_sum") == 0
               ? true
               : complain(r->e, "%s%s in a histogram", r->family, suffix);
}

static bool add(struct exposition *e, const char *series, size_t len, const char *family,
                double value)
{
    struct exposition_sample *s = &e->samples[e->count];
    if (e->count == EXPOSITION_SERIES || len >= sizeof s->series) {
        return complain(e, "too many series, or one too long");
    }
    (void)snprintf(s->series, sizeof s->series, "%.*s", (int)len, series);
    if (exposition_find(e, s->series) != NULL) {
        return complain(e, "a series twice: %s", s->series);
    }
    (void)snprintf(s->family, sizeof s->family, "%s", family);
    s->value = value;
    e->count++;
    return true;
}

static bool read_sample(struct reading *r, const char *line)
{
    char others[128] = "";
    char le[64] = "";
    char suffix[64] = "";
    double value = 0;
    size_t n = name_length(line, false);
    size_t own = strlen(r->family);
    if (own == 0 || n < own || strncmp(line, r->family, own) != 0 || n - own >= sizeof suffix) {
        return complain(r->e, "a sample that is not of the metric before it: %s", line);
    }
    (void)snprintf(suffix, sizeof suffix, "%.*s", (int)(n - own), line + own);
    const char *at = line[n] == '{' ? read_labels(r, line + n, others, le) : line + n;
    if (at == NULL || !read_value(r, at, &value)) {
        return false;
    }
    bool histogram = strcmp(r->type, "histogram") == 0;
    if (histogram ? !check_histogram(r, suffix, others, le, value) : suffix[0] != 0) {
        return r->e->complaint[0] != 0 ? false : complain(r->e, "another metric: %s", line);
    }
    if (strcmp(r->type, "gauge") != 0 && !(value >= 0)) {
        return complain(r->e, "a negative count: %s", line);
    }
    return add(r->e, line, (size_t)(at - line), r->family, value);
}

bool exposition_read(struct exposition *e, const char *text)
{
    static struct reading r;
    char line[1024];
    memset(e, 0, sizeof *e);
    r = (struct reading){.e = e};
    while (*text != 0) {
        size_t n = strcspn(text, "\n");
        if (text[n] != '\n' || n == 0 || n >= sizeof line || memchr(text, '\r', n) != NULL) {
            return complain(e, "a line without an end, empty, or too long");
        }
        (void)snprintf(line, sizeof line, "%.*s", (int)n, text);
        text += n + 1;
        bool good = strncmp(line, "# HELP ", 7) == 0   ? read_help(&r, line + 7)
                    : strncmp(line, "# TYPE ", 7) == 0 ? read_type(&r, line + 7)
                                                       : read_sample(&r, line);
        if (!good) {
            return false;
        }
    }
    return true;
}

const struct exposition_sample *exposition_find(const struct exposition *e, const char *series)
{
    for (size_t i = 0; i < e->count; i++) {
        if (strcmp(e->samples[i].series, series) == 0) {
            return &e->samples[i];
        }
    }
    return NULL;
}
