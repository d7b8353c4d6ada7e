#include "base/pair.h"

#include <weir.h>

bool pair_vector_load;

#ifdef __x86_64__

#include <cpuid.h>

int pair_init(void)
{
    unsigned a;
    unsigned b;
    unsigned c = 0;
    unsigned d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_CMPXCHG16B) == 0) {
        return WEIR_ECPU;
    }
    /* Every caller stores the same value; relaxed is enough. */
    __atomic_store_n(&pair_vector_load, (c & bit_AVX) != 0, __ATOMIC_RELAXED);
    return 0;
}

#else

int pair_init(void)
{
    return 0; /* the build made sure of CASP */
}

#endif
