import { defineCommand } from "../../frame/command.ts";
import { consoleOptions } from "./options.ts";

export const consoleCommand = defineCommand(
  {
    name: "console",
    summary: "Open the cluster's services in the browser: who serves what, why, and whether kernels agree",
    description:
      "Serves a page on 127.0.0.1 until interrupted and opens it. It shows what your kubeconfig may see, changes as they\n" +
      "come, and changes nothing. The address is good for one browser, once. Nodes that the page shows are looked at\n" +
      "by programs in their agents' pods, as with --on; with -f it shows manifests and needs no cluster.",
    arguments: [],
    options: consoleOptions,
    examples: [
      { line: "fairlead console --cluster-cidr 10.144.0.0/16", what: "The cluster of your kubeconfig" },
      { line: "fairlead console -f ./services/ --node node-a", what: "What these manifests would mean on node-a" },
      { line: "fairlead console --port 8080 --no-open", what: "Behind ssh -L 8080:127.0.0.1:8080" },
    ],
  },
  () => import("./run.ts"),
);
