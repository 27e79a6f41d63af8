#!/bin/bash
# kubectl for a cluster of namespaces, as far as fairlead calls it. FAIRLEAD_NODES is a folder with a file for each node,
# which holds the id of a process in the node's network namespace; the agent's pod is called fairlead-NODE. Who calls it
# is in the nodes' user namespace already.
set -u
argv=()
for word in "$@"; do
  case "$word" in
    --kubeconfig=* | --context=* | --stdin) ;;
    *) argv+=("$word") ;;
  esac
done
set -- "${argv[@]}"

pod() {
  printf '{"metadata":{"namespace":"kube-system","name":"fairlead-%s"},' "$1"
  printf '"spec":{"nodeName":"%s","containers":[{"name":"fairlead"}]}}' "$1"
}

case "$1" in
  get)
    [[ "$*" == *--selector=app.kubernetes.io/name=fairlead* ]] || { echo '{"items":[]}'; exit 0; }
    [[ "$*" =~ spec.nodeName=([^,\ ]+) ]] && wanted="${BASH_REMATCH[1]}" || wanted='*'
    items=()
    for file in "$FAIRLEAD_NODES"/$wanted; do [ -e "$file" ] && items+=("$(pod "${file##*/}")"); done
    (IFS=,; echo "{\"items\":[${items[*]}]}")
    ;;
  exec)
    node=""
    while [ "$1" != -- ]; do
      [[ "$1" == fairlead-* ]] && node="${1#fairlead-}"
      shift
    done
    shift
    pid=$(< "$FAIRLEAD_NODES/$node")
    XTABLES_LOCKFILE="/proc/$pid/ns/net" exec nsenter -t "$pid" -n -- "$@"
    ;;
  port-forward)
    [[ "$*" =~ pod/fairlead-([^\ ]+) ]]
    exec "$FAIRLEAD_NODE_PROGRAM" --no-warnings "$FAIRLEAD_FORWARD" "$(< "$FAIRLEAD_NODES/${BASH_REMATCH[1]}")" "$@"
    ;;
  *)
    echo "error: unknown command \"$1\"" >&2
    exit 1
    ;;
esac
