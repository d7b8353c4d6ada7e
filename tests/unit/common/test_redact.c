/* Tests that secrets are taken out of texts, however they are written there: common/redact.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/redact.h"

static struct redact known;

static int begin(void **state)
{
    return redact_init(&known);
}

static void expect(const char *from, const char *wanted)
{
    char out[200];
    struct weir_text got = redact_write(&known, text_of(from), out, sizeof out - 1);
    out[got.len] = 0;
    assert_string_equal(out, wanted);
}

static void a_secret_is_replaced_wherever_it_is(void **state)
{
    expect("ERR hunter2", "ERR hunter2");
    redact_learn(&known, TEXT("hunter2"));
    redact_learn(&known, TEXT(""));
    expect("", "");
    expect("hunter2", "***");
    expect("ERR hunter2", "ERR ***");
    expect("hunter2hunter2 and 'hunter2'", "*** and '***'");
    expect("hunter hunter3 2retnuh", "hunter hunter3 2retnuh");
    assert_true(redact_finds(&known, TEXT("xhunter2x")));
    assert_false(redact_finds(&known, TEXT("hunter")));
}

static void two_secrets_and_an_earlier_one_are_replaced(void **state)
{
    redact_learn(&known, TEXT("first"));
    redact_learn(&known, TEXT("second"));
    for (int i = 0; i < 100; i++) {
        redact_learn(&known, TEXT("third")); /* the same again takes no room */
    }
    expect("first, second, third", "***, ***, ***");
}

static void an_encoded_secret_is_replaced(void **state)
{
    redact_learn(&known, TEXT("p@ss/word"));
    expect("p%40ss%2Fword", "***");
    expect("p%40ss%2fword", "***");
    expect("%70%40%73%73/word!", "***!");
    expect("p%40ss%2word", "p%40ss%2word");
    expect("100% of p@ss/word", "100% of ***");
}

/* "%2a" is '*' if it is decoded, but the letter before %40 is there too. */
static void an_encoded_secret_that_begins_inside_of_an_escape_is_replaced(void **state)
{
    redact_learn(&known, TEXT("a@ss"));
    redact_learn(&known, TEXT("2a@"));
    expect("B%2a%40ss", "B%***");
    expect("%2a%40ss", "%***");
    expect("B%3a%40ss", "B%3***");
    expect("%2a%40s", "%***s");
    expect("%3a%40s", "%3a%40s");
}

static void a_secret_that_looks_encoded_is_replaced_decoded_too(void **state)
{
    redact_learn(&known, TEXT("p%40ss"));
    expect("p%40ss or p@ss", "*** or ***");
    expect("p%2540ss", "***");
}

static void the_user_and_password_of_a_url_are_replaced(void **state)
{
    expect("redis://u:other@host:1/0", "redis://***@host:1/0");
    expect("redis://:a@b@host, redis://host", "redis://***@host, redis://host");
    expect("see http://host/ or mail a@b", "see http://host/ or mail a@b");
    expect("://@ ://", "://@ ://");
}

static void a_secret_is_not_shown_in_part_where_the_text_is_cut(void **state)
{
    char out[16];
    redact_learn(&known, TEXT("abcdefgh"));
    struct weir_text got = redact_write(&known, TEXT("0123456789abcdefgh"), out, 14);
    assert_int_equal(got.len, 13);
    assert_memory_equal(out, "0123456789***", 13);
    got = redact_write(&known, TEXT("0123456789abcdefgh"), out, 12);
    assert_int_equal(got.len, 10);
}

/* However long the text is, and wherever in it the secret is, no more than its mark is shown. */
static void a_secret_in_a_long_text_is_not_shown(void **state)
{
    static char text[20000];
    static char out[sizeof text];
    redact_learn(&known, TEXT("abcdefgh"));
    for (size_t before = 0; before < 5000; before++) {
        memset(text, '.', sizeof text);
        memcpy(text + before, "abcdefgh", 8);
        struct weir_text got =
            redact_write(&known, (struct weir_text){text, sizeof text}, out, sizeof out);
        assert_null(memchr(out, 'a', got.len));
        assert_true(got.len > 1000);
    }
    for (size_t i = 0; i + 8 < sizeof text; i += 8) { /* nothing else */
        memcpy(text + i, "abcdefgh", 8);
    }
    struct weir_text got =
        redact_write(&known, (struct weir_text){text, sizeof text}, out, sizeof out);
    assert_int_equal(got.len, 3);
}

static void the_longest_secret_and_the_longest_text_fit(void **state)
{
    char secret[2000];
    static char text[8000];
    static char out[sizeof text];
    memset(secret, 's', sizeof secret);
    memset(text, 's', sizeof text);
    redact_learn(&known, (struct weir_text){secret, sizeof secret});
    struct weir_text got =
        redact_write(&known, (struct weir_text){text, sizeof text}, out, sizeof out);
    assert_int_equal(got.len, 3);
}

static void without_a_known_secret_the_text_stays(void **state)
{
    char out[16];
    assert_int_equal(redact_write(NULL, TEXT("hello"), out, sizeof out).len, 5);
    assert_false(redact_finds(NULL, TEXT("hello")));
}

#define STORY(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_secret_is_replaced_wherever_it_is),
        STORY(two_secrets_and_an_earlier_one_are_replaced),
        STORY(an_encoded_secret_is_replaced),
        STORY(an_encoded_secret_that_begins_inside_of_an_escape_is_replaced),
        STORY(a_secret_that_looks_encoded_is_replaced_decoded_too),
        STORY(the_user_and_password_of_a_url_are_replaced),
        STORY(a_secret_is_not_shown_in_part_where_the_text_is_cut),
        STORY(a_secret_in_a_long_text_is_not_shown),
        STORY(the_longest_secret_and_the_longest_text_fit),
        STORY(without_a_known_secret_the_text_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
