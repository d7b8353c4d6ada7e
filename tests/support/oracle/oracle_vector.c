#include "support/oracle/oracle_vector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdict_names[] = {"allow", "deny", "never"}; /* indexed from WEIR_ALLOW */
static const char *const verb_names[] = {"check", "peek", "upto", "refund", "penalize"};

/* ---- printing ---- */

struct oracle_expected oracle_expect(const struct weir_answer *a, enum oracle_unit unit)
{
    struct oracle_expected e = {.verdict = a->verdict, .remaining = a->remaining};
    e.retry = a->retry_after_ns == WEIR_FOREVER ? WEIR_FOREVER
                                                : (uint64_t)oracle_div_up(a->retry_after_ns, unit);
    e.reset = (uint64_t)oracle_div_up(a->reset_after_ns, unit);
    e.delay = (uint64_t)oracle_div_up(a->delay_ns, unit);
    return e;
}

static void print_rule(FILE *out, const struct oracle_rule *r, enum oracle_unit unit)
{
    fprintf(out, "limit %s count=%" PRIu64, weir_algorithm_name(r->algorithm), r->count);
    if (r->period_ns == WEIR_MONTH) {
        fprintf(out, " period=month");
    } else {
        fprintf(out, " period=%" PRIu64, r->period_ns / unit);
    }
    if (r->algorithm == WEIR_TOKEN_BUCKET) {
        fprintf(out, " burst=%" PRIu64, r->burst);
    }
    if (r->algorithm == WEIR_LEAKY_BUCKET) {
        fprintf(out, " queue=%" PRIu64, r->queue);
    }
    if (r->undelayed != 0) {
        fprintf(out, " undelayed=%" PRIu64, r->undelayed);
    }
    if (r->max_debt != 0) {
        fprintf(out, " max_debt=%" PRIu64, r->max_debt);
    }
    if (r->offset_ns != 0) {
        fprintf(out, " offset=%" PRIu64, r->offset_ns / unit);
    }
    fprintf(out, " unit=%s\n", unit == ORACLE_US ? "us" : "ns");
}

static void print_call(FILE *out, const struct oracle_op *op, enum oracle_unit unit)
{
    fprintf(out, "%" PRIu64 " %s %" PRIu64, op->time_ns / unit, oracle_key_names[op->key],
            op->cost);
    if (op->verb != ORACLE_CHECK) {
        fprintf(out, " %s", verb_names[op->verb]);
    }
    if (op->wait_ns != 0) {
        fprintf(out, " wait=%" PRIu64, op->wait_ns / unit);
    }
    if (op->verb == ORACLE_REFUND) {
        fprintf(out, " charged=%" PRIu64, op->charged_ns / unit);
    }
}

static void print_expected(FILE *out, const struct oracle_expected *e)
{
    fprintf(out, " -> %s %" PRIu64, verdict_names[e->verdict - WEIR_ALLOW], e->remaining);
    if (e->retry == WEIR_FOREVER) {
        fprintf(out, " -");
    } else {
        fprintf(out, " %" PRIu64, e->retry);
    }
    fprintf(out, " %" PRIu64 " %" PRIu64 "\n", e->reset, e->delay);
}

void oracle_vector_print(FILE *out, const struct oracle_trace *t, enum oracle_unit unit)
{
    struct oracle_key keys[ORACLE_KEYS] = {{0}};
    print_rule(out, &t->rule, unit);
    for (size_t i = 0; i < t->n; i++) {
        struct weir_answer a;
        oracle_apply(&t->rule, &keys[t->ops[i].key], &t->ops[i], &a);
        struct oracle_expected e = oracle_expect(&a, unit);
        print_call(out, &t->ops[i], unit);
        print_expected(out, &e);
    }
    for (size_t i = 0; i < ORACLE_KEYS; i++) {
        oracle_key_finish(&keys[i]);
    }
}

void oracle_vector_print_stepped(FILE *out, const struct oracle_trace *t, int64_t capacity,
                                 int64_t window)
{
    struct oracle_stepped clients[ORACLE_KEYS] = {{0}};
    fprintf(out, "limit stepped_bucket capacity=%" PRId64 " window=%" PRId64 "\n", capacity,
            window);
    for (size_t i = 0; i < t->n; i++) {
        const struct oracle_op *op = &t->ops[i];
        int64_t time = (int64_t)op->time_ns;
        bool allow = oracle_stepped_take(&clients[op->key], capacity, window, time);
        fprintf(out, "%" PRId64 " %s 1 -> %s\n", time, oracle_key_names[op->key],
                allow ? "allow" : "deny");
    }
}

/* ---- reading ---- */

static bool number(const char *text, uint64_t *out)
{
    char *end;
    *out = text[0] == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
    return text[0] != '\0' && *end == '\0';
}

static int name_of(const char *text, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

struct setting {
    const char *name;
    uint64_t *value;
    uint64_t scale;
};

/* Parses name=value for one of the names. */
static bool set(const struct setting *settings, size_t n, char *word)
{
    char *value = strchr(word, '=');
    if (value == NULL) {
        return false;
    }
    *value++ = '\0';
    for (size_t i = 0; i < n; i++) {
        if (strcmp(word, settings[i].name) == 0) {
            bool good = number(value, settings[i].value);
            *settings[i].value *= settings[i].scale;
            return good;
        }
    }
    return false;
}

/* Looks for the unit first, because it scales the other values of the line. */
static enum oracle_unit unit_of(const char *line)
{
    return strstr(line, " unit=us") != NULL ? ORACLE_US : ORACLE_NS;
}

static bool parse_limit(char *line, struct oracle_vector *v)
{
    struct oracle_rule *r = &v->trace.rule;
    uint64_t capacity = 0;
    uint64_t window = 0;
    v->unit = unit_of(line);
    const struct setting settings[] = {
        {"count", &r->count, 1},         {"period", &r->period_ns, v->unit},
        {"burst", &r->burst, 1},         {"queue", &r->queue, 1},
        {"max_debt", &r->max_debt, 1},   {"offset", &r->offset_ns, v->unit},
        {"capacity", &capacity, 1},      {"window", &window, 1},
        {"undelayed", &r->undelayed, 1},
    };
    char *rest;
    (void)strtok_r(line, " \n", &rest);
    char *word = strtok_r(NULL, " \n", &rest);
    v->stepped = word != NULL && strcmp(word, "stepped_bucket") == 0;
    r->algorithm = word != NULL ? weir_algorithm_by_name(word) : 0;
    while ((word = strtok_r(NULL, " \n", &rest)) != NULL) {
        bool unit = strncmp(word, "unit=", 5) == 0;
        if (strcmp(word, "period=month") == 0) {
            r->period_ns = WEIR_MONTH;
        } else if (!unit && !set(settings, sizeof settings / sizeof settings[0], word)) {
            return false;
        }
    }
    v->capacity = (int64_t)capacity;
    v->window = (int64_t)window;
    if (v->stepped) {
        return true;
    }
    if (r->algorithm == 0 || r->count == 0 || r->period_ns == 0) {
        return false;
    }
    oracle_rule_init(r);
    return true;
}

static bool parse_key(const char *word, struct oracle_vector *v, unsigned *key)
{
    for (unsigned i = 0; i < ORACLE_KEYS; i++) {
        if (v->keys[i][0] == '\0') {
            (void)snprintf(v->keys[i], sizeof v->keys[i], "%s", word);
        }
        if (strcmp(v->keys[i], word) == 0) {
            *key = i;
            return true;
        }
    }
    return false;
}

/* Parses a word between the cost and the arrow. */
static bool parse_how(char *word, enum oracle_unit unit, struct oracle_op *op)
{
    const struct setting settings[] = {
        {"wait", &op->wait_ns, unit},
        {"charged", &op->charged_ns, unit},
    };
    int verb = name_of(word, verb_names, sizeof verb_names / sizeof verb_names[0]);
    if (verb >= 0) {
        op->verb = (enum oracle_verb)verb;
        return true;
    }
    return set(settings, 2, word);
}

static bool parse_expected(char *text, bool stepped, struct oracle_expected *e)
{
    char *rest;
    char *word = strtok_r(text, " \n", &rest);
    uint64_t *values[] = {&e->remaining, &e->retry, &e->reset, &e->delay};
    e->verdict = WEIR_ALLOW + (word != NULL ? name_of(word, verdict_names, 3) : -1);
    for (size_t i = 0; i < 4 && !stepped; i++) {
        word = strtok_r(NULL, " \n", &rest);
        if (word != NULL && i == 1 && strcmp(word, "-") == 0) {
            e->retry = WEIR_FOREVER;
        } else if (word == NULL || !number(word, values[i])) {
            return false;
        }
    }
    return e->verdict >= WEIR_ALLOW && strtok_r(NULL, " \n", &rest) == NULL;
}

static bool parse_call(char *line, struct oracle_vector *v, struct oracle_op *op,
                       struct oracle_expected *e)
{
    char *arrow = strstr(line, " -> ");
    char *rest;
    if (arrow == NULL) {
        return false;
    }
    *arrow = '\0';
    char *time = strtok_r(line, " ", &rest);
    char *key = strtok_r(NULL, " ", &rest);
    char *cost = strtok_r(NULL, " ", &rest);
    if (cost == NULL || !number(time, &op->time_ns) || !parse_key(key, v, &op->key) ||
        !number(cost, &op->cost)) {
        return false;
    }
    op->time_ns *= v->stepped ? 1 : v->unit;
    for (char *word; (word = strtok_r(NULL, " ", &rest)) != NULL;) {
        if (!parse_how(word, v->unit, op)) {
            return false;
        }
    }
    return parse_expected(arrow + 4, v->stepped, e);
}

/* Reads the next line that is neither empty nor a comment. Returns false at the end. */
static bool next_line(struct oracle_reader *reader)
{
    if (reader->held) {
        reader->held = false;
        return true;
    }
    while (fgets(reader->line, sizeof reader->line, reader->in) != NULL) {
        reader->number++;
        if (reader->line[0] != '#' && reader->line[0] != '\n') {
            return true;
        }
    }
    return false;
}

static void make_room(struct oracle_vector *v)
{
    if (v->trace.n < v->room) {
        return;
    }
    v->room = v->room * 2 + 16;
    v->trace.ops = realloc(v->trace.ops, v->room * sizeof v->trace.ops[0]);
    v->expected = realloc(v->expected, v->room * sizeof v->expected[0]);
    if (v->trace.ops == NULL || v->expected == NULL) {
        abort();
    }
}

int oracle_vector_read(struct oracle_reader *reader, struct oracle_vector *v)
{
    *v = (struct oracle_vector){.unit = ORACLE_NS};
    if (!next_line(reader)) {
        return 0;
    }
    if (strncmp(reader->line, "limit ", 6) != 0 || !parse_limit(reader->line, v)) {
        return -1;
    }
    while (next_line(reader)) {
        if (strncmp(reader->line, "limit ", 6) == 0) {
            reader->held = true;
            break;
        }
        struct oracle_op op = {.verb = ORACLE_CHECK};
        struct oracle_expected e = {0};
        if (!parse_call(reader->line, v, &op, &e)) {
            oracle_vector_finish(v);
            return -1;
        }
        make_room(v);
        v->trace.ops[v->trace.n] = op;
        v->expected[v->trace.n++] = e;
    }
    return 1;
}

void oracle_vector_finish(struct oracle_vector *v)
{
    free(v->trace.ops);
    free(v->expected);
    *v = (struct oracle_vector){.unit = ORACLE_NS};
}
