import { defineCommand } from "../../frame/command.ts";
import { flowsOptions } from "./options.ts";

export const flowsCommand = defineCommand(
  {
    name: "flows",
    summary: "Show the connections that clients have with services through a node, and with which endpoint each is",
    description:
      "Reads connection tracking of this host (root), or with --on of another node, and shows for each connection of a service\n" +
      "its client, the frontend, the endpoint that answers and whether it still exists, the owner of the service, the state,\n" +
      "and bytes where the kernel counts them (net.netfilter.nf_conntrack_acct). Connections without a service are left out;\n" +
      "-n, --from, --to, --port and --state choose among the others. The node does no work while the command does not run.",
    arguments: [],
    options: flowsOptions,
    examples: [
      { line: "fairlead flows --on node-a --service shop/web", what: "The connections of one service on node-a" },
      {
        line: "fairlead flows -n shop --from 10.144.1.0/24 --state open",
        what: "The open connections of these clients with the services of one namespace",
      },
      { line: "fairlead flows --follow --for 60", what: "What begins and ends on this host for a minute" },
    ],
    finding: "a connection hangs on an endpoint that is gone",
  },
  () => import("./run.ts"),
);
