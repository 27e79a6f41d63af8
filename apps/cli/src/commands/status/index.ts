import { defineCommand } from "../../frame/command.ts";
import { statusOptions } from "./options.ts";

export const statusCommand = defineCommand(
  {
    name: "status",
    summary: "Show the agent of every node: mode, version, health, last sync, owners, differences",
    description:
      "Asks the agents, Fairlead's or kube-proxy's, through the API server (pods/portforward), a few at a time. A node that does not\n" +
      "answer has a row as well. With --verify programs in the agent's pod compare the kernel of each node with what it should have.",
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
  },
  () => import("./run.ts"),
);
