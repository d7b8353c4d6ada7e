#include "roff.h"

#include <ctype.h>
#include <stdio.h>

#define LINES_MAX 64 /* of a paragraph */
#define WORDS_MAX 8192
#define WIDTH 78
#define CODE_INDENT 4

void roff_put(struct weir_text text)
{
    if (text.len > 0 && (text.at[0] == '.' || text.at[0] == '\'')) {
        (void)fputs("\\&", stdout);
    }
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.at[i];
        const char plain[2] = {c, 0};
        (void)fputs(c == '-'    ? "\\-"
                    : c == '\\' ? "\\e"
                    : c == '\'' ? "\\(aq"
                    : c == '^'  ? "\\(ha"
                    : c == '~'  ? "\\(ti"
                    : c == '`'  ? "\\(ga"
                                : plain,
                    stdout);
    }
}

/* ---- words ---- */

/* Returns the length of the name at the start of the text: of C, or of a manual page; 0: none. */
static size_t name_at(struct weir_text text)
{
    size_t n = 0;
    while (n < text.len && text_is_plain(text.at[n], "_.")) {
        n++;
    }
    while (n > 0 && text.at[n - 1] == '.') { /* the end of a sentence */
        n--;
    }
    return n;
}

/* True for weir_open, WEIR_EINVAL, and names that parentheses follow: weir.yaml(5). */
static bool is_bold(struct weir_text name, struct weir_text after)
{
    bool page = after.len > 2 && after.at[0] == '(' && isdigit((unsigned char)after.at[1]) != 0 &&
                after.at[2] == ')';
    return text_starts(name, "WEIR_") || (text_starts(name, "weir_") && !text_ends(name, ".h")) ||
           (page && isalpha((unsigned char)name.at[0]) != 0) || text_starts(after, "()");
}

/* Puts one word of a sentence, or several that are in backticks. Returns its length. */
static size_t put_word(struct weir_text text)
{
    size_t i = 0;
    if (text.at[0] == '.' || text.at[0] == '\'') {
        (void)fputs("\\&", stdout);
    }
    while (i < text.len && text.at[i] != ' ') {
        struct weir_text rest = text_after(text, i);
        size_t quoted = rest.at[0] == '`' ? text_before(text_after(rest, 1), '`').len : 0;
        size_t name = name_at(rest);
        if (quoted > 0 && quoted + 2 <= rest.len) {
            (void)fputs("\\fB", stdout);
            roff_put((struct weir_text){rest.at + 1, quoted});
            (void)fputs("\\fR", stdout);
            i += quoted + 2;
        } else if (name > 0) {
            struct weir_text word = {rest.at, name};
            bool bold = is_bold(word, text_after(rest, name));
            (void)fputs(bold ? "\\fB" : "", stdout);
            roff_put(word);
            (void)fputs(bold ? "\\fR" : "", stdout);
            i += name;
        } else if (strchr(".'", rest.at[0]) != NULL) {
            (void)fputs(rest.at[0] == '.' ? "." : "\\(aq", stdout);
            i++;
        } else {
            roff_put((struct weir_text){rest.at, 1});
            i++;
        }
    }
    return i;
}

/* Puts words in lines; a sentence begins a line. */
static void put_sentences(struct weir_text words)
{
    size_t column = 0;
    char last = ' ';
    while ((words = text_trim(words)).len > 0) {
        size_t length = text_before(words, ' ').len;
        bool ended = strchr(".?!", last) != NULL && isupper((unsigned char)words.at[0]) != 0;
        if (column > 0 && (ended || column + 1 + length > WIDTH)) {
            (void)fputc('\n', stdout);
            column = 0;
        } else if (column > 0) {
            (void)fputc(' ', stdout);
            column++;
        }
        size_t put = put_word(words);
        last = words.at[put - 1];
        column += put;
        words = text_after(words, put);
    }
    (void)fputs(column > 0 ? "\n" : "", stdout);
}

/* ---- lines and paragraphs ---- */

struct line {
    struct weir_text text;
    size_t indent; /* after the star */
};

struct paragraph {
    struct line lines[LINES_MAX];
    size_t count;
};

static struct line line_of(struct weir_text raw)
{
    struct line line = {text_trim(raw), 0};
    if (line.text.len > 0 && line.text.at[0] == '*') {
        struct weir_text after = text_after(line.text, 1);
        line.text = text_trim(after);
        line.indent = line.text.len > 0 ? (size_t)(line.text.at - after.at) : 0;
        line.indent -= line.indent > 0;
    }
    return line;
}

/* Reads the next paragraph. Returns false at the end of the comment. */
static bool next_paragraph(struct weir_text *comment, struct paragraph *p)
{
    p->count = 0;
    while (comment->len > 0 && p->count < LINES_MAX) {
        struct line line = line_of(text_cut(comment, '\n'));
        if (line.text.len > 0) {
            p->lines[p->count++] = line;
        } else if (p->count > 0) {
            return true;
        }
    }
    return p->count > 0;
}

static bool is_code(const struct paragraph *p)
{
    return p->lines[0].indent >= CODE_INDENT;
}

static void put_code(const struct paragraph *p)
{
    (void)fputs(".PP\n.RS 4\n.EX\n", stdout);
    for (size_t i = 0; i < p->count; i++) {
        (void)printf("%*s", (int)(p->lines[i].indent - CODE_INDENT), "");
        roff_put(p->lines[i].text);
        (void)fputc('\n', stdout);
    }
    (void)fputs(".EE\n.RE\n", stdout);
}

/* The words of several lines. What does not fit is left out. */
struct words {
    char at[WORDS_MAX];
    size_t len;
};

static void join(struct words *words, struct weir_text line)
{
    if (words->len + 1 + line.len <= sizeof words->at) {
        words->at[words->len] = ' ';
        memcpy(words->at + words->len + 1, line.at, line.len);
        words->len += 1 + line.len;
    }
}

/*
 * Puts `first` and the lines after `from` that are indented by more than `indent`. Returns the
 * index of the next line.
 */
static size_t put_joined(const struct paragraph *p, size_t from, size_t indent,
                         struct weir_text first)
{
    struct words words = {.len = 0};
    size_t i = from;
    join(&words, first);
    while (++i < p->count && p->lines[i].indent > indent) {
        join(&words, p->lines[i].text);
    }
    put_sentences((struct weir_text){words.at, words.len});
    return i;
}

/* Puts a list. The term of an item ends before the text `gap`. */
static void put_list(const struct paragraph *p, size_t from, const char *gap)
{
    size_t indent = p->lines[from].indent;
    for (size_t i = from; i < p->count;) {
        struct weir_text line = p->lines[i].text;
        const char *end = memmem(line.at, line.len, gap, strlen(gap));
        struct weir_text term = {line.at, end != NULL ? (size_t)(end - line.at) : 0};
        (void)fputs(".TP 4\n", stdout);
        (void)fputs("\\fB", stdout);
        roff_put(term);
        (void)fputs("\\fR\n", stdout);
        i = put_joined(p, i, indent, text_trim(text_after(line, term.len + (*gap == ':'))));
    }
}

static bool is_hanging(const struct paragraph *p)
{
    bool hanging = false;
    for (size_t i = 1; i < p->count; i++) {
        hanging |= p->lines[i].indent > 0;
    }
    return p->lines[0].indent == 0 && hanging;
}

static void put_plain(const struct paragraph *p)
{
    struct words words = {.len = 0};
    for (size_t i = 0; i < p->count; i++) {
        join(&words, p->lines[i].text);
    }
    put_sentences((struct weir_text){words.at, words.len});
}

static void put_paragraph(const struct paragraph *p, bool first)
{
    if (is_code(p)) {
        put_code(p);
    } else if (p->lines[0].indent > 0) {
        put_list(p, 0, "  ");
    } else if (is_hanging(p)) {
        put_list(p, 0, ": ");
    } else {
        (void)fputs(first ? "" : ".PP\n", stdout);
        put_plain(p);
    }
}

void roff_put_comment(struct weir_text comment)
{
    struct paragraph p;
    for (bool first = true; next_paragraph(&comment, &p); first = false) {
        put_paragraph(&p, first);
    }
}

/* ---- the opening comment ---- */

/* Returns the length of the words in capitals at the start of a paragraph; 0: there are none. */
static size_t heading_of(const struct paragraph *p)
{
    struct weir_text line = p->lines[0].text;
    size_t length = 0;
    for (size_t i = 0; p->lines[0].indent == 0 && i < line.len;) {
        size_t word = i;
        while (i < line.len && isupper((unsigned char)line.at[i]) != 0) {
            i++;
        }
        if (i < word + 2 || (i < line.len && strchr(" .:", line.at[i]) == NULL)) {
            break;
        }
        length = i;
        i += line.at[i] == ' ' ? 1 : line.len;
    }
    return length;
}

/*
 * Begins a section. "THREADS. Every" leaves "Every" in the first line, "TIME is" leaves "Time is":
 * `copy` holds the changed line. Removes a line that the heading fills.
 */
static void put_heading(struct paragraph *p, size_t length, char *copy, size_t size)
{
    struct weir_text line = p->lines[0].text;
    (void)printf(".SH %.*s\n", (int)length, line.at);
    bool stopped = line.len > length && line.at[length] != ' ';
    struct weir_text rest = stopped ? text_trim(text_after(line, length + 1)) : line;
    (void)snprintf(copy, size, "%.*s", TEXT_ARGS(rest));
    for (size_t i = 0; !stopped && i < length; i++) {
        copy[i] = (char)tolower((unsigned char)copy[i]);
    }
    copy[0] = (char)toupper((unsigned char)copy[0]);
    p->lines[0].text = text_of(copy);
    if (rest.len == 0) {
        p->count--;
        memmove(p->lines, p->lines + 1, p->count * sizeof p->lines[0]);
    }
}

void roff_put_essay(struct weir_text comment, bool code)
{
    struct paragraph p;
    char copy[256];
    bool started = false; /* a section has begun */
    bool first = true;    /* of its section */
    while (next_paragraph(&comment, &p)) {
        size_t heading = heading_of(&p);
        started |= heading > 0;
        if (code != (is_code(&p) && !started)) {
            continue;
        }
        if (heading > 0) {
            put_heading(&p, heading, copy, sizeof copy);
        } else if (!code && first && !started) {
            (void)fputs(".SH DESCRIPTION\n", stdout);
        }
        put_paragraph(&p, first || heading > 0);
        first = false;
    }
}
