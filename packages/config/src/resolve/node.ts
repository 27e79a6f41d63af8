import { familyOf } from "@fairlead/base";
import { canonicalAddress } from "../address.ts";
import type { Report } from "../report.ts";
import type { AgentConfig, DetectLocal, SocketAddress } from "../types.ts";
import { type ConfigInput, canonicalList } from "./input.ts";
import type { InstanceDefaults } from "./instance.ts";

type NodeSettings = Pick<
  AgentConfig,
  "bindAddress" | "healthzBindAddress" | "metricsBindAddress" | "nodePortAddresses" | "clusterCIDRs" | "detectLocal"
> & { readonly hostnameOverride?: string };

/** What the mode and the instance decide where nothing is said. */
export interface NodeDefaults extends Pick<InstanceDefaults, "healthzPort" | "metricsPort"> {
  readonly nodePortAddresses: readonly string[];
}

export function resolveNode(input: ConfigInput, defaults: NodeDefaults, report: Report): NodeSettings {
  const hostnameOverride = readHostname(input.kubeProxy.hostnameOverride, report);
  const clusterCIDRs = readClusterCIDRs(input, report);
  return {
    ...(hostnameOverride === undefined ? {} : { hostnameOverride }),
    ...resolveAddresses(input, defaults, report),
    clusterCIDRs,
    detectLocal: resolveDetectLocal(input, clusterCIDRs, report),
    nodePortAddresses: readNodePortAddresses(input, defaults, report),
  };
}

type Addresses = Pick<AgentConfig, "bindAddress" | "healthzBindAddress" | "metricsBindAddress">;

function resolveAddresses(
  { kubeProxy, options, origin }: ConfigInput,
  defaults: NodeDefaults,
  report: Report,
): Addresses {
  const bindAddress = kubeProxy.bindAddress ?? "0.0.0.0";
  // The flags' defaults are there before --bind-address is read: upstream never makes them IPv6.
  const six = origin === "file" && familyOf(bindAddress) === "IPv6";
  const healthz = kubeProxy.healthzBindAddress ?? { address: six ? "::" : "0.0.0.0", port: defaults.healthzPort };
  const metrics = kubeProxy.metricsBindAddress ?? { address: six ? "::1" : "127.0.0.1", port: defaults.metricsPort };
  if (options.metricsPort === 0)
    report.error("metrics-port", "the metrics server cannot be disabled; remove the flag", "0");
  const healthzPort = options.healthzPort ?? defaults.healthzPort;
  const metricsPort = options.metricsPort ?? defaults.metricsPort;
  return {
    bindAddress,
    metricsBindAddress: completed("metricsBindAddress", metrics, { name: "metrics-port", port: metricsPort }, report),
    ...(healthzPort === 0
      ? {}
      : {
          healthzBindAddress: completed(
            "healthzBindAddress",
            healthz,
            { name: "healthz-port", port: healthzPort },
            report,
          ),
        }),
  };
}

/**
 * An address that is given without a port has that of the deprecated flag (upstream: AppendPortIfNeeded), or the
 * default.
 */
function completed(
  path: string,
  address: SocketAddress,
  { name, port }: { readonly name: string; readonly port: number },
  report: Report,
): SocketAddress {
  if (port === 0 || canonicalAddress(report.given(path)) === undefined) return address;
  if (port > 0 && port <= 65_535) return { ...address, port };
  report.error(name, "must be a port from 1 to 65535", String(port));
  return address;
}

/** RFC 1123, as the API server wants names of Nodes. An unexpanded `$(NODE_NAME)` is no such name. */
function readHostname(text: string | undefined, report: Report): string | undefined {
  if (text === undefined) return undefined;
  const name = text.trim().toLowerCase();
  if (name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)) return name;
  report.error(
    "hostnameOverride",
    "must be the name of a Node: letters, digits, dots and dashes, such as node-1.example",
  );
  return undefined;
}

function readClusterCIDRs({ kubeProxy }: ConfigInput, report: Report): string[] {
  const entries = (kubeProxy.clusterCIDR ?? "").split(",").map((entry) => entry.trim());
  const given = entries.filter((entry) => entry !== "");
  const inUse = (kubeProxy.detectLocalMode ?? "ClusterCIDR") === "ClusterCIDR";
  return canonicalList(report, "clusterCIDR", given, { inUse });
}

function resolveDetectLocal({ kubeProxy }: ConfigInput, cidrs: readonly string[], report: Report): DetectLocal {
  const { bridgeInterface = "", interfaceNamePrefix = "" } = kubeProxy.detectLocal;
  switch (kubeProxy.detectLocalMode ?? "ClusterCIDR") {
    case "ClusterCIDR":
      return cidrs.length === 0 ? { kind: "none" } : { kind: "cidrs", cidrs };
    case "NodeCIDR":
      return { kind: "node-cidr" };
    case "BridgeInterface":
      checkInterface("bridgeInterface", bridgeInterface, "BridgeInterface", report);
      return { kind: "bridge", interface: bridgeInterface };
    case "InterfaceNamePrefix":
      checkInterface("interfaceNamePrefix", interfaceNamePrefix, "InterfaceNamePrefix", report);
      return { kind: "interface-prefix", prefix: interfaceNamePrefix };
  }
}

/** The kernel's rule for names (dev_valid_name), without what would have a meaning in a rule. */
function checkInterface(field: string, name: string, mode: string, report: Report): void {
  if (/^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$/.test(name)) return;
  const path = `detectLocal.${field}`;
  if (name === "") report.error("detectLocalMode", `${mode} needs ${report.name(path)}`);
  else report.error(path, "must be the name of a network interface: up to 15 letters, digits and _.@-");
}

const WORDS = ["primary", "localhost", "all"];

function readNodePortAddresses({ kubeProxy }: ConfigInput, defaults: NodeDefaults, report: Report): readonly string[] {
  const given = kubeProxy.nodePortAddresses ?? [];
  if (given.length === 0) return defaults.nodePortAddresses;
  return canonicalList(report, "nodePortAddresses", given, { words: WORDS });
}
