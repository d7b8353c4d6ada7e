#!/bin/sh
mkfifo "$1"
