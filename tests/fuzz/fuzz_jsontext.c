/*
 * JSON, next to Jansson: what Jansson reads is JSON, except for what is nested too deeply; what is
 * JSON, Jansson reads, except for numbers that it has no room for. Taken apart, a text has the same
 * values. No byte beyond the input is read (a copy of the exact size).
 */
#include <jansson.h>
#include <stdlib.h>

#include "wire/jsontext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void compare(struct weir_text value, json_t *json);

static void compare_string(struct weir_text string, const char *bytes, size_t len)
{
    char *room = malloc(string.len);
    require(room != NULL);
    struct weir_text decoded = jsontext_bytes(string, room);
    require(decoded.len == len && memcmp(decoded.at, bytes, len) == 0);
    free(room);
}

static void compare_object(struct weir_text object, json_t *json)
{
    struct weir_text name;
    struct weir_text value;
    size_t n = 0;
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        const char *key = json_object_iter_key(at);
        require(jsontext_next_member(&object, &name, &value)); /* Jansson keeps their order */
        compare_string(name, key, strlen(key));
        compare(value, json_object_iter_value(at));
        n++;
    }
    require(!jsontext_next_member(&object, &name, &value) && n == json_object_size(json));
}

static void compare(struct weir_text value, json_t *json)
{
    struct weir_text item;
    uint64_t number;
    if (json_is_object(json)) {
        require(jsontext_is(value, '{'));
        compare_object(value, json);
    } else if (json_is_array(json)) {
        require(jsontext_is(value, '['));
        for (size_t i = 0; i < json_array_size(json); i++) {
            require(jsontext_next_item(&value, &item));
            compare(item, json_array_get(json, i));
        }
        require(!jsontext_next_item(&value, &item));
    } else if (json_is_string(json)) {
        compare_string(value, json_string_value(json), json_string_length(json));
    } else if (json_is_integer(json)) {
        bool whole = jsontext_whole(value, &number);
        require(whole == (value.at[0] != '-'));
        require(!whole || number == (uint64_t)json_integer_value(json));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    require(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    struct weir_text text = {copy, size};
    struct jsontext_flaw flaw = {NULL, 0, 0};
    json_error_t why;
    bool good = jsontext_check(&text, SIZE_MAX, &flaw);
    bool nul = memchr(copy, 0, size) != NULL; /* the end of the text, to Jansson */
    json_t *json =
        nul ? NULL
            : json_loadb(copy, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES,
                         &why);
    if (json != NULL && good) {
        compare(text, json);
    } else if (json != NULL) {
        require(strstr(flaw.words, "inside of each other") != NULL);
    } else if (good && !nul) {
        enum json_error_code code = json_error_code(&why);
        require(code == json_error_numeric_overflow || code == json_error_duplicate_key ||
                code == json_error_null_byte_in_key);
    }
    json_decref(json);
    free(copy);
    return 0;
}
