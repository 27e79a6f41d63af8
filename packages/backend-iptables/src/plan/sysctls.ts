import type { NodePlan } from "@fairlead/core";
import { type IptablesSettings, servesLocalhost } from "./settings.ts";

/** A kernel setting that the rules rely on; who runs the backend sets it. */
export interface RequiredSysctl {
  /** With dots, as sysctl prints it: `net.ipv4.conf.all.route_localnet`. */
  readonly name: string;
  /** What it must be set to, as text. */
  readonly value: string;
  /** Why, for the log. */
  readonly reason: string;
}

/** The sysctls that must be set before node ports can answer on 127.0.0.1. */
export function requiredSysctls(
  settings: Pick<IptablesSettings, "family" | "localhostNodePorts">,
  node: NodePlan,
): readonly RequiredSysctl[] {
  if (!servesLocalhost(settings, node)) return [];
  const reason = "node ports on 127.0.0.1 (iptables.localhostNodePorts)";
  return [{ name: "net.ipv4.conf.all.route_localnet", value: "1", reason }];
}
