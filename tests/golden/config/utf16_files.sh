# Files that the rules name, without such a mark.
printf 'a\000l\000i\000c\000e\000\n\000' >list16
printf '\000a\000,\0005\000/\000m\000i\000n' >table16.csv
cat >"$1" <<'RULES'
attributes: {user: request}
block: [{user: 'file:list16'}]
limits:
  - {name: a, key: [user], rate: 5/min, overrides: {by: user, file: table16.csv}}
RULES
