import { defineCommand } from "../../frame/command.ts";
import { statusOptions } from "./options.ts";

export const statusCommand = defineCommand(
  {
    name: "status",
    summary: "Show the agent of every node: mode, version, health, last sync, owners, differences",
    description:
      "Asks the agents, Fairlead's or kube-proxy's, through the API server (pods/portforward), a few at once. A node that does not answer is a\n" +
      "row as well. With --verify the kernel of each node is compared with what should be programmed there, by programs in the agent's pod.",
    arguments: [],
    options: statusOptions,
    examples: [
      { line: "fairlead status", what: "All nodes of the cluster" },
      { line: "fairlead status --verify --context production -o wide", what: "With the differences of each kernel" },
    ],
    finding: "a node does not answer, is not healthy, or its kernel differs",
  },
  () => import("./run.ts"),
);
