import {
  createIpvsBackend,
  DEVICE,
  type IpvsModeBackend,
  type IpvsPort,
  isScheduler,
  requiredSysctls,
  type Scheduler,
} from "@fairlead/backend-ipvs";
import type { AgentConfig } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { kernelVersion } from "@fairlead/kernel";
import type { Kernel } from "../host/kernel.ts";
import { describeError, type Log } from "../log/log.ts";
import type { AgentParts } from "../run/parts.ts";
import type { Progress } from "../sync/progress.ts";

export { ipvsSemantics } from "@fairlead/backend-ipvs";

/** An address for documentation (RFC 5737), which upstream probes with as well. */
const probe = { server: "-t 198.51.100.0:20000", scheduler: "rr" };

/**
 * Why this node cannot do ipvs mode; undefined: it can. The modules are loaded where that is needed, and a virtual server
 * is made and removed: many parts of the kernel show that they are missing only when they are used.
 */
export async function whyNoIpvs({ ipvs }: AgentConfig, kernel: Kernel): Promise<string | undefined> {
  const scheduler = ipvs.scheduler === "" ? probe.scheduler : ipvs.scheduler;
  const modules = ["ip_vs", `ip_vs_${scheduler}`, "nf_conntrack", "ip_set", "xt_set", "dummy"];
  // Built-in parts are not always to be seen as such: what counts is what works.
  for (const module of modules) await kernel.modules.load(module);
  const { servers, sets, links } = kernel.ipvs;
  try {
    for await (const set of sets.save()) if (set.name === "") break;
    await servers.restore(`-A ${probe.server} -s ${scheduler}\n-D ${probe.server}\n`);
    if ((await links.addresses(DEVICE)) === undefined) await links.batch(`link add dev ${DEVICE} type dummy\n`);
    return undefined;
  } catch (error) {
    return `${describeError(error)}; needed are ipvsadm, ipset, ip and: modprobe -a ${modules.join(" ")}`;
  }
}

/** Sets the kernel settings that ipvs mode relies on. What cannot be set costs what it is for, and one line. */
export async function prepareIpvs({ ipvs }: AgentConfig, kernel: Kernel, log: Log): Promise<void> {
  for (const { name, value, reason } of requiredSysctls({ strictARP: ipvs.strictARP, kernel: kernelVersion() })) {
    const result = await kernel.sysctl.set(name.replaceAll(".", "/"), value);
    if (result.outcome === "changed") log.info("Set a sysctl", { name, value, reason });
    else if (result.outcome !== "kept") {
      log.warn("A sysctl cannot be set", { name, value, neededFor: reason, reason: result.reason });
    }
  }
  const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000);
  const [tcp, tcpFin, udp] = [ipvs.tcpTimeoutMs, ipvs.tcpFinTimeoutMs, ipvs.udpTimeoutMs].map(seconds);
  if (!tcp && !tcpFin && !udp) return;
  await kernel.ipvs.servers
    .setTimeouts({ tcp: tcp ?? 0, tcpFin: tcpFin ?? 0, udp: udp ?? 0 })
    .catch((error: unknown) => {
      log.warn("The timeouts of IPVS cannot be set", { error: describeError(error) });
    });
}

/** What one family's backend works with. */
export function ipvsPort(kernel: Pick<Kernel, "ipvs">, rules: IpvsPort["rules"]): IpvsPort {
  return { ...kernel.ipvs, rules };
}

/** What the agent runs in ipvs mode. */
export interface IpvsServing extends Pick<AgentParts, "strangeChange"> {
  /** One a family. */
  readonly backends: ReadonlyMap<IPFamily, IpvsModeBackend>;
}

export function ipvsServing(
  config: AgentConfig,
  ports: ReadonlyMap<IPFamily, IpvsPort["rules"]>,
  kernel: Kernel,
  log: Log,
  progress: Progress,
): IpvsServing {
  const loadScheduler = async (scheduler: Scheduler) => {
    const result = await kernel.modules.load(`ip_vs_${scheduler}`);
    return result.ok;
  };
  const backends = new Map(
    Array.from(ports, ([family, rules]) => [
      family,
      createIpvsBackend(ipvsPort(kernel, rules), {
        masqueradeBit: config.masqueradeBit,
        scheduler: isScheduler(config.ipvs.scheduler) ? config.ipvs.scheduler : probe.scheduler,
        excludeCIDRs: config.ipvs.excludeCIDRs,
        loadScheduler,
        breathe: progress.breathe(family),
        onProblem: (problem) => log.warn("ipvs", { ipFamily: family, problem }),
      }),
    ]),
  );
  return { backends, strangeChange: strangeTo([...backends.values()]) };
}

/** The families share the device, and a change is one family's. */
export function strangeTo(backends: readonly IpvsModeBackend[]): NonNullable<AgentParts["strangeChange"]> {
  return (change) => backends.some((backend) => backend.isStrange(change));
}
