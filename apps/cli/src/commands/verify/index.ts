import { defineCommand } from "../../frame/command.ts";
import { verifyOptions } from "./options.ts";

export const verifyCommand = defineCommand(
  {
    name: "verify",
    summary: "Compare this host's kernel with what should be programmed, by service",
    description:
      "Reads the API or manifests and works out what the agent of this node should have programmed, in iptables or ipvs mode;\n" +
      "then reads the kernel (root) and reports what is missing, extra or different. Rules of kube-proxy are checked in the same\n" +
      "way. Where the chains of a service have other names, or rules of others come before, packets are sent through both rule\n" +
      "sets, and what becomes of them decides.",
    arguments: [],
    options: verifyOptions,
    examples: [
      { line: "fairlead verify --all-nodes --context production", what: "Every node of a cluster, from a laptop" },
      { line: "fairlead verify", what: "This node against its cluster" },
      {
        line: "fairlead verify --config /var/lib/kube-proxy/config.conf --repair",
        what: "With the proxy's own configuration; has the agent repair what differs",
      },
      {
        line: "fairlead verify -f services.yaml --node node-a --rules iptables-save.txt",
        what: "Files only, on any host",
      },
    ],
    finding: "something is missing, extra or different",
  },
  () => import("./run.ts"),
);
