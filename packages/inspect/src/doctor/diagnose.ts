import { containsCIDR, familyOf, type IPFamily, overlap } from "@fairlead/base";
import { type Problem, serviceOfProblem } from "@fairlead/core";
import { advice, asRoot } from "./advice.ts";
import { bad, type Check, good, unknown, warning } from "./diagnosis.ts";
import type { Diagnosis, KernelPart, NodeFacts } from "./facts.ts";
import { fastPath } from "./fast-path.ts";
import { isolated, networks, otherNetworks } from "./networks.ts";
import { overlaps } from "./overlaps.ts";
import { otherInstances, ownTables, ruleChecks } from "./rules.ts";

/** Everything that was looked at, in the order in which it matters. */
export function diagnose(facts: NodeFacts): readonly Diagnosis[] {
  return [
    ...ruleChecks.map((check) => check(facts)),
    ...ownTables(facts),
    ...otherInstances(facts),
    ...kernel(facts),
    ...sysctls(facts),
    ...uplinks(facts),
    ...fastPath(facts),
    secondProxy(facts),
    ...podRoutes(facts),
    ...overlaps(facts),
    ...otherNetworks(facts),
    ...excludedClients(facts),
    ...networks(facts),
    ...isolated(facts),
    ...services(facts),
    api(facts),
  ];
}

/** What every mode needs. */
const CONNECTION_TRACKING: KernelPart = {
  name: "connection tracking",
  remedy: "load nf_conntrack (modprobe nf_conntrack); without it no service works",
};

function kernel({ kernel: parts, needs }: NodeFacts): readonly Diagnosis[] {
  return [CONNECTION_TRACKING, ...needs.kernelParts].map(({ name, remedy }) => {
    const there = parts[name];
    if (there === undefined) return unknown(name, "may not be looked at", asRoot());
    return there ? good(name, "there") : bad(name, "this kernel does not have it", advice("kernel-part", remedy));
  });
}

interface WantedSysctl {
  readonly key: string;
  readonly wanted: string;
  readonly when: (facts: NodeFacts) => boolean;
  readonly state: "warning" | "bad";
  readonly why: string;
}

const hasFamily = (facts: NodeFacts, family: IPFamily) => facts.cidrs.some(({ cidr }) => familyOf(cidr) === family);

const SYSCTLS: readonly WantedSysctl[] = [
  {
    key: "net/ipv4/ip_forward",
    wanted: "1",
    when: (facts) => hasFamily(facts, "IPv4"),
    state: "bad",
    why: "packets to pods are not forwarded without it",
  },
  {
    key: "net/ipv6/conf/all/forwarding",
    wanted: "1",
    when: (facts) => hasFamily(facts, "IPv6"),
    state: "bad",
    why: "packets to IPv6 pods are not forwarded without it",
  },
  {
    key: "net/bridge/bridge-nf-call-iptables",
    wanted: "1",
    when: ({ sysctls: all }) => "net/bridge/bridge-nf-call-iptables" in all,
    state: "warning",
    why: "pods on one bridge reach no service of another pod on it without this setting",
  },
];

function sysctls(facts: NodeFacts): readonly Diagnosis[] {
  const ofMode = facts.needs.sysctls.map(({ key, value, why }) => ({ key, wanted: value, state: "bad", why }) as const);
  return [...SYSCTLS.filter(({ when }) => when(facts)), ...ofMode].map(({ key, wanted, state, why }) => {
    const check = key.replaceAll("/", ".");
    const value = facts.sysctls[key];
    if (value === wanted) return good(check, value);
    if (value === undefined && key in facts.sysctls) return unknown(check, "may not be read", asRoot());
    const complaint = state === "bad" ? bad : warning;
    return complaint(check, value ?? "not there", advice("sysctl", `run \`sysctl -w ${check}=${wanted}\`: ${why}`));
  });
}

/** A strict filter asks by which interface the sender would be answered without any mark. */
function uplinks({ uplinks: all = [] }: NodeFacts): readonly Diagnosis[] {
  return all.map(({ interface: name, filter }) => {
    const check = `answers by ${name}`;
    if (filter === undefined) {
      return unknown(check, "rp_filter cannot be read; the interface may be missing", asRoot());
    }
    if (filter !== 1) return good(check, `rp_filter is ${filter}`);
    const text = `run \`sysctl -w net.ipv4.conf.${name}.rp_filter=2\`: the kernel drops packets of clients behind it`;
    return bad(check, "rp_filter is 1 (strict)", advice("rp-filter", text));
  });
}

function excludedClients({ tellsClients }: NodeFacts): readonly Diagnosis[] {
  const check = "excluded clients";
  if (tellsClients === undefined) return [];
  if (tellsClients) return [good(check, "other networks' ClusterIPs are served to all but their own pods")];
  const found = "this mode cannot distinguish clients: ClusterIPs of other networks are left to them for all clients";
  return [
    warning(
      check,
      found,
      advice(
        "excluded-clients",
        "use iptables or nftables mode, or --excluded-frontends=cluster-ip, which says the same",
      ),
    ),
  ];
}

/** Notices that a line names; the others are counted. */
const MOST_NOTICES = 5;

/** A line for what loses traffic or is open, and one for what only has no effect. */
function services({ notices }: NodeFacts): readonly Diagnosis[] {
  if (notices === undefined) return [];
  const check = "what Services ask for";
  const [harmful, notes] = [true, false].map((does) => notices.filter(({ effect }) => (effect !== "note") === does));
  const lines = [harmful, notes].flatMap((found = []) => (found.length === 0 ? [] : [noticesLine(check, found)]));
  return lines.length === 0 ? [good(check, "nothing does other than it seems to")] : lines;
}

function noticesLine(check: string, found: readonly Problem[]): Diagnosis {
  const [first] = found;
  const name = first && serviceOfProblem(first);
  const text = found.slice(0, MOST_NOTICES).map((one) => {
    const { kind, namespace, name: object, field, reason } = one;
    return `${serviceOfProblem(one) ?? [kind, namespace, object].filter(Boolean).join("/")}: ${field} ${reason}`;
  });
  const more = found.length > MOST_NOTICES ? [`and ${found.length - MOST_NOTICES} more`] : [];
  const how = `look at each with \`fairlead explain ${name ?? "NAMESPACE/NAME"}\` (docs/notices.md)`;
  const advised = advice("explain-services", how);
  const all = [...text, ...more].join("; ");
  // A note asks for nothing.
  return first?.effect === "note" ? good(check, all) : warning(check, all, advised);
}

const ALL_PROCESSES = advice(
  "look-in-host-processes",
  "run as root and in the host's process namespace: other processes cannot be seen from here",
);

const secondProxy: Check = ({ proxies, allProcesses, running }) => {
  const check = "proxies on this node";
  const text = proxies.map(({ name, pid }) => `${name} (process ${pid})`).join(", ");
  if (proxies.length > 1)
    return bad(
      check,
      text,
      advice(
        "one-proxy",
        "leave one of them: they write the same chains and undo each other's work (docs/migrate-from-kube-proxy.md)",
      ),
    );
  if (proxies.length === 0 && running !== undefined) return good(check, `one answers, in ${running.mode} mode`);
  if (!allProcesses) return unknown(check, text === "" ? "none is seen" : `${text} is seen`, ALL_PROCESSES);
  if (proxies.length === 1) return good(check, text);
  return warning(
    check,
    "none runs",
    advice("start-agent", "start the agent; existing rules still serve but follow no change"),
  );
};

const INSTALL_IP = advice("install-ip", "install ip (iproute2)");

function podRoutes({ cidrs, routes }: NodeFacts): readonly Diagnosis[] {
  const pods = cidrs.filter(({ use }) => use === "pods");
  if (pods.length === 0)
    return [unknown("route to pods", "their CIDRs are not known", advice("give-cidrs", "give --cluster-cidr"))];
  return pods.map(({ cidr }) => {
    const check = `route to pods in ${cidr}`;
    if (routes === undefined) return unknown(check, "routes cannot be listed", INSTALL_IP);
    const covering = routes.filter((route) => overlap(route, cidr));
    if (covering.some((route) => containsCIDR(route, cidr))) return good(check, covering.join(", "));
    if (covering.length > 0) return good(check, `${covering.length} routes to parts of it`);
    return warning(
      check,
      "none but a default route",
      advice(
        "pod-network",
        "look whether the pod network runs on this node: endpoints elsewhere are not reached without it",
      ),
    );
  });
}

const api: Check = ({ api: facts }) => {
  const check = "API server";
  if (facts.kind === "unasked")
    return unknown(
      check,
      "not asked: no cluster is known",
      advice("give-kubeconfig", "give the agent's kubeconfig with --kubeconfig"),
    );
  if (facts.kind === "unreachable")
    return bad(
      check,
      facts.reason,
      advice("reach-api-server", "look at the kubeconfig's server and credentials, and at the way there"),
    );
  if (facts.denied.length === 0) return good(check, `${facts.server} allows all that the agent needs`);
  if (facts.ofOther === true)
    return unknown(
      check,
      `${facts.server} does not allow your user what the agent needs: ${facts.denied.join(", ")}`,
      advice(
        "ask-as-agent",
        "ask on the node, with the agent's kubeconfig (--kubeconfig): the agent may have these rights",
      ),
    );
  return bad(
    check,
    `${facts.server} does not allow: ${facts.denied.join(", ")}`,
    advice("bind-role", "bind the ClusterRole system:node-proxier to the agent's account"),
  );
};
