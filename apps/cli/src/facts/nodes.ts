/** Commands about running nodes: what they say of themselves, and their options. */

import { parseAddress, parseCIDR } from "@fairlead/base";
import { type CommandFacts, flag, list, type OptionSpec, portOf, text } from "../frame/command.ts";
import { UsageError } from "../frame/errors.ts";
import { listOption, outputOption } from "../frame/output.ts";
import {
  accessOptions,
  agentOptions,
  anyModeOption,
  clusterOptions,
  healthPortOption,
  kernelOptions,
  metricsPortOption,
  namespaceOption,
} from "./options.ts";

export const ownershipOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  watch: flag("Print every change that follows, until interrupted.", { short: "w" }),
  live: flag("Ask the running agent of this node instead of planning."),
  on: text("NODE", "Ask the running agent of that node, through the API server (pods/portforward)."),
  accept: text(
    "CIDR",
    "Let held CIDRs within this CIDR take effect, on all nodes. First shows which services get another owner.",
  ),
  forget: text("CIDR", "Forget what agents keep of this CIDR and no object defines anymore, on all nodes."),
  why: text("TEXT", "With --accept: the reason, which is written to the ConfigMap."),
  yes: flag("With --accept, --forget: write the ConfigMap fairlead-networks. Without it, only show what would change."),
  output: listOption,
} as const;

export const ownershipFacts = {
  name: "ownership",
  summary: "List which network serves each service, and why",
  description:
    "Plans the owners from the objects and the excluded CIDRs or, with --live or --on, asks a running agent, which also remembers the\n" +
    "owners of services without endpoints. Below the table are ranges outside of the given CIDRs that look like pods of other\n" +
    "networks.",
  arguments: [],
  options: ownershipOptions,
  examples: [
    {
      line: "fairlead ownership --cluster-cidr 10.144.0.0/16 --exclude-cluster-cidr 10.244.0.0/16",
      what: "What would this exclusion do?",
    },
    { line: "fairlead ownership --on node-a -o json", what: "Show what the agent of node-a has decided" },
    {
      line: "fairlead ownership --config config.conf --accept 10.144.8.0/22 --yes",
      what: "Let a held CIDR take effect, on all nodes",
    },
    { line: "fairlead ownership --watch --exclude-cluster-cidr 10.244.0.0/16", what: "Follow changes" },
  ],
} as const satisfies CommandFacts;

/** Of TCP and SCTP, as conntrack calls them. Written out, so that help loads no kernel; a test compares them. */
export const CONNTRACK_STATES: ReadonlySet<string> = new Set([
  ...["none", "syn_sent", "syn_recv", "established", "fin_wait", "close_wait", "last_ack", "time_wait", "close"],
  ...["syn_sent2", "closed", "cookie_wait", "cookie_echoed", "shutdown_sent", "shutdown_recd", "shutdown_ack_sent"],
  ...["heartbeat_sent", "heartbeat_acked"],
]);

/** What else may be asked for in the place of a state. */
export const CONDITIONS = ["open", "offloaded", "unreplied", "gone"] as const;

/** Options that choose connections. Several values of one option are alternatives. */
export const filterOptions = {
  from: rangesOption("from", "Only connections of these clients."),
  to: rangesOption("to", "Only connections to this address, of a service or of an endpoint."),
  port: { ...list("PORT", "Only connections to this port, of a service or of an endpoint."), read: portsOf },
  state: {
    ...list(
      "STATE",
      "Only connections in this state of conntrack, such as established, or that are open (neither time_wait nor " +
        "close), offloaded (on the fast path), unreplied, or gone (their endpoint is).",
    ),
    read: statesOf,
  },
} as const;

function rangesOption(name: string, help: string): OptionSpec<readonly string[]> {
  const rangeOf = (text: string) => {
    const range = parseAddress(text) ?? parseCIDR(text);
    if (range !== undefined) return range.text;
    throw new UsageError(`--${name}=${text}: must be an address or a CIDR, such as 10.144.1.5 or 10.144.0.0/16`);
  };
  return { ...list("ADDRESS|CIDR", help), read: (texts) => eachOf(texts).map(rangeOf) };
}

function portsOf(texts: readonly string[]): readonly number[] {
  return eachOf(texts).map((text) => portOf("port", text));
}

function statesOf(texts: readonly string[]): readonly string[] {
  const known: ReadonlySet<string> = new Set([...CONDITIONS, ...CONNTRACK_STATES]);
  return eachOf(texts).map((text) => {
    const name = text.toLowerCase().replaceAll("-", "_");
    if (known.has(name)) return name;
    throw new UsageError(`--state=${text}: must be one of ${[...known].join(", ")}`);
  });
}

function eachOf(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => text.split(",")).map((text) => text.trim());
}

export const connectionOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  on: kernelOptions.on,
  service: text("SERVICE", "Only connections of it: [NAMESPACE/]SERVICE[:PORT], or an address of it."),
  ...filterOptions,
  output: listOption,
} as const;

export const flowsOptions = {
  ...connectionOptions,
  follow: flag("Also print each connection that begins or ends, until interrupted."),
  for: text("SECONDS", "End --follow after this time. Default: never."),
  limit: text("NUMBER", "End after this number of connections; with --follow, of lines. Default: never."),
} as const;

export const flowsFacts = {
  name: "flows",
  summary: "Show the connections of services through a node, with the endpoint of each",
  description:
    "Reads connection tracking of this host (root) or, with --on, of another node. For each connection it shows the client, the\n" +
    "frontend, the endpoint and whether it still exists, the owner of the service, the state, and bytes if the kernel counts them\n" +
    "(net.netfilter.nf_conntrack_acct). Connections without a service are not shown.",
  arguments: [],
  options: flowsOptions,
  examples: [
    { line: "fairlead flows --on node-a --service shop/web", what: "Show the connections of one service on node-a" },
    {
      line: "fairlead flows -n shop --from 10.144.1.0/24 --state open",
      what: "Show the open connections of these clients with the services of one namespace",
    },
    {
      line: "fairlead flows --state unreplied -o name",
      what: "Print the names of services with connections that nothing answers",
    },
    {
      line: "fairlead flows --follow --for 60",
      what: "Show connections that begin or end on this host, for a minute",
    },
  ],
  finding: "a connection hangs on an endpoint that is gone",
} as const satisfies CommandFacts;

export const topFacts = {
  name: "top",
  summary: "Show which services and endpoints have the most connections through a node",
  description:
    "Reads connection tracking as `fairlead flows` does, and adds up by service port and endpoint: connections, those without an\n" +
    "answer, those to endpoints that are gone, and bytes if the kernel counts them.",
  arguments: [],
  options: connectionOptions,
  examples: [
    { line: "fairlead top --on node-a", what: "Show all services of node-a" },
    {
      line: `fairlead top -o jsonpath='{range [*]}{.service}={.connections}{"\\n"}{end}'`,
      what: "Print the number of connections of each service",
    },
    { line: "fairlead top --service shop/web -o json", what: "Show one service on this host, for programs" },
  ],
  finding: "connections hang on endpoints that are gone",
} as const satisfies CommandFacts;

export const statusOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  on: kernelOptions.on,
  live: flag("Ask the agent of this host only; needs no cluster."),
  verify: flag("Also compare each node's kernel with what it should have."),
  "metrics-port": metricsPortOption,
  "health-port": healthPortOption,
  watch: flag("Ask again every 5 s and print each row that changed, until interrupted.", { short: "w" }),
  output: listOption,
} as const;

export const statusFacts = {
  name: "status",
  summary: "Show the agent of every node: mode, version, health, last sync, owners, differences",
  description:
    "Asks the agents, Fairlead's or kube-proxy's, through the API server (pods/portforward). With --verify programs in the agent's\n" +
    "pod compare the kernel of each node with what it should have.",
  arguments: [],
  options: statusOptions,
  examples: [
    { line: "fairlead status", what: "Show all nodes of the cluster" },
    {
      line: "fairlead status --verify --context production -o wide",
      what: "Show the differences of each kernel as well",
    },
  ],
  finding: "a node does not answer, is not healthy, or its kernel differs",
} as const satisfies CommandFacts;

export const doctorOptions = {
  mode: anyModeOption,
  config: agentOptions.config,
  "service-proxy-name": agentOptions["service-proxy-name"],
  "cluster-cidr": agentOptions["cluster-cidr"],
  "exclude-cluster-cidr": agentOptions["exclude-cluster-cidr"],
  "agent-flag": agentOptions["agent-flag"],
  "metrics-port": agentOptions["metrics-port"],
  "service-cidr": list("CIDR", "Service CIDRs of the cluster."),
  ...accessOptions,
  on: text("NODE", "Check this node, by programs that are started in its agent's pod."),
  output: outputOption,
} as const;

export const doctorFacts = {
  name: "doctor",
  summary: "Check what keeps a service proxy on this host from working, and advise what to do",
  description:
    "Checks the kernel's features and settings, the iptables variant and rules of other programs, other proxies, the routes to pods,\n" +
    "overlapping networks, and what the API server allows. What it cannot check is unknown (?). It changes nothing. Run it as root on\n" +
    "the node, or with --on NODE from anywhere; then what the pod on that node may not see is unknown.",
  arguments: [],
  options: doctorOptions,
  examples: [
    {
      line: "fairlead doctor --service-cidr 10.96.0.0/12",
      what: "Check this host, with the configuration that its proxy reports",
    },
    {
      line: "fairlead doctor --config /var/lib/kube-proxy/config.conf --kubeconfig /var/lib/kube-proxy/kubeconfig.conf",
      what: "Check with the proxy's own configuration and rights",
    },
  ],
  finding: "a check is bad; unknown ones do not count",
} as const satisfies CommandFacts;
