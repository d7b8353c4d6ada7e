#!/bin/sh
# run.sh FILE [WORD...]: runs the stories of one file of tests/page with the python3 that has selenium, in Debian's Chromium.
# Only the stories whose names contain one of the words, if there are any.
set -eu
for tool in chromium chromedriver; do
    command -v "$tool" >/dev/null || { echo "$tool is missing (scripts/setup test)" >&2; exit 77; }
done
for python in /usr/bin/python3 python3; do
    if "$python" -c 'import selenium' 2>/dev/null; then exec "$python" -B "$@" </dev/null; fi
done
echo "python3-selenium is missing (scripts/setup test)" >&2
exit 77
