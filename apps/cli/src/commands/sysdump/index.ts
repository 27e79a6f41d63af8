import { defineCommand } from "../../frame/command.ts";
import { sysdumpOptions } from "./options.ts";

export const sysdumpCommand = defineCommand(
  {
    name: "sysdump",
    summary: "Write the state of all nodes into one archive, for a problem report",
    description:
      "Collects the agents' logs, configuration, metrics and owners; the kernels' rules, sets, virtual servers, routes and connection\n" +
      "counts; what verify finds; and the Services, EndpointSlices, Nodes and networks' objects. Kept is what Fairlead reads: no Secrets,\n" +
      "no other annotations, no environment, no arguments. README.md in the archive lists its contents and what is missing. explain,\n" +
      "trace, verify and console read the archive with --sysdump. The archive has at most 50 MB.",
    arguments: [],
    options: sysdumpOptions,
    examples: [
      { line: "fairlead sysdump --context production", what: "Collect from all nodes of a cluster" },
      { line: "fairlead sysdump --on node-a", what: "Collect from one node" },
      {
        line: "fairlead sysdump --live --kubeconfig /var/lib/kube-proxy/kubeconfig.conf",
        what: "Collect from this host, as root",
      },
    ],
    finding: "something could not be read; README.md in the archive says what and why",
  },
  () => import("./run.ts"),
);
