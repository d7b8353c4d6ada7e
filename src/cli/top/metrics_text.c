#include "cli/top/metrics_text.h"

#include <math.h>
#include <stdlib.h>

#define NUMBER_MAX 64

static bool read_number(struct weir_text text, double *out)
{
    char copy[NUMBER_MAX];
    char *end;
    if (text.len == 0 || text.len >= sizeof copy) {
        return false;
    }
    memcpy(copy, text.at, text.len);
    copy[text.len] = 0;
    *out = strtod(copy, &end);
    return (*end == 0 || *end == ' ') && !isnan(*out); /* a timestamp may follow */
}

/*
 * Takes `name="value"` and a comma from *rest. Returns false at the end, or if it is not a
 * label.
 */
static bool next_label(struct weir_text *rest, struct weir_text *name, struct weir_text *value)
{
    struct weir_text quoted = *rest;
    *name = text_trim(text_cut(&quoted, '='));
    size_t n = 1;
    while (n < quoted.len && quoted.at[n] != '"') {
        n += quoted.at[n] == '\\' ? 2 : 1;
    }
    if (n >= quoted.len || quoted.at[0] != '"') {
        return false;
    }
    *value = (struct weir_text){quoted.at + 1, n - 1};
    *rest = text_after(quoted, n + 1);
    *rest = text_after(*rest, text_starts(*rest, ","));
    return true;
}

static bool read_line(struct weir_text line, struct metric_sample *m)
{
    m->name = text_before(text_before(line, '{'), ' ');
    m->labels = (struct weir_text){"", 0};
    struct weir_text rest = text_after(line, m->name.len);
    if (text_starts(rest, "{")) {
        struct weir_text name;
        struct weir_text value;
        rest = text_after(rest, 1);
        m->labels.at = rest.at;
        while (next_label(&rest, &name, &value)) {
        }
        m->labels.len = (size_t)(rest.at - m->labels.at);
        rest = text_after(rest, rest.len > 0); /* the brace */
    }
    return m->name.len > 0 && line.at[0] != '#' && read_number(text_trim(rest), &m->value);
}

bool metric_next(struct weir_text *rest, struct metric_sample *metric)
{
    while (rest->len > 0) {
        if (read_line(text_cut(rest, '\n'), metric)) {
            return true;
        }
    }
    return false;
}

bool metric_label(const struct metric_sample *metric, const char *name, struct weir_text *value)
{
    struct weir_text rest = metric->labels;
    struct weir_text found;
    while (next_label(&rest, &found, value)) {
        if (text_is(found, name)) {
            return true;
        }
    }
    return false;
}

/* ---- histograms ---- */

void metric_histogram_put(struct metric_histogram *h, double bound, double total)
{
    if (h->count < METRIC_BUCKETS_MAX) {
        h->bounds[h->count] = bound;
        h->totals[h->count] = total;
        h->count++;
    }
}

void metric_histogram_read(struct metric_histogram *h, const struct metric_sample *metric)
{
    struct weir_text text;
    double bound;
    if (metric_label(metric, "le", &text) && read_number(text, &bound)) {
        metric_histogram_put(h, bound, metric->value);
    }
}

/*
 * Returns the number of values up to bound i since `before`. All values count if the buckets are
 * different ones, or the counts have started again.
 */
static double since(const struct metric_histogram *before, const struct metric_histogram *now,
                    unsigned i)
{
    bool same = before != NULL && before->count == now->count &&
                before->totals[i] <= now->totals[i] &&
                before->totals[now->count - 1] <= now->totals[now->count - 1];
    return same ? now->totals[i] - before->totals[i] : now->totals[i];
}

double metric_quantile(const struct metric_histogram *before, const struct metric_histogram *now,
                       double share)
{
    double all = now->count > 0 ? since(before, now, now->count - 1) : 0;
    double below = 0;
    double from = 0;
    if (all <= 0) {
        return -1;
    }
    for (unsigned i = 0; i < now->count; i++) {
        double total = since(before, now, i);
        if (total >= share * all) {
            double in = total > below ? (share * all - below) / (total - below) : 1;
            return isinf(now->bounds[i]) ? from : from + (now->bounds[i] - from) * in;
        }
        below = total;
        from = now->bounds[i];
    }
    return from;
}
