# For the scripts of a guest: proxies on its node, servers and clients.

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

# agent OPTION...: to be called in a subshell. $rights: what it is started by.
agent() {
  exec /bin/ip netns exec node ${rights:-} /bin/node /guest/agent/main.js --manifests=/tmp/objects --state-dir=/run/fairlead "$@"
}

# first_agent CONFIGURATION: returns once it has programmed everything.
first_agent() {
  (agent "--config=/guest/$1" >> /tmp/first.log 2>&1) &
  first=$!
  wait_until "the first proxy is healthy" on_node wget -q -O /dev/null http://127.0.0.1:10256/healthz
}

# end SIGNAL PID
end() {
  kill "-$1" "$2"
  wait "$2" || true
}

# start_kube_proxy WHAT COMMAND...: the real one, with the objects as they are; returns once the command succeeds.
start_kube_proxy() {
  rm -f /tmp/api-url
  (exec /bin/ip netns exec node /bin/node /guest/api/api.mjs /tmp/objects > /tmp/api-url 2> /tmp/api.log) &
  api=$!
  wait_until "the API server listens" test -s /tmp/api-url
  sed "s,SERVER,$(cat /tmp/api-url)," /guest/kubeconfig > /tmp/kubeconfig
  (exec /bin/ip netns exec node /bin/kube-proxy --config /guest/kube-proxy --v 2 > /tmp/kube-proxy.log 2>&1) &
  kube_proxy=$!
  wait_until "$@"
}

end_kube_proxy() {
  end TERM "$kube_proxy"
  end TERM "$api"
}

asking=
# start_asking NAME NAMESPACE PROTOCOL PORT ADDRESS FLOWS EVERY SIZE: until stop_asking
start_asking() {
  name=$1
  shift
  talk ask "$@" /tmp/stop > "/tmp/asked-$name" &
  asking="$asking $name:$!"
}

# Prints what each name's flows have lived through.
stop_asking() {
  touch /tmp/stop
  for one in $asking; do
    wait "${one#*:}"
    echo "${one%:*} $(cat "/tmp/asked-${one%:*}")"
  done
  rm /tmp/stop
  asking=
}

# change SERVICE STATE: other endpoints, in one step
change() {
  cp "/guest/$1-$2" /tmp/objects/.changed.new
  mv /tmp/objects/.changed.new "/tmp/objects/$1.yaml"
}

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

# Node ports are on the addresses of both uplinks, as in ipvs mode.
NAMED="--service-proxy-name=storage --service-network --hostname-override=node --nodeport-addresses=0.0.0.0/0,::/0
  --cluster-cidr=192.168.50.0/24,fd00:50::/64"

start_named() {
  (agent $NAMED >> /tmp/named.log 2>&1) &
  named=$!
  wait_until "the second instance is healthy" on_node wget -q -O /dev/null http://127.0.0.1:10356/healthz
}

# kube-proxy asks for iptables by plain names.
plain_names() {
  for tool in iptables ip6tables; do
    for end in "" -save -restore; do ln -sf "$tool-legacy$end" "/bin/$tool$end"; done
  done
}

kube_proxy_serves() {
  servers=$(on_node ipvsadm --save --numeric)
  for address in 192.0.2.11:80 '[fd00:192::11]:80'; do
    case $servers in *"-a -u $address -r"*) ;; *) return 1 ;; esac
  done
}

# storage STATE: other endpoints of the second instance's service
storage() {
  change storage "$1"
  sleep 0.5
}

# known_mtu NAMESPACE ADDRESS: after a first datagram that does not fit
known_mtu() {
  start_asking mtu "$1" udp "$2" "$3" 1 100 1400
  sleep 0.3
  stop_asking > /dev/null
  ip -n "$1" route get "$3" | sed -n 's/.* mtu \([0-9]*\).*/\1/p'
}

# left PATTERN: of what proxies leave in the kernel
left() {
  {
    on_node ip -4 rule | grep fwmark
    on_node ip -6 rule | grep fwmark
    on_node ip -4 route show table all proto 175
    on_node ip -6 route show table all proto 175
    on_node nft list tables
    on_node ipvsadm --save --numeric
    on_node ipset list -name
    on_node ip -brief link show type dummy
    on_node iptables-legacy-save | grep -e KUBE -e FAIRLEAD
    on_node ip6tables-legacy-save | grep -e KUBE -e FAIRLEAD
  } | grep -e "$1" | tr '\n' ';' || true
}
