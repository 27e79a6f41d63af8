import { defineCommand } from "../../frame/command.ts";
import { ownershipOptions } from "./options.ts";

export const ownershipCommand = defineCommand(
  {
    name: "ownership",
    summary: "List who serves each service, and what decided that",
    description:
      "Plans the owners from the objects and the excluded CIDRs, or (--live, --on) asks a running agent, which remembers the\n" +
      "owners of services without endpoints as well. Below the table are ranges that look like other networks' pods and are\n" +
      "in no CIDR given.",
    arguments: [],
    options: ownershipOptions,
    examples: [
      {
        line: "fairlead ownership --cluster-cidr 10.144.0.0/16 --exclude-cluster-cidr 10.244.0.0/16",
        what: "Would this exclusion do what it should?",
      },
      { line: "fairlead ownership --on node-a -o json", what: "What the agent of node-a has decided" },
      {
        line: "fairlead ownership --config config.conf --accept 10.144.8.0/22 --yes",
        what: "Let a held CIDR take effect, on all nodes",
      },
      { line: "fairlead ownership --watch --exclude-cluster-cidr 10.244.0.0/16", what: "Follow changes" },
    ],
  },
  () => import("./run.ts"),
);
