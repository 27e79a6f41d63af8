import { defineCommand } from "../../frame/command.ts";
import { doctorOptions } from "./options.ts";

export const doctorCommand = defineCommand(
  {
    name: "doctor",
    summary: "Look for what keeps a service proxy on this host from working, and say what to do",
    description:
      "Looks at the kernel's features and settings, the variant of iptables and who else has rules, other proxies, the routes\n" +
      "to pods, networks that overlap, and what the API server allows. What cannot be looked at is unknown (?), never good.\n" +
      "Changes nothing but one thing: it removes the rule that a killed `fairlead trace --watch` left. Run it as root on the node,\n" +
      "or with --on NODE from anywhere: then what its pod may not see is unknown.",
    arguments: [],
    options: doctorOptions,
    examples: [
      { line: "fairlead doctor --service-cidr 10.96.0.0/12", what: "This host, by what its proxy says of itself" },
      {
        line: "fairlead doctor --config /var/lib/kube-proxy/config.conf --kubeconfig /var/lib/kube-proxy/kubeconfig.conf",
        what: "With the proxy's own configuration and rights",
      },
    ],
    finding: "something is bad; what is unknown does not count",
  },
  () => import("./run.ts"),
);
