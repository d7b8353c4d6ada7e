#include "rules/value/suggest.h"

#define WORD_MAX 32

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Computes the optimal string alignment distance, keeping three rows at a time. */
unsigned suggest_distance(struct weir_text a, const char *b)
{
    unsigned rows[3][WORD_MAX + 1];
    size_t n = strlen(b);
    if (a.len > WORD_MAX || n > WORD_MAX) {
        return SUGGEST_FAR;
    }
    for (unsigned j = 0; j <= n; j++) {
        rows[0][j] = j;
    }
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3];
        const unsigned *before = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            unsigned changed = above[j - 1] + (a.at[i - 1] != b[j - 1]);
            row[j] = smaller(changed, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.at[i - 1] == b[j - 2] && a.at[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], before[j - 2] + 1);
            }
        }
    }
    return rows[a.len % 3][n];
}

void suggest_offer(struct suggestion *s, const char *known)
{
    unsigned distance = suggest_distance(s->word, known);
    if (distance < s->distance) {
        s->distance = distance;
        s->nearest = known;
    }
}
