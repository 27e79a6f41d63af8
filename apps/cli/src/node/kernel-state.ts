import { DEVICE } from "@fairlead/backend-ipvs";
import type { IPFamily } from "@fairlead/core";
import type { KernelState } from "@fairlead/inspect";
import { familyOf } from "@fairlead/intake";
import {
  CommandError,
  createIpset,
  createIpvsadm,
  createLinks,
  createNodeAddresses,
  detectVariant,
  type Runner,
} from "@fairlead/kernel";
import { LazySaveParser, type SavedRules, type SetState, type VirtualServerState } from "@fairlead/netfilter";
import { type Environment, packetSet } from "@fairlead/trace";
import { CommandFailure } from "../frame/errors.ts";

/** Milliseconds that a listing of very many rules may take. */
const LISTING_TIMEOUT = 120_000;

/**
 * Reads what the kernel of a node holds for one family: rules, sets, virtual servers, addresses.
 *
 * @throws CommandFailure when it cannot be read, for want of rights for example
 */
export async function readKernelState(runner: Runner, family: IPFamily): Promise<KernelState> {
  try {
    const ruleSet = await readRules(runner, family);
    const addresses = await nodeAddresses(runner);
    const services = (await orNothing(createLinks(runner).addresses(DEVICE))) ?? new Set<string>();
    const servers = await orNothing(collect(createIpvsadm(runner).save()));
    const sets = await orNothing(collect(createIpset(runner).save()));
    return { ruleSet, environment: environmentOf([...addresses, ...services], family, servers, sets) };
  } catch (error) {
    if (error instanceof CommandError) throw new CommandFailure(error.message, { cause: error });
    throw error;
  }
}

/** The addresses of a node's own interfaces, without those of services. */
export async function nodeAddresses(runner: Runner): Promise<readonly string[]> {
  return (await createNodeAddresses(runner).list()).map(({ address }) => address);
}

/** What a listing says, with as much of its node as is known. */
export function savedState(text: string, family: IPFamily, localAddresses: readonly string[]): KernelState {
  const parser = new LazySaveParser({ family });
  parser.push(text);
  return { ruleSet: parser.end(), environment: environmentOf(localAddresses, family) };
}

async function readRules(runner: Runner, family: IPFamily): Promise<SavedRules> {
  const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${await detectVariant(runner)}-save`;
  const parser = new LazySaveParser({ family });
  for await (const piece of runner.stream([tool], { timeoutMs: LISTING_TIMEOUT })) parser.push(piece);
  return parser.end();
}

function environmentOf(
  localAddresses: readonly string[],
  family: IPFamily,
  servers: readonly VirtualServerState[] = [],
  sets: readonly SetState[] = [],
): Environment {
  const local = new Set([...localAddresses, "127.0.0.1", "::1"]);
  return {
    localAddresses: [...local].filter((address) => familyOf(address) === family),
    outInterface: (to) => (local.has(to) ? "lo" : undefined),
    sets: new Map(sets.flatMap(packetSetOf)),
    // As ipvs mode sets the kernel up.
    ...(servers.length > 0 && { ipvs: { servers, conntrack: true, expireQuiescentTemplate: true } }),
  };
}

/** Sets of types that no service proxy has are left out: a rule that asks them says so. */
function packetSetOf({ name, type, members }: SetState): [string, ReturnType<typeof packetSet>][] {
  try {
    return [[name, packetSet(type, members)]];
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}

/** A node without the tool, or without that part of the kernel, has nothing of it. */
async function orNothing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
