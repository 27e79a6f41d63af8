import { defineCommand } from "../../frame/command.ts";
import { explainOptions } from "./options.ts";

export const explainCommand = defineCommand(
  {
    name: "explain",
    summary: "Explain a service on a node: its owner, where and by which endpoints it is served, and why",
    description:
      "Shows the owner and what decided it, what pods, the node and other clients get at each frontend, and for each endpoint why it\n" +
      "is used or not. With --live, --on or --rules a packet of every kind is also traced through all rules of that kernel, including\n" +
      "those of other programs, to see whether they match the plan.",
    arguments: [
      {
        name: "target",
        help: "[NAMESPACE/]SERVICE[:PORT] or svc/SERVICE, ADDRESS[:PORT[/PROTOCOL]] (of a pod too), or :NODEPORT",
      },
    ],
    options: explainOptions,
    examples: [
      { line: "fairlead explain kube-system/kube-dns:dns", what: "Explain one port of a service of the cluster" },
      {
        line: "fairlead explain 10.96.0.10:53/udp --on node-a",
        what: "Which service has this address, and does node-a's kernel agree?",
      },
      {
        line: "fairlead explain web -f ./services/ --node node-a --rules saved.txt",
        what: "Compare manifests with the output of iptables-save",
      },
      {
        line: "fairlead explain shop/web --sysdump dump.tar.gz --on node-a",
        what: "Explain a service as it was when a sysdump was written",
      },
    ],
    finding: "the kernel differs from the plan",
  },
  () => import("./run.ts"),
);
