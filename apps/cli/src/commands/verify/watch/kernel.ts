// How a node's kernel is read: in which mode a proxy programmed it, and what it holds of one family.
import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import {
  addressEnvironment,
  ipvsEnvironment,
  type KernelState,
  type Mode,
  ownRules,
  type View,
  viewOf,
} from "@fairlead/inspect";
import type { KernelReader } from "@fairlead/kernel";
import type { SavedRules } from "@fairlead/netfilter";
import type { Environment } from "@fairlead/trace";

/** A mode in which the other proxy may run, and how it is seen in the kernel. */
export interface SeenMode {
  readonly name: Mode & ("iptables" | "ipvs" | "nftables");
  /** Whether a proxy runs in it here, or ran last. */
  isHere(kernel: KernelReader): Promise<boolean>;
  /** A number that rises with every change; undefined: it is unknown whether there was one. */
  generation(kernel: KernelReader): Promise<number | undefined>;
  /** @param host what this node is without the proxy */
  read(kernel: KernelReader, family: IPFamily, host: Environment): Promise<KernelState>;
}

const TABLE = "kube-proxy";
const DEVICE = "kube-ipvs0";
/** Chains of nat: the first is ipvs mode's too, which makes it long before it binds an address. */
const OF_IPTABLES_MODE = ["KUBE-SERVICES", "KUBE-NODEPORTS"];
const ASKED_SET = / --match-set (KUBE-\S+) /g;

const nftables: SeenMode = {
  name: "nftables",
  isHere: async (kernel) => (await kernel.hasNftTable("IPv4", TABLE)) || kernel.hasNftTable("IPv6", TABLE),
  generation: (kernel) => kernel.generation(),
  async read(kernel, family, environment) {
    const table = await kernel.nftTable(family, TABLE);
    return { ruleSet: new Map(), nftables: table === undefined ? [] : [table], environment };
  },
};

const ipvs: SeenMode = {
  name: "ipvs",
  isHere: async (kernel) => ((await kernel.addressesOf(DEVICE))?.size ?? 0) > 0,
  generation: async () => undefined,
  async read(kernel, family, host) {
    const rules = await kernel.rules(family);
    const [servers, sets, addresses] = await Promise.all([
      kernel.servers(),
      kernel.sets(setsAskedIn(rules)),
      kernel.addressesOf(DEVICE),
    ]);
    const conntrack = (await kernel.setting("net/ipv4/vs/conntrack")) === "1";
    const expireQuiescentTemplate = (await kernel.setting("net/ipv4/vs/expire_quiescent_template")) === "1";
    const settings = { conntrack, expireQuiescentTemplate };
    const environment = ipvsEnvironment(host, { servers, sets, addresses }, settings);
    return { ruleSet: ownRules(rules), environment };
  },
};

const iptables: SeenMode = {
  name: "iptables",
  async isHere(kernel) {
    for (const family of IP_FAMILIES) {
      const chains = (await kernel.rules(family)).get("nat")?.chains;
      if (chains !== undefined && OF_IPTABLES_MODE.every((name) => chains.has(name))) return true;
    }
    return false;
  },
  generation: (kernel) => kernel.rulesGeneration(),
  read: async (kernel, family, environment) => ({ ruleSet: ownRules(await kernel.rules(family)), environment }),
};

/** Others' sets may be large, and decide nothing here. */
function setsAskedIn(rules: SavedRules): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { chains } of rules.values()) {
    for (const { texts } of chains.values()) {
      for (const text of texts) for (const [, name = ""] of ` ${text} `.matchAll(ASKED_SET)) names.add(name);
    }
  }
  return names;
}

/** What is dear to look for comes last; a proxy removes what its other modes left. */
const MODES: readonly SeenMode[] = [nftables, ipvs, iptables];

/**
 * The mode in which a proxy serves this node.
 *
 * @returns undefined: there is none
 */
export async function seenMode(kernel: KernelReader): Promise<SeenMode | undefined> {
  for (const mode of MODES) if (await mode.isHere(kernel)) return mode;
  return undefined;
}

export interface Reading {
  readonly view: View;
  readonly nodeAddress: string | undefined;
}

interface ReadFrom {
  readonly family: IPFamily;
  readonly mode: SeenMode;
  readonly kernel: KernelReader;
}

/** How often it begins anew since another program wrote meanwhile. */
const MOST_TRIES = 3;

/**
 * Reads the kernel, again where that fails since another program wrote meanwhile: what a transaction takes away is
 * missing then.
 *
 * @param generation of the kernel when it begins; undefined: the kernel has no generation
 * @throws whatever reading ends with
 */
export async function readKernel(from: ReadFrom, generation: number | undefined): Promise<Reading> {
  let before = generation;
  for (let tries = 1; ; tries++) {
    try {
      return await readOnce(from);
    } catch (error) {
      const now = await from.mode.generation(from.kernel);
      if (now === before || tries === MOST_TRIES) throw error;
      before = now;
    }
  }
}

async function readOnce({ mode, kernel, family }: ReadFrom): Promise<Reading> {
  const { environment, nodeAddress } = await hostOf(kernel, family);
  return { view: viewOf(await mode.read(kernel, family, environment)), nodeAddress };
}

interface SeenHost {
  readonly environment: Environment;
  /** Where node ports are asked for; absent: the node has no address of the family. */
  readonly nodeAddress: string | undefined;
}

/** This node as a packet meets it, without what a proxy made of it. */
async function hostOf({ addresses }: Pick<KernelReader, "addresses">, family: IPFamily): Promise<SeenHost> {
  const all = await addresses.list();
  const first = all.find((one) => one.family === family && one.scope === "global");
  return { environment: addressEnvironment(all, family), nodeAddress: first?.address };
}
