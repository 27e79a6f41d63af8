/** Which mode this node runs in, and which families it has. */

import { errorChainText, IP_FAMILIES, isUnspecified } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { primaryFamily } from "@fairlead/intake";
import type { Kernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import type { Mode, OpenedFor } from "../modes/mode.ts";
import { whyUnserved } from "../run/inputs.ts";
import { StartError } from "./process.ts";

interface ChosenMode {
  readonly mode: Mode;
  /** Why it is not the one that was asked for. */
  readonly fallback?: string;
}

/**
 * The mode that this node runs in. One that the node cannot do becomes the one that it names for that, and a line says
 * so; a mode without a backend is never replaced by another one.
 *
 * @throws StartError naming what is missing
 */
export async function chooseMode(
  modes: readonly Mode[],
  config: AgentConfig,
  kernel: Kernel,
  log: Log,
): Promise<ChosenMode> {
  const asked = config.mode;
  const mode = named(modes, asked);
  if (mode === undefined) {
    throw new StartError(
      `--proxy-mode=${asked} (mode in the configuration file): this version of Fairlead has no ${asked} mode; ` +
        `use ${names(modes)}`,
    );
  }
  const reason = await mode.whyNot?.(config, kernel);
  if (reason === undefined) return { mode };
  const { fallback } = mode;
  const instead = fallback?.allowed(config) === true ? named(modes, fallback.mode) : undefined;
  if (instead === undefined) {
    const flag = fallback === undefined ? "" : ` (and ${fallback.flag}=false)`;
    throw new StartError(`--proxy-mode=${asked}: not available on this node${flag}: ${reason}`);
  }
  log.warn(`${asked} mode is not available on this node; serving in ${instead.facts.name} mode`, { reason });
  return { mode: instead, fallback: reason };
}

interface OpenedFamilies {
  /** Those that the mode can serve here. */
  readonly families: readonly IPFamily[];
  /** The families that this node cannot do, and why. */
  readonly unserved: ReadonlyMap<IPFamily, string>;
}

/**
 * Opens each family that this node can do in a mode; what it cannot do is left out with a line. The primary family
 * has to work. Where no address is to be bound, it is the Node's first address that says which one that is, and the
 * agent looks when it knows the Node (as upstream, cmd/kube-proxy/app/server.go).
 */
export async function openFamilies(
  mode: Mode,
  kernel: Kernel,
  config: Pick<AgentConfig, "bindAddress" | "serviceProxyName">,
  log: Log,
): Promise<OpenedFamilies> {
  const { bindAddress } = config;
  const families: IPFamily[] = [];
  const unserved = new Map<IPFamily, string>();
  for (const { family, opened } of await openAll(mode, kernel, config)) {
    if (opened.status === "fulfilled") families.push(family);
    else unserved.set(family, errorChainText(opened.reason));
  }
  if (families.length === 0) {
    const reasons = Array.from(unserved, ([family, reason]) => `${family}: ${reason}`);
    throw new StartError(`cannot serve IPv4 or IPv6: ${reasons.join("; ")}`);
  }
  const refusal = isUnspecified(bindAddress)
    ? undefined
    : whyUnserved(primaryFamily({ bindAddress, node: [], kernel: {} }), unserved);
  if (refusal !== undefined) throw new StartError(refusal);
  for (const [ipFamily, reason] of unserved) {
    log.warn("IP family unavailable; its services are not served on this node", { ipFamily, reason });
  }
  return { families, unserved };
}

function named(modes: readonly Mode[], name: string): Mode | undefined {
  return modes.find(({ facts }) => facts.name === name);
}

/** `iptables, ipvs or userspace` */
function names(modes: readonly Mode[]): string {
  const all = modes.map(({ facts }) => facts.name).sort();
  return [all.slice(0, -1).join(", "), ...all.slice(-1)].filter((text) => text !== "").join(" or ");
}

interface Opened {
  readonly family: IPFamily;
  readonly opened: PromiseSettledResult<void>;
}

/** Tools are searched side by side; tables are read one after the other, as legacy tools wait for one lock. */
async function openAll(mode: Mode, kernel: Kernel, config: OpenedFor): Promise<readonly Opened[]> {
  const searching = IP_FAMILIES.map((family) => ({ family, found: findTools(mode, kernel, family) }));
  await Promise.allSettled(searching.map(({ found }) => found));
  const all: Opened[] = [];
  for (const { family, found } of searching) {
    const [opened] = await Promise.allSettled([found.then(() => mode.open(kernel, family, config))]);
    all.push({ family, opened });
  }
  return all;
}

async function findTools({ facts }: Mode, kernel: Kernel, family: IPFamily): Promise<void> {
  if (family === "IPv6") await checkIPv6(kernel);
  if (facts.needs.iptables.length > 0) await kernel.iptables(family);
}

async function checkIPv6({ sysctl }: Kernel): Promise<void> {
  const disabled = await sysctl.read("net/ipv6/conf/all/disable_ipv6");
  if (disabled === undefined) throw new Error("this kernel has no IPv6");
  if (disabled === "1") throw new Error("IPv6 is turned off (sysctl net.ipv6.conf.all.disable_ipv6=1)");
}
