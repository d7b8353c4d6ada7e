#include "server/sandbox/explain_json.h"

#include "rules/live/explain.h"
#include "wire/jsontext.h"

struct explain_writer {
    struct buffer *to;
    bool some;   /* an item of the present list has been put */
    bool listed; /* "list" has been put */
    bool limits; /* "limits" has been begun */
};

static void put_separator(struct explain_writer *w)
{
    buffer_put(w->to, w->some ? TEXT(",") : TEXT(""));
    w->some = true;
}

static void put_attribute(void *arg, struct weir_text name, struct weir_text value)
{
    struct explain_writer *w = arg;
    put_separator(w);
    jsontext_put_string(w->to, name);
    buffer_put_char(w->to, ':');
    jsontext_put_string(w->to, value);
}

static void put_list(void *arg, const char *name, unsigned line)
{
    struct explain_writer *w = arg;
    (void)line; /* the limits tell it */
    buffer_put(w->to, TEXT("},\"list\":"));
    jsontext_put_string(w->to, text_of(name));
    w->listed = true;
}

/* Puts the end of what came before the limits. */
static void begin_limits(struct explain_writer *w)
{
    if (!w->limits) {
        buffer_put(w->to, w->listed ? TEXT("") : TEXT("},\"list\":null"));
        buffer_put(w->to, TEXT(",\"limits\":["));
        w->limits = true;
        w->some = false;
    }
}

static void put_text(struct buffer *b, struct weir_text name, struct weir_text value)
{
    buffer_put(b, name);
    jsontext_put_string(b, value);
}

/* Puts a number, or null if it is not known. */
static void put_number(struct buffer *b, struct weir_text name, bool known, int64_t number)
{
    buffer_put(b, name);
    if (known) {
        buffer_put_i64(b, number);
    } else {
        buffer_put(b, TEXT("null"));
    }
}

static int64_t blocked_ms(uint64_t ns)
{
    return ns == WEIR_FOREVER ? -1
                              : (int64_t)(ns / WEIR_MILLISECOND + (ns % WEIR_MILLISECOND != 0));
}

static void put_numbers(struct buffer *b, const struct explained_limit *l)
{
    struct answer a = {.verdict = WEIR_ALLOW};
    struct weir_rules_found found = {.shadow = 0};
    if (l->known) {
        answer_from_limit(&l->answer, l->name, &found, &a);
    }
    buffer_put(b, TEXT(",\"verdict\":"));
    if (l->known) {
        jsontext_put_string(b, text_of(answer_verdict_names[a.verdict]));
    } else {
        buffer_put(b, TEXT("null"));
    }
    put_number(b, TEXT(",\"quota\":"), l->known, (int64_t)a.quota);
    put_number(b, TEXT(",\"remaining\":"), l->known, a.remaining);
    put_number(b, TEXT(",\"retry_after_ms\":"), l->known && a.retry_after_ms >= 0,
               a.retry_after_ms);
    put_number(b, TEXT(",\"reset_after_ms\":"), l->known, (int64_t)a.reset_after_ms);
    put_number(b, TEXT(",\"blocked_ms\":"), l->known, blocked_ms(l->blocked_ns));
}

static void put_applying(struct buffer *b, const struct explained_limit *l)
{
    static const char *const consistencies[] = {"local", "exact", "leased", "synced"};
    buffer_put(b, TEXT(",\"applies\":true"));
    put_text(b, TEXT(",\"mode\":"), l->shadow ? TEXT("shadow") : TEXT("enforce"));
    if (l->tier.len > 0) {
        put_text(b, TEXT(",\"tier\":"), l->tier);
    } else {
        buffer_put(b, TEXT(",\"tier\":null"));
    }
    put_text(b, TEXT(",\"algorithm\":"), text_of(weir_algorithm_name(l->algorithm)));
    put_text(b, TEXT(",\"rate\":"), text_of(l->rate));
    put_text(b, TEXT(",\"key\":"), text_of(l->key));
    put_text(b, TEXT(",\"consistency\":"), text_of(consistencies[l->consistency & 3]));
    put_numbers(b, l);
}

static void put_limit(void *arg, const struct explained_limit *l)
{
    struct explain_writer *w = arg;
    struct buffer *b = w->to;
    begin_limits(w);
    put_separator(w);
    put_text(b, TEXT("{\"name\":"), l->name);
    put_number(b, TEXT(",\"line\":"), l->line > 0, l->line);
    if (l->why != NULL) {
        put_text(b, TEXT(",\"applies\":false,\"why\":"), text_of(l->why));
    } else {
        put_applying(b, l);
    }
    buffer_put_char(b, '}');
}

int explain_put_rest(struct buffer *to, struct weir_rules *rules,
                     const struct weir_rules_question *question, uint64_t now_ns,
                     struct weir_error *error)
{
    static const struct explain_told tell = {put_attribute, put_list, put_limit};
    struct explain_writer w = {.to = to};
    buffer_put(to, TEXT("\"attributes\":{"));
    int e = rules_explain(rules, question, now_ns, &tell, &w, error);
    begin_limits(&w);
    buffer_put(to, TEXT("]}"));
    return e;
}

void explain_put(struct buffer *to, const struct answer *a, struct weir_text rest)
{
    http_put_answer(to, a, OPERATION_PEEK);
    to->end--; /* the rest comes before the end of the object */
    buffer_put_char(to, ',');
    buffer_put(to, rest);
}
