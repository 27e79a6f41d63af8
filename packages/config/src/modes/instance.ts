import type { Report } from "../report.ts";
import type { ConfigInput } from "../resolve/input.ts";
import { type Instance, instanceDefaults } from "../resolve/instance.ts";
import type { ProxyMode } from "../types.ts";
import { modeOf } from "./modes.ts";

/** Which services the agent is for, and what it does where nothing is said. */
export function resolveInstance(input: ConfigInput, report: Report): Instance {
  const { fairlead, options } = input;
  const { serviceProxyName = "", serviceNetwork = false } = fairlead;
  const defaults = instanceDefaults(serviceProxyName);
  const mode = modeOf(input, defaults);
  if (serviceNetwork) checkNetwork(serviceProxyName, mode, report);
  if (serviceProxyName === "") return { serviceProxyName, serviceNetwork, defaults };
  if (!isLabelValue(serviceProxyName)) {
    report.error(
      "serviceProxyName",
      "must be the value of a label: up to 63 letters, digits, dots, dashes and underscores, the first and the last a letter or digit",
    );
  }
  const why = whyNotAlongside(mode, options.userspaceOnly);
  if (why !== undefined) {
    const name = report.name("serviceProxyName");
    report.error("mode", `cannot run alongside another proxy, which ${name} requires: ${why}; use nftables`);
  }
  return { serviceProxyName, serviceNetwork, defaults };
}

/** The first proxy would be left with no other service, and a relay of the node has no way into such a network. */
function checkNetwork(serviceProxyName: string, mode: ProxyMode, report: Report): void {
  if (serviceProxyName === "") {
    report.error(
      "serviceNetwork",
      "needs serviceProxyName (--service-proxy-name): such services are served alongside the node's default proxy",
    );
  } else if (mode === "userspace") {
    report.error(
      "mode",
      `cannot serve pods' secondary networks, which ${report.name("serviceNetwork")} requires; use nftables`,
    );
  }
}

/** As the API server has them (validation.IsValidLabelValue); it becomes a part of a table's and of a folder's name. */
function isLabelValue(text: string): boolean {
  return /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(text);
}

/** Why a mode cannot run on a node that has a proxy already; undefined: it can. */
function whyNotAlongside(mode: ProxyMode, userspaceOnly: boolean): string | undefined {
  switch (mode) {
    case "nftables":
      return undefined;
    case "iptables":
      return "its chains have the same names as kube-proxy's";
    case "ipvs":
      return "it uses the same chains, virtual servers and device (kube-ipvs0) as kube-proxy";
    case "kernelspace":
      return "it programs the load balancers of the node, as kube-proxy does";
    case "userspace":
      return userspaceOnly ? undefined : "its chains have the same names as kube-proxy's, without --userspace-only";
  }
}
