/*
 * The question as a command of RESP.
 *
 * A key has as many arguments as the limit's key has parts, and options follow it. If the person
 * gives too few parts, the server would take the name of an option for a part. So a question with
 * options is sent in a transaction after a WEIR.PEEK of the same key without options: if the server
 * refuses to queue that one, EXEC decides nothing.
 */
#include "cli/blocking_exchange.h"
#include "cli/check/check.h"
#include "cli/buffer_format.h"
#include "redis/reply.h"
#include "wire/resp.h"

#define REQUEST_MAX (1u << 20)

/* ---- the request ---- */

static void put_words(struct buffer *b, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        resp_put_bulk(b, text_of(words[i]));
    }
}

static void put_number(struct buffer *b, const char *name, uint64_t number)
{
    char digits[20];
    char *end = text_put_u64(digits, number);
    resp_put_bulk(b, text_of(name));
    resp_put_bulk(b, (struct weir_text){digits, (size_t)(end - digits)});
}

static size_t options_count(const struct check *c)
{
    return (size_t)(c->cost > 0) + (c->max_wait_ns > 0) + (c->tier != NULL);
}

/* Writes "WEIR.CHECK limit key ..." or "WEIR.ASK name value ...", and the options. */
static void put_question(struct buffer *b, const struct check *c, const char *command,
                         bool with_options)
{
    size_t operands = (size_t)c->count * (c->by_attributes ? 2 : 1);
    resp_put_array(b, 1 + operands + (with_options ? 2 * options_count(c) : 0));
    resp_put_bulk(b, text_of(command));
    for (int i = 0; i < c->count; i++) {
        struct weir_text value = text_of(c->words[i]);
        if (c->by_attributes) {
            resp_put_bulk(b, text_cut(&value, '='));
        }
        resp_put_bulk(b, value);
    }
    if (with_options && c->cost > 0) {
        put_number(b, "COST", c->cost);
    }
    if (with_options && c->max_wait_ns > 0) {
        put_number(b, "MAXWAIT", check_max_wait_ms(c));
    }
    if (with_options && c->tier != NULL) {
        put_words(b, (const char *const[]){"TIER", c->tier}, 2);
    }
}

static void put_command(struct buffer *b, const char *word)
{
    resp_put_array(b, 1);
    resp_put_bulk(b, text_of(word));
}

/* Writes all commands. Returns how many replies they get. */
static unsigned put_request(struct buffer *b, const struct check *c)
{
    bool guarded = !c->by_attributes && options_count(c) > 0;
    if (c->secret.source != NULL) {
        resp_put_array(b, 2);
        put_words(b, (const char *const[]){"AUTH", c->secret.secret}, 2);
    }
    if (guarded) {
        put_command(b, "MULTI");
        put_question(b, c, "WEIR.PEEK", false);
    }
    put_question(b, c, c->by_attributes ? "WEIR.ASK" : c->peek ? "WEIR.PEEK" : "WEIR.CHECK", true);
    if (guarded) {
        put_command(b, "EXEC");
    }
    return (c->secret.source != NULL) + (guarded ? 4u : 1u);
}

/* ---- the replies ---- */

struct replies {
    unsigned count;
    struct store_reply last; /* the last one, or the first that is an error */
};

static int read_replies(void *arg, struct weir_text input, bool ended, const char **complaint)
{
    struct replies *r = arg;
    for (unsigned i = 0; i < r->count; i++) {
        int got = store_reply_read(input, &r->last);
        if (got != STORE_REPLY) {
            *complaint = got == STORE_BAD ? "found bytes that are not RESP"
                                          : "the connection ended before the answer";
            return got == STORE_BAD || ended ? EXCHANGE_BAD : EXCHANGE_MORE;
        }
        if (r->last.type == '-') {
            break;
        }
        input = text_after(input, r->last.whole.len);
    }
    return EXCHANGE_DONE;
}

/* ---- the answer ---- */

/* The flags are one text, "degraded,shadow"; JSON has a list. */
static json_t *flags_of(struct weir_text flags)
{
    json_t *list = json_array();
    while (flags.len > 0) {
        struct weir_text flag = text_cut(&flags, ',');
        (void)json_array_append_new(list, json_stringn(flag.at, flag.len));
    }
    return list;
}

static json_t *value_of(const char *name, const struct store_value *v)
{
    if (v->type == ':') {
        bool never = strcmp(name, "retry_after_ms") == 0 && v->number < 0;
        return never ? json_null() : json_integer(v->number);
    }
    if (v->type == '$' || v->type == '+') {
        return strcmp(name, "flags") == 0 ? flags_of(v->text)
                                          : json_stringn(v->text.at, v->text.len);
    }
    return json_null();
}

/* Gives the values of an answer their names, which RESP2 leaves out. */
static json_t *answer_of(struct weir_text whole)
{
    static const char *const names[] = {"verdict",   "limit",          "quota",
                                        "remaining", "retry_after_ms", "reset_after_ms",
                                        "delay_ms",  "flags",          "reason"};
    json_t *said = json_object();
    struct store_value v;
    int64_t count = value_array(&whole);
    for (int64_t i = 0; i < count && i < (int64_t)(sizeof names / sizeof names[0]); i++) {
        if (value_next(&whole, &v)) {
            (void)json_object_set_new(said, names[i], value_of(names[i], &v));
        }
    }
    return said;
}

/* Returns the last value of EXEC's array: the answer after that of WEIR.PEEK. */
static struct weir_text answer_in(const struct check *c, struct weir_text whole)
{
    if (!c->by_attributes && options_count(c) > 0 && value_array(&whole) == 2) {
        value_pass(&whole);
    }
    return whole;
}

/* An error is a code and words: "NOLIMIT no limit named 'x'". */
static int refused(const struct check *c, struct weir_text error, struct buffer *why)
{
    struct weir_text words = error;
    struct weir_text code = text_cut(&words, ' ');
    bool wrong = text_is(code, "ERR") || text_is(code, "BADKEY");
    buffer_format(why, "%.*s (%.*s)", TEXT_ARGS(words), TEXT_ARGS(code));
    if (text_is(code, "NOAUTH") || text_is(code, "WRONGPASS") || text_is(code, "NOPERM")) {
        check_put_access(c, why);
    }
    return wrong ? CLI_USAGE : CLI_FAILED;
}

static int read_answer(const struct check *c, const struct store_reply *reply, json_t **said,
                       struct buffer *why)
{
    struct weir_text answer = reply->type == '-' ? reply->whole : answer_in(c, reply->whole);
    struct weir_text first = answer;
    struct store_value v;
    if (value_next(&first, &v) && v.type == '-') { /* an answer of EXEC may be an error too */
        return refused(c, v.text, why);
    }
    *said = answer_of(answer);
    return CLI_OK;
}

/* In RESP these words would be options, not names of attributes. */
static int check_names(const struct check *c, struct buffer *why)
{
    for (int i = 0; c->by_attributes && i < c->count; i++) {
        struct weir_text name = text_before(text_of(c->words[i]), '=');
        if (text_is(name, "COST") || text_is(name, "MAXWAIT")) {
            buffer_format(why,
                          "found '%s', expected a name of an attribute; for options use "
                          "--cost and --max-wait",
                          c->words[i]);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int exchange(const struct check *c, struct weir_text request, struct replies *replies,
                    json_t **said, struct buffer *why)
{
    struct weir_error error = {0};
    struct buffer input;
    struct blocking_exchange x = {.address = c->address,
                                  .tls = &c->tls,
                                  .timeout_ms = CHECK_TIMEOUT_MS,
                                  .request = request,
                                  .read = read_replies,
                                  .arg = replies};
    buffer_init(&input, VALUE_BYTES_MAX + EXCHANGE_READ_BYTES);
    int e = blocking_exchange(&x, &input, &error);
    int code = e == 0 ? read_answer(c, &replies->last, said, why)
                      : check_unanswered(c, e, error.text, why);
    buffer_finish(&input);
    return code;
}

int check_over_resp(const struct check *c, json_t **said, struct buffer *why)
{
    struct buffer request;
    int code = check_names(c, why);
    if (code != CLI_OK) {
        return code;
    }
    buffer_init(&request, REQUEST_MAX);
    struct replies replies = {.count = put_request(&request, c)};
    if (request.full) {
        buffer_format(why, "found a longer question, expected at most %u bytes", REQUEST_MAX);
        code = CLI_USAGE;
    } else {
        code = exchange(c, buffer_text(&request), &replies, said, why);
    }
    buffer_finish(&request);
    return code;
}
