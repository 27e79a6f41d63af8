import { defineCommand } from "../../frame/command.ts";
import { versionOptions } from "./options.ts";

export const versionCommand = defineCommand(
  {
    name: "version",
    summary: "Print the version of this program",
    description: "Does not contact a cluster: `fairlead status` shows the version of the agent on each node.",
    arguments: [],
    options: versionOptions,
    examples: [{ line: "fairlead version -o json", what: "For programs" }],
  },
  () => import("./run.ts"),
);
