import { defineCommand } from "../../frame/command.ts";
import { planOptions } from "./options.ts";

export const planCommand = defineCommand(
  {
    name: "plan",
    summary: "Print what the agent would program for these manifests or this cluster",
    description:
      "Needs no root and no kernel: it is what the agent of that node writes to an empty kernel.\n" +
      "In iptables mode the text is for iptables-restore --noflush (ip6tables-restore with --family ipv6); in ipvs mode\n" +
      "there is one part for each program, in the order in which the agent starts them.",
    arguments: [],
    options: planOptions,
    examples: [
      {
        line: "fairlead plan -f ./services/ --node node-a --cluster-cidr 10.144.0.0/16",
        what: "Rules for a folder of manifests",
      },
      {
        line: "kubectl get services,endpointslices,nodes -A -o json | fairlead plan -f - --node node-a -o summary",
        what: "Which service is served where, for a cluster as it is now",
      },
      {
        line: "fairlead plan -f web.yaml --node node-a --mode ipvs",
        what: "What ipvs mode gives to ipset, ip, ipvsadm and iptables-restore",
      },
    ],
  },
  () => import("./run.ts"),
);
