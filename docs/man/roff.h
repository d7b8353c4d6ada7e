/* Text of rows and comments as roff, on standard output. */
#ifndef WEIR_DOCS_ROFF_H
#define WEIR_DOCS_ROFF_H

#include "common/text.h"

/* A text as it is: hyphens that are typed, backslashes, a point or quote at the start of a line. */
void roff_put(struct weir_text text);

/*
 * The text of a C comment, with or without stars before its lines. A blank line begins a paragraph.
 * Lines that are indented by 4 or more are code. "  term   text" and "term: text" with indented
 * lines after it are items of a list. Names of weir, and words in backticks, are bold.
 */
void roff_put_comment(struct weir_text comment);

/*
 * The opening comment of a header, as sections. A paragraph that begins with words in capitals
 * ("THREADS. Every function", "TIME is Unix time") begins a section of that name; what precedes
 * the first one is the DESCRIPTION. Code in that part belongs to the SYNOPSIS: with `code` only
 * such paragraphs are put, otherwise all others.
 */
void roff_put_essay(struct weir_text comment, bool code);

#endif
