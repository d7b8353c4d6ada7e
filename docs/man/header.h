/*
 * A public header, cut into the pieces of its manual page. It must look as those of weir do:
 * comments and declarations begin at the start of a line, functions with WEIR_API, blank lines
 * separate groups, and a comment that only names a section looks like ---- this ----.
 */
#ifndef WEIR_DOCS_HEADER_H
#define WEIR_DOCS_HEADER_H

#include "common/text.h"

enum header_kind {
    HEADER_END,
    HEADER_GAP,        /* a blank line */
    HEADER_TITLE,      /* of a section */
    HEADER_COMMENT,    /* without its marks */
    HEADER_MACRO,      /* what follows #define */
    HEADER_DECLARATION /* without its ; */
};

struct header_item {
    enum header_kind kind;
    struct weir_text text;
    bool beside; /* it is a comment on the line on which another item ends */
};

/* Takes the next piece off the text. Conditional parts inside of the include guard are left out. */
struct header_item header_next(struct weir_text *rest);

/* A member of a struct or an enum, or a comment between members. */
struct header_member {
    struct weir_text text; /* "uint64_t count", "WEIR_DENY = 2"; empty: only a comment */
    struct weir_text comment;
};

/* Takes the next member off the text between the braces. Returns false after the last. */
bool header_next_member(struct weir_text *rest, struct header_member *member);

/* Returns the name of the function that a declaration declares; empty: it declares none. */
struct weir_text header_function(struct weir_text declaration);

/* Prints the manual page of a header, which is at this path. Returns an exit code. */
int header_page(const char *path);

#endif
