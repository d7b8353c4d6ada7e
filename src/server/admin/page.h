/*
 * The page for operators' browsers: the files of web/, which the build puts into the program
 * (cmake/page.cmake). It is served to every client, because it contains no data: its scripts ask
 * the other routes, with the secret that its user gives them.
 *
 * A browser asks for each file again whenever it opens the page, and gets 304 if the file has not
 * changed, so that a new version of the server never meets old scripts.
 */
#ifndef WEIR_SERVER_ADMIN_PAGE_H
#define WEIR_SERVER_ADMIN_PAGE_H

#include "common/text.h"

struct page_file {
    const char *name; /* "style.css"; NULL after the last */
    const char *type;
    const char *hash; /* of the bytes, for ETag */
    struct weir_text plain;
    struct weir_text zipped; /* the same bytes, compressed by gzip */
};

extern const struct page_file page_files[]; /* empty in a build with -DWEIR_PAGE=OFF */

#endif
