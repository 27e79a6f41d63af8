import { defineCommand } from "../../frame/command.ts";
import { consoleOptions } from "./options.ts";

export const consoleCommand = defineCommand(
  {
    name: "console",
    summary: "Open the cluster's services in the browser: owners, reasons, and whether kernels agree",
    description:
      "Serves a page on 127.0.0.1 until interrupted, and opens it. The page shows what your kubeconfig may read, follows changes,\n" +
      "and changes nothing. The address works once, in one browser. To look at the nodes that the page shows, it starts programs\n" +
      "in their agents' pods, as --on does. With -f it shows manifests and needs no cluster.",
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
