#include "common/log.h"
#include "support/engine/unit_limiter.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "common/utf8.h"

#define WRITTEN_BYTES (1u << 20)

static char written[WRITTEN_BYTES];
static int fd = -1;

static void begin(enum log_format format, enum log_keys keys)
{
    if (fd < 0) {
        fd = memfd_create("log", MFD_CLOEXEC);
    }
    assert_int_equal(ftruncate(fd, 0), 0);
    (void)lseek(fd, 0, SEEK_SET);
    log_set_level(LEVEL_INFO);
    log_init(fd, format, keys);
}

/* Everything since begin(), terminated. */
static const char *all_written(void)
{
    ssize_t n = pread(fd, written, sizeof written - 1, 0);
    assert_true(n >= 0);
    written[n] = '\0';
    return written;
}

/* The one line, without the time before it and the end behind it. */
static const char *the_line(void)
{
    char *line = (char *)all_written();
    size_t n = strlen(line);
    assert_true(n > 25 && line[n - 1] == '\n');
    line[n - 1] = '\0';
    assert_null(strchr(line, '\n'));
    return line + 25;
}

static json_t *the_json(void)
{
    const char *line = all_written();
    ssize_t n = pread(fd, written, sizeof written - 1, 0);
    assert_int_equal(strlen(line), n);
    assert_true(n > 1 && line[n - 1] == '\n');
    assert_ptr_equal(strchr(line, '\n'), line + n - 1);
    json_error_t error;
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (json == NULL) {
        fail_msg("%s: %s", error.text, line);
    }
    return json;
}

static void expect_json(struct log_field field, const char *value, size_t len)
{
    begin(LOG_AS_JSON, LOG_KEYS_CUT);
    LOG(LEVEL_INFO, "said", field);
    json_t *json = the_json();
    const json_t *got = json_object_get(json, field.name);
    assert_int_equal(json_string_length(got), len);
    assert_memory_equal(json_string_value(got), value, len);
    json_decref(json);
}

static void expect_text(struct log_field field, const char *line)
{
    begin(LOG_AS_TEXT, LOG_KEYS_CUT);
    LOG(LEVEL_INFO, "said", field);
    assert_string_equal(the_line(), line);
}

static void a_line_of_text_has_time_level_message_and_fields(void **state)
{
    begin(LOG_AS_TEXT, LOG_KEYS_CUT);
    LOG(LEVEL_WARNING, "rules \"kept\"", LOG_STRING("file", "/etc/weir.yaml"), LOG_COUNT("n", -3));
#define D "[0-9]"
    assert_int_equal(fnmatch("20" D D "-" D D "-" D D "T" D D ":" D D ":" D D "." D D D
                             "Z warning *",
                             all_written(), 0),
                     0);
    assert_string_equal(the_line(), "warning rules \"kept\" file=/etc/weir.yaml n=-3");
}

static void a_line_of_json_has_the_same_members(void **state)
{
    begin(LOG_AS_JSON, LOG_KEYS_CUT);
    LOG(LEVEL_AUDIT, "limit changed", LOG_STRING("limit", "api"), LOG_COUNT("n", INT64_MIN));
    json_t *json = the_json();
    assert_int_equal(json_object_size(json), 5);
    assert_int_equal(json_string_length(json_object_get(json, "time")), 24);
    assert_string_equal(json_string_value(json_object_get(json, "level")), "audit");
    assert_string_equal(json_string_value(json_object_get(json, "message")), "limit changed");
    assert_string_equal(json_string_value(json_object_get(json, "limit")), "api");
    assert_int_equal(json_integer_value(json_object_get(json, "n")), INT64_MIN);
    json_decref(json);
}

static void a_line_needs_no_fields(void **state)
{
    begin(LOG_AS_TEXT, LOG_KEYS_CUT);
    LOG(LEVEL_INFO, "stopped");
    assert_string_equal(the_line(), "info stopped");
}

static void nothing_below_the_level_is_written_and_audit_always(void **state)
{
    begin(LOG_AS_TEXT, LOG_KEYS_CUT);
    log_set_level(LEVEL_ERROR);
    LOG(LEVEL_WARNING, "not this");
    LOG(LEVEL_DEBUG, "nor this");
    assert_string_equal(all_written(), "");
    LOG(LEVEL_AUDIT, "somebody did this");
    assert_string_equal(the_line(), "audit somebody did this");
    assert_int_equal(log_get_level(), LEVEL_ERROR);
}

static void levels_have_names_from_error_to_debug(void **state)
{
    enum log_level level = LEVELS;
    assert_true(log_level_parse(TEXT("error"), &level) && level == LEVEL_ERROR);
    assert_true(log_level_parse(TEXT("debug"), &level) && level == LEVEL_DEBUG);
    assert_false(log_level_parse(TEXT("audit"), &level)); /* it cannot be left alone */
    assert_false(log_level_parse(TEXT("Info"), &level));
    assert_false(log_level_parse(TEXT(""), &level));
    assert_int_equal(level, LEVEL_DEBUG);
}

static void a_value_cannot_begin_a_line_or_forge_a_field(void **state)
{
    expect_text(LOG_STRING("path", "/a\r\n2026 info ok"),
                "info said path=\"/a\\r\\n2026 info ok\"");
    expect_text(LOG_STRING("path", "a role=admin"), "info said path=\"a role=admin\"");
    expect_text(LOG_STRING("path", "a\" role=\"admin"), "info said path=\"a\\\" role=\\\"admin\"");
    expect_text(LOG_STRING("path", "a\\"), "info said path=\"a\\\\\"");
    expect_text(LOG_STRING("path", ""), "info said path=\"\"");
    expect_text(LOG_STRING("path", "a=b"), "info said path=\"a=b\"");
    expect_json(LOG_STRING("path", "\",\"role\":\"admin\\"), "\",\"role\":\"admin\\", 16);
    expect_json(LOG_STRING("path", "a\nb\tc\rd\x1b[2J"), "a\nb\tc\rd\x1b[2J", 11);
}

static void what_drives_a_terminal_is_spelled_out(void **state)
{
    expect_text(LOG_STRING("v", "\x1b[2J\x7f"), "info said v=\"\\u{1b}[2J\\u{7f}\"");
    expect_text(LOG_STRING("v", "a\xc2\x9b"), "info said v=\"a\\u{9b}\"");
    expect_text(LOG_STRING("v", "\xe2\x80\xae"
                                "drow"),
                "info said v=\"\\u{202e}drow\"");
    expect_text(LOG_TEXT("v", TEXT("a\0b")), "info said v=\"a\\u{0}b\"");
    expect_text(LOG_STRING("v", "gr\xc3\xbc\xc3\x9f"), "info said v=gr\xc3\xbc\xc3\x9f");
    begin(LOG_AS_JSON, LOG_KEYS_CUT);
    LOG(LEVEL_INFO, "said", LOG_STRING("v", "\xe2\x80\xa8\x1b\xf3\xa0\x80\x81"));
    assert_non_null(strstr(all_written(), "\"v\":\"\\u2028\\u001b\\udb40\\udc01\""));
    json_decref(the_json());
}

static void bytes_that_are_no_character_are_replaced(void **state)
{
    expect_text(LOG_STRING("v", "a\xff\xc3"), "info said v=\"a\\xff\\xc3\"");
    expect_text(LOG_STRING("v", "\xed\xa0\x80"), "info said v=\"\\xed\\xa0\\x80\"");
    expect_json(LOG_STRING("v", "a\xff\xc3"), "a\xef\xbf\xbd\xef\xbf\xbd", 7);
    expect_json(LOG_STRING("v", "\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd", 6);
    expect_json(LOG_TEXT("v", TEXT("a\0b")), "a\0b", 3);
}

static void a_long_value_is_cut_and_marked(void **state)
{
    static char many[20000];
    memset(many, 'x', sizeof many);
    begin(LOG_AS_JSON, LOG_KEYS_CUT);
    LOG(LEVEL_INFO, "said", LOG_TEXT("v", ((struct weir_text){many, sizeof many})));
    json_t *json = the_json();
    const char *v = json_string_value(json_object_get(json, "v"));
    assert_int_equal(strlen(v), LOG_VALUE_BYTES + 3);
    assert_string_equal(v + LOG_VALUE_BYTES, "\xe2\x80\xa6");
    json_decref(json);
    many[LOG_VALUE_BYTES] = '\0';
    expect_json(LOG_STRING("v", many), many, LOG_VALUE_BYTES);
}

static void a_field_for_which_a_line_has_no_room_is_left_out_and_counted(void **state)
{
    static char many[LOG_VALUE_BYTES];
    memset(many, '\x01', sizeof many);
    struct weir_text big = {many, sizeof many};
    for (enum log_format format = LOG_AS_TEXT; format <= LOG_AS_JSON; format++) {
        begin(format, LOG_KEYS_CUT);
        LOG(LEVEL_INFO, "said", LOG_TEXT("a", big), LOG_TEXT("b", big), LOG_TEXT("c", big),
            LOG_TEXT("d", big), LOG_TEXT("e", big), LOG_COUNT("n", 7));
        assert_true(strlen(all_written()) <= LOG_LINE_BYTES);
        assert_non_null(strstr(all_written(), format == LOG_AS_JSON ? "\"n\":7" : " n=7"));
        assert_non_null(strstr(all_written(), format == LOG_AS_JSON ? "\"fields_left_out\":2"
                                                                    : " fields_left_out=2"));
        (void)the_line();
    }
    json_decref(the_json());
}

static void a_key_is_cut_after_32_bytes_of_whole_characters(void **state)
{
    expect_text(LOG_KEY("key", TEXT("alice")), "info said key=alice");
    expect_text(LOG_KEY("key", TEXT("0123456789abcdef0123456789abcdef")),
                "info said key=0123456789abcdef0123456789abcdef");
    expect_text(LOG_KEY("key", TEXT("0123456789abcdef0123456789abcdefg")),
                "info said key=0123456789abcdef0123456789abcdef\xe2\x80\xa6");
    expect_text(LOG_KEY("key", TEXT("0123456789abcdef0123456789abc\xe2\x82\xac\xe2\x82\xac")),
                "info said key=0123456789abcdef0123456789abc\xe2\x82\xac\xe2\x80\xa6");
    expect_text(LOG_KEY("key", TEXT("0123456789abcdef0123456789abcd\xe2\x82\xac")),
                "info said key=0123456789abcdef0123456789abcd\xe2\x80\xa6");
}

static void hashed_key(const char *key, char *digits)
{
    begin(LOG_AS_TEXT, LOG_KEYS_HASHED);
    LOG(LEVEL_INFO, "said", LOG_KEY("key", text_of(key)));
    const char *line = the_line();
    assert_null(strstr(line, key));
    assert_true(strncmp(line, "info said key=#", 15) == 0);
    assert_int_equal(strspn(line + 15, "0123456789abcdef"), 16);
    memcpy(digits, line + 15, 17);
    assert_int_equal(strlen(line), strlen("info said key=#") + 16);
}

static void a_hashed_key_is_the_same_within_a_run_and_tells_nothing(void **state)
{
    char a[17];
    char b[17];
    char again[17];
    hashed_key("alice@example.com", a);
    hashed_key("bob@example.com", b);
    hashed_key("alice@example.com", again);
    assert_string_equal(a, again);
    assert_string_not_equal(a, b);
}

/* A pipe holds 64 KiB; then whoever is behind it would have to read. */
static void a_reader_who_stands_still_holds_up_nobody(void **state)
{
    enum { LINES = 3000 };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    begin(LOG_AS_TEXT, LOG_KEYS_CUT);
    log_init(ends[1], LOG_AS_TEXT, LOG_KEYS_CUT);
    (void)alarm(60);
    for (unsigned i = 0; i < LINES; i++) {
        LOG(LEVEL_INFO, "a line that nobody reads");
    }
    (void)alarm(0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    unsigned read_lines = 0;
    for (ssize_t n; (n = read(ends[0], written, sizeof written)) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            read_lines += written[i] == '\n';
        }
    }
    assert_true(read_lines > 100 && read_lines < LINES);
    log_init(fd, LOG_AS_TEXT, LOG_KEYS_CUT);
    LOG(LEVEL_INFO, "found");
    char expected[64];
    (void)snprintf(expected, sizeof expected, "info found lines_lost=%u", LINES - read_lines);
    assert_string_equal(the_line(), expected);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void a_line_that_could_not_be_written_is_counted_in_the_next(void **state)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    begin(LOG_AS_TEXT, LOG_KEYS_CUT);
    log_init(full, LOG_AS_TEXT, LOG_KEYS_CUT);
    errno = 42;
    LOG(LEVEL_INFO, "lost");
    LOG(LEVEL_INFO, "lost too");
    assert_int_equal(errno, 42);
    log_init(fd, LOG_AS_TEXT, LOG_KEYS_CUT);
    LOG(LEVEL_INFO, "found");
    assert_string_equal(the_line(), "info found lines_lost=2");
    expect_text(LOG_COUNT("n", 1), "info said n=1");
    (void)close(full);
}

static void a_limited_line_comes_once_in_a_second_with_the_count_of_the_others(void **state)
{
    struct log_limit limit = {.next_ns = 0};
    uint64_t left_out = 99;
    assert_true(log_limit_due(&limit, 5000000000, &left_out));
    assert_int_equal(left_out, 0);
    for (int i = 0; i < 7; i++) {
        assert_false(log_limit_due(&limit, 5000000000 + i, &left_out));
    }
    assert_false(log_limit_due(&limit, 5999999999, &left_out));
    assert_true(log_limit_due(&limit, 6000000000, &left_out));
    assert_int_equal(left_out, 8);
    assert_true(log_limit_due(&limit, 9000000000, &left_out));
    assert_int_equal(left_out, 0);
}

static void a_place_may_ask_for_fewer_lines(void **state)
{
    struct log_limit limit = {.every_ns = 60000000000};
    uint64_t left_out = 99;
    assert_true(log_limit_due(&limit, 5000000000, &left_out));
    assert_false(log_limit_due(&limit, 64999999999, &left_out));
    assert_true(log_limit_due(&limit, 65000000000, &left_out));
    assert_int_equal(left_out, 1);
}

static void a_limited_line_says_how_many_were_left_out(void **state)
{
    struct log_limit limit = {.next_ns = 0};
    begin(LOG_AS_TEXT, LOG_KEYS_CUT);
    limit.left_out = 12;
    LOG_LIMITED(&limit, LEVEL_DEBUG, "not at this level");
    LOG_LIMITED(&limit, LEVEL_WARNING, "refused", LOG_STRING("why", "full"));
    for (int i = 0; i < 100; i++) {
        LOG_LIMITED(&limit, LEVEL_WARNING, "refused");
    }
    assert_string_equal(the_line(), "warning refused why=full like_this_left_out=12");
    assert_int_equal(limit.left_out, 100);
}

#define THREADS 4
#define LINES 250

static void *log_lines(void *number)
{
    char who[2] = {(char)('a' + *(int *)number), '\0'};
    for (int i = 0; i < LINES; i++) {
        LOG(LEVEL_INFO, "from a thread", LOG_STRING("who", who), LOG_COUNT("line", i));
    }
    return NULL;
}

static void lines_of_several_threads_never_mix(void **state)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    int next[THREADS] = {0};
    begin(LOG_AS_TEXT, LOG_KEYS_CUT);
    (void)fcntl(fd, F_SETFL, O_APPEND);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, log_lines, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    char *rest = (char *)all_written();
    for (int i = 0; i < THREADS * LINES; i++) {
        char *line = strsep(&rest, "\n");
        assert_int_equal(fnmatch("* info from a thread who=? line=[0-9]*", line, 0), 0);
        char who = line[strlen("2026-11-15T20:54:26.123Z info from a thread who=")];
        long number = strtol(strrchr(line, '=') + 1, NULL, 10);
        assert_in_range(who, 'a', 'a' + THREADS - 1);
        assert_int_equal(number, next[who - 'a']++);
    }
    assert_string_equal(rest, "");
}

/* What a reader of the JSON gets: each byte that is no character replaced. */
static size_t repaired(struct weir_text text, char *out)
{
    size_t len = 0;
    while (text.len > 0) {
        uint32_t c;
        size_t n = utf8_next(text, &c);
        memcpy(out + len, n == 0 ? "\xef\xbf\xbd" : text.at, n == 0 ? 3 : n);
        len += n == 0 ? 3 : n;
        text = text_after(text, n == 0 ? 1 : n);
    }
    return len;
}

static void any_bytes_make_exactly_one_line_that_reads_back(void **state)
{
    static const char pieces[] = "\"\\\n\r\t\0 =,:{}\x1b\x7f\xc2\x9b\xe2\x80\xa8\xf0\x9f\x98\x80";
    srand(4);
    for (int round = 0; round < 4000; round++) {
        char bytes[160];
        char whole[3 * sizeof bytes];
        size_t len = (size_t)rand() % sizeof bytes;
        for (size_t i = 0; i < len; i++) {
            bytes[i] = rand() % 2 ? pieces[(size_t)rand() % sizeof pieces] : (char)rand();
        }
        struct weir_text text = {bytes, len};
        expect_json(LOG_TEXT("v", text), whole, repaired(text, whole));
        begin(LOG_AS_TEXT, LOG_KEYS_CUT);
        LOG(LEVEL_INFO, "said", LOG_TEXT("v", text), LOG_KEY("k", text), LOG_COUNT("end", 1));
        const char *line = the_line();
        assert_true(strncmp(line, "info said v=", 12) == 0);
        assert_string_equal(line + strlen(line) - 6, " end=1");
    }
}

static void a_line_that_is_written_once_is_due_once(void **state)
{
    uint64_t told = 0;
    (void)state;
    assert_true(log_once(&told));
    assert_false(log_once(&told));
    assert_false(log_once(&told));
}

static void a_line_about_a_state_is_due_again_after_as_many_looks_as_asked(void **state)
{
    unsigned pause = 0;
    (void)state;
    assert_false(log_again_after(2, &pause, false));
    assert_true(log_again_after(2, &pause, true)); /* a look without news begins no pause */
    assert_false(log_again_after(2, &pause, true));
    assert_false(log_again_after(2, &pause, false)); /* ... and each one counts */
    assert_false(log_again_after(2, &pause, false));
    assert_true(log_again_after(2, &pause, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_text_has_time_level_message_and_fields),
        cmocka_unit_test(a_line_of_json_has_the_same_members),
        cmocka_unit_test(a_line_needs_no_fields),
        cmocka_unit_test(nothing_below_the_level_is_written_and_audit_always),
        cmocka_unit_test(levels_have_names_from_error_to_debug),
        cmocka_unit_test(a_value_cannot_begin_a_line_or_forge_a_field),
        cmocka_unit_test(what_drives_a_terminal_is_spelled_out),
        cmocka_unit_test(bytes_that_are_no_character_are_replaced),
        cmocka_unit_test(a_long_value_is_cut_and_marked),
        cmocka_unit_test(a_field_for_which_a_line_has_no_room_is_left_out_and_counted),
        cmocka_unit_test(a_key_is_cut_after_32_bytes_of_whole_characters),
        cmocka_unit_test(a_hashed_key_is_the_same_within_a_run_and_tells_nothing),
        cmocka_unit_test(a_line_that_could_not_be_written_is_counted_in_the_next),
        cmocka_unit_test(a_reader_who_stands_still_holds_up_nobody),
        cmocka_unit_test(a_limited_line_comes_once_in_a_second_with_the_count_of_the_others),
        cmocka_unit_test(a_place_may_ask_for_fewer_lines),
        cmocka_unit_test(a_limited_line_says_how_many_were_left_out),
        cmocka_unit_test(a_line_that_is_written_once_is_due_once),
        cmocka_unit_test(a_line_about_a_state_is_due_again_after_as_many_looks_as_asked),
        cmocka_unit_test(lines_of_several_threads_never_mix),
        cmocka_unit_test(any_bytes_make_exactly_one_line_that_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
