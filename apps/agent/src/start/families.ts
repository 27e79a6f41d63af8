import type { IptablesPort } from "@fairlead/backend-iptables";
import { ipFamilies, isUnspecified } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { primaryFamily } from "@fairlead/intake";
import type { Kernel } from "../host/kernel.ts";
import { describeError, type Log } from "../log/log.ts";
import { whyUnserved } from "../node/primary-family.ts";
import { StartError } from "./start-error.ts";

export interface OpenedFamilies {
  readonly ports: ReadonlyMap<IPFamily, IptablesPort>;
  /** The families that this node cannot do, and why. */
  readonly unserved: ReadonlyMap<IPFamily, string>;
}

/**
 * Opens the iptables of each family that this node can do; what it cannot do is left out with a line. The primary family
 * has to work. Where no address is to be bound, it is the Node's first address that says which one that is, and the agent
 * looks when it knows the Node (as upstream, cmd/kube-proxy/app/server.go).
 *
 * @param bindAddress KubeProxyConfiguration.bindAddress
 * @throws StartError saying what is missing and how to get it
 */
export async function openFamilies(kernel: Kernel, bindAddress: string, log: Log): Promise<OpenedFamilies> {
  const ports = new Map<IPFamily, IptablesPort>();
  const unserved = new Map<IPFamily, string>();
  for (const { family, opened } of await openAll(kernel)) {
    if (opened.status === "fulfilled") ports.set(family, opened.value);
    else unserved.set(family, describeError(opened.reason));
  }
  if (ports.size === 0) {
    const reasons = Array.from(unserved, ([family, reason]) => `${family}: ${reason}`);
    throw new StartError(`neither family can be served: ${reasons.join("; ")}`);
  }
  const refusal = isUnspecified(bindAddress)
    ? undefined
    : whyUnserved(primaryFamily({ bindAddress, node: [], kernel: {} }), unserved);
  if (refusal !== undefined) throw new StartError(refusal);
  for (const [ipFamily, reason] of unserved) {
    log.warn("This family is left out: its services are not served here", { ipFamily, reason });
  }
  return { ports, unserved };
}

interface Opened {
  readonly family: IPFamily;
  readonly opened: PromiseSettledResult<IptablesPort>;
}

/** Tools are looked for side by side; looks into tables come one after the other, as legacy tools wait for one lock. */
async function openAll(kernel: Kernel): Promise<readonly Opened[]> {
  const finding = ipFamilies.map((family) => ({ family, found: findTools(kernel, family) }));
  await Promise.allSettled(finding.map(({ found }) => found));
  const all: Opened[] = [];
  for (const { family, found } of finding) {
    const [opened] = await Promise.allSettled([found.then(look)]);
    all.push({ family, opened });
  }
  return all;
}

async function findTools(kernel: Kernel, family: IPFamily): Promise<IptablesPort> {
  if (family === "IPv6") await checkIPv6(kernel);
  return kernel.iptables(family);
}

/**
 * Opening finds the tools; only looking into the tables finds missing permissions and kernel parts. One rule: after a
 * restart the tables are full.
 */
async function look(port: IptablesPort): Promise<IptablesPort> {
  for (const table of ["nat", "filter"] as const) await port.list(table, "OUTPUT", 1);
  return port;
}

async function checkIPv6({ sysctl }: Kernel): Promise<void> {
  const disabled = await sysctl.read("net/ipv6/conf/all/disable_ipv6");
  if (disabled === undefined) throw new Error("this kernel has no IPv6");
  if (disabled === "1") throw new Error("IPv6 is turned off (sysctl net.ipv6.conf.all.disable_ipv6=1)");
}
