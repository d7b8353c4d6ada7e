#!/bin/sh
ln -s "$1" "$1"
