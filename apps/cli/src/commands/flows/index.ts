import { defineCommand } from "../../frame/command.ts";
import { flowsOptions } from "./options.ts";

export const flowsCommand = defineCommand(
  {
    name: "flows",
    summary: "Show the connections of services through a node, with the endpoint of each",
    description:
      "Reads connection tracking of this host (root) or, with --on, of another node. For each connection of a service it shows the\n" +
      "client, the frontend, the endpoint that answers and whether it still exists, the owner of the service, the state, and bytes if\n" +
      "the kernel counts them (net.netfilter.nf_conntrack_acct). Connections without a service are not shown; -n, --from, --to, --port\n" +
      "and --state select among the others. The node does no work while the command does not run.",
    arguments: [],
    options: flowsOptions,
    examples: [
      { line: "fairlead flows --on node-a --service shop/web", what: "Show the connections of one service on node-a" },
      {
        line: "fairlead flows -n shop --from 10.144.1.0/24 --state open",
        what: "Show the open connections of these clients with the services of one namespace",
      },
      {
        line: "fairlead flows --follow --for 60",
        what: "Show connections that begin or end on this host, for a minute",
      },
    ],
    finding: "a connection hangs on an endpoint that is gone",
  },
  () => import("./run.ts"),
);
