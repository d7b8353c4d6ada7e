#include "common/text_map.h"

#include "base/hash.h"

struct place_taken {
    const char *at; /* NULL: free */
    uint32_t len;
    uint32_t number;
};

struct text_map {
    struct hash_secret secret;
    struct place_taken *places;
    uint64_t mask;
    size_t count;
    size_t most;
};

static uint64_t places_for(size_t n)
{
    uint64_t places = 4;
    while (places < n + n / 2 + 1) {
        places *= 2;
    }
    return places;
}

uint64_t text_map_bytes(size_t n)
{
    return sizeof(struct text_map) + places_for(n) * sizeof(struct place_taken);
}

struct text_map *text_map_create(struct arena *arena, size_t n)
{
    struct text_map *map = arena_take(arena, sizeof *map);
    uint64_t places = places_for(n);
    if (map == NULL || hash_secret_init(&map->secret) != 0) {
        arena->failed = true;
        return NULL;
    }
    map->places = arena_array(arena, places, sizeof *map->places);
    map->mask = places - 1;
    map->most = n;
    return map->places != NULL ? map : NULL;
}

/*
 * Returns the place of the text, or the free place where it belongs. At least one in three is free.
 */
static struct place_taken *find(const struct text_map *map, struct weir_text text)
{
    uint64_t i = hash_sip(&map->secret, text.at, text.len).low;
    for (;; i++) {
        struct place_taken *p = &map->places[i & map->mask];
        if (p->at == NULL || text_equal((struct weir_text){p->at, p->len}, text)) {
            return p;
        }
    }
}

int64_t text_map_put(struct text_map *map, struct weir_text text, uint32_t number)
{
    struct place_taken *p = find(map, text);
    if (p->at != NULL) {
        return p->number;
    }
    if (map->count == map->most || text.len > UINT32_MAX) {
        return -2;
    }
    *p = (struct place_taken){text.at, (uint32_t)text.len, number};
    map->count++;
    return -1;
}

int64_t text_map_find(const struct text_map *map, struct weir_text text)
{
    if (map == NULL || map->count == 0) {
        return -1;
    }
    const struct place_taken *p = find(map, text);
    return p->at != NULL ? (int64_t)p->number : -1;
}

size_t text_map_count(const struct text_map *map)
{
    return map != NULL ? map->count : 0;
}
