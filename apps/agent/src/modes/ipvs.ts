import {
  configuredOptions,
  createIpvsBackend,
  DEVICE,
  IPVS_FILTER,
  type IpvsModeBackend,
  type IpvsPort,
  ipvsFacts,
  removeIpvsMode,
  requiredSysctls,
  type Scheduler,
} from "@fairlead/backend-ipvs";
import { errorChainText } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { kernelVersion } from "@fairlead/kernel";
import type { VirtualServer } from "@fairlead/netfilter";
import type { Kernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import {
  atOnce,
  type KeepsChain,
  type Mode,
  type ModeContext,
  type ModeNotice,
  type ModeRuntime,
  openedTables,
  openTables,
  setSysctls,
  watchRules,
} from "./mode.ts";

/** An address for documentation (RFC 5737), which upstream probes with as well. */
const PROBE: Omit<VirtualServer, "scheduler"> = {
  family: "IPv4",
  protocol: "TCP",
  address: "198.51.100.0",
  port: 20_000,
  flags: [],
};

export const ipvsMode: Mode = {
  facts: ipvsFacts,
  whyNot,
  fallback: { mode: "iptables", flag: "--ipvs-fallback", allowed: ({ ipvs }) => ipvs.fallback },
  open: (kernel, family) => openTables(kernel, family, ipvsFacts.needs.iptables),
  notice,
  prepare,
  serve,
  removeRules,
};

/** Upstream: cmd/kube-proxy/app/server_linux.go, createProxier (KEP-5495). */
function notice(): ModeNotice {
  const message =
    "kube-proxy disables its ipvs mode by default in Kubernetes 1.40 and removes it in 1.43. Fairlead keeps ipvs mode: nothing " +
    "changes on this node; only a return to kube-proxy needs another mode from then on";
  return { type: "Normal", reason: "IPVSDeprecation", message };
}

/**
 * Loads the modules, and makes and removes a virtual server and the device: many parts of the kernel show that they are
 * missing only when they are used.
 */
async function whyNot({ ipvs }: AgentConfig, kernel: Kernel): Promise<string | undefined> {
  const { scheduler } = ipvs;
  const modules = ["ip_vs", `ip_vs_${scheduler}`, "nf_conntrack", "ip_set", "xt_set", "dummy"];
  // Built-in parts are not always to be seen as such: what counts is what works.
  for (const module of modules) await kernel.modules.load(module);
  const { servers, sets, links } = kernel.ipvs;
  try {
    for await (const set of sets.save()) if (set.name === "") break;
    await servers.change([
      { kind: "add-server", server: { ...PROBE, scheduler } },
      { kind: "delete-server", server: PROBE },
    ]);
    if ((await links.addresses(DEVICE)) === undefined) {
      for (const kind of ["add-device", "delete-device"] as const) await links.change([{ kind, device: DEVICE }]);
    }
    return undefined;
  } catch (error) {
    return `${errorChainText(error)}; needed are ipvsadm, ipset, ip and: modprobe -a ${modules.join(" ")}`;
  }
}

async function prepare({ ipvs }: AgentConfig, kernel: Kernel, log: Log): Promise<void> {
  await setSysctls(requiredSysctls({ strictARP: ipvs.strictARP, kernel: kernelVersion() }), kernel, log);
  const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000);
  const [tcp, tcpFin, udp] = [ipvs.tcpTimeoutMs, ipvs.tcpFinTimeoutMs, ipvs.udpTimeoutMs].map(seconds);
  if (!tcp && !tcpFin && !udp) return;
  await kernel.ipvs.servers
    .setTimeouts({ tcp: tcp ?? 0, tcpFin: tcpFin ?? 0, udp: udp ?? 0 })
    .catch((error: unknown) => {
      log.warn("Failed to set IPVS timeouts; the kernel's stay in effect", { error: errorChainText(error) });
    });
}

/** What one family's backend works with. */
function ipvsPort(kernel: Pick<Kernel, "ipvs">, rules: IpvsPort["rules"]): IpvsPort {
  return { ...kernel.ipvs, rules };
}

async function serve({ config, families, kernel, log, progress, system }: ModeContext): Promise<ModeRuntime> {
  const loadScheduler = async (scheduler: Scheduler) => {
    const result = await kernel.modules.load(`ip_vs_${scheduler}`);
    return result.ok;
  };
  const ports = await openedTables(kernel, families);
  const backends = new Map(
    Array.from(ports, ([family, rules]) => [
      family,
      createIpvsBackend(ipvsPort(kernel, rules), {
        ...configuredOptions(config),
        loadScheduler,
        turn: progress.turnOf(family),
        ...(system && { clock: system.clock }),
        onProblem: (problem) => log.warn("Problem in ipvs mode", { ipFamily: family, problem }),
      }),
    ]),
  );
  return {
    backends,
    familiesAtOnce: atOnce(ipvsFacts, ports),
    watchForeign: watchRules(ports, ipvsFacts, system?.clock),
    isForeignChange: foreignChangeOf([...backends.values()]),
  };
}

/** The families share the device, and a change is one family's. */
function foreignChangeOf(backends: readonly IpvsModeBackend[]): NonNullable<ModeRuntime["isForeignChange"]> {
  return (change) => backends.some((backend) => backend.isStrange(change));
}

/**
 * The mode is known by its device and a chain that no other mode has. Nodes that never had it often lack the tools,
 * too.
 */
async function removeRules(
  kernel: Pick<Kernel, "ipvs">,
  rules: IpvsPort["rules"],
  keep?: KeepsChain,
): Promise<boolean> {
  const chains = await rules.chains("filter");
  if (!chains.has(IPVS_FILTER) && (await kernel.ipvs.links.addresses(DEVICE)) === undefined) return false;
  await removeIpvsMode(ipvsPort(kernel, rules), keep && { keep });
  return true;
}
