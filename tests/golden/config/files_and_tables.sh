# Files and tables that fit only without each other.
i=0
while [ $i -lt 2000 ]; do
    echo "10.0.$((i / 250)).$((i % 250))"
    i=$((i + 1))
done >long.list
cat >"$1" <<'END'
block: [{ip: 'file:long.list'}]
limits: [{name: l, key: [ip], rate: 1/s, max_keys: 10k}]
adhoc: off
server: {memory: 8400kB}
END
