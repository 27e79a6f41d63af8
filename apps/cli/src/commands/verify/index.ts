import { defineCommand } from "../../frame/command.ts";
import { verifyOptions } from "./options.ts";

export const verifyCommand = defineCommand(
  {
    name: "verify",
    summary: "Compare this host's kernel with what should be programmed, by service",
    description:
      "Reads the API or manifests, plans what the agent of this node should have programmed, then reads the kernel (root) and reports\n" +
      "what is missing, extra or different. It verifies kube-proxy's rules in the same way. If the chains of a service have other names,\n" +
      "or rules of other programs come first, packets are traced through both rule sets, and only a different result is a difference.",
    arguments: [],
    options: verifyOptions,
    examples: [
      {
        line: "fairlead verify --all-nodes --context production",
        what: "Verify every node of a cluster, from a laptop",
      },
      { line: "fairlead verify", what: "Compare this node with its cluster" },
      {
        line: "fairlead verify --config /var/lib/kube-proxy/config.conf --repair",
        what: "Use the proxy's own configuration, and have the agent repair differences",
      },
      {
        line: "fairlead verify -f services.yaml --node node-a --rules iptables-save.txt",
        what: "Compare files, on any host",
      },
    ],
    finding: "something is missing, extra or different",
  },
  () => import("./run.ts"),
);
