#include "rules/value/cookie.h"

bool cookie_name_is_good(struct weir_text name)
{
    return text_is_made_of(name, "!#$%&'*+-.^_`|~");
}

static struct weir_text without_quotes(struct weir_text value)
{
    bool quoted = value.len >= 2 && value.at[0] == '"' && value.at[value.len - 1] == '"';
    return quoted ? (struct weir_text){value.at + 1, value.len - 2} : value;
}

bool cookie_find(struct weir_text field, struct weir_text name, struct weir_text *value)
{
    bool found = false;
    *value = TEXT("");
    while (field.len > 0) {
        struct weir_text pair = text_cut(&field, ';');
        struct weir_text own = text_trim(text_before(pair, '='));
        if (!text_equal(own, name)) {
            continue;
        }
        struct weir_text rest = text_after(pair, text_before(pair, '=').len);
        struct weir_text one = without_quotes(text_trim(text_after(rest, rest.len > 0)));
        if (found && !text_equal(one, *value)) {
            return false;
        }
        found = true;
        *value = one;
    }
    return true;
}
