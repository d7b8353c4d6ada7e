/*
 * A main() for fuzz targets in builds without libFuzzer: hands every file of the named folders or
 * files to the target once, so that the corpus is a regression test everywhere.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    static uint8_t data[1 << 20];
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    /* A copy of exactly this size lets AddressSanitizer see a read past the end. */
    uint8_t *exact = malloc(size + (size == 0));
    if (exact == NULL)
        exit(1);
    for (size_t i = 0; i < size; i++)
        exact[i] = data[i];
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (dir == NULL) {
            replay_file(argv[i]);
            files++;
            continue;
        }
        for (struct dirent *e; (e = readdir(dir)) != NULL;) {
            char path[4096];
            if (e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            replay_file(path);
            files++;
        }
        closedir(dir);
    }
    printf("replayed %d inputs\n", files);
    return files == 0;
}
