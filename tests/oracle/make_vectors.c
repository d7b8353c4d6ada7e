/* Writes the files of tests/vectors into the folder that it is given. */
#include <stdio.h>

#include "oracle/vector_cases.h"

static int write_file(const char *folder, const struct vector_file *file)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file->name);
    FILE *out = n > 0 && (size_t)n < sizeof path ? fopen(path, "w") : NULL;
    if (out == NULL) {
        perror(path);
        return 1;
    }
    file->print(out);
    return fclose(out) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_vectors FOLDER\n");
        return 2;
    }
    for (const struct vector_file *f = vector_files; f->name != NULL; f++) {
        if (write_file(argv[1], f) != 0) {
            return 1;
        }
    }
    return 0;
}
