import { defineCommand } from "../../frame/command.ts";
import { topOptions } from "./options.ts";

export const topCommand = defineCommand(
  {
    name: "top",
    summary: "Show which services and endpoints have the most connections through a node",
    description:
      "Reads connection tracking as `fairlead flows` does, and adds up by service port and endpoint: connections, connections without an\n" +
      "answer, connections to endpoints that are gone, and bytes if the kernel counts them.",
    arguments: [],
    options: topOptions,
    examples: [
      { line: "fairlead top --on node-a", what: "Show all services of node-a" },
      { line: "fairlead top --service shop/web -o json", what: "Show one service on this host, for programs" },
    ],
    finding: "connections hang on endpoints that are gone",
  },
  () => import("./run.ts"),
);
