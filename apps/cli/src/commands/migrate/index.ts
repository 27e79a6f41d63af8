import { defineCommand } from "../../frame/command.ts";
import { migrateOptions } from "./options.ts";

export const migrateCommand = defineCommand(
  {
    name: "migrate",
    summary: "Put Fairlead in the place of kube-proxy, node by node, and back",
    description:
      "Reads kube-proxy's DaemonSet and configuration and the cluster's pod networks, and says what fits, what differs and what\n" +
      "it would do. With --apply it does so: both DaemonSets are placed by a label of nodes, and one node after the other gets\n" +
      "the other proxy. A node is verified before and after its change, and must stay well before the next one; any failure\n" +
      "stops it and puts that node back. All that it remembers is in the cluster: run it again, and it goes on.",
    arguments: [],
    options: migrateOptions,
    examples: [
      { line: "fairlead migrate", what: "What fits, what differs, what would be done; changes nothing" },
      { line: "fairlead migrate --output-dir fairlead/", what: "The manifests, to be applied by hand" },
      { line: "fairlead migrate --apply", what: "Carries it out, or goes on with it" },
      { line: "fairlead migrate --revert", what: "Back to kube-proxy, from wherever it is" },
    ],
    finding: "something is in the way, or it stopped before its end",
  },
  () => import("./run.ts"),
);
