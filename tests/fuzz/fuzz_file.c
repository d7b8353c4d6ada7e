/*
 * Opens files: the input's first byte chooses whether the rest is the file
 * itself, or a list of changes (offset, byte) to the header of a sound one. It
 * is refused by name, or it limits.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[128];
static uint8_t *sound; /* the bytes of a good file */
static size_t sound_size;

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static struct weir_options options(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = WEIR_SLIDING_LOG;
    o.count = 5;
    o.period_ns = WEIR_SECOND;
    o.max_keys = 4;
    o.memory = WEIR_FILE;
    o.path = path;
    o.flags = WEIR_EXPLICIT_TIME;
    return o;
}

static void clean_up(void)
{
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path);
    free(sound);
}

static void make_sound(void)
{
    const char *base = getenv("TMPDIR");
    struct weir_answer a;
    struct weir *w;
    struct stat st;
    (void)snprintf(path, sizeof path - 8, "%s/weir-fuzz-XXXXXX", base != NULL ? base : "/tmp");
    require(mkdtemp(path) != NULL);
    (void)strcat(path, "/limit");
    (void)atexit(clean_up);
    struct weir_options o = options();
    require(weir_open(&w, &o, NULL) == 0);
    require(weir_check_at(w, "k", 1, 3, WEIR_HOUR, &a) == 0);
    weir_close(w);
    require(stat(path, &st) == 0);
    sound_size = (size_t)st.st_size;
    sound = malloc(sound_size);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    require(fd >= 0 && sound != NULL && read(fd, sound, sound_size) == (ssize_t)sound_size);
    (void)close(fd);
}

static void write_file(const uint8_t *bytes, size_t size)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    (void)close(fd);
}

/* Changes lie in the part with a checksum; who can forge a lock's insides is trusted. */
static void write_changed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(sound_size);
    require(copy != NULL);
    memcpy(copy, sound, sound_size);
    for (size_t i = 0; i + 2 < size; i += 3) {
        size_t at = (size_t)(data[i] | data[i + 1] << 8) % 400;
        copy[at] ^= data[i + 2];
    }
    write_file(copy, sound_size);
    free(copy);
}

static void require_same(const uint8_t *bytes, size_t size)
{
    struct stat st;
    require(stat(path, &st) == 0 && (size_t)st.st_size == size);
    uint8_t *after = malloc(size + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    require(fd >= 0 && after != NULL && read(fd, after, size) == (ssize_t)size);
    require(memcmp(after, bytes, size) == 0);
    (void)close(fd);
    free(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir *w = NULL;
    struct weir_error error;
    struct weir_answer a;
    if (sound == NULL) {
        make_sound();
    }
    if (size == 0) {
        return 0;
    }
    if (data[0] % 2 == 0) {
        write_file(data + 1, size - 1);
    } else {
        write_changed(data + 1, size - 1);
    }
    struct weir_options o = options();
    int e = weir_open(&w, &o, &error);
    require((e == 0) == (w != NULL));
    if (e != 0) {
        require(e == WEIR_EDAMAGED || e == WEIR_EVERSION || e == WEIR_EMISMATCH);
        require(strlen(error.text) > 0);
        if (data[0] % 2 == 0) {
            require_same(data + 1, size - 1);
        }
        return 0;
    }
    require(weir_check_at(w, "k", 1, 1, WEIR_HOUR, &a) == 0 && a.quota == 5);
    weir_close(w);
    return 0;
}
