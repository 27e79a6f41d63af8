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
