/*
 * Calendar months in UTC, by the Gregorian calendar. Days count from 1970-01-01. Months count from
 * March of the year 0, so that the day that is added in leap years is the last of a year.
 */
#ifndef WEIR_BASE_CALENDAR_H
#define WEIR_BASE_CALENDAR_H

#include <stdint.h>

#define CALENDAR_DAYS 719468 /* from the first of March of the year 0 to 1970-01-01 */

/* Returns the day on which a month begins. Five months from March on have 153 days. */
static inline int64_t calendar_begin(int64_t month)
{
    int64_t years = month / 12;
    return years * 365 + years / 4 - years / 100 + years / 400 + (153 * (month % 12) + 2) / 5 -
           CALENDAR_DAYS;
}

/* Returns the month of a day. 400 years have 4800 months and 146097 days. */
static inline int64_t calendar_month(int64_t day)
{
    int64_t next = (day + CALENDAR_DAYS) * 4800 / 146097; /* the next month, or one before it */
    while (calendar_begin(next) <= day) {
        next++;
    }
    return next - 1;
}

#endif
