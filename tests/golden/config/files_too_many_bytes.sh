# A file that is larger than server.memory is not read at all.
i=0
while [ $i -lt 200 ]; do
    echo "10.0.0.$i"
    i=$((i + 1))
done >bytes.list
cat >"$1" <<'END'
block: [{ip: 'file:bytes.list'}]
limits: []
adhoc: off
server: {memory: 1kB}
END
