/** The doctor's rows about networks: routes and CIDRs, and networks that serve services themselves or undo rules. */

import { addressRange, containsCIDR, familyOf, overlap, rangesOverlap } from "@fairlead/base";
import type { NamedCIDR, NodeFacts, ObjectReading } from "./facts.ts";
import { AS_ROOT, line, lines, listed } from "./table.ts";

const ofPods = ({ cidrs }: NodeFacts) => cidrs.filter(({ use }) => use === "pods");

const podRoutes = lines(
  (facts): readonly { readonly cidr?: string; readonly covering?: readonly string[] | undefined }[] => {
    const cidrs = ofPods(facts).map(({ cidr }) => ({
      cidr,
      covering: facts.routes?.filter((route) => overlap(route, cidr)),
    }));
    return cidrs.length === 0 ? [{}] : cidrs;
  },
  ({ cidr }) => (cidr === undefined ? "route to pods" : `route to pods in ${cidr}`),
  [
    {
      unknown: "give-cidrs",
      when: ({ cidr }) => cidr === undefined,
      found: "their CIDRs are not known",
      advice: "give --cluster-cidr",
    },
    {
      unknown: "install-ip",
      when: ({ covering }) => covering === undefined,
      found: "routes cannot be listed",
      advice: "install ip (iproute2)",
    },
    {
      when: ({ cidr = "", covering = [] }) => covering.some((route) => containsCIDR(route, cidr)),
      found: ({ covering = [] }) => covering.join(", "),
    },
    {
      when: ({ covering = [] }) => covering.length > 0,
      found: ({ covering = [] }) => `${covering.length} routes to parts of it`,
    },
    {
      warning: "pod-network",
      found: "none but a default route",
      advice: "look whether the pod network runs on this node: endpoints elsewhere are not reached without it",
    },
  ],
);

type Pair = readonly [one: NamedCIDR, other: NamedCIDR];

/** One network may have subnets within another one of its own. */
function mayNot(one: NamedCIDR, other: NamedCIDR): boolean {
  if (one.use !== other.use) return true;
  return one.source !== undefined && other.source !== undefined && one.source.id !== other.source.id;
}

/** Each learned CIDR is in the list once for each source that has it. */
function overlapping(cidrs: readonly NamedCIDR[]): readonly Pair[] {
  const ranged = cidrs.map((named) => ({ named, range: addressRange(named.cidr) }));
  return ranged.flatMap((one, at) =>
    ranged
      .slice(at + 1)
      .filter((other) => mayNot(one.named, other.named) && rangesOverlap(one.range, other.range))
      .map((other): Pair => [one.named, other.named]),
  );
}

/** A node has an address on its pods' bridge, which is in their CIDR, and another one that is the node's own. */
function isOnBridge(pair: Pair, cidrs: readonly NamedCIDR[]): boolean {
  const node = pair.find(({ use }) => use === "node");
  if (node === undefined || pair.every(({ use }) => use !== "pods")) return false;
  const pods = cidrs.filter(({ use }) => use === "pods");
  const others = cidrs.filter(({ use, cidr }) => use === "node" && familyOf(cidr) === familyOf(node.cidr));
  return others.some(({ cidr }) => pods.every((one) => !overlap(one.cidr, cidr)));
}

/** What overlaps, a line each, in this order, and last what is known of CIDRs. */
const CIDR_LINES = {
  services: "CIDRs of services",
  nodes: "CIDRs with nodes",
  underlay: "CIDRs with nodes",
  both: "CIDRs on both sides",
  within: "CIDRs within the other side's",
  claimed: "CIDRs that two sources claim",
  bridge: "CIDRs with nodes",
  known: "CIDRs",
} as const;

type CIDRLineKind = keyof typeof CIDR_LINES;

function kindOf(pair: Pair, cidrs: readonly NamedCIDR[]): CIDRLineKind {
  const uses = new Set(pair.map(({ use }) => use));
  if (uses.size === 1) return "claimed";
  if (uses.has("services")) return "services";
  if (!uses.has("node")) return pair[0].cidr === pair[1].cidr ? "both" : "within";
  if (pair.some(({ source }) => source !== undefined)) return "underlay";
  return isOnBridge(pair, cidrs) ? "bridge" : "nodes";
}

interface CIDRLine {
  readonly kind: CIDRLineKind;
  readonly found: string;
  /** CIDRs that are not known, without which nothing is known about overlapping, and what would give them. */
  readonly missing?: readonly (readonly [use: NamedCIDR["use"], what: string])[];
}

function cidrLines({ cidrs }: NodeFacts): readonly CIDRLine[] {
  const byKind = Map.groupBy(overlapping(cidrs), (pair) => kindOf(pair, cidrs));
  const kinds = Object.keys(CIDR_LINES) as CIDRLineKind[];
  const lines = kinds.flatMap((kind) => {
    const pairs = byKind.get(kind)?.map(([one, other]) => `${cidrText(one)} and ${cidrText(other)}`);
    return pairs === undefined ? [] : [{ kind, found: `overlapping: ${listed(pairs, "; ")}` }];
  });
  const missing = COMPARED.filter(([use]) => cidrs.every((one) => one.use !== use));
  if (lines.length > 0 && missing.length === 0) return lines;
  const known = cidrs.map(({ use, cidr }) => `${use} ${cidr}`);
  // What overlaps has lines of its own.
  const found = missing.length > 0 && lines.length > 0 ? "" : listed(known, ", ", 10);
  return [...lines, { kind: "known", found, missing }];
}

function cidrText({ use, cidr, source }: NamedCIDR): string {
  const from = source === undefined ? "" : ` of ${source.id} (${source.objects.slice(0, 3).join(", ")})`;
  return `${use} ${cidr}${from}`;
}

const are = (wanted: CIDRLineKind) => ({
  when: ({ kind }: CIDRLine) => kind === wanted,
  found: ({ found }: CIDRLine) => found,
});

/** Without one of these nothing is known about overlapping; excluded pods need not be there. */
const COMPARED: NonNullable<CIDRLine["missing"]> = [
  ["pods", "give --cluster-cidr"],
  ["services", "give --service-cidr"],
  ["node", "install ip (iproute2)"],
];

/** CIDRs that must not have an address in common, or that two sources claim; and what is known of CIDRs. */
const cidrRows = lines(cidrLines, ({ kind }) => CIDR_LINES[kind], [
  {
    bad: "services-overlap",
    ...are("services"),
    advice:
      "networks must not overlap: give the pods, or the services, other addresses; a packet to a service cannot be distinguished " +
      "from one to a pod or a node, and a learned CIDR that overlaps is refused",
  },
  {
    bad: "nodes-overlap",
    ...are("nodes"),
    advice:
      "leave the nodes' addresses out of the CIDRs: a service whose endpoints are nodes (default/kubernetes) would be taken for " +
      "a pod's; or have the CIDRs learned (--exclude-cidrs-from), which leaves out nodes' addresses",
  },
  {
    warning: "underlay",
    ...are("underlay"),
    advice:
      "nothing, if it is an underlay: endpoints at nodes' addresses decide nothing; else give the network addresses of its own",
  },
  {
    bad: "one-side",
    ...are("both"),
    advice:
      "name the CIDR on one side: the owner of an address is ambiguous; ours takes precedence, or what was written over what was learned",
  },
  {
    warning: "within-other",
    ...are("within"),
    advice:
      "nothing, if one network has its range within the other's: the longest prefix decides; else have them not overlap",
  },
  {
    warning: "two-sources",
    ...are("claimed"),
    advice:
      "look which network gives out these addresses and take the range from the other: two pods may get one address, and only " +
      "one of them is reached",
  },
  {
    warning: "pods-bridge",
    ...are("bridge"),
    advice:
      "nothing, if it is this node's address on its pods' bridge; else leave the nodes' addresses out of the CIDRs",
  },
  { when: ({ missing = [] }) => missing.length === 0, found: ({ found }) => found },
  {
    unknown: "give-cidrs",
    found: ({ found, missing = [] }) => {
      const rest = found === "" ? "" : `; the others do not overlap: ${found}`;
      return `those of ${missing.map(([use]) => use).join(" and ")} are not known${rest}`;
    },
    advice: ({ missing = [] }) => missing.map(([, what]) => what).join(", "),
  },
]);

const rejects = ({ others }: NodeFacts) => others.kubeOVNRejects?.join("; ") ?? "";

/**
 * kube-ovn (pkg/daemon/gateway_linux.go) puts these rules first into filter's INPUT and OUTPUT as soon as the ipset
 * KUBE-CLUSTER-IP exists. In ipvs mode packets to services go through INPUT as they are; elsewhere their destination
 * was changed before.
 */
const kubeOVN = line("kube-ovn's REJECT of services", [
  {
    unseen: ({ others }) => others.kubeOVNRejects === undefined || others.servesBySets === undefined,
    found: "rules may not be read",
  },
  { when: ({ others }) => others.kubeOVNRejects?.length === 0, found: "none" },
  {
    bad: "kube-ovn-mode",
    when: ({ others }) => others.servesBySets === true,
    found: rejects,
    advice:
      "use iptables or nftables mode, or set iptables.masqueradeAll (--masquerade-all): in ipvs mode these rules reject TCP to each " +
      "ClusterIP from clients that are not masqueraded, so pods of our own network reach none; deleted by hand they come back",
  },
  {
    warning: "kube-ovn-set",
    found: rejects,
    advice:
      "remove the ipset that ipvs mode left with `ipset destroy KUBE-CLUSTER-IP`: kube-ovn makes these rules for it; outside of " +
      "ipvs mode they meet only what no rule serves",
  },
]);

/** What a network's settings say, and what it pinned on the node. */
interface Signs<T> {
  readonly reading: ObjectReading<T> | undefined;
  /** Undefined: not known. */
  readonly value: T | undefined;
  /** Its own; undefined: they cannot be listed. */
  readonly maps: readonly string[] | undefined;
}

function signs<T>(reading: ObjectReading<T> | undefined, { others }: NodeFacts, own: RegExp): Signs<T> {
  const value = reading?.kind === "found" ? reading.value : undefined;
  return { reading, value, maps: others.pinnedMaps?.filter((name) => own.test(name)) };
}

const isKnown = ({ reading }: Signs<unknown>) => reading !== undefined && reading.kind !== "forbidden";
const hasMaps = ({ maps = [] }: Signs<unknown>) => maps.length > 0;
const mapsText = ({ maps = [] }: Signs<unknown>) => `its maps of services are pinned on this node: ${maps.join(", ")}`;

/** Where nothing speaks for a network: whether everything that would was looked at. */
const bySigns = (object: string) =>
  [
    { when: isKnown, found: "no" },
    { when: ({ maps }: Signs<unknown>) => maps !== undefined, found: "no sign of it on this node" },
    {
      unknown: "read-settings",
      found: ({ reading }: Signs<unknown>) => {
        const why = reading === undefined ? `no API server was asked for ${object}` : `${object} may not be read`;
        return `pinned BPF maps cannot be listed, and ${why}`;
      },
      advice: `${AS_ROOT}; or give a --kubeconfig that may read it`,
    },
  ] as const;

const FELIX = "FelixConfiguration default";
const LEAVE_TO_CALICO =
  "have Calico program iptables or nftables (bpfEnabled: false), or run no other service proxy: it serves services itself";

/** Calico with BPF serves all services; its clean-up deletes the chains and tables of kube-proxy, which are ours. */
const calico = lines(
  (facts) => [signs(facts.api.kind === "answers" ? facts.api.calico : undefined, facts, /^cali_v[46]_nat_fe/)],
  "Calico with BPF",
  [
    {
      bad: "calico-bpf",
      when: ({ value }) => value?.enabled === true,
      found: ({ value }) =>
        `${FELIX} has bpfEnabled: true${value?.cleansUp ? ", and its clean-up deletes a proxy's chains and tables" : ""}`,
      advice: ({ value }) =>
        `${LEAVE_TO_CALICO}${value?.cleansUp ? "; at the least set bpfKubeProxyIptablesCleanupEnabled: false" : ""}`,
    },
    {
      warning: "calico-maps",
      when: hasMaps,
      found: mapsText,
      advice: `${LEAVE_TO_CALICO}; maps that BPF mode left do nothing`,
    },
    ...bySigns(FELIX),
  ],
);

const CILIUM_CONFIG = "ConfigMap kube-system/cilium-config";
const LEAVE_TO_CILIUM =
  "set kubeProxyReplacement: false in Cilium's values, or run no other service proxy: Cilium translates before any rule sees a packet";
const LOOK = `look into ${CILIUM_CONFIG}: kube-proxy-replacement. If it is true: ${LEAVE_TO_CILIUM}`;

/** What Cilium has called it; `partial` and `probe` are of versions before 1.14. */
const REPLACING: ReadonlySet<string> = new Set(["true", "strict", "partial", "probe"]);

/** A Cilium that replaces kube-proxy translates before any rule sees a packet: rules next to it do nothing. */
const cilium = lines(
  (facts) => {
    const reading = facts.api.kind === "answers" ? facts.api.cilium : undefined;
    return [{ ...signs(reading, facts, /^cilium_lb[46]_services/), chains: facts.others.ciliumChains ?? [] }];
  },
  "Cilium in kube-proxy's place",
  [
    {
      bad: "cilium-replaces",
      when: ({ value }) => value !== undefined && REPLACING.has(value),
      found: ({ value }) => `${CILIUM_CONFIG} has kube-proxy-replacement: ${JSON.stringify(value)}`,
      advice: LEAVE_TO_CILIUM,
    },
    {
      when: ({ value }) => value !== undefined,
      found: ({ value }) => `no: kube-proxy-replacement is ${JSON.stringify(value)}`,
    },
    {
      warning: "cilium-look",
      when: hasMaps,
      found: (at) => `${mapsText(at)}; whether it replaces kube-proxy they do not say`,
      advice: LOOK,
    },
    {
      warning: "cilium-look",
      when: ({ chains }) => chains.length > 0,
      found: ({ chains }) =>
        `there are its chains: ${chains.slice(0, 3).join(", ")}; whether it replaces kube-proxy they do not say`,
      advice: LOOK,
    },
    ...bySigns(CILIUM_CONFIG),
  ],
);

const excludedClients = lines(({ distinguishesClients }) => [distinguishesClients ?? []].flat(), "excluded clients", [
  { when: (distinguished) => distinguished, found: "other networks' ClusterIPs are served to all but their own pods" },
  {
    warning: "excluded-clients",
    found: "this mode cannot distinguish clients: ClusterIPs of other networks are left to them for all clients",
    advice: "use iptables or nftables mode, or --excluded-frontends=cluster-ip, which says the same",
  },
]);

export const networkRows = [podRoutes, cidrRows, kubeOVN, calico, cilium, excludedClients] as const;
