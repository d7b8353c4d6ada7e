#!/bin/sh
# No file at all.
rm -f "$1"
