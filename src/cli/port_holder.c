/*
 * /proc/net/tcp and tcp6 name the inode of each listening socket, and the links in /proc/PID/fd
 * name the inodes that a process has open. Only root and the process's own user can read those.
 */
#include "cli/port_holder.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/connect_address.h"

#define STATE_LISTEN 10

/* An address as IPv6, in which IPv4 has a range of its own, and a port. */
struct place_of_port {
    struct in6_addr address;
    unsigned port;
};

struct listening {
    unsigned long inode; /* 0: none was found */
    unsigned uid;
    bool exact; /* not of a socket that listens at every address */
};

/* ---- addresses ---- */

static struct in6_addr mapped(uint32_t network_order)
{
    struct in6_addr out = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&out.s6_addr[12], &network_order, 4);
    return out;
}

static struct place_of_port place_of(const struct sockaddr *a)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (a->sa_family == AF_INET) {
        memcpy(&v4, a, sizeof v4);
        return (struct place_of_port){mapped(v4.sin_addr.s_addr), ntohs(v4.sin_port)};
    }
    memcpy(&v6, a, sizeof v6);
    return (struct place_of_port){v6.sin6_addr, ntohs(v6.sin6_port)};
}

/* Reads 8 or 32 hexadecimal digits: words of the address, in the byte order of this machine. */
static bool read_address(const char *digits, struct in6_addr *out)
{
    uint32_t words[4] = {0};
    size_t count = strlen(digits) / 8;
    if (count != 1 && count != 4) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        char word[9];
        (void)snprintf(word, sizeof word, "%.8s", digits + 8 * i);
        words[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    *out = mapped(words[0]);
    if (count == 4) {
        memcpy(out, words, sizeof words);
    }
    return true;
}

/* Returns whether the address is one of this machine: a socket can be bound to it. */
static bool is_of_machine(const struct addrinfo *a)
{
    struct sockaddr_storage any_port = {.ss_family = AF_UNSPEC};
    memcpy(&any_port, a->ai_addr, a->ai_addrlen);
    if (a->ai_family == AF_INET) {
        ((struct sockaddr_in *)&any_port)->sin_port = 0;
    } else {
        ((struct sockaddr_in6 *)&any_port)->sin6_port = 0;
    }
    int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is = fd >= 0 && bind(fd, (const struct sockaddr *)&any_port, a->ai_addrlen) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return is;
}

static bool is_every(const struct in6_addr *a)
{
    struct in6_addr every_v4 = mapped(0);
    return memcmp(a, &in6addr_any, sizeof *a) == 0 || memcmp(a, &every_v4, sizeof *a) == 0;
}

/* ---- the socket ---- */

/* Reads a line of /proc/net/tcp: number, local address:port, remote address:port, state, and later
 * the user and the inode. The header of the table has no port, and so no state that listens. */
static bool read_socket(const char *line, struct place_of_port *local, struct listening *out)
{
    char address[33];
    char port[5];
    char state[3];
    char uid[12];
    char inode[24];
    if (sscanf(line, "%*s %32[0-9A-F]:%4[0-9A-F] %*s %2s %*s %*s %*s %11s %*s %23s", address, port,
               state, uid, inode) != 5 ||
        strtoul(state, NULL, 16) != STATE_LISTEN || !read_address(address, &local->address)) {
        return false;
    }
    local->port = (unsigned)strtoul(port, NULL, 16);
    out->uid = (unsigned)strtoul(uid, NULL, 10);
    out->inode = strtoul(inode, NULL, 10);
    return out->inode != 0;
}

/* Keeps the socket of a line if it is at the place. One at exactly this address gets connections
 * before one at every address. */
static void read_line(const char *line, const struct place_of_port *at, struct listening *found)
{
    struct place_of_port local;
    struct listening socket_found = {0};
    if (!read_socket(line, &local, &socket_found) || local.port != at->port) {
        return;
    }
    bool exact = memcmp(&local.address, &at->address, sizeof local.address) == 0;
    bool meets = exact || is_every(&local.address) || is_every(&at->address);
    if (meets && (found->inode == 0 || (exact && !found->exact))) {
        *found = socket_found;
        found->exact = exact;
    }
}

static void read_table(const char *path, const struct place_of_port *at, struct listening *found)
{
    char line[512];
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        read_line(line, at, found);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* ---- the process ---- */

static bool has_socket(const char *pid, unsigned long inode)
{
    char path[PATH_MAX];
    char wanted[64];
    char link[64];
    (void)snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    (void)snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool has = false;
    while (folder != NULL && !has && (entry = readdir(folder)) != NULL) {
        ssize_t n = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        has = strcmp(link, wanted) == 0;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return has;
}

/* Returns the process that has the socket; 0 if it cannot be seen. */
static long process_with(unsigned long inode)
{
    DIR *all = opendir("/proc");
    const struct dirent *entry;
    long pid = 0;
    while (all != NULL && pid == 0 && (entry = readdir(all)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && has_socket(entry->d_name, inode)) {
            pid = strtol(entry->d_name, NULL, 10);
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return pid;
}

/* Writes the name of a process, which may be any bytes, as visible characters. */
static void read_name(long pid, char name[32])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/comm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(name, 32, file) == NULL) {
        (void)snprintf(name, 32, "ended");
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    name[strcspn(name, "\n")] = 0;
    for (char *c = name; *c != 0; c++) {
        *c = (char)(*c > ' ' && *c <= '~' ? *c : '?');
    }
}

static void describe(const struct listening *found, unsigned port, char text[PORT_HOLDER_MAX])
{
    char name[32];
    long pid = process_with(found->inode);
    if (pid == (long)getpid()) {
        (void)snprintf(text, PORT_HOLDER_MAX, "another listener of this server");
    } else if (pid != 0) {
        read_name(pid, name);
        (void)snprintf(text, PORT_HOLDER_MAX, "process %ld (%s)", pid, name);
    } else {
        (void)snprintf(text, PORT_HOLDER_MAX,
                       "a process of the user %u, which sudo ss -ltnp 'sport = :%u' names",
                       found->uid, port);
    }
}

bool port_holder(const char *address, char text[PORT_HOLDER_MAX])
{
    struct connect_address to;
    struct listening found = {0};
    struct place_of_port at = {.port = 0};
    text[0] = 0;
    if (is_unix_address(address) || connect_address_read(&to, address, NULL) != 0) {
        return false;
    }
    for (const struct addrinfo *a = to.found; a != NULL && found.inode == 0; a = a->ai_next) {
        if (is_of_machine(a)) {
            at = place_of(a->ai_addr);
            read_table("/proc/net/tcp", &at, &found);
            read_table("/proc/net/tcp6", &at, &found);
        }
    }
    connect_address_finish(&to);
    if (found.inode != 0) {
        describe(&found, at.port, text);
    }
    return found.inode != 0;
}
