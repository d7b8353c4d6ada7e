#include "common/digits.h"

size_t digits_write(uint64_t number, unsigned base, size_t least, char *out)
{
    char reversed[DIGITS_MAX];
    size_t n = 0;
    while (number > 0 || n < least) {
        reversed[n++] = "0123456789abcdef"[number % base];
        number /= base;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = reversed[n - 1 - i];
    }
    return n;
}

struct date {
    uint64_t year;
    uint64_t month;
    uint64_t day;
};

#define DAYS_OF_400_YEARS 146097
#define DAYS_TO_1970 719468 /* since 0000-03-01 */

/*
 * Returns the date, in UTC, of a day that is counted from 1970-01-01. Years begin in March here, so
 * that a leap day is the last day of its year.
 */
static struct date date_of(uint64_t days)
{
    uint64_t all = days + DAYS_TO_1970;
    uint64_t day = all % DAYS_OF_400_YEARS;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    uint64_t of_year = day - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * of_year + 2) / 153; /* 0: March */
    return (struct date){
        .year = year + all / DAYS_OF_400_YEARS * 400 + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = of_year - (153 * month + 2) / 5 + 1,
    };
}

void digits_time(uint64_t unix_ns, char text[DIGITS_TIME_MAX])
{
    uint64_t ms = unix_ns / 1000000;
    struct date date = date_of(ms / 86400000);
    const struct {
        uint64_t number;
        size_t digits;
        char after;
    } parts[] = {{date.year, 4, '-'},         {date.month, 2, '-'},      {date.day, 2, 'T'},
                 {ms / 3600000 % 24, 2, ':'}, {ms / 60000 % 60, 2, ':'}, {ms / 1000 % 60, 2, '.'},
                 {ms % 1000, 3, 'Z'}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        n += digits_write(parts[i].number, 10, parts[i].digits, text + n);
        text[n++] = parts[i].after;
    }
    text[n] = '\0';
}
