import { defineCommand } from "../../frame/command.ts";
import { migrateOptions } from "./options.ts";

export const migrateCommand = defineCommand(
  {
    name: "migrate",
    summary: "Replace kube-proxy with Fairlead node by node, or go back",
    description:
      "Reads kube-proxy's DaemonSet and configuration and the cluster's pod networks, and reports what fits, what differs and what it\n" +
      "would do. With --apply it does so: a label on nodes places both DaemonSets, and one node after the other gets the other proxy.\n" +
      "Each node is verified before and after its change, and must stay healthy before the next one changes. Any failure stops the\n" +
      "migration and puts that node back. All state is in the cluster: run the command again to continue.",
    arguments: [],
    options: migrateOptions,
    examples: [
      { line: "fairlead migrate", what: "Report what fits, what differs and what it would do; change nothing" },
      { line: "fairlead migrate --output-dir fairlead/", what: "Write the manifests, to apply them by hand" },
      { line: "fairlead migrate --apply", what: "Migrate, or continue a migration" },
      { line: "fairlead migrate --revert", what: "Go back to kube-proxy, at any stage" },
    ],
    finding: "the cluster does not fit, or the migration stopped before its end",
  },
  () => import("./run.ts"),
);
