/** Commands about plans and rules: what they say of themselves, and their options. */

import { type CommandFacts, choice, flag, list, text } from "../frame/command.ts";
import { outputOption } from "../frame/output.ts";
import {
  accessOptions,
  agentOptions,
  clusterOptions,
  kernelOptions,
  namespaceOption,
  nodeAddressOption,
  sourceOptions,
  sysdumpOption,
  toModeOption,
} from "./options.ts";

export const planOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  output: choice(
    ["rules", "json", "yaml", "summary"],
    "rules",
    "Restore text, the forwarding plan as data, or a table.",
    {
      short: "o",
    },
  ),
  family: choice(["ipv4", "ipv6"], "ipv4", "The IP family of the restore text; the other outputs have both."),
  "without-counters": flag("Omit the nfacct matches, for kernels without nfacct."),
} as const;

export const planFacts = {
  name: "plan",
  summary: "Print what the agent would program for these manifests or this cluster",
  description:
    "Needs neither root nor a kernel: it prints what the node's agent writes to an empty kernel. In iptables mode it is for\n" +
    "iptables-restore --noflush (with --family ipv6 for ip6tables-restore). In ipvs mode it has a part for each program, in the\n" +
    "agent's order.",
  arguments: [],
  options: planOptions,
  examples: [
    {
      line: "fairlead plan -f ./services/ --node node-a --cluster-cidr 10.144.0.0/16",
      what: "Print the rules for a folder of manifests",
    },
    {
      line: "kubectl get services,endpointslices,nodes -A -o json | fairlead plan -f - --node node-a -o summary",
      what: "Show which service is served where, for a cluster as it is now",
    },
    {
      line: "fairlead plan -f web.yaml --node node-a --mode ipvs",
      what: "Print the input of ipset, ip, ipvsadm and iptables-restore in ipvs mode",
    },
  ],
} as const satisfies CommandFacts;

export const explainOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  ...kernelOptions,
  sysdump: sysdumpOption,
  "to-mode": toModeOption("Explain the service as it will be in that mode, and what changes for its clients."),
  output: outputOption,
} as const;

export const explainFacts = {
  name: "explain",
  summary: "Explain a service on a node: its owner, where and by which endpoints it is served, and why",
  description:
    "Shows what decided the owner, what pods, the node and other clients get at each frontend, and for each endpoint why it is used\n" +
    "or not. With --live, --on or --rules it also traces a packet of every kind through all rules of that kernel, including those of\n" +
    "other programs.",
  arguments: [
    {
      name: "target",
      help: "[NAMESPACE/]SERVICE[:PORT] or svc/SERVICE, ADDRESS[:PORT[/PROTOCOL]] (of a pod too), or :NODEPORT; gateway for the next one",
    },
    {
      name: "gateway",
      help: "[NAMESPACE/]NAME of a Gateway of the cluster: its routes, and what it waits for",
      optional: true,
    },
  ],
  options: explainOptions,
  examples: [
    { line: "fairlead explain kube-system/kube-dns:dns", what: "Explain one port of a service of the cluster" },
    {
      line: "fairlead explain 10.96.0.10:53/udp --on node-a",
      what: "Which service has this address, and does node-a's kernel agree?",
    },
    {
      line: "fairlead explain web -f ./services/ --node node-a --rules saved.txt",
      what: "Compare manifests with the output of iptables-save",
    },
    {
      line: "fairlead explain shop/web --sysdump dump.tar.gz --on node-a",
      what: "Explain a service as it was when a sysdump was written",
    },
    {
      line: "fairlead explain gateway shop/db",
      what: "Which routes have a Gateway's listeners, and what is wrong with them",
    },
  ],
  finding: "the kernel differs from the plan",
} as const satisfies CommandFacts;

export const diffOptions = {
  ...accessOptions,
  node: sourceOptions.node,
  namespace: text(
    "NAME",
    "Only services of that namespace; where A and B are manifests or the cluster. Default: all.",
    {
      short: "n",
    },
  ),
  ...agentOptions,
  "to-mode": toModeOption("The mode that B is planned in. Default: the one of A."),
  on: text(
    "NODE",
    "The node that the word node means: its kernel, read by programs in its agent's pod. Default: this one.",
  ),
  family: choice(["ipv4", "ipv6"], "ipv4", "The IP family that is compared."),
  "traffic-only": flag("Compare only traffic, not rules."),
  output: outputOption,
} as const;

export const diffFacts = {
  name: "diff",
  summary: "Compare two rule sets, plans, clusters or nodes: which traffic changes, then which rules",
  description:
    "A and B are each one of: a file with the output of iptables-save or fairlead plan; manifests to plan, as a file or a folder; the\n" +
    "word cluster, for the plan of the cluster's objects; the word node, for the kernel of this node or that of --on. A packet is\n" +
    "traced through both for every address, port and class of senders that one of them mentions. If one side is a plan, only chains\n" +
    "whose names begin with KUBE- and its own nftables tables are compared.",
  arguments: [
    { name: "A", help: "What to compare with.", completes: "path" },
    { name: "B", help: "What to compare.", completes: "path" },
  ],
  options: diffOptions,
  examples: [
    { line: "fairlead diff before.txt after.txt", what: "Compare two outputs of iptables-save" },
    {
      line: "fairlead diff cluster node --on node-a",
      what: "Does node-a match the cluster's objects?",
    },
    {
      line: "fairlead diff ./services/ ./services-next/ --node node-a --cluster-cidr 10.144.0.0/16 --traffic-only",
      what: "What would this change of manifests mean for packets?",
    },
    {
      line: "fairlead diff cluster cluster --to-mode nftables --traffic-only --cluster-cidr 10.144.0.0/16",
      what: "What would another mode mean for packets?",
    },
  ],
  finding: "traffic or rules differ",
} as const satisfies CommandFacts;

export const traceOptions = {
  from: text("ADDRESS|pod|node|outside", "The sender. A word stands for an address of that kind. Default: node."),
  to: text(
    "ADDRESS:PORT/PROTO|SERVICE",
    "The destination: 10.96.0.10:53/udp, [fd00::1]:80 (TCP by default), shop/web:http, svc/web, :30080.",
  ),
  ...kernelOptions,
  sysdump: sysdumpOption,
  ...clusterOptions,
  namespace: namespaceOption,
  "in-interface": text("NAME", "The interface that the packet comes in by. Default: by the routes, else eth0."),
  sport: text("PORT", "The source port; with it connection tracking is asked for this connection."),
  "cluster-cidr": list("CIDR", "Pod CIDRs: they define what --from pod and --from outside mean."),
  "node-address": nodeAddressOption("An address of the node. Default with --live: the host's own."),
  route: list("CIDR=INTERFACE", "By which interface packets leave. Default with --live: the host's routes."),
  output: outputOption,
} as const;

export const traceFacts = {
  name: "trace",
  summary: "Show the path of a packet through hooks, chains and rules, and where it may end",
  description:
    "Reads iptables rules and nftables tables of any program, from a file or from this host's kernel (root). If rules choose at\n" +
    "random, it shows all ends with their probability. It names a rule that it cannot decide, and follows it both ways. It also reads\n" +
    "the kernel's sets, virtual servers, affinity lists and addresses, and with --sport the tracked connection. The kernel decides\n" +
    "each routing step, with mark and interface; the path ends where it has no route, or where policy routing, forwarding or\n" +
    "rp_filter stop the packet.",
  arguments: [],
  options: traceOptions,
  examples: [
    {
      line: "fairlead trace --from pod --to 10.96.0.10:53/udp --cluster-cidr 10.144.0.0/16",
      what: "Trace a packet from a pod of this node to DNS",
    },
    {
      line: "iptables-save | fairlead trace --rules - --from 192.0.2.9 --to 10.201.0.10:30080 --node-address 10.201.0.10",
      what: "Trace a packet to a node port through the rules of any host",
    },
  ],
  finding: "the packet is dropped or rejected, or its path is unknown",
} as const satisfies CommandFacts;

export const verifyOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  ...kernelOptions,
  sysdump: sysdumpOption,
  "all-nodes": flag("Verify every node of the cluster, by programs that are started in their agents' pods."),
  repair: flag("If anything differs, ask the agent of this host, or of --on, for a full sync, and verify again."),
  watch: flag(
    "Compare by the fate of packets, all the time, and change nothing: lines, Events, metrics and a page report differences.",
  ),
  "grace-period": text("TIME", "With --watch: how long a difference must last to be reported.", {
    defaultText: "the larger of 5s and 3 × minSyncPeriod",
  }),
  output: outputOption,
} as const;

export const verifyFacts = {
  name: "verify",
  summary: "Compare this host's kernel with what should be programmed, by service",
  description:
    "Plans what the agent of this node should have programmed, reads the kernel (root) and reports what is missing, extra or\n" +
    "different. It verifies kube-proxy's rules in the same way. If the chains of a service have other names, or rules of other\n" +
    "programs come first, it compares by tracing packets through both rule sets.",
  arguments: [],
  options: verifyOptions,
  examples: [
    {
      line: "fairlead verify --all-nodes --context production",
      what: "Verify every node of a cluster, from a laptop",
    },
    { line: "fairlead verify", what: "Compare this node with its cluster" },
    {
      line: "fairlead verify --config /var/lib/kube-proxy/config.conf --repair",
      what: "Use the proxy's own configuration, and have the agent repair differences",
    },
    {
      line: "fairlead verify -f services.yaml --node node-a --rules iptables-save.txt",
      what: "Compare files, on any host",
    },
  ],
  finding: "something is missing, extra or different",
} as const satisfies CommandFacts;
