# For the scripts of a guest: the agent on its node, servers and clients.

on_node() { ip netns exec node "$@"; }

# wait_until WHAT COMMAND...: of the guest's time, so that a busy machine makes no difference.
wait_until() {
  what=$1
  shift
  for _ in $(seq 900); do
    if "$@" > /dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  echo "no end of waiting: $what"
  tail -n 30 /tmp/*.log
  exit 1
}

# start_agent CONFIGURATION: returns once it has programmed everything. $rights: what it is started by.
start_agent() {
  (exec /bin/ip netns exec node ${rights:-} /bin/node /guest/agent/main.js --config "/guest/$1" --manifests /tmp/objects \
    --state-dir /run/fairlead >> /tmp/agent.log 2>&1) &
  agent=$!
  wait_until "the agent is healthy" on_node wget -q -O /dev/null http://127.0.0.1:10256/healthz
  if [ "$1" = fast ] || [ "$1" = auto ]; then wait_until "the flowtables have their devices" has_devices; fi
}

# init_only CONFIGURATION: what the init container of deploy/ does; the agent then has the rights that it has there.
init_only() {
  on_node node /guest/agent/main.js --config "/guest/$1" --state-dir /run/fairlead --init-only >> /tmp/agent.log 2>&1
  rights="/bin/setpriv --no-new-privs --bounding-set=-all,+net_admin,+net_raw --inh-caps=-all"
}

has_devices() { devices ip | grep -q to-server && devices ip6 | grep -q to-server; }

# devices FAMILY: of the flowtable, as nft names the family
devices() {
  on_node nft list flowtable "$1" kube-proxy fast-path | sed -n 's/.*devices = { \(.*\) }.*/\1/p' | tr -d '",'
}

# synced: how often the agent has written what changed, or everything
synced() {
  on_node wget -q -O - http://127.0.0.1:10249/metrics |
    sed -n 's/^kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} //p'
}

# end_agent SIGNAL
end_agent() {
  syncs=$((${syncs:-0} + $(synced)))
  kill "-$1" "$agent"
  wait "$agent" || true
}

# start_kube_proxy: the real one, with the objects as they are; returns once it has programmed both families.
start_kube_proxy() {
  rm -f /tmp/api-url
  (exec /bin/ip netns exec node /bin/node /guest/api/api.mjs /tmp/objects > /tmp/api-url 2> /tmp/api.log) &
  api=$!
  wait_until "the API server listens" test -s /tmp/api-url
  sed "s,SERVER,$(cat /tmp/api-url)," /guest/kubeconfig > /tmp/kubeconfig
  (exec /bin/ip netns exec node /bin/kube-proxy --config /guest/kube-proxy --v 2 > /tmp/kube-proxy.log 2>&1) &
  kube_proxy=$!
  for family in IPv4 IPv6; do wait_until "kube-proxy has synced" grep -q "SyncProxyRules complete.*$family" /tmp/kube-proxy.log; done
}

end_kube_proxy() {
  kill "$kube_proxy" "$api"
  wait "$kube_proxy" "$api" || true
}

no_tables() { ! on_node nft list table ip kube-proxy && ! on_node nft list table ip6 kube-proxy; }

# serve NAMESPACE PROTOCOL PORT ADDRESS...
serve() { talk serve "$@" & }

# start_asking NAME NAMESPACE PROTOCOL PORT ADDRESS FLOWS EVERY SIZE: until stop_asking
start_asking() {
  name=$1
  shift
  talk ask "$@" /tmp/stop > "/tmp/asked-$name" &
  asking="$asking $!"
}

stop_asking() {
  touch /tmp/stop
  for process in $asking; do wait "$process"; done
  rm /tmp/stop
  asking=
}

# offloaded FAMILY PROTOCOL PORT: connections in the flowtable
offloaded() { on_node conntrack -L -f "$1" -p "$2" 2> /dev/null | grep "dport=$3 " | grep -c OFFLOAD || true; }

# met: packets that rules at forward have seen
met() { on_node nft list table inet spy | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'; }

# counted FAMILY PROTOCOL PORT: packets of the first connection, from the client
counted() {
  on_node conntrack -L -f "$1" -p "$2" 2> /dev/null | grep "dport=$3 " | head -n 1 | sed 's/^[^=]*.*packets=\([0-9]*\) bytes.*packets=.*/\1/'
}

# change STATE: of the endpoints of the service whose endpoints change, in one step
change() {
  cp "/guest/moving-$1" /tmp/objects/.moving.yaml.new
  mv /tmp/objects/.moving.yaml.new /tmp/objects/moving.yaml
}
