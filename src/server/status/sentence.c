#include "server/status/sentence.h"

void phrase_add(struct phrase *p, const char *name)
{
    if (p->count < PHRASE_NAMES) {
        p->names[p->count] = name;
    }
    p->count++;
}

void phrase_put_names(struct buffer *out, const struct phrase *p)
{
    size_t shown = p->count < PHRASE_NAMES ? p->count : PHRASE_NAMES;
    for (size_t i = 0; i < shown; i++) {
        bool last = i + 1 == p->count;
        buffer_put(out, i == 0 ? TEXT("") : last ? TEXT(" and ") : TEXT(", "));
        buffer_put(out, text_of(p->names[i]));
    }
    if (p->count > shown) {
        buffer_put(out, TEXT(" and "));
        buffer_put_u64(out, p->count - shown);
        buffer_put(out, TEXT(" more"));
    }
}

/* Returns what stands between phrases: a comma could be taken for one between names. */
static struct weir_text between(const struct phrase *phrases, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        most = phrases[i].count > most ? phrases[i].count : most;
    }
    return most > 1 ? TEXT("; ") : TEXT(", ");
}

bool sentence_put(struct buffer *out, const struct phrase *phrases, size_t count)
{
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        const struct phrase *p = &phrases[i];
        if (p->count == 0) {
            continue;
        }
        buffer_put(out, some ? between(phrases, count) : TEXT(""));
        phrase_put_names(out, p);
        buffer_put_char(out, ' ');
        buffer_put(out, text_of(p->count == 1 ? p->one : p->many));
        some = true;
    }
    return some;
}
