import { defineCommand } from "../../frame/command.ts";
import { topOptions } from "./options.ts";

export const topCommand = defineCommand(
  {
    name: "top",
    summary: "Show which services and endpoints have most connections through a node",
    description:
      "Reads connection tracking as `fairlead flows` does and sums it up by service port and endpoint: connections, those\n" +
      "without an answer, those to endpoints that are gone, and bytes where the kernel counts them.",
    arguments: [],
    options: topOptions,
    examples: [
      { line: "fairlead top --on node-a", what: "All services of node-a" },
      { line: "fairlead top --service shop/web -o json", what: "One service on this host, for programs" },
    ],
    finding: "connections hang on endpoints that are gone",
  },
  () => import("./run.ts"),
);
