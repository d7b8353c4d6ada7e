/* Messages about rules as JSON, with their places. */
#ifndef WEIR_SERVER_SANDBOX_RULE_MESSAGES_H
#define WEIR_SERVER_SANDBOX_RULE_MESSAGES_H

#include <jansson.h>
#include <stdbool.h>

#include <weir_rules.h>

struct rule_messages {
    json_t *list;
    bool with_file; /* each message names its file */
};

/* A weir_rules_message_fn: appends {"severity","line","column","text"} to the list of `arg`, a
 * struct rule_messages. Line and column are null if the message is about the file as a whole. */
void rule_messages_add(void *arg, const struct weir_rules_message *message);

/* Returns a JSON string; "(not UTF-8)" if the text is not. */
json_t *rule_messages_text(const char *text);

#endif
