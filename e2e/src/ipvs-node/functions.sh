# For the script of a guest: proxies on its node, servers and clients.

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

agent() { exec /bin/ip netns exec node /bin/node /guest/agent/main.js --manifests=/tmp/objects --state-dir=/run/fairlead "$@"; }

# start_first CONFIGURATION: returns once it has programmed everything.
start_first() {
  (agent "--config=/guest/$1" >> /tmp/first.log 2>&1) &
  first=$!
  wait_until "the first proxy is healthy" on_node wget -q -O /dev/null http://127.0.0.1:10256/healthz
}

# Node ports are on the addresses of both uplinks, as in ipvs mode.
NAMED="--service-proxy-name=storage --service-network --hostname-override=node --nodeport-addresses=0.0.0.0/0,::/0
  --cluster-cidr=192.168.50.0/24,fd00:50::/64"

start_named() {
  (agent $NAMED >> /tmp/named.log 2>&1) &
  named=$!
  wait_until "the second instance is healthy" on_node wget -q -O /dev/null http://127.0.0.1:10356/healthz
}

# start_kube_proxy: the real one, which asks for iptables by plain names; returns once it serves.
start_kube_proxy() {
  for tool in iptables ip6tables; do
    for end in "" -save -restore; do ln -sf "$tool-legacy$end" "/bin/$tool$end"; done
  done
  (exec /bin/ip netns exec node /bin/node /guest/api/api.mjs /tmp/objects > /tmp/api-url 2> /tmp/api.log) &
  api=$!
  wait_until "the API server listens" test -s /tmp/api-url
  sed "s,SERVER,$(cat /tmp/api-url)," /guest/kubeconfig > /tmp/kubeconfig
  (exec /bin/ip netns exec node /bin/kube-proxy --config /guest/kube-proxy --v 2 > /tmp/kube-proxy.log 2>&1) &
  kube_proxy=$!
  wait_until "kube-proxy has virtual servers" kube_proxy_serves
}

kube_proxy_serves() {
  servers=$(on_node ipvsadm --save --numeric)
  for address in 192.0.2.11:80 '[fd00:192::11]:80'; do
    case $servers in *"-a -u $address -r"*) ;; *) return 1 ;; esac
  done
}

# end SIGNAL PID
end() {
  kill "-$1" "$2"
  wait "$2" || true
}

loads=
# start_load KEY NAMESPACE PROTOCOL PORT ADDRESS: until end_load
start_load() {
  key=$1
  shift
  talk ask "$@" 9 100 64 /tmp/load-enough > "/tmp/load-$key" &
  loads="$loads $key:$!"
}

end_load() {
  touch /tmp/load-enough
  for load in $loads; do
    wait "${load#*:}"
    echo "${load%:*} $(cat "/tmp/load-${load%:*}")"
  done
  loads=
  rm /tmp/load-enough
}

# storage STATE: other endpoints of the second instance's service, in one step
storage() {
  cp "/guest/storage-$1" /tmp/objects/.storage.new
  mv /tmp/objects/.storage.new /tmp/objects/storage.yaml
  sleep 0.5
}

# known_mtu NAMESPACE ADDRESS: after a first datagram that does not fit
known_mtu() {
  talk ask "$1" udp "$2" "$3" 1 100 1400 /tmp/asked-enough > /dev/null &
  asking=$!
  sleep 0.3
  touch /tmp/asked-enough
  wait $asking
  rm /tmp/asked-enough
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
