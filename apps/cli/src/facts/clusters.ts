/** Commands about a cluster as a whole, and about this program: what they say of themselves, and their options. */

import { type CommandFacts, flag, list, text } from "../frame/command.ts";
import { outputOption } from "../frame/output.ts";
import { KUBE_PROXY_DAEMON_SET } from "../migrate/state.ts";
import {
  accessOptions,
  agentOptions,
  clusterOptions,
  healthPortOption,
  kernelOptions,
  metricsPortOption,
  nodeAddressOption,
  sourceOptions,
  sysdumpOption,
  toModeOption,
} from "./options.ts";

export const sysdumpOptions = {
  ...clusterOptions,
  on: text("NODE", "Only that node."),
  live: flag("Only this host; its kernel needs root."),
  "output-file": text("FILE", "Where to write the archive.", { defaultText: "fairlead-sysdump-TIME.tar.gz" }),
  "node-timeout": text("SECONDS", "How long a node may take to answer.", { defaultText: "5" }),
  "metrics-port": metricsPortOption,
  "health-port": healthPortOption,
} as const;

export const sysdumpFacts = {
  name: "sysdump",
  summary: "Write the state of all nodes into one archive, for a problem report",
  description:
    "Collects the agents' logs, configuration, metrics and owners; the kernels' rules, sets, virtual servers, routes and connection\n" +
    "counts; what verify finds; and the Services, EndpointSlices, Nodes and networks' objects, with only the fields that Fairlead\n" +
    "reads: no Secrets, no other annotations, no environment, no arguments. README.md in the archive lists its contents and what is\n" +
    "missing. explain, trace, verify and console read the archive with --sysdump. The archive has at most 50 MB.",
  arguments: [],
  options: sysdumpOptions,
  examples: [
    { line: "fairlead sysdump --context production", what: "Collect from all nodes of a cluster" },
    { line: "fairlead sysdump --on node-a", what: "Collect from one node" },
    {
      line: "fairlead sysdump --live --kubeconfig /var/lib/kube-proxy/kubeconfig.conf",
      what: "Collect from this host, as root",
    },
  ],
  finding: "something could not be read; README.md in the archive says what and why",
} as const satisfies CommandFacts;

export const connectivityOptions = {
  ...accessOptions,
  node: list("NAME", "A node to test; give two. Default: the first two that are ready."),
  namespace: text("NAME", "The namespace to create for the test.", {
    short: "n",
    defaultText: "fairlead-connectivity",
  }),
  image: text(
    "IMAGE",
    "The image of servers and clients, which must contain node. Default: the image of the agents, else of this version.",
  ),
  outside: flag("Also send requests from this machine, which must reach the nodes' addresses."),
  "external-address": nodeAddressOption(
    "An address that the network routes to the first node, for external IPs and load balancers; each is used once.",
  ),
  "exclude-cluster-cidr": agentOptions["exclude-cluster-cidr"],
  "service-proxy-name": text(
    "NAME",
    "Test the proxies of this name: the services get its label. Default: the nodes' first proxies.",
  ),
  "no-update": flag("Skip the rolling update, which takes most of the time."),
  keep: flag("Keep the namespace, servers and services for the next run."),
  "cleanup-only": flag("Only remove what an earlier run has left."),
  patience: text("SECONDS", "How long the rules may take to be in place.", { defaultText: "20" }),
  output: outputOption,
} as const;

export const connectivityFacts = {
  name: "connectivity",
  summary: "Test services on two nodes with real packets, whichever proxy serves them",
  description:
    "Creates a namespace with servers, services and clients on two nodes, and requests every kind of frontend (ClusterIP, node port,\n" +
    "external IP, load balancer, DNS) from pods, from nodes and, with --outside, from this machine, in each IP family. It checks\n" +
    "endpoints, client addresses, traffic policies, affinity, hairpin, refusals, and a rolling update under requests. It does not\n" +
    "need Fairlead or its agent, and removes everything that it created, also when it is interrupted.",
  arguments: [],
  options: connectivityOptions,
  examples: [
    { line: "fairlead connectivity", what: "On the first two nodes that are ready" },
    { line: "fairlead connectivity --node node-a --node node-b --outside", what: "From this machine as well" },
    { line: "fairlead connectivity --cleanup-only", what: "Remove what a killed run has left" },
  ],
  finding: "a packet does not end where it should",
} as const satisfies CommandFacts;

export const consoleOptions = {
  ...clusterOptions,
  live: flag("With -f: also compare the plan with the kernel and the agent of this node; needs root."),
  sysdump: sysdumpOption,
  port: text("PORT", "The port of 127.0.0.1 to listen on.", { defaultText: "any that is free" }),
  "no-open": flag("Print the address only; open no browser."),
  "metrics-port": metricsPortOption,
} as const;

export const consoleFacts = {
  name: "console",
  summary: "Open the cluster's services in the browser: owners, reasons, and whether kernels agree",
  description:
    "Serves a page on 127.0.0.1 until interrupted, and opens it. The page shows what your kubeconfig may read, follows changes, and\n" +
    "changes nothing. The address works once, in one browser. It reads the nodes that the page shows by programs in their agents'\n" +
    "pods, as --on does. With -f it shows manifests and needs no cluster.",
  arguments: [],
  options: consoleOptions,
  examples: [
    { line: "fairlead console --cluster-cidr 10.144.0.0/16", what: "The cluster of your kubeconfig" },
    { line: "fairlead console -f ./services/ --node node-a", what: "What these manifests would mean on node-a" },
    { line: "fairlead console --port 8080 --no-open", what: "Behind ssh -L 8080:127.0.0.1:8080" },
  ],
} as const satisfies CommandFacts;

const { mode, config, "cluster-cidr": clusterCIDR, "agent-flag": agentFlag, "node-address": address } = agentOptions;

/** What a report on another mode can be made from in the place of a cluster, and whose kernel it looks at. */
export const reportOptions = {
  file: sourceOptions.file,
  node: sourceOptions.node,
  mode,
  config,
  "cluster-cidr": clusterCIDR,
  "agent-flag": agentFlag,
  "node-address": address,
  ...kernelOptions,
} as const;

export const migrateOptions = {
  ...accessOptions,
  "kube-proxy": text("[NAMESPACE/]DAEMONSET", "kube-proxy's DaemonSet.", { defaultText: KUBE_PROXY_DAEMON_SET }),
  image: text("IMAGE", "Fairlead's image. Default: the one of this version."),
  "exclude-cluster-cidr": list("CIDR", "CIDRs of other pod networks that Fairlead does not serve."),
  "api-server": text("URL", "The API server's own address. Default: the one of kube-proxy's kubeconfig."),
  "output-dir": text("FOLDER", "Write the manifests to this folder, a file for each object.", { completes: "path" }),
  "to-mode": toModeOption(
    "Report what changes for clients in that mode; with --apply give nodes Fairlead in that mode.",
  ),
  apply: flag("Migrate, node by node; continues where an earlier run ended."),
  revert: flag("Go back to kube-proxy, node by node, and remove Fairlead."),
  "skip-verify": flag("Change nodes without verifying their kernels."),
  hold: text("SECONDS", "How long a node must stay healthy before the next one is changed.", { defaultText: "10" }),
  timeout: text("SECONDS", "How long a node may take to be served by the other proxy.", { defaultText: "180" }),
  ...reportOptions,
  output: outputOption,
} as const;

export const migrateFacts = {
  name: "migrate",
  summary: "Replace kube-proxy with Fairlead node by node, or go back",
  description:
    "Reads kube-proxy's DaemonSet and configuration and the cluster's pod networks, and reports what fits, what differs and what it\n" +
    "would do. With --apply one node after the other gets the other proxy, by a label on nodes that places both DaemonSets. Each node\n" +
    "is verified before and after its change, and must stay healthy before the next one changes. Any failure stops the migration and\n" +
    "puts that node back. All state is in the cluster: run the command again to continue.",
  arguments: [],
  options: migrateOptions,
  examples: [
    { line: "fairlead migrate", what: "Report what fits, what differs and what it would do; change nothing" },
    { line: "fairlead migrate --output-dir fairlead/", what: "Write the manifests, to apply them by hand" },
    { line: "fairlead migrate --apply", what: "Migrate, or continue a migration" },
    { line: "fairlead migrate --revert", what: "Go back to kube-proxy, at any stage" },
  ],
  finding: "the cluster does not fit, or the migration stopped before its end",
} as const satisfies CommandFacts;

export const versionOptions = { output: outputOption } as const;

export const versionFacts = {
  name: "version",
  summary: "Print the version of this program",
  description: "Does not contact a cluster: `fairlead status` shows the version of the agent on each node.",
  arguments: [],
  options: versionOptions,
  examples: [{ line: "fairlead version -o json", what: "For programs" }],
} as const satisfies CommandFacts;

export const SHELLS = ["bash", "zsh", "fish"] as const;

export const completionFacts = {
  name: "completion",
  summary: "Print a completion script for a shell",
  description: "The script is self-contained. It completes commands, options, their values and files.",
  arguments: [{ name: "shell", help: "bash, zsh or fish", choices: SHELLS }],
  options: {},
  examples: [
    { line: "source <(fairlead completion bash)", what: "For this bash, or in ~/.bashrc" },
    { line: "source <(fairlead completion zsh)", what: "For this zsh, after compinit" },
    { line: "fairlead completion fish > ~/.config/fish/completions/fairlead.fish", what: "For fish" },
  ],
} as const satisfies CommandFacts;
