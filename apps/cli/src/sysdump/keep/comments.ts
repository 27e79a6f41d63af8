import { LEFT_OUT } from "./free-text.ts";

/**
 * Every word that kube-proxy, Fairlead, flannel and kubelet write into comments, but for names,
 * addresses and chains.
 */
const WORDS: ReadonlySet<string> = new Set(
  `a accept accepted active affinity all and another are balancer be before block by can chain check cidr client
  client's clients cluster clusterip clusterips connections conntrack destinations drop dropped drops dst endpoint
  endpoints ensure external externalip externally-visible externaltrafficpolicy=local filter firewall flanneld flow
  for forward forwarded forwarding from gone hairpin handle has health helper hook hostport if in incoming invalid ip
  ips ipvs is its kube-proxy kube-proxy-firewall kubernetes last lb load loadbalancer loadbalancersourceranges local
  localnet map mark masq masquerade may must network no node nodeport nodeports non-local not note of only or other
  outside own packet packets pod port portal portals ports postrouting programmed proxy purpose redirect reject
  requiring reset route rule rules sctp serves service services session short-circuit snat solving source sourcerange
  subject tcp that the there these they this to traffic udp unallocated vmap which whose will with without`.split(
    /\s+/,
  ),
);

const SERVICE = /^[a-z0-9][a-z0-9.-]{0,252}\/[a-z0-9][a-z0-9.-]{0,252}(?::[a-z0-9-]{0,63})?$/;
const SOCKET = /^(?:\[[0-9a-f:.]+\]|[0-9a-f:.]+)(?::\d{1,5})?(?:\/\d{1,3})?$/;
const CHAIN = /^@?(?:KUBE-[A-Z]+-[A-Z2-7]{16}|KUBE(?:-[A-Z]+)+|no-endpoint-(?:services|nodeports))$/;
/** Calico's comments are hashes. */
const MARK = /^cali:[\w-]{16}$/;
const SIGN = /^(?:->|→|\+|\/|-|)$/;

/** A comment that anybody may have written: kept where each of its words is one that proxies and pod networks write. */
export function keptComment(comment: string): string {
  return comment.split(" ").every(isKnown) ? comment : LEFT_OUT;
}

function isKnown(word: string): boolean {
  const bare = word.replace(/[;:,.)]+$/, "").replace(/^\(/, "");
  if ([SERVICE, SOCKET, CHAIN, MARK, SIGN].some((form) => form.test(bare))) return true;
  return bare.split(/[:/]/).every((part) => WORDS.has(part.toLowerCase()));
}
