import { flag, list, text } from "../../frame/options.ts";
import { clusterOptions, namespaceOption } from "../../inputs/cluster-options.ts";
import { nodeAddressOption } from "../../inputs/node-address-option.ts";
import { kernelOptions, sysdumpOption } from "../../inputs/node-options.ts";
import { outputOption } from "../../output/output.ts";

export const traceOptions = {
  from: text("ADDRESS|pod|node|outside", "The sender. A word stands for an address of that kind. Default: node."),
  to: text(
    "ADDRESS:PORT/PROTO|SERVICE",
    "The destination: 10.96.0.10:53/udp, [fd00::1]:80 (TCP by default), shop/web:http, svc/web, :30080.",
  ),
  ...kernelOptions,
  sysdump: sysdumpOption,
  ...clusterOptions,
  namespace: namespaceOption,
  "in-interface": text("NAME", "The interface that the packet comes in by. Default: by the routes, else eth0."),
  sport: text("PORT", "The source port; with it connection tracking is asked for this connection."),
  "cluster-cidr": list("CIDR", "Pod CIDRs: they define what --from pod and --from outside mean."),
  "node-address": nodeAddressOption("An address of the node. Default with --live: the host's own."),
  route: list("CIDR=INTERFACE", "By which interface packets leave. Default with --live: the host's routes."),
  watch: flag("Removed: use nft monitor trace, xtables-monitor --trace or fairlead flows."),
  output: outputOption,
} as const;
