# start_agent CONFIGURATION: returns once it has programmed everything.
start_agent() {
  first_agent "$1"
  if [ "$1" = fast ] || [ "$1" = auto ]; then wait_until "the flowtables have their devices" has_devices; fi
}

# end_agent SIGNAL
end_agent() {
  syncs=$((${syncs:-0} + $(synced)))
  end "$1" "$first"
}

# init_only CONFIGURATION: what the init container of deploy/ does; the agent then has the rights that it has there.
init_only() {
  on_node node /guest/agent/main.js --config "/guest/$1" --state-dir /run/fairlead --init-only >> /tmp/first.log 2>&1
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

kube_proxy_synced() {
  for family in IPv4 IPv6; do grep -q "SyncProxyRules complete.*$family" /tmp/kube-proxy.log || return 1; done
}

no_tables() { ! on_node nft list table ip kube-proxy && ! on_node nft list table ip6 kube-proxy; }

# offloaded FAMILY PROTOCOL PORT: connections in the flowtable
offloaded() { on_node conntrack -L -f "$1" -p "$2" 2> /dev/null | grep "dport=$3 " | grep -c OFFLOAD || true; }

# met: packets that rules at forward have seen
met() { on_node nft list table inet spy | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'; }

# counted FAMILY PROTOCOL PORT: packets of the first connection, from the client
counted() {
  on_node conntrack -L -f "$1" -p "$2" 2> /dev/null | grep "dport=$3 " | head -n 1 | sed 's/^[^=]*.*packets=\([0-9]*\) bytes.*packets=.*/\1/'
}
