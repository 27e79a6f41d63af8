import { defineCommand } from "../../frame/command.ts";
import { connectivityOptions } from "./options.ts";

export const connectivityCommand = defineCommand(
  {
    name: "connectivity",
    summary: "Test services on two nodes with real packets, whichever proxy serves them",
    description:
      "Creates a namespace with servers, services and clients on two nodes, and requests every kind of frontend (ClusterIP, node port,\n" +
      "external IP, load balancer, DNS) from pods, from nodes and, with --outside, from this machine, in each IP family. It checks which\n" +
      "endpoint answers and which client address it sees, traffic policies, affinity, hairpin, refusals, and a rolling update under\n" +
      "requests. It does not need Fairlead or its agent, and removes everything that it created, also when it is interrupted.",
    arguments: [],
    options: connectivityOptions,
    examples: [
      { line: "fairlead connectivity", what: "On the first two nodes that are ready" },
      { line: "fairlead connectivity --node node-a --node node-b --outside", what: "From this machine as well" },
      { line: "fairlead connectivity --cleanup-only", what: "Remove what a killed run has left" },
    ],
    finding: "a packet does not end where it should",
  },
  () => import("./run.ts"),
);
