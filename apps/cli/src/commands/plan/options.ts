import { choice, flag } from "../../frame/options.ts";
import { clusterOptions, namespaceOption } from "../../inputs/cluster-options.ts";

export const planOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  output: choice(
    ["rules", "json", "yaml", "summary"],
    "rules",
    "Restore text, the forwarding plan as data, or a table.",
    {
      short: "o",
    },
  ),
  family: choice(["ipv4", "ipv6"], "ipv4", "The IP family of the restore text; the other outputs have both."),
  "without-counters": flag("Omit the nfacct matches, for kernels without nfacct."),
} as const;
