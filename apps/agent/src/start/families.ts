import type { IptablesPort } from "@fairlead/backend-iptables";
import type { IPFamily } from "@fairlead/core";
import { allFamilies, familyOf } from "@fairlead/intake";
import type { Kernel } from "../kernel/kernel.ts";
import { describeError, type Log } from "../log/log.ts";
import { StartError } from "./start-error.ts";

/**
 * Opens the iptables of each family that this node can do. The primary family has to work; the other one is left out
 * with a line, as upstream leaves it out.
 *
 * @param bindAddress KubeProxyConfiguration.bindAddress; its family is the primary one
 * @throws StartError saying what is missing and how to get it
 */
export async function openFamilies(
  kernel: Kernel,
  bindAddress: string,
  log: Log,
): Promise<ReadonlyMap<IPFamily, IptablesPort>> {
  const primary = familyOf(bindAddress);
  const ports = new Map<IPFamily, IptablesPort>();
  for (const { family, opened } of await openAll(kernel)) {
    if (opened.status === "fulfilled") {
      ports.set(family, opened.value);
      continue;
    }
    const reason = describeError(opened.reason);
    if (family === primary) throw new StartError(`${family} cannot be served: ${reason}`, { cause: opened.reason });
    log.warn("This family is left out: its services are not served here", { ipFamily: family, reason });
  }
  return ports;
}

interface Opened {
  readonly family: IPFamily;
  readonly opened: PromiseSettledResult<IptablesPort>;
}

/** Tools are looked for side by side; looks into tables come one after the other, as legacy tools wait for one lock. */
async function openAll(kernel: Kernel): Promise<readonly Opened[]> {
  const finding = allFamilies.map((family) => ({ family, found: findTools(kernel, family) }));
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
