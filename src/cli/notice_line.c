#include "cli/notice_line.h"

#include "cli/admin_client.h"
#include "common/digits.h"

/* Puts " since 2026-11-19T20:51:22Z" if the notice has a time. */
static void put_since(struct buffer *out, const json_t *notice)
{
    char time[DIGITS_TIME_MAX];
    double seconds = json_number(notice, "since_ms") / 1000;
    if (seconds >= 1 && seconds < (double)(UINT64_MAX / WEIR_SECOND)) {
        digits_time((uint64_t)seconds * WEIR_SECOND, time);
        buffer_put(out, TEXT(" since "));
        buffer_put(out, text_before(text_of(time), '.'));
        buffer_put_char(out, 'Z');
    }
}

void notice_line_put(struct buffer *out, const json_t *notice)
{
    buffer_put(out, text_of(json_text(notice, "title")));
    put_since(out, notice);
    buffer_put(out, TEXT(": "));
    buffer_put(out, text_of(json_text(notice, "text")));
}
