import { defineCommand } from "../../frame/command.ts";
import { connectivityOptions } from "./options.ts";

export const connectivityCommand = defineCommand(
  {
    name: "connectivity",
    summary: "Test services on two nodes with real packets, whichever proxy serves them",
    description:
      "Makes a namespace with servers, services and clients on two nodes, and asks every kind of frontend (ClusterIP, node port,\n" +
      "external IP, load balancer, DNS) from pods, nodes and, with --outside, this machine, in each IP family: who answers, which\n" +
      "address endpoints see, traffic policies, affinity, hairpin, refusals, and a rolling update under requests. It needs neither\n" +
      "Fairlead nor its agent, and takes everything away, also when it is interrupted.",
    arguments: [],
    options: connectivityOptions,
    examples: [
      { line: "fairlead connectivity", what: "On the first two nodes that are ready" },
      { line: "fairlead connectivity --node node-a --node node-b --outside", what: "From this machine as well" },
      { line: "fairlead connectivity --cleanup-only", what: "What a killed run has left" },
    ],
    finding: "a packet does not end where it should",
  },
  () => import("./run.ts"),
);
