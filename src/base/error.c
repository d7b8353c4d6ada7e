#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int fail(struct weir_error *error, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error != NULL) {
        error->code = code;
        (void)vsnprintf(error->text, sizeof error->text, format, args);
    }
    va_end(args);
    return code;
}

static int code_of_errno(int number)
{
    switch (number) {
    case ENOMEM:
    case EAGAIN:
        return WEIR_ENOMEM; /* mmap and mlock limits say EAGAIN */
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return WEIR_ENOSPC;
    case EACCES:
    case EPERM:
    case ELOOP:  /* a symbolic link */
    case EISDIR: /* a directory */
    case ENXIO:  /* a socket */
        return WEIR_EACCES;
    case ENOENT:
    case ENOTDIR:
        return WEIR_ENOENT;
    default:
        return WEIR_EIO;
    }
}

int fail_errno(struct weir_error *error, const char *what, const char *path)
{
    /* %m: the text of errno, in glibc and in musl, whose strerror_r() differ. */
    return fail(error, code_of_errno(errno), "%s%s%s: %m", path != NULL ? path : "",
                path != NULL ? ": " : "", what);
}

#define ROW(name, value, text) {value, #name, text},
static const struct {
    int code;
    const char *name;
    const char *text;
} rows[] = {{0, "WEIR_E?", "unknown weir error code"}, /* found if no other row fits */
            {WEIR_OK, "WEIR_OK", "success"},
            WEIR_ERRORS(ROW)};

static size_t row_of(int code)
{
    size_t i = sizeof rows / sizeof rows[0] - 1;
    while (i > 0 && rows[i].code != code) {
        i--;
    }
    return i;
}

const char *weir_strerror(int code)
{
    return rows[row_of(code)].text;
}

const char *weir_errname(int code)
{
    return rows[row_of(code)].name;
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *weir_version(void)
{
    return TEXT(WEIR_VERSION_MAJOR) "." TEXT(WEIR_VERSION_MINOR) "." TEXT(WEIR_VERSION_PATCH);
}
