import { defineCommand } from "../../frame/command.ts";
import { ownershipOptions } from "./options.ts";

export const ownershipCommand = defineCommand(
  {
    name: "ownership",
    summary: "List which network serves each service, and why",
    description:
      "Plans the owners from the objects and the excluded CIDRs or, with --live or --on, asks a running agent, which also remembers the\n" +
      "owners of services without endpoints. Below the table are ranges that look like pods of other networks and are in none of the\n" +
      "given CIDRs.",
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
  },
  () => import("./run.ts"),
);
