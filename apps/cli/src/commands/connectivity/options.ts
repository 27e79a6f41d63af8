import { flag, list, text } from "../../frame/options.ts";
import { accessOptions, agentOptions } from "../../inputs/cluster-options.ts";
import { nodeAddressOption } from "../../inputs/node-address-option.ts";
import { outputOption } from "../../output/output.ts";

export const connectivityOptions = {
  ...accessOptions,
  node: list("NAME", "A node to test; give two. Default: the first two that are ready."),
  namespace: text("NAME", "The namespace that is made for it.", { short: "n", defaultText: "fairlead-connectivity" }),
  image: text("IMAGE", "Of servers and clients; has node. Default: the agents' own, else this version's."),
  outside: flag("Ask from this machine as well: it reaches the nodes' addresses."),
  "external-address": nodeAddressOption(
    "An address that the network leads to the first node, for external IPs and load balancers; each is used once.",
  ),
  "exclude-cluster-cidr": agentOptions["exclude-cluster-cidr"],
  "service-proxy-name": text(
    "NAME",
    "Test the proxies of that name: the services get their label. Default: the nodes' first proxies.",
  ),
  "no-update": flag("Leave out the rolling update, which takes most of the time."),
  keep: flag("Leave namespace, servers and services for the next run."),
  "cleanup-only": flag("Remove what a run has left, and do nothing else."),
  patience: text("SECONDS", "How long rules may take to be right.", { defaultText: "20" }),
  output: outputOption,
} as const;
