# shellcheck shell=sh disable=SC2034,SC2154  # variables are for the scripts that read this, or set in proxy.sh
# Three weir nodes behind a balancer that hashes: what the tests of docs/guide/gateways/sticky.md share. Read after proxy.sh.
#
# The nodes' limits have different names, so that an answer tells who gave it (RateLimit-Policy).
nodes='1 2 3'
clients=$(seq 1 24)

# start_node NUMBER OPTION...
start_node() {
    number=$1
    shift
    sed "s/name: pages/name: node$number/" "$dir/sticky.yaml" >"$dir/weir$number.yaml"
    run "node$number" "$weir" serve --config "$dir/weir$number.yaml" --http "$host:808$number" --resp off --admin off \
        --threads 1 --max-age 0 --no-watch "$@"
    eval "node_pid$number=$pid"
    await_start "$pid" curl -sf -o "$dir/body" "http://$host:808$number/healthz"
}
kill_node() {
    eval "kill -KILL \$node_pid$1"
    eval "wait \$node_pid$1" 2>/dev/null || true
}

cat >"$dir/sticky.yaml" <<'END'
server: {trusted_proxies: [127.0.0.1/32]}
limits:
  - {name: pages, key: [ip], rate: 5/h, consistency: local}
END

# places: the addresses of the document are those of the nodes here
places() {
    sed "s/10\\.0\\.0\\.11:8080/$host:8081/; s/10\\.0\\.0\\.12:8080/$host:8082/; s/10\\.0\\.0\\.13:8080/$host:8083/"
}

# The node that has given the last answer.
answered_by() { field ratelimit-policy | sed -n 's/^"\(node[0-9]\)".*/\1/p'; }

# who CLIENT: the node that lets it in
who() {
    expect 200 "127.0.4.$1" /page
    answered_by
}

# Where everybody is now, into the file: "client node"
everybody() {
    for client in $clients; do
        node=$(who "$client")
        [ -n "$node" ] || die "client $client was let in by nobody"
        echo "$client $node"
    done >"$1"
}

check_sticky() {
    everybody "$dir/first"
    everybody "$dir/second"
    diff "$dir/first" "$dir/second" || die "clients move although no node did"
    for n in $nodes; do
        held=$(grep -c "node$n" "$dir/first" || true)
        [ "$held" -ge 1 ] || die "node $n has none of 24 clients"
    done
    # A node goes: its clients move, and no others.
    kill_node 2
    everybody "$dir/third"
    awk 'NR == FNR { was[$1] = $2; next }
        was[$1] == "node2" { moved++; if ($2 == "node2") bad = 1; next }
        was[$1] != $2 { print "client " $1 " moved from " was[$1] " to " $2; bad = 1 }
        END { print moved " clients of node2 moved"; exit bad }' "$dir/first" "$dir/third" || die "the wrong ones moved"
    # What a client has used is remembered, wherever it is: three of five for those that stayed.
    stayed=$(awk '$2 == "node1" { print $1; exit }' "$dir/first")
    [ "$(who "$stayed")" = node1 ] || die "client $stayed moved"
    [ "$(who "$stayed")" = node1 ] || die "client $stayed moved"
    expect 429 "127.0.4.$stayed" /page
}

# Those that were node 2's come back with it.
check_return() {
    moved=$(awk '$2 == "node2" { print $1; exit }' "$dir/first")
    until_true has_returned
}
has_returned() {
    ask "127.0.4.$moved" /page
    [ "$(answered_by)" = node2 ]
}

# attack_sticky DOCUMENT: every dodge for /login, with the rule file of the document. The nodes read it while they run: a node
# that were restarted would have other clients for a while. Limits by user are counted by each node here.
attack_sticky() {
    recipe "$1" yaml >"$dir/attacked.yaml"
    for n in $nodes; do
        cp "$dir/attacked.yaml" "$dir/weir$n.yaml"
        eval "kill -HUP \$node_pid$n"
        until_true has_new_rules "$n"
    done
    kill -KILL "$origin_pid"
    dodges "$1 with sticky.md" logins
}
has_new_rules() {
    curl -s -o "$dir/body" -D "$dir/head" -H 'X-Forwarded-For: 127.0.0.2' "http://$host:808$1/v1/auth"
    field ratelimit-policy | grep -q '^"address"'
}
