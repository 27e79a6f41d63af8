import { defineCommand } from "../../frame/command.ts";
import { explainOptions } from "./options.ts";

export const explainCommand = defineCommand(
  {
    name: "explain",
    summary: "Explain what a service is on a node: whose, where it is served, by which endpoints, and why",
    description:
      "Shows the owner and what decided that, every frontend with what pods, the node and others get there, and for each\n" +
      "endpoint why it is used or not. With --live, --on or --rules a packet of every kind is also traced through that\n" +
      "kernel's rules, also of other programs, to see whether they do what the plan wants.",
    arguments: [
      {
        name: "target",
        help: "[NAMESPACE/]SERVICE[:PORT] or svc/SERVICE, ADDRESS[:PORT[/PROTOCOL]] (of a pod too), or :NODEPORT",
      },
    ],
    options: explainOptions,
    examples: [
      { line: "fairlead explain kube-system/kube-dns:dns", what: "One port of a service of the cluster" },
      {
        line: "fairlead explain 10.96.0.10:53/udp --on node-a",
        what: "Who has this address, and does node-a's kernel agree?",
      },
      {
        line: "fairlead explain web -f ./services/ --node node-a --rules saved.txt",
        what: "Manifests against what iptables-save printed",
      },
      {
        line: "fairlead explain shop/web --sysdump dump.tar.gz --on node-a",
        what: "What it was when a report was made",
      },
    ],
    finding: "the kernel does something else than the plan wants",
  },
  () => import("./run.ts"),
);
