import { contains, overlap } from "./cidrs.ts";
import type { Diagnosis, KernelPart, NodeFacts } from "./facts.ts";

/** Everything that was looked at, in the order in which it matters. */
export function diagnose(facts: NodeFacts): readonly Diagnosis[] {
  return [
    iptables(facts),
    otherVariant(facts),
    dropping(facts),
    otherFirewalls(facts),
    ...kernel(facts),
    ...sysctls(facts),
    secondProxy(facts),
    ...podRoutes(facts),
    overlaps(facts),
    api(facts),
  ];
}

type Check = (facts: NodeFacts) => Diagnosis;

const good = (check: string, found: string): Diagnosis => ({ check, state: "good", found });
const warning = (check: string, found: string, advice: string): Diagnosis => ({
  check,
  state: "warning",
  found,
  advice,
});
const bad = (check: string, found: string, advice: string): Diagnosis => ({ check, state: "bad", found, advice });

const iptables: Check = ({ variant, mayReadRules }) => {
  const check = "iptables";
  if (variant === undefined)
    return bad(check, "not found", "install iptables 1.8 or newer (Debian: apt-get install iptables)");
  if (!mayReadRules)
    return bad(
      check,
      `${variant}, but its rules may not be read`,
      "run as root, with NET_ADMIN and in the host's network namespace",
    );
  return good(check, `${variant} variant`);
};

const otherVariant: Check = ({ variant, rules }) => {
  const check = "rules of the other variant";
  const other = rules.find((count) => count.variant !== variant);
  if (other === undefined || other.proxy + other.others === 0) return good(check, "none");
  const found = `${other.variant} has ${other.proxy} rules of a proxy and ${other.others} of others, beside ${variant}`;
  const advice = `the kernel asks both: remove a proxy's leftovers with ${other.variant === "nft" ? "iptables-nft" : "iptables-legacy"}, or have all programs use one variant`;
  return other.proxy > 0 ? bad(check, found, advice) : warning(check, found, advice);
};

const dropping: Check = ({ rules, variant }) => {
  const check = "policies";
  const chains = rules.filter((count) => count.variant === variant).flatMap((count) => count.dropping);
  if (chains.length === 0) return good(check, "nothing is dropped by default");
  return warning(
    check,
    `${chains.join(", ")} of filter drop what no rule accepts`,
    "have whoever set them (a firewall, docker) let pods' and services' packets through, or set the policy to ACCEPT",
  );
};

const otherFirewalls: Check = ({ nftTables }) => {
  const check = "nft tables of others";
  const proxies = nftTables.filter((name) => / kube-proxy$/.test(name));
  if (proxies.length > 0)
    return bad(
      check,
      `${proxies.join(", ")}: what kube-proxy's nftables mode left`,
      "remove it: kube-proxy --cleanup, or nft delete table",
    );
  if (nftTables.length === 0) return good(check, "none");
  return warning(
    check,
    nftTables.join(", "),
    "make sure that these tables do not drop what services need; they are asked beside iptables",
  );
};

const PARTS: Readonly<Record<KernelPart, string>> = {
  "connection tracking": "load nf_conntrack (modprobe nf_conntrack); without it no service works",
  ipvs: "load ip_vs, ip_vs_rr, ip_vs_wrr and ip_vs_sh, or use iptables mode",
  ipset: "load ip_set and install ipset, or use iptables mode",
};

function kernel({ kernel: parts, mode }: NodeFacts): readonly Diagnosis[] {
  const needed: readonly KernelPart[] =
    mode === "ipvs" ? ["connection tracking", "ipvs", "ipset"] : ["connection tracking"];
  return needed.map((part) =>
    parts[part] ? good(part, "there") : bad(part, "this kernel does not have it", PARTS[part]),
  );
}

interface WantedSysctl {
  readonly key: string;
  readonly wanted: string;
  readonly when: (facts: NodeFacts) => boolean;
  readonly state: "warning" | "bad";
  readonly why: string;
}

const ofFamily = (facts: NodeFacts, ipv6: boolean) => facts.cidrs.some(({ cidr }) => cidr.includes(":") === ipv6);

const SYSCTLS: readonly WantedSysctl[] = [
  {
    key: "net/ipv4/ip_forward",
    wanted: "1",
    when: (facts) => ofFamily(facts, false),
    state: "bad",
    why: "packets to pods are not forwarded without it",
  },
  {
    key: "net/ipv6/conf/all/forwarding",
    wanted: "1",
    when: (facts) => ofFamily(facts, true),
    state: "bad",
    why: "packets to IPv6 pods are not forwarded without it",
  },
  {
    key: "net/bridge/bridge-nf-call-iptables",
    wanted: "1",
    when: ({ sysctls: all }) => "net/bridge/bridge-nf-call-iptables" in all,
    state: "warning",
    why: "pods on one bridge reach no service of a pod beside them without it",
  },
  {
    key: "net/ipv4/vs/conntrack",
    wanted: "1",
    when: ({ mode }) => mode === "ipvs",
    state: "bad",
    why: "what virtual servers send on is not masqueraded without it; the agent sets it",
  },
];

function sysctls(facts: NodeFacts): readonly Diagnosis[] {
  return SYSCTLS.filter(({ when }) => when(facts)).map(({ key, wanted, state, why }) => {
    const check = key.replaceAll("/", ".");
    const value = facts.sysctls[key];
    if (value === wanted) return good(check, value);
    return { check, state, found: value ?? "not there", advice: `sysctl -w ${check}=${wanted}: ${why}` };
  });
}

const secondProxy: Check = ({ proxies }) => {
  const check = "proxies on this node";
  const text = proxies.map(({ name, pid }) => `${name} (process ${pid})`).join(", ");
  if (proxies.length === 0)
    return warning(check, "none runs", "start the agent; rules that are there go on serving but follow no change");
  if (proxies.length === 1) return good(check, text);
  return bad(
    check,
    text,
    "leave one of them: they write the same chains and undo each other's work (docs/migrate-from-kube-proxy.md)",
  );
};

function podRoutes({ cidrs, routes }: NodeFacts): readonly Diagnosis[] {
  const pods = cidrs.filter(({ use }) => use === "pods");
  return pods.map(({ cidr }) => {
    const check = `route to pods in ${cidr}`;
    const covering = routes.filter((route) => overlap(route, cidr));
    if (covering.some((route) => contains(route, cidr))) return good(check, covering.join(", "));
    if (covering.length > 0) return good(check, `${covering.length} routes to parts of it`);
    return warning(
      check,
      "none but a default route",
      "look whether the pod network runs on this node: endpoints elsewhere are not reached without it",
    );
  });
}

const overlaps: Check = ({ cidrs }) => {
  const check = "CIDRs";
  const pairs = cidrs.flatMap((one, at) =>
    cidrs
      .slice(at + 1)
      .flatMap((other) =>
        one.use !== other.use && overlap(one.cidr, other.cidr)
          ? [`${one.use} ${one.cidr} and ${other.use} ${other.cidr}`]
          : [],
      ),
  );
  if (pairs.length === 0)
    return good(check, cidrs.map(({ use, cidr }) => `${use} ${cidr}`).join(", ") || "none are known");
  return bad(
    check,
    `overlapping: ${pairs.join("; ")}`,
    "networks must not overlap: whose address a packet goes to cannot be told",
  );
};

const api: Check = ({ api: facts }) => {
  const check = "API server";
  if (facts.kind === "unasked") return good(check, "not asked");
  if (facts.kind === "unreachable")
    return bad(check, facts.reason, "look at the kubeconfig's server and credentials, and at the way there");
  if (facts.denied.length === 0) return good(check, `${facts.server} allows all that the agent needs`);
  return bad(
    check,
    `${facts.server} does not allow: ${facts.denied.join(", ")}`,
    "bind the ClusterRole system:node-proxier to the agent's account",
  );
};
