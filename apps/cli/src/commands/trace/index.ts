import { defineCommand } from "../../frame/command.ts";
import { traceOptions } from "./options.ts";

export const traceCommand = defineCommand(
  {
    name: "trace",
    summary: "Show the way of a packet through hooks, chains and rules, and where it may end",
    description:
      "Reads iptables rules of any origin, from a file or from this host's kernel (root). Where rules choose at random all\n" +
      "ends are shown with their probability. A rule that cannot be decided, by its kind or for lack of a fact, is named and\n" +
      "taken both ways; nothing is guessed. Of the kernel the sets, virtual servers, affinity lists and addresses are read\n" +
      "as well, and with --sport the connection that is known already. The kernel is asked for each routing decision, with\n" +
      "mark and interface: where there is no route, policy routing, forwarding or rp_filter say no, the way ends.",
    arguments: [],
    options: traceOptions,
    examples: [
      {
        line: "fairlead trace --from pod --to 10.96.0.10:53/udp --cluster-cidr 10.144.0.0/16",
        what: "From a pod of this node to DNS",
      },
      {
        line: "iptables-save | fairlead trace --rules - --from 192.0.2.9 --to 10.201.0.10:30080 --node-address 10.201.0.10",
        what: "A node port, over rules of any host",
      },
      { line: "fairlead trace --watch --from 10.144.1.20 --to 10.96.0.10:80", what: "Follow real packets" },
    ],
    finding: "the packet is dropped, rejected, or its path is not known",
  },
  () => import("./run.ts"),
);
