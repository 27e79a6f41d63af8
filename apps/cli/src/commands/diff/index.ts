import { defineCommand } from "../../frame/command.ts";
import { diffOptions } from "./options.ts";

export const diffCommand = defineCommand(
  {
    name: "diff",
    summary: "Compare two rule sets, plans, clusters or nodes: which traffic changes, then which rules",
    description:
      "A and B are each: a file with what iptables-save or fairlead plan printed; manifests, a file or a folder, which are\n" +
      "planned; the word cluster, for the plan of the cluster's objects; or the word node, for the kernel of this node or\n" +
      "that of --on. A packet is traced through both for every address and port that either speaks of and every class of\n" +
      "senders that either distinguishes. Where one side is a plan, rules are compared in chains whose names begin with KUBE-,\n" +
      "and in its own tables of nftables.",
    arguments: [
      { name: "A", help: "What there was.", completes: "path" },
      { name: "B", help: "What there is.", completes: "path" },
    ],
    options: diffOptions,
    examples: [
      { line: "fairlead diff before.txt after.txt", what: "Two outputs of iptables-save" },
      {
        line: "fairlead diff cluster node --on node-a",
        what: "Does node-a do what the cluster's objects ask for?",
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
  },
  () => import("./run.ts"),
);
