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
