/*
 * A line is composed on the caller's stack and written by one write(2): lines of several threads
 * never mix, and no lock is held while a terminal is slow. Everything is bounded: a long value is
 * cut and marked, and a field that does not fit is left out, which the line then says.
 */
#include "common/log.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/hash.h"
#include "common/digits.h"
#include "common/utf8.h"

#define TAIL_BYTES 80 /* reserved for the fields that report omissions, and for the line's end */
#define PATIENCE_MS 100
#define CUT_MARK "\xe2\x80\xa6"

const char *const log_level_names[] = {"audit", "error", "warning", "info", "debug", NULL};

struct log_line {
    size_t len;
    size_t most;
    bool full;
    char at[LOG_LINE_BYTES];
};

#define ESCAPE_BYTES 16

/*
 * Writes the escape of a character, or of a byte that belongs to none (not valid), and returns its
 * length. Returns 0 if the character needs no escape.
 */
typedef int (*escape_fn)(uint32_t c, bool valid, char out[ESCAPE_BYTES]);

/* What a line has around its parts. */
struct format {
    const char *time, *level, *message, *fields; /* before each of these */
    const char *name, *value;                    /* before those of a field */
    const char *end;
    escape_fn escape_message;
    escape_fn escape_value;
    bool quotes; /* around every text; otherwise only where they are needed */
};

static struct {
    uint64_t level;
    uint64_t lost; /* lines that could not be written */
    int fd;
    enum log_format format;
    enum log_keys keys;
    bool secret_made;
    struct hash_secret secret;
} log_state = {.level = LEVEL_INFO, .fd = STDERR_FILENO};

static void put(struct log_line *line, const char *at, size_t len)
{
    if (line->full || len > line->most - line->len) {
        line->full = true;
        return;
    }
    memcpy(line->at + line->len, at, len);
    line->len += len;
}

static void put_string(struct log_line *line, const char *string)
{
    put(line, string, strlen(string));
}

/* Takes the next character off *value and writes it, escaped if needed; returns its length. */
static size_t next_escaped(struct weir_text *value, escape_fn escape, char out[ESCAPE_BYTES])
{
    uint32_t c = 0;
    size_t n = utf8_next(*value, &c);
    bool valid = n > 0;
    if (!valid) {
        c = (unsigned char)value->at[0];
        n = 1;
    }
    size_t len = (size_t)escape(c, valid, out);
    if (len == 0) {
        memcpy(out, value->at, n);
        len = n;
    }
    *value = text_after(*value, n);
    return len;
}

/*
 * Writes a value, cut where it would be longer than a value may be. `mark` follows a value that has
 * been cut already.
 */
static void put_escaped(struct log_line *line, struct weir_text value, const char *mark,
                        escape_fn escape)
{
    size_t written = 0;
    while (value.len > 0) {
        char out[ESCAPE_BYTES];
        size_t len = next_escaped(&value, escape, out);
        if (written + len > LOG_VALUE_BYTES) {
            mark = CUT_MARK;
            break;
        }
        put(line, out, len);
        written += len;
    }
    put_string(line, mark);
}

/* ---- escapes ---- */

/* Writes the beginning, the number in hex, and the end. Returns their length. */
static int write_hex(struct weir_text begin, uint32_t number, size_t least, struct weir_text end,
                     char *out)
{
    memcpy(out, begin.at, begin.len);
    size_t n = begin.len + digits_write(number, 16, least, out + begin.len);
    memcpy(out + n, end.at, end.len);
    return (int)(n + end.len);
}

/* Returns the letter of a short escape such as \n; 0: there is none. */
static char short_escape(uint32_t c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '"':
    case '\\':
        return (char)c;
    default:
        return '\0';
    }
}

static int write_brief(char letter, char out[ESCAPE_BYTES])
{
    out[0] = '\\';
    out[1] = letter;
    return 2;
}

static int escape_json(uint32_t c, bool valid, char out[ESCAPE_BYTES])
{
    char brief = short_escape(c);
    if (!valid) {
        return write_hex(TEXT("\\u"), 0xfffd, 4, TEXT(""), out);
    }
    if (brief != '\0') {
        return write_brief(brief, out);
    }
    if (utf8_visible(c)) {
        return 0;
    }
    if (c < 0x10000) {
        return write_hex(TEXT("\\u"), c, 4, TEXT(""), out);
    }
    int n = write_hex(TEXT("\\u"), 0xd7c0 + (c >> 10), 4, TEXT(""), out);
    return n + write_hex(TEXT("\\u"), 0xdc00 + (c & 0x3ff), 4, TEXT(""), out + n);
}

static int escape_text(uint32_t c, bool valid, char out[ESCAPE_BYTES])
{
    char brief = short_escape(c);
    if (!valid) {
        return write_hex(TEXT("\\x"), c, 2, TEXT(""), out);
    }
    if (brief != '\0') {
        return write_brief(brief, out);
    }
    return utf8_visible(c) ? 0 : write_hex(TEXT("\\u{"), c, 1, TEXT("}"), out);
}

/* Escapes the program's own words, which may contain quotes. */
static int escape_message(uint32_t c, bool valid, char out[ESCAPE_BYTES])
{
    return c == '"' ? 0 : escape_text(c, valid, out);
}

/* True if a value needs no quotes: it has no space, no '=' and nothing to escape. */
static bool is_plain(struct weir_text value)
{
    char out[ESCAPE_BYTES];
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] == ' ' || value.at[i] == '=') {
            return false;
        }
    }
    for (struct weir_text rest = value; rest.len > 0;) {
        const char *at = rest.at;
        size_t len = next_escaped(&rest, escape_text, out);
        if (len != (size_t)(rest.at - at) || memcmp(out, at, len) != 0) {
            return false;
        }
    }
    return value.len > 0;
}

static const struct format formats[] = {
    [LOG_AS_TEXT] = {"", " ", " ", "", " ", "=", "\n", escape_message, escape_text, false},
    [LOG_AS_JSON] = {"{\"time\":\"", "\",\"level\":\"", "\",\"message\":\"", "\"", ",\"",
                     "\":", "}\n", escape_json, escape_json, true},
};

static void put_begin(struct log_line *line, const struct format *format, const char *time,
                      const char *level, const char *message)
{
    put_string(line, format->time);
    put_string(line, time);
    put_string(line, format->level);
    put_string(line, level);
    put_string(line, format->message);
    put_escaped(line, text_of(message), "", format->escape_message);
    put_string(line, format->fields);
}

static void put_value(struct log_line *line, const struct format *format, struct weir_text value,
                      const char *mark)
{
    const char *quote = format->quotes || !is_plain(value) ? "\"" : "";
    put_string(line, quote);
    put_escaped(line, value, mark, format->escape_value);
    put_string(line, quote);
}

static void put_count(struct log_line *line, int64_t count)
{
    char digits[DIGITS_MAX];
    put_string(line, count < 0 ? "-" : "");
    put(line, digits, digits_write(count < 0 ? -(uint64_t)count : (uint64_t)count, 10, 1, digits));
}

/* Writes the beginning of a key, in whole characters. */
static void put_cut_key(struct log_line *line, const struct format *format, struct weir_text key)
{
    size_t n = key.len;
    if (n > LOG_KEY_BYTES) {
        for (n = LOG_KEY_BYTES; n > LOG_KEY_BYTES - 4 && (key.at[n] & 0xc0) == 0x80;) {
            n--;
        }
    }
    put_value(line, format, (struct weir_text){key.at, n}, n < key.len ? CUT_MARK : "");
}

/*
 * Writes a hash that is the same for the same key as long as the process runs, and that other
 * processes cannot compute.
 */
static void put_hashed_key(struct log_line *line, const struct format *format, struct weir_text key)
{
    char digits[DIGITS_MAX] = "?";
    size_t n = 1;
    if (log_state.secret_made) {
        digits[0] = '#';
        n += digits_write(hash_sip(&log_state.secret, key.at, key.len).low, 16, 16, digits + 1);
    }
    put_value(line, format, (struct weir_text){digits, n}, "");
}

static void put_field(struct log_line *line, const struct format *format,
                      const struct log_field *field)
{
    put_string(line, format->name);
    put_string(line, field->name);
    put_string(line, format->value);
    switch (field->kind) {
    case LOG_FIELD_TEXT:
        put_value(line, format, field->text, "");
        break;
    case LOG_FIELD_COUNT:
        put_count(line, field->count);
        break;
    case LOG_FIELD_KEY:
        (log_state.keys == LOG_KEYS_HASHED ? put_hashed_key : put_cut_key)(line, format,
                                                                           field->text);
        break;
    }
}

/* Writes the fields. One that does not fit is left out as a whole; returns how many were. */
static int64_t put_fields(struct log_line *line, const struct format *format,
                          const struct log_field *fields, size_t count)
{
    int64_t left_out = 0;
    for (size_t i = 0; i < count; i++) {
        size_t before = line->len;
        put_field(line, format, &fields[i]);
        if (line->full) {
            line->len = before;
            line->full = false;
            left_out++;
        }
    }
    return left_out;
}

/*
 * True if a line can be written. A slow reader of the log must not delay the server, so this waits
 * for at most PATIENCE_MS, and not at all while lines are being lost. A pipe that is ready takes a
 * line as a whole.
 */
static bool is_read(bool lost)
{
    struct pollfd out = {.fd = log_state.fd, .events = POLLOUT};
    return poll(&out, 1, lost ? 0 : PATIENCE_MS) != 0;
}

/*
 * Writes the line at once. If a write is cut short, which happens with full pipes and disks, writes
 * the rest.
 */
static bool write_line(const struct log_line *line)
{
    for (size_t done = 0; done < line->len;) {
        ssize_t n = write(log_state.fd, line->at + done, line->len - done);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

void log_init(int fd, enum log_format format, enum log_keys keys)
{
    log_state.fd = fd;
    log_state.format = format;
    log_state.keys = keys;
    log_state.secret_made = log_state.secret_made || hash_secret_init(&log_state.secret) == 0;
}

void log_set_level(enum log_level level)
{
    store_relaxed(&log_state.level, level);
}

enum log_level log_get_level(void)
{
    return (enum log_level)load_relaxed(&log_state.level);
}

bool log_level_parse(struct weir_text text, enum log_level *level)
{
    for (enum log_level i = LEVEL_ERROR; i < LEVELS; i++) {
        if (text_is(text, log_level_names[i])) {
            *level = i;
            return true;
        }
    }
    return false;
}

void log_event(enum log_level level, const char *message, const struct log_field *fields,
               size_t count)
{
    if (level > log_get_level()) {
        return;
    }
    int number = errno;
    const struct format *format = &formats[log_state.format];
    uint64_t lost = load_relaxed(&log_state.lost);
    struct log_line line = {.most = LOG_LINE_BYTES - TAIL_BYTES};
    char time[DIGITS_TIME_MAX];
    digits_time(clock_unix_ns(), time);
    put_begin(&line, format, time, log_level_names[level], message);
    int64_t left_out = put_fields(&line, format, fields, count);
    line.most = LOG_LINE_BYTES;
    if (left_out > 0) {
        put_field(&line, format, &LOG_COUNT("fields_left_out", left_out));
    }
    if (lost > 0) {
        put_field(&line, format, &LOG_COUNT("lines_lost", lost));
    }
    put_string(&line, format->end);
    if (is_read(lost > 0) && write_line(&line)) {
        (void)fetch_sub(&log_state.lost, lost);
    } else {
        (void)fetch_add(&log_state.lost, 1);
    }
    errno = number;
}

bool log_limit_due(struct log_limit *limit, uint64_t now_ns, uint64_t *left_out)
{
    uint64_t next = load_relaxed(&limit->next_ns);
    uint64_t every_ns = limit->every_ns != 0 ? limit->every_ns : LOG_LIMIT_NS;
    if (now_ns < next || !cas_u64(&limit->next_ns, next, now_ns + every_ns)) {
        (void)fetch_add(&limit->left_out, 1);
        return false;
    }
    *left_out = load_relaxed(&limit->left_out);
    (void)fetch_sub(&limit->left_out, *left_out);
    return true;
}

void log_limited_event(struct log_limit *limit, enum log_level level, const char *message,
                       const struct log_field *fields, size_t count)
{
    struct log_field all[LOG_LIMITED_FIELDS + 1];
    uint64_t left_out = 0;
    if (level > log_get_level() || !log_limit_due(limit, clock_boot_ns(), &left_out)) {
        return;
    }
    count = count < LOG_LIMITED_FIELDS ? count : LOG_LIMITED_FIELDS;
    if (count > 0) {
        memcpy(all, fields, count * sizeof *fields);
    }
    if (left_out > 0) {
        all[count++] = LOG_COUNT("like_this_left_out", left_out);
    }
    log_event(level, message, all, count);
}

bool log_once(uint64_t *told)
{
    return load_relaxed(told) == 0 && cas_u64(told, 0, 1);
}

bool log_again_after(unsigned looks, unsigned *pause, bool something)
{
    if (*pause > 0) {
        (*pause)--;
        return false;
    }
    *pause = something ? looks : 0;
    return something;
}
