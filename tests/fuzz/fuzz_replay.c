/*
 * The reader of `weir replay`: as many lines as there are line ends, however the bytes are cut;
 * each line is parsed or refused with a text; what was parsed is on the line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay/replay_reader.h"
#include "common/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

/* What the reader said of the bytes, as one number. */
struct digest {
    uint64_t lines;
    uint64_t sum;
};

static void add(struct digest *d, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        d->sum = (d->sum ^ p[i]) * UINT64_C(0x100000001b3);
    }
    d->sum = (d->sum ^ n) * UINT64_C(0x100000001b3);
}

/* Nothing of the input that does more on a terminal than show itself. */
static void check_visible(const char *text)
{
    struct weir_text rest = text_of(text);
    while (rest.len > 0) {
        uint32_t c = 0;
        size_t n = utf8_next(rest, &c);
        require(n > 0 && utf8_visible(c));
        rest = text_after(rest, n);
    }
}

static int inside(struct weir_text part, struct weir_text whole)
{
    return part.at >= whole.at && part.at + part.len <= whole.at + whole.len;
}

static void parse(struct digest *d, struct weir_text line)
{
    struct replay_request q;
    struct weir_error error = {0, ""};
    int64_t number = -1;
    require(line.len <= REPLAY_LINE_MAX && memchr(line.at, '\n', line.len) == NULL);
    if (replay_request_parse(line, &q, &error) == 0) {
        require(inside(q.client, line) && q.client.len - 1 < WEIR_KEY_MAX && q.cost >= 1);
        require(!replay_line_is_blank(line));
        add(d, q.client.at, q.client.len);
        add(d, &q.time, sizeof q.time);
        add(d, &q.cost, sizeof q.cost);
    } else {
        require(strstr(error.text, "found ") != NULL && strstr(error.text, ", expected ") != NULL);
        check_visible(error.text);
        add(d, error.text, strlen(error.text));
    }
    if (replay_number_parse(line, "n", &number, &error) == 0) {
        char digits[32];
        require(number >= 0);
        (void)snprintf(digits, sizeof digits, "%lld", (long long)number);
        require(line.len >= strlen(digits));
    }
}

/* Pieces of sizes that follow from `seed`; 0: all at once. The reader is shown what is left. */
static struct digest read_all(const char *data, size_t size, unsigned seed)
{
    struct replay_reader r = {0};
    struct digest d = {0, 0};
    size_t begin = 0;
    size_t have = seed == 0 ? size : 0;
    for (;;) {
        struct weir_text line = {NULL, 0};
        size_t used = 0;
        int outcome = replay_reader_next(&r, (struct weir_text){data + begin, have - begin},
                                         have == size, &used, &line);
        require(used <= have - begin);
        begin += used;
        require(have == size || have - begin <= REPLAY_LINE_MAX + 1 + 70000);
        if (outcome == REPLAY_MORE && have == size) {
            require(begin == size);
            return d;
        }
        if (outcome == REPLAY_MORE) {
            seed = seed * 1103515245u + 12345u;
            size_t piece = (seed >> 16) % (seed >> 31 != 0 ? 7 : 70000);
            have = have + piece < size ? have + piece : size;
            continue;
        }
        require(r.line == ++d.lines);
        add(&d, &outcome, sizeof outcome);
        if (outcome == REPLAY_LINE) {
            parse(&d, line);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    uint64_t ends = size > 0 && text[size - 1] != '\n';
    for (size_t i = 0; i < size; i++) {
        ends += text[i] == '\n';
    }
    struct digest whole = read_all(text, size, 0);
    require(whole.lines == ends);
    for (unsigned seed = 1; seed <= 3; seed++) {
        struct digest cut = read_all(text, size, seed * 7919);
        require(cut.lines == whole.lines && cut.sum == whole.sum);
    }
    return 0;
}
