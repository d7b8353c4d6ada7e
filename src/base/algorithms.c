#include "base/algorithms.h"

#include <string.h>

const unsigned algorithm_traits[ALGORITHMS_END] = {
#define ROW(number, name, traits) [number] = (traits),
    EACH_ALGORITHM(ROW)
#undef ROW
};

static const char *const names[ALGORITHMS_END] = {
#define ROW(number, name, traits) [number] = #name,
    EACH_ALGORITHM(ROW)
#undef ROW
};

const char *weir_algorithm_name(int algorithm)
{
    return algorithm > 0 && algorithm < ALGORITHMS_END ? names[algorithm] : NULL;
}

int weir_algorithm_by_name(const char *name)
{
    for (int i = 1; i < ALGORITHMS_END && name != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return 0;
}

/* Returns the next number with one of the traits, or ALGORITHMS_END. */
static int next(int algorithm, unsigned traits)
{
    do {
        algorithm++;
    } while (algorithm < ALGORITHMS_END && !algorithm_has(algorithm, traits));
    return algorithm;
}

const char *algorithm_list(unsigned traits, char text[ALGORITHM_LIST_MAX])
{
    char *end = text;
    *end = '\0';
    for (int i = next(0, traits); i < ALGORITHMS_END; i = next(i, traits)) {
        if (end != text) {
            end = stpcpy(end, next(i, traits) < ALGORITHMS_END ? ", " : " or ");
        }
        end = stpcpy(end, names[i]);
    }
    return text;
}
