import { flag, list, text } from "../../frame/options.ts";
import { accessOptions, agentOptions } from "../../inputs/cluster-options.ts";
import { nodeAddressOption } from "../../inputs/node-address-option.ts";
import { outputOption } from "../../output/output.ts";

export const connectivityOptions = {
  ...accessOptions,
  node: list("NAME", "A node to test; give two. Default: the first two that are ready."),
  namespace: text("NAME", "The namespace to create for the test.", {
    short: "n",
    defaultText: "fairlead-connectivity",
  }),
  image: text(
    "IMAGE",
    "The image of servers and clients, which must contain node. Default: the image of the agents, else of this version.",
  ),
  outside: flag("Also send requests from this machine, which must reach the nodes' addresses."),
  "external-address": nodeAddressOption(
    "An address that the network routes to the first node, for external IPs and load balancers; each is used once.",
  ),
  "exclude-cluster-cidr": agentOptions["exclude-cluster-cidr"],
  "service-proxy-name": text(
    "NAME",
    "Test the proxies of this name: the services get its label. Default: the nodes' first proxies.",
  ),
  "no-update": flag("Skip the rolling update, which takes most of the time."),
  keep: flag("Keep the namespace, servers and services for the next run."),
  "cleanup-only": flag("Only remove what an earlier run has left."),
  patience: text("SECONDS", "How long the rules may take to be in place.", { defaultText: "20" }),
  output: outputOption,
} as const;
