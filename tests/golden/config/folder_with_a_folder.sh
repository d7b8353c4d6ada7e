#!/bin/sh
# Named as a rule file would be.
rm -f "$1"
mkdir -p "${1%.yaml}/sub.yaml"
