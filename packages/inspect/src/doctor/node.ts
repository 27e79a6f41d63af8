/** The doctor's rows about a node: rules, tables, kernel, settings, fast path, proxies. */

import { familyOf, type IPFamily } from "@fairlead/base";
import { REPLY_TABLE } from "@fairlead/config";
import type { KernelPart, NodeFacts, RuleCount } from "./facts.ts";
import { AS_ROOT, line, lines, listed, named } from "./table.ts";

const usesIptables = ({ needs }: NodeFacts) => needs.iptables.length > 0;

/**
 * Two rule sets serve, and nothing says by which of them the running proxy does: programs then count rules, and what
 * they count changes with each Service.
 */
function isUndecided(facts: NodeFacts): boolean {
  const { variant, rules } = facts;
  if (variant === undefined || !usesIptables(facts) || rules.some(({ hinted }) => hinted)) return false;
  return rules.filter(({ proxy }) => proxy > 0).length > 1;
}

const decide = ({ variant }: Pick<NodeFacts, "variant">) =>
  `the kernel asks both, and kubelet's chain that names this host's variant is missing: decide for ${variant} with \`iptables-${variant} -t mangle -N KUBE-IPTABLES-HINT\`, restart the proxy, which then writes there, and run doctor again for what was left in the other one`;

const iptables = line("iptables", [
  { when: (facts) => facts.variant === undefined && !usesIptables(facts), found: "not found, and not needed" },
  {
    bad: "install-iptables",
    when: ({ variant }) => variant === undefined,
    found: "not found",
    advice: "install iptables 1.8 or newer (Debian: `apt-get install iptables`)",
  },
  {
    bad: "look-as-root",
    when: ({ mayReadRules }) => !mayReadRules,
    found: ({ variant }) => `${variant}, but its rules may not be read`,
    advice: AS_ROOT,
  },
  { bad: "decide-variant", when: isUndecided, found: "both variants have rules of a proxy", advice: decide },
  { found: ({ variant }) => `${variant} variant` },
]);

const ONE_VARIANT = "have all programs use one variant";

const counts = ({ other, variant }: { readonly other?: RuleCount | undefined } & Pick<NodeFacts, "variant">) =>
  `${other?.variant} has ${other?.proxy} rules of a proxy and ${other?.others} of others, alongside ${variant}`;

/** Nothing but the proxy's chains goes, in that variant only. A proxy's own image may use another one than the host. */
function removal(left = ""): string {
  const [ipv4, ipv6] = ["iptables", "ip6tables"].map((tool) => {
    return `\`${tool}-${left}-save | grep -v KUBE- | ${tool}-${left}-restore\``;
  });
  return `if the running proxy does not use ${left}, remove what was left there with ${ipv4} and ${ipv6}`;
}

const otherVariant = lines(
  (facts) => [
    {
      ...facts,
      undecided: isUndecided(facts),
      other: facts.rules.find(({ variant }) => variant !== facts.variant),
      own: facts.rules.find(({ variant }) => variant === facts.variant)?.proxy ?? 0,
    },
  ],
  "rules of the other variant",
  [
    { when: ({ other }) => other === undefined, found: "none" },
    {
      unseen: ({ other }) => other?.readable === false,
      found: ({ other }) => `those of ${other?.variant} may not be read`,
    },
    { when: ({ other }) => other?.proxy === 0 && other.others === 0, found: "none" },
    {
      warning: "one-variant",
      when: ({ other }) => other?.proxy === 0,
      found: counts,
      advice: `the kernel asks both: ${ONE_VARIANT}`,
    },
    {
      // The proxy's own image may choose otherwise than this host.
      warning: "one-variant",
      when: (facts) => facts.own === 0 && usesIptables(facts),
      found: counts,
      advice: ({ other }) => `the kernel asks both, and the proxy uses ${other?.variant}: ${ONE_VARIANT}`,
    },
    { bad: "decide-variant", when: ({ undecided }) => undecided, found: counts, advice: decide },
    {
      bad: "remove-other-variant",
      found: counts,
      advice: ({ other }) => `the kernel asks both: ${ONE_VARIANT}; ${removal(other?.variant)}`,
    },
  ],
);

const policies = lines(
  (facts) => [{ ...facts, own: facts.rules.filter(({ variant }) => variant === facts.variant) }],
  "policies",
  [
    { when: (facts) => facts.variant === undefined && !usesIptables(facts), found: "there is no iptables" },
    { unseen: ({ own }) => own.length === 0 || own.some(({ readable }) => !readable), found: "may not be read" },
    { when: ({ own }) => own.every(({ dropping }) => dropping.length === 0), found: "nothing is dropped by default" },
    {
      warning: "let-through",
      found: ({ own }) => `${own.flatMap(({ dropping }) => dropping).join(", ")} of filter drop what no rule accepts`,
      advice: "allow pod and service traffic in the firewall that sets this policy, or set the policy to ACCEPT",
    },
  ],
);

const LIST_TABLES = `where this machine has no netlink it takes nft (nftables)`;

/** The table of the node's first proxy in nftables mode. */
const FIRST_PROXYS = "kube-proxy";

/** @param table `ip kube-proxy` */
const isNamed = (table: string, names: readonly string[]) => names.includes(table.slice(table.indexOf(" ") + 1));

/** Tables that neither this agent nor a named one has, nor what may run alongside it. */
function tablesOfOthers({ nftTables = [], needs, serviceProxyName, running, instances = [], uplinks }: NodeFacts) {
  const known = instances.flatMap(({ tables }) => tables);
  const own = [
    ...(needs.nftTables ?? []),
    // An agent with a name runs alongside the node's first proxy, which may have them.
    ...(serviceProxyName === undefined ? [] : [FIRST_PROXYS]),
    ...(running?.nftTables ?? []),
    // With `replyVia` it is the node's own.
    ...(uplinks === undefined ? [] : [REPLY_TABLE]),
  ];
  return nftTables.filter((name) => !isNamed(name, own) && !known.includes(name));
}

/** Tables that may serve are not to be removed: what a proxy in nftables mode has there comes back late or never. */
const otherTables = lines(
  (facts) => {
    const others = tablesOfOthers(facts);
    return [{ ...facts, others, left: others.filter((name) => isNamed(name, [FIRST_PROXYS])) }];
  },
  "nft tables of others",
  [
    { unseen: ({ nftTables }) => nftTables === undefined, found: "cannot be listed", or: LIST_TABLES },
    { when: ({ others }) => others.length === 0, found: "none" },
    {
      warning: "check-tables",
      when: ({ left }) => left.length === 0,
      found: ({ others }) => named(others),
      advice: "make sure that these tables do not drop what services need; packets meet them in addition to iptables",
    },
    {
      bad: "delete-left-tables",
      when: ({ running }) => running !== undefined,
      found: ({ left, running }) =>
        `${left.join(", ")}: left by nftables mode; the proxy runs in ${running?.mode} mode`,
      advice: ({ left }) => `run ${left.map((table) => `\`nft delete table ${table}\``).join(" and ")}`,
    },
    {
      unknown: "ask-running-proxy",
      when: ({ proxies, allProcesses }) => proxies.length > 0 || !allProcesses,
      found: ({ left }) => `${left.join(", ")}: whether a proxy in nftables mode serves by them is not known`,
      advice: "run it where the proxy's metrics port answers, or give --mode nftables if that is its mode",
    },
    {
      bad: "start-proxy-first",
      found: ({ left }) => `${left.join(", ")}: left by nftables mode, and no proxy runs`,
      advice: "start the proxy: in nftables mode it serves by these tables, in another one it removes them",
    },
  ],
);

/** Nothing is looked at in modes that have no table. */
const ownTables = lines(
  ({ needs: { nftTables: wanted = [] }, nftTables }) => {
    return wanted.length === 0 ? [] : [{ wanted, there: nftTables?.filter((name) => isNamed(name, wanted)) }];
  },
  "nft tables of the mode",
  [
    { unseen: ({ there }) => there === undefined, found: "cannot be listed", or: LIST_TABLES },
    { when: ({ there = [] }) => there.length > 0, found: ({ there = [] }) => there.join(", ") },
    {
      bad: "make-table",
      found: ({ wanted }) => `${wanted.join(", ")}: not there`,
      advice: "start the agent, or look at its log: it makes the table",
    },
  ],
);

/** Agents with a service proxy name alongside the one that is looked at. */
const instances = lines(
  (facts) => facts.instances ?? [],
  ({ name }) => `instance ${name}`,
  [
    {
      warning: "instance",
      when: ({ running }) => running === false,
      found: ({ name, tables }) => `service proxy ${name} has ${tables.join(", ")}, and does not run`,
      advice: ({ name }) => `start it, or remove its tables: \`fairlead-proxy --cleanup --service-proxy-name=${name}\``,
    },
    { found: ({ name, tables }) => `service proxy ${name} has ${tables.join(", ")}` },
  ],
);

/** What every mode needs. */
const CONNECTION_TRACKING: KernelPart = {
  name: "connection tracking",
  remedy: "load nf_conntrack (modprobe nf_conntrack); without it no service works",
};

const kernelParts = lines(
  ({ kernel, needs }) =>
    [CONNECTION_TRACKING, ...needs.kernelParts].map((part) => ({ ...part, there: kernel[part.name] })),
  ({ name }) => name,
  [
    { unseen: ({ there }) => there === undefined, found: "may not be looked at" },
    { when: ({ there }) => there === true, found: "there" },
    { bad: "kernel-part", found: "this kernel does not have it", advice: ({ remedy }) => remedy },
  ],
);

/** A match, target or set that rules can do without: the agent leaves it out, and serves all else. */
const refused = lines(({ running }) => [running?.refused ?? []].flat(), "what the kernel refuses", [
  { when: (count) => count === 0, found: "nothing" },
  {
    warning: "refused-objects",
    found: (count) => `objects that the running proxy leaves out: ${count}; all others are in place`,
    advice:
      "read in its log, or in the Events of the Node, which they are and what each costs; each full sync tries them again " +
      "(docs/iptables.md#matches-that-a-kernel-lacks)",
  },
]);

interface WantedSysctl {
  readonly key: string;
  readonly wanted: string;
  /** Absent: services do not work without it. */
  readonly minor?: true;
  readonly why: string;
}

const BRIDGE_FILTER = "net/bridge/bridge-nf-call-iptables";

function wantedSysctls({ cidrs, sysctls, needs }: NodeFacts): readonly WantedSysctl[] {
  const has = (family: IPFamily) => cidrs.some(({ cidr }) => familyOf(cidr) === family);
  const every: readonly (WantedSysctl & { readonly is: boolean })[] = [
    {
      is: has("IPv4"),
      key: "net/ipv4/ip_forward",
      wanted: "1",
      why: "packets to pods are not forwarded without it",
    },
    {
      is: has("IPv6"),
      key: "net/ipv6/conf/all/forwarding",
      wanted: "1",
      why: "packets to IPv6 pods are not forwarded without it",
    },
    {
      is: BRIDGE_FILTER in sysctls,
      key: BRIDGE_FILTER,
      wanted: "1",
      minor: true,
      why: "pods on one bridge reach no service of another pod on it without this setting",
    },
  ];
  return [
    ...every.filter(({ is }) => is),
    ...needs.sysctls.map(({ key, value, why }) => ({ key, wanted: value, why })),
  ];
}

const dotted = ({ key }: WantedSysctl) => key.replaceAll("/", ".");
const setIt = (one: WantedSysctl) => `run \`sysctl -w ${dotted(one)}=${one.wanted}\`: ${one.why}`;

const sysctls = lines(
  (facts) =>
    wantedSysctls(facts).map((one) => ({ ...one, isThere: one.key in facts.sysctls, value: facts.sysctls[one.key] })),
  dotted,
  [
    { when: ({ value, wanted }) => value === wanted, found: ({ wanted }) => wanted },
    { unseen: ({ value, isThere }) => value === undefined && isThere, found: "may not be read" },
    {
      warning: "sysctl",
      when: ({ minor }) => minor === true,
      found: ({ value = "not there" }) => value,
      advice: setIt,
    },
    { bad: "sysctl", found: ({ value = "not there" }) => value, advice: setIt },
  ],
);

/** A strict filter asks by which interface the sender would be answered without any mark. */
const uplinks = lines(
  (facts) => facts.uplinks ?? [],
  ({ interface: name }) => `answers by ${name}`,
  [
    { unseen: ({ filter }) => filter === undefined, found: "rp_filter cannot be read; the interface may be missing" },
    { when: ({ filter }) => filter !== 1, found: ({ filter }) => `rp_filter is ${filter}` },
    {
      bad: "rp-filter",
      found: "rp_filter is 1 (strict)",
      advice: ({ interface: name }) =>
        `run \`sysctl -w net.ipv4.conf.${name}.rp_filter=2\`: the kernel drops packets of clients behind it`,
    },
  ],
);

const NAME_DEVICES = "name the devices of pods and of other nodes in nftables.fastPath.devices";

/** Whether the fast path is in use where it is configured. Services work without it, so nothing is bad. */
const fastPath = lines((facts) => (facts.fastPath === undefined ? [] : [facts.fastPath]), "fast path", [
  {
    warning: "fast-path-devices",
    when: ({ auto }) => auto !== undefined,
    found: ({ auto }) => `disabled: ${auto}`,
    advice: NAME_DEVICES,
  },
  {
    warning: "fast-path-kernel",
    when: ({ flowtables }) => flowtables === false,
    found: "disabled: this kernel has no flowtables",
    advice: "boot a kernel that has CONFIG_NF_FLOW_TABLE, or take nftables.fastPath out of the configuration",
  },
  {
    warning: "fast-path-failed",
    when: ({ test }) => test.kind === "failed",
    found: ({ test }) => `disabled: this kernel failed its test: ${test.kind === "failed" ? test.reason : ""}`,
    advice: "boot another kernel, or take nftables.fastPath out of the configuration; services work without it",
  },
  { unseen: ({ devices }) => devices === undefined, found: "the flowtable cannot be read" },
  {
    warning: "fast-path-test",
    when: ({ devices }) => devices === "no flowtable",
    found: ({ test }) =>
      `disabled: ${test.kind === "none" ? "there is no result of its test since this node booted" : "there is no flowtable"}`,
    advice:
      "run `fairlead-proxy --init-only` with the agent's configuration in a privileged init container, with the same " +
      "--state-dir, and start the agent again; its log says at the start why the fast path is disabled",
  },
  {
    warning: "fast-path-devices",
    when: ({ devices }) => devices?.length === 0,
    found: "no device is in the flowtable",
    advice: NAME_DEVICES,
  },
  { found: ({ devices }) => `for ${listed([devices ?? []].flat())}` },
]);

const fastPathDevices = lines(
  (facts) => facts.fastPath?.refused ?? [],
  ({ device }) => `fast path for ${device}`,
  [
    {
      warning: "fast-path-device",
      found: ({ reason }) => `left out: ${reason}`,
      advice: "name other devices in nftables.fastPath.devices; packets that come in by this one meet all rules",
    },
  ],
);

/** Calico's, for example: which of the two a connection is in depends on which rule came first. */
const otherFlowtables = lines((facts) => facts.fastPath?.others ?? [], "flowtables of other programs", [
  {
    warning: "fast-path-other",
    found: ({ table, flowtable, devices }) =>
      `table ${table} has the flowtable ${flowtable} on ${listed(devices)}, too`,
    advice:
      "use one of the two: leave these devices out of nftables.fastPath.devices, or have the other program make no flowtable",
  },
]);

/** Its rules, and nothing else, go from table raw; what it accepts in filter does no harm. */
function withoutRules(address: string, tool: string): string {
  const host = `${address.replaceAll(".", "\\.")}/(32|128)`;
  return `${tool}-save -t raw | grep -vE '${host} .*(NOTRACK|--notrack)' | ${tool}-restore -T raw`;
}

/**
 * The cache of DNS that Kubernetes has for nodes. Packets that are not tracked meet no rule of services, so a program
 * of the node must answer them.
 */
const nodeLocalDNS = lines((facts) => facts.nodeLocalDNS ?? [], "node-local DNS", [
  {
    unseen: ({ devices }) => devices === undefined,
    found: ({ address }) => `has rules for ${address}; the node's addresses cannot be read`,
  },
  {
    bad: "left-dns-rules",
    when: ({ devices }) => devices?.length === 0,
    found: ({ address }) =>
      `has rules for ${address}, which keep DNS there from services, and no device has the address`,
    advice: ({ address, tool }) => `start it, or remove what it left with \`${withoutRules(address, tool)}\``,
  },
  {
    warning: "shared-dns-address",
    when: ({ devices }) => devices !== undefined && devices.length > 1,
    found: ({ address, devices = [] }) => `${address} is on ${devices.join(" and ")}: ipvs takes packets first`,
    advice: "leave DNS's ClusterIP out of its -localip, and name its link-local address in kubelet's clusterDNS",
  },
  { found: ({ address, devices = [] }) => `answers at ${address}, on ${devices.join()}` },
]);

const proxiesText = ({ proxies }: NodeFacts) => proxies.map(({ name, pid }) => `${name} (process ${pid})`).join(", ");

const proxies = line("proxies on this node", [
  {
    bad: "one-proxy",
    when: ({ proxies }) => proxies.length > 1,
    found: proxiesText,
    advice:
      "leave one of them: they write the same chains and undo each other's work (docs/migrate-from-kube-proxy.md)",
  },
  {
    when: ({ proxies, running }) => proxies.length === 0 && running !== undefined,
    found: ({ running }) => `one answers, in ${running?.mode} mode`,
  },
  {
    unknown: "look-in-host-processes",
    when: ({ allProcesses }) => !allProcesses,
    found: (facts) => `${proxiesText(facts) || "none"} is seen`,
    advice: "run as root and in the host's process namespace: other processes cannot be seen from here",
  },
  { when: ({ proxies }) => proxies.length === 1, found: proxiesText },
  {
    warning: "start-agent",
    found: "none runs",
    advice: "start the agent; existing rules still serve but follow no change",
  },
]);

export const nodeRows = [
  iptables,
  otherVariant,
  policies,
  otherTables,
  ownTables,
  instances,
  kernelParts,
  refused,
  sysctls,
  uplinks,
  fastPath,
  fastPathDevices,
  otherFlowtables,
  nodeLocalDNS,
  proxies,
] as const;
