#include "server/admin/sample.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/jsontext.h"

static void put_number(struct buffer *out, const char *before, uint64_t number)
{
    buffer_put(out, text_of(before));
    buffer_put_u64(out, number);
}

static void put_fraction(struct buffer *out, const char *before, double number, int digits)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s%.*f", before, digits, number);
    buffer_put(out, text_of(text));
}

/* ---- requests ---- */

static uint64_t of_clients(const uint64_t *by_listener)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        sum += listener_is_for_clients(i) ? by_listener[i] : 0;
    }
    return sum;
}

/* Puts the requests since the last sample, and remembers those up to now. */
static void put_requests(struct sampler *s, const struct worker_counts *counts, struct buffer *out)
{
    static const struct {
        enum request_result result;
        const char *before;
    } rows[] = {{REQUEST_ALLOW, ",\"requests\":{\"allow\":"},
                {REQUEST_DENY, ",\"deny\":"},
                {REQUEST_ERROR, ",\"error\":"},
                {REQUEST_OVERLOAD, ",\"overload\":"},
                {REQUEST_OTHER, ",\"other\":"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t now = of_clients(counts->requests[rows[i].result]);
        put_number(out, rows[i].before, now - s->requests[rows[i].result]);
        s->requests[rows[i].result] = now;
    }
    buffer_put_char(out, '}');
}

/* Puts those of the counts that are not 0, by the name of their reason. */
static void put_reasons(struct buffer *out, const uint64_t counts[REQUEST_REASONS])
{
    const char *between = "{";
    for (int i = 0; i < REQUEST_REASONS; i++) {
        if (counts[i] > 0) {
            buffer_put(out, text_of(between));
            jsontext_put_string(
                out, text_of(i == WEIR_REASON_UNMATCHED ? "other" : weir_rules_reason_name(i)));
            put_number(out, ":", counts[i]);
            between = ",";
        }
    }
    buffer_put(out, *between == '{' ? TEXT("{}") : TEXT("}"));
}

/* Puts the denied ones of them, by reason. What the counts of a limit fall back by, because they
 * are read one after the other, was put with the sample before. */
static void put_denied(struct sampler *s, const struct worker_counts *counts, struct buffer *out)
{
    uint64_t news[REQUEST_REASONS] = {0};
    for (unsigned i = 0; i < REQUEST_REASONS; i++) {
        if (counts->denied[i] > s->denied[i]) {
            news[i] = counts->denied[i] - s->denied[i];
            s->denied[i] = counts->denied[i];
        }
    }
    buffer_put(out, TEXT(",\"denied\":"));
    put_reasons(out, news);
}

/* ---- latency ---- */

/* Returns a quantile in microseconds, interpolated within its bucket. */
static double quantile_us(const struct histogram *h, uint64_t all, double share)
{
    double wanted = share * (double)all;
    double below = 0;
    double from = 0;
    for (unsigned i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        double in = (double)h->counts[i];
        double to = (double)(UINT64_C(1) << (HISTOGRAM_FIRST + i));
        if (in > 0 && below + in >= wanted) {
            return (from + (to - from) * (wanted - below) / in) / 1e3;
        }
        below += in;
        from = to;
    }
    return from / 1e3; /* more than the last bound */
}

static void put_latency(struct sampler *s, const struct worker_counts *counts, struct buffer *out)
{
    struct histogram news = {{0}, 0};
    uint64_t all = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t now = 0;
        for (unsigned listener = 0; listener < PROTOCOLS; listener++) {
            now += listener_is_for_clients(listener) ? counts->took[listener].counts[i] : 0;
        }
        news.counts[i] = now - s->took.counts[i];
        s->took.counts[i] = now;
        all += news.counts[i];
    }
    if (all == 0) {
        buffer_put(out, TEXT(",\"latency_us\":null"));
        return;
    }
    put_fraction(out, ",\"latency_us\":{\"p50\":", quantile_us(&news, all, 0.5), 1);
    put_fraction(out, ",\"p99\":", quantile_us(&news, all, 0.99), 1);
    put_fraction(out, ",\"p999\":", quantile_us(&news, all, 0.999), 1);
    buffer_put_char(out, '}');
}

/* ---- limits ---- */

static int busiest_first(const void *a, const void *b)
{
    const struct limit_counts *l = a;
    const struct limit_counts *m = b;
    uint64_t x = limit_decisions(l);
    uint64_t y = limit_decisions(m);
    return x != y ? (x < y ? 1 : -1) : strcmp(l->name, m->name);
}

static int most_denied_first(const void *a, const void *b)
{
    uint64_t x = ((const struct limit_counts *)a)->denied;
    uint64_t y = ((const struct limit_counts *)b)->denied;
    return x != y ? (x < y ? 1 : -1) : busiest_first(a, b);
}

/* Orders the limits that a sample names first: a limit that denies a little must be seen among many
 * that allow a lot. */
static void order_news(struct limit_counts *news, size_t count)
{
    size_t denying = 0;
    qsort(news, count, sizeof *news, most_denied_first);
    while (denying < count && denying < SAMPLE_DENYING && news[denying].denied > 0) {
        denying++;
    }
    qsort(news + denying, count - denying, sizeof *news, busiest_first);
}

/* Moves the limits that have decided something to the front; returns their number. */
static size_t keep_busy(struct limit_counts *news, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (limit_decisions(&news[i]) > 0) {
            news[n++] = news[i];
        }
    }
    return n;
}

static void put_limit(struct buffer *out, const char *between, const char *name,
                      const struct limit_counts *l)
{
    buffer_put(out, text_of(between));
    jsontext_put_string(out, text_of(name));
    put_number(out, ":[", l->allowed);
    put_number(out, ",", l->denied);
    put_number(out, ",", l->shadow_denied);
    buffer_put_char(out, ']');
}

static void put_news(struct buffer *out, struct limit_counts *news, size_t count)
{
    struct limit_counts others = {.allowed = 0};
    order_news(news, count);
    for (size_t i = 0; i < count; i++) {
        if (i < SAMPLE_LIMITS) {
            put_limit(out, i > 0 ? "," : "", news[i].name, &news[i]);
        } else {
            others.allowed += news[i].allowed;
            others.denied += news[i].denied;
            others.shadow_denied += news[i].shadow_denied;
        }
    }
    if (count > SAMPLE_LIMITS) { /* no limit can have a name with brackets */
        put_limit(out, ",", "(others)", &others);
    }
}

static bool has_reasons(const struct limit_counts *l)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < REQUEST_REASONS; i++) {
        all += l->reasons[i];
    }
    return all > 0;
}

/* Puts the reasons of the limits that put_news() has named. */
static void put_news_reasons(struct buffer *out, const struct limit_counts *news, size_t count)
{
    const char *between = "";
    buffer_put(out, TEXT("},\"limits_denied\":{"));
    for (size_t i = 0; i < count && i < SAMPLE_LIMITS; i++) {
        if (has_reasons(&news[i])) {
            buffer_put(out, text_of(between));
            jsontext_put_string(out, text_of(news[i].name));
            buffer_put_char(out, ':');
            put_reasons(out, news[i].reasons);
            between = ",";
        }
    }
}

static void put_limits(struct sampler *s, const struct numbers *n, uint64_t now_ns,
                       struct buffer *out)
{
    struct limits_counted now;
    struct limit_counts *news = calloc(n->limits_count + 1, sizeof *news);
    buffer_put(out, TEXT(",\"limits\":{"));
    if (limits_counted_read(n, &now) && news != NULL) {
        limits_counted_since(&s->limits, &now, news);
        if (s->at_ns != 0 && now_ns > s->at_ns) {
            limits_counted_rate(&s->limits, &now, news, (double)(now_ns - s->at_ns) / 1e9);
        }
        size_t count = keep_busy(news, now.count);
        put_news(out, news, count);
        put_news_reasons(out, news, count);
    } else {
        out->full = true; /* no sample */
    }
    buffer_put_char(out, '}');
    free(news);
    limits_counted_finish(&s->limits);
    s->limits = now;
}

/* ---- the state ---- */

static void put_tables(const struct numbers *n, struct buffer *out)
{
    uint64_t keys = 0;
    uint64_t capacity = 0;
    const struct limit_numbers *fullest = NULL;
    double most = -1;
    for (size_t i = 0; i < n->limits_count; i++) {
        const struct weir_stats *stats = &n->limits[i].stats;
        double share = stats->capacity > 0 ? (double)stats->keys / (double)stats->capacity : -1;
        keys += stats->keys;
        capacity += stats->capacity;
        fullest = share > most ? &n->limits[i] : fullest;
        most = share > most ? share : most;
    }
    put_number(out, ",\"keys\":", keys);
    put_number(out, ",\"capacity\":", capacity);
    buffer_put(out, TEXT(",\"fullest\":"));
    if (fullest == NULL) {
        buffer_put(out, TEXT("null"));
        return;
    }
    buffer_put(out, TEXT("{\"limit\":"));
    jsontext_put_string(out, text_of(fullest->name));
    put_fraction(out, ",\"percent\":", 100 * most, 1);
    buffer_put_char(out, '}');
}

static void put_process(struct sampler *s, const struct numbers *n, uint64_t now_ns,
                        struct buffer *out)
{
    double spent = (double)(n->process.cpu_ns - s->cpu_ns);
    double passed = now_ns > s->at_ns ? (double)(now_ns - s->at_ns) : 1e9;
    put_number(out, ",\"reservations\":", n->reservations.open);
    put_number(out, ",\"held\":", n->counts.holding);
    put_number(out, ",\"connections\":", of_clients(n->counts.open));
    put_number(out, ",\"memory_bytes\":", n->process.resident_bytes);
    put_fraction(out, ",\"cpu\":", spent / passed, 3);
    put_number(out, ",\"generation\":", n->rules.generation);
    buffer_put(out, n->shadow ? TEXT(",\"mode\":\"shadow\"") : TEXT(",\"mode\":\"enforce\""));
}

static void put_store(const struct numbers *n, struct buffer *out)
{
    uint64_t open = 0;
    for (size_t i = 0; i < n->fleet.endpoints_count; i++) {
        open += n->fleet.endpoints[i].open != 0;
    }
    if (n->server->fleet.fleet == NULL) {
        buffer_put(out, TEXT(",\"store\":null"));
        return;
    }
    buffer_put(out, TEXT(",\"store\":{\"up\":"));
    buffer_put(out, n->fleet.up != 0 ? TEXT("true") : TEXT("false"));
    put_number(out, ",\"nodes\":", n->fleet.nodes);
    put_number(out, ",\"connections\":", n->fleet.links);
    put_number(out, ",\"breakers_open\":", open);
    buffer_put_char(out, '}');
}

/* ---- all ---- */

static void put_all(struct sampler *s, const struct numbers *n, uint64_t now_ns, struct buffer *out)
{
    put_number(out, "{\"at_ms\":", now_ns / WEIR_MILLISECOND);
    put_requests(s, &n->counts, out);
    put_denied(s, &n->counts, out);
    put_latency(s, &n->counts, out);
    put_limits(s, n, now_ns, out);
    put_tables(n, out);
    put_process(s, n, now_ns, out);
    put_store(n, out);
    buffer_put_char(out, '}');
}

void sample_put(struct sampler *s, const struct server *server, uint64_t now_ns, struct buffer *out)
{
    struct numbers n;
    bool first = s->at_ns == 0;
    if (numbers_read_briefly(server, &n)) {
        put_all(s, &n, now_ns, out);
        s->at_ns = now_ns;
        s->cpu_ns = n.process.cpu_ns;
        if (first || out->full) {
            buffer_take(out, buffer_len(out));
            out->full = false;
        }
    }
    numbers_finish(&n);
}

void sampler_finish(struct sampler *s)
{
    limits_counted_finish(&s->limits);
    *s = (struct sampler){.at_ns = 0};
}
