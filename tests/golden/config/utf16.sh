# A rule file as some editors for Windows write it, with the mark of its byte order.
printf '\377\376l\000i\000m\000i\000t\000s\000:\000\n\000' >"$1"
