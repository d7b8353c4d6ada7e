# Files that do not fit into server.memory, which follows them: their bytes, their values, the table of their rows.
i=0
while [ $i -lt 2000 ]; do
    echo "10.0.$((i / 250)).$((i % 250))"
    i=$((i + 1))
done >large.list
sed 's/$/,5\/s/' large.list >large.csv
cat >"$1" <<'END'
block: [{ip: 'file:large.list'}, {ip: [192.0.2.1, 'file:large.list']}]
attributes: {plan: 'file:large.csv by ip'}
limits: [{name: l, key: [ip], rate: 1/s, overrides: {by: ip, file: large.csv}}]
adhoc: off
server: {memory: 100kB}
END
