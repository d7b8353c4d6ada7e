/*
 * The admin secret that `weir serve` makes when none is given, and its file, in which `weir ctl`
 * and `weir top` find it:
 *
 *     FOLDER/admin-ADDRESS.secret
 *
 * ADDRESS is the one that the admin listener is bound to ("127.0.0.1:8082"; "unix:" and the path of
 * a unix socket, without symbolic links, its '/' written as %2F). The server takes the first of
 * these folders that only its own user can write to:
 *
 *     $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/weir;
 *     /var/lib/weir, if it is the state folder;
 *     /run/weir-root (root) or ~/.local/state/weir, where there is no session: in a container, by
 *     cron, in CI;
 *     the state folder.
 *
 * The commands look there too, and where the service and the container have theirs. They know
 * another state folder only by WEIR_STATE, so it comes last.
 */
#ifndef WEIR_CLI_SECRET_FILE_H
#define WEIR_CLI_SECRET_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define SECRET_HEX 64 /* digits of a secret of 256 bits */

/* Fills `secret` with random digits. Returns false, with errno, if the kernel gives none. */
bool secret_make(char secret[SECRET_HEX + 1]);

/*
 * Writes the secret to the file of this address, with mode 0600. `state` is the state folder, or
 * NULL. Returns false if no folder can be used.
 */
bool secret_file_write(const char *address, const char *state, const char *secret,
                       char path[PATH_MAX]);

/* What secret_file_find() has found. */
struct secret_found {
    char path[PATH_MAX];         /* "": there is no file */
    char secret[SECRET_HEX + 1]; /* "": it cannot be used */
    const char *refused;         /* why it cannot be used */
};

/*
 * Looks for the secret of the server at this address, which must be a unix socket or on loopback.
 * A file is used only if it is a regular file of root or of this user that no other user can read.
 * Root also uses files in the folders of the service that belong to the owner of the folder.
 */
void secret_file_find(const char *address, struct secret_found *found);

#endif
