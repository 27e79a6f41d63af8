import { defineCommand } from "../../frame/command.ts";
import { traceOptions } from "./options.ts";

export const traceCommand = defineCommand(
  {
    name: "trace",
    summary: "Show the path of a packet through hooks, chains and rules, and where it may end",
    description:
      "Reads iptables rules and nftables tables of any origin, from a file or from this host's kernel (root). If rules choose at random,\n" +
      "all ends are shown with their probability. A rule that cannot be decided, because of its kind or of a missing fact, is named and\n" +
      "followed both ways; nothing is guessed. The sets, virtual servers, affinity lists and addresses of the kernel are read as well,\n" +
      "and with --sport the tracked connection. The kernel decides each routing step, with mark and interface; the path ends where\n" +
      "it has no route, or where policy routing, forwarding or rp_filter stop the packet.",
    arguments: [],
    options: traceOptions,
    examples: [
      {
        line: "fairlead trace --from pod --to 10.96.0.10:53/udp --cluster-cidr 10.144.0.0/16",
        what: "Trace a packet from a pod of this node to DNS",
      },
      {
        line: "iptables-save | fairlead trace --rules - --from 192.0.2.9 --to 10.201.0.10:30080 --node-address 10.201.0.10",
        what: "Trace a packet to a node port through the rules of any host",
      },
    ],
    finding: "the packet is dropped or rejected, or its path is unknown",
  },
  () => import("./run.ts"),
);
