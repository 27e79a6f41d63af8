import { defineCommand } from "../../frame/command.ts";
import { sysdumpOptions } from "./options.ts";

export const sysdumpCommand = defineCommand(
  {
    name: "sysdump",
    summary: "Write what all nodes say into one archive, for a report of a problem",
    description:
      "Collects the agents' logs, configuration, metrics and owners, the kernels' rules, sets, virtual servers and routes, counts of\n" +
      "connections, what verify finds, and the Services, EndpointSlices, Nodes and networks' objects. Only named fields are kept: no\n" +
      "Secret, no other annotation, no environment, no argument. README.md in the archive lists what is there and what is missing.\n" +
      "explain, trace, verify and console read it with --sysdump. The archive has at most 50 MB.",
    arguments: [],
    options: sysdumpOptions,
    examples: [
      { line: "fairlead sysdump --context production", what: "All nodes of a cluster" },
      { line: "fairlead sysdump --on node-a", what: "One of them" },
      { line: "fairlead sysdump --live --kubeconfig /var/lib/kube-proxy/kubeconfig.conf", what: "This host, as root" },
    ],
    finding: "something could not be read; README.md in the archive says what and why",
  },
  () => import("./run.ts"),
);
