#include "cli/watch/watch_view.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/answer_json.h"
#include "cli/buffer_format.h"
#include "cli/grid.h"
#include "cli/terminal.h"
#include "common/digits.h"

#define VIEW_BYTES 16384
#define BAR_PLACES 40

/* ---- lines ---- */

void watch_view_init(struct watch_view *v, const char *title)
{
    *v = (struct watch_view){.in_place = isatty(STDOUT_FILENO) == 1, .title = title};
    buffer_init(&v->last, VIEW_BYTES);
}

void watch_view_finish(struct watch_view *v)
{
    if (v->in_place) { /* the terminal has shown ^C */
        (void)fputs("\r\33[K", stdout);
        (void)fflush(stdout);
    }
    buffer_finish(&v->last);
}

static bool write_out(struct buffer *out)
{
    bool good = fwrite(buffer_text(out).at, 1, buffer_len(out), stdout) == buffer_len(out) &&
                fflush(stdout) == 0;
    buffer_finish(out);
    return good;
}

/* Puts a line of the picture, cut at the width of the terminal. COLOURS: in no colour. */
static void put_line(struct watch_view *v, struct buffer *out, unsigned width, enum colour colour,
                     struct weir_text line)
{
    bool coloured = colour != COLOURS;
    buffer_put(out, text_of(coloured ? colour_begin(stdout, colour) : ""));
    buffer_put(out, safe_cut(line, width > 1 ? width - 1 : 1));
    buffer_put(out, text_of(coloured ? colour_end(stdout) : ""));
    buffer_put(out, TEXT("\33[K\n"));
    v->painted++;
}

/* Begins a picture in place of the last one; returns the width of the terminal. */
static unsigned begin_picture(struct watch_view *v, struct buffer *out)
{
    unsigned width;
    unsigned rows;
    terminal_size(&width, &rows);
    if (v->painted > 0) {
        buffer_format(out, "\33[%uA\r\33[J", v->painted);
    }
    v->painted = 0;
    put_line(v, out, width, COLOUR_TITLE, text_of(v->title));
    return width;
}

static void put_verdict(struct buffer *line, const struct key_state *state, const char *reason)
{
    buffer_format(line, "%-5s", state->verdict);
    if (reason[0] != 0 && strcmp(reason, "limit") != 0) {
        buffer_format(line, " (%s)", reason);
    }
}

/* ---- on a terminal ---- */

static void put_bar(struct buffer *line, double part, unsigned width)
{
    unsigned places = width > BAR_PLACES + 3 ? BAR_PLACES : width > 4 ? width - 3 : 1;
    unsigned full = (unsigned)(part * places + 0.5);
    buffer_put_char(line, '[');
    for (unsigned i = 0; i < places; i++) {
        buffer_put_char(line, i < full ? '#' : '.');
    }
    buffer_put_char(line, ']');
}

/* Puts what has been written as a line, and empties it. */
static void end_line(struct watch_view *v, struct buffer *out, unsigned width, enum colour colour,
                     struct buffer *line)
{
    put_line(v, out, width, colour, buffer_text(line));
    buffer_take(line, buffer_len(line));
}

static bool paint_state(struct watch_view *v, const struct key_state *state, const char *reason)
{
    struct buffer out;
    struct buffer line;
    buffer_init(&out, VIEW_BYTES);
    buffer_init(&line, VIEW_BYTES);
    unsigned width = begin_picture(v, &out);
    put_verdict(&line, state, reason);
    buffer_format(&line, "  %s", state->left);
    end_line(v, &out, width, verdict_colour(state->verdict), &line);
    put_bar(&line, state->part, width);
    end_line(v, &out, width, verdict_colour(state->verdict), &line);
    buffer_format(&line, "retry %s, reset %s", state->retry, state->reset);
    end_line(v, &out, width, COLOURS, &line);
    buffer_format(&line, "%s", state->use);
    end_line(v, &out, width, state->in_use ? COLOUR_TITLE : COLOURS, &line);
    buffer_finish(&line);
    return write_out(&out);
}

static bool paint_failure(struct watch_view *v, struct weir_text why)
{
    struct buffer out;
    buffer_init(&out, VIEW_BYTES);
    unsigned width = begin_picture(v, &out);
    put_line(v, &out, width, COLOUR_WARNING, why);
    return write_out(&out);
}

/* ---- without one ---- */

/* Adds a line with the time, unless it says what the last one said. `times` may differ. */
static bool add_line(struct watch_view *v, struct weir_text says, const char *times)
{
    char now[DIGITS_TIME_MAX];
    struct buffer out;
    if (text_equal(says, buffer_text(&v->last))) {
        return true;
    }
    buffer_init(&out, VIEW_BYTES);
    digits_time(clock_unix_ns(), now);
    buffer_format(&out, "%s ", now);
    buffer_put(&out, says);
    buffer_put(&out, text_of(times));
    buffer_put_char(&out, '\n');
    buffer_take(&v->last, buffer_len(&v->last));
    buffer_put(&v->last, says);
    return write_out(&out);
}

static bool add_state(struct watch_view *v, const struct key_state *state, const char *reason)
{
    char times[160];
    struct buffer line;
    buffer_init(&line, VIEW_BYTES);
    put_verdict(&line, state, reason);
    buffer_format(&line, "  %s, %s", state->left, state->use);
    (void)snprintf(times, sizeof times, ", retry %s, reset %s", state->retry, state->reset);
    bool good = add_line(v, buffer_text(&line), times);
    buffer_finish(&line);
    return good;
}

bool watch_view_show(struct watch_view *v, const struct key_state *state, const char *reason)
{
    return v->in_place ? paint_state(v, state, reason) : add_state(v, state, reason);
}

bool watch_view_fail(struct watch_view *v, struct weir_text why)
{
    return v->in_place ? paint_failure(v, why) : add_line(v, why, "");
}
