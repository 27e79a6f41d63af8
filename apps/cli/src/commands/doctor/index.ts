import { defineCommand } from "../../frame/command.ts";
import { doctorOptions } from "./options.ts";

export const doctorCommand = defineCommand(
  {
    name: "doctor",
    summary: "Check what keeps a service proxy on this host from working, and advise what to do",
    description:
      "Checks the kernel's features and settings, the iptables variant and rules of other programs, other proxies, the routes to pods,\n" +
      "overlapping networks, and what the API server allows. What cannot be checked is unknown (?), never good. It changes nothing.\n" +
      "Run it as root on the node, or with --on NODE from anywhere; then what the pod on that node may not see is unknown.",
    arguments: [],
    options: doctorOptions,
    examples: [
      {
        line: "fairlead doctor --service-cidr 10.96.0.0/12",
        what: "Check this host, with the configuration that its proxy reports",
      },
      {
        line: "fairlead doctor --config /var/lib/kube-proxy/config.conf --kubeconfig /var/lib/kube-proxy/kubeconfig.conf",
        what: "Check with the proxy's own configuration and rights",
      },
    ],
    finding: "a check is bad; unknown ones do not count",
  },
  () => import("./run.ts"),
);
