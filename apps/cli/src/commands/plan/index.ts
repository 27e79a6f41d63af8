import { defineCommand } from "../../frame/command.ts";
import { planOptions } from "./options.ts";

export const planCommand = defineCommand(
  {
    name: "plan",
    summary: "Print what the agent would program for these manifests or this cluster",
    description:
      "Needs neither root nor a kernel: the output is what the agent of the node writes to an empty kernel. In iptables mode it is for\n" +
      "iptables-restore --noflush (with --family ipv6 for ip6tables-restore). In ipvs mode it has a part for each program, in the order\n" +
      "in which the agent starts them.",
    arguments: [],
    options: planOptions,
    examples: [
      {
        line: "fairlead plan -f ./services/ --node node-a --cluster-cidr 10.144.0.0/16",
        what: "Print the rules for a folder of manifests",
      },
      {
        line: "kubectl get services,endpointslices,nodes -A -o json | fairlead plan -f - --node node-a -o summary",
        what: "Show which service is served where, for a cluster as it is now",
      },
      {
        line: "fairlead plan -f web.yaml --node node-a --mode ipvs",
        what: "Print the input of ipset, ip, ipvsadm and iptables-restore in ipvs mode",
      },
    ],
  },
  () => import("./run.ts"),
);
