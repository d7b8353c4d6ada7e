#include "rules/value/cookie.h"

bool cookie_name_is_good(struct text name)
{
    return text_is_made_of(name, "!#$%&'*+-.^_`|~");
}

static struct text without_quotes(struct text value)
{
    bool quoted = value.len >= 2 && value.at[0] == '"' && value.at[value.len - 1] == '"';
    return quoted ? (struct text){value.at + 1, value.len - 2} : value;
}

bool cookie_find(struct text field, struct text name, struct text *value)
{
    bool found = false;
    *value = TEXT("");
    while (field.len > 0) {
        struct text pair = text_cut(&field, ';');
        struct text own = text_trim(text_before(pair, '='));
        if (!text_equal(own, name)) {
            continue;
        }
        struct text rest = text_after(pair, text_before(pair, '=').len);
        struct text one = without_quotes(text_trim(text_after(rest, rest.len > 0)));
        if (found && !text_equal(one, *value)) {
            return false;
        }
        found = true;
        *value = one;
    }
    return true;
}
