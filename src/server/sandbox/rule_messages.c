#include "server/sandbox/rule_messages.h"

json_t *rule_messages_text(const char *text)
{
    json_t *string = json_string(text);
    return string != NULL ? string : json_string("(not UTF-8)");
}

static json_t *number_from_1(unsigned number)
{
    return number > 0 ? json_integer(number) : json_null();
}

void rule_messages_add(void *arg, const struct weir_rules_message *message)
{
    static const char *const severities[] = {"error", "warning", "note"};
    struct rule_messages *m = arg;
    json_t *one = json_pack("{s:s, s:o, s:o, s:o}", "severity", severities[message->severity],
                            "line", number_from_1(message->line), "column",
                            number_from_1(message->line > 0 ? message->column : 0), "text",
                            rule_messages_text(message->text));
    if (one != NULL && m->with_file) {
        (void)json_object_set_new(one, "file", rule_messages_text(message->file));
    }
    (void)json_array_append_new(m->list, one);
}
