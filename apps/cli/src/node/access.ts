import { readFileSync } from "node:fs";
import { errorText, familyOf, IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import {
  type KernelState,
  kernelStateOf,
  type NodeState,
  partOf,
  type StatePart,
  savedRules,
  UnreadState,
} from "@fairlead/inspect";
import type { Runner } from "@fairlead/kernel";
import { RuleParseError } from "@fairlead/netfilter";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { type AgentAccess, type Agents, agentsOf, findAgentPod, runnerInPod } from "./agent-pods.ts";
import { stateIn } from "./read-state.ts";
import { familiesOfPlanText, isPlanText, plannedState, rulesFailure } from "./rules.ts";

interface NamedKernel {
  readonly live: boolean;
  readonly on: string | undefined;
  readonly rules: string | undefined;
}

type KernelValues = NamedKernel & AgentAccess;

export interface NodeKernel {
  /** The addresses of the node's interfaces; absent where only rules are known. */
  readonly addresses?: readonly string[];
  readonly families: readonly IPFamily[];
  /** @param localAddresses what counts as the node's own where only rules are known */
  state(family: IPFamily, localAddresses: readonly string[]): Promise<KernelState>;
}

/**
 * The kernel that the options name; undefined: none was asked for.
 *
 * @throws UsageError for more than one; CommandFailure when it cannot be reached
 */
export async function openKernel(options: KernelValues, context: Context): Promise<NodeKernel | undefined> {
  const { live, on, rules } = options;
  oneKernel(options);
  if (rules !== undefined) return savedKernel(rules, context);
  if (on === undefined && !live) return undefined;
  const where = on ?? "this node";
  const state = await context.progress(`reading the kernel of ${where}`, () => stateOf(options, context));
  return {
    addresses: interfaceAddresses(state),
    families: IP_FAMILIES,
    state: async (family) => orFailure(() => kernelStateOf(state, family)),
  };
}

/** The state of the node that the options name, or of this host. */
export async function stateOf(
  options: Pick<KernelValues, "on"> & AgentAccess,
  context: Pick<Context, "stateHere" | "env" | "warn">,
  parts?: readonly StatePart[],
): Promise<NodeState> {
  const { on } = options;
  if (on === undefined) return context.stateHere(parts);
  return stateIn(await runnerOn(on, agentsOf(options, context)), parts);
}

/** The addresses of a node's own interfaces, without those of services. */
export function interfaceAddresses(state: NodeState): readonly string[] {
  return orFailure(() => partOf(state, "addresses")).map(({ address }) => address);
}

/**
 * What reading a state gives.
 *
 * @param what stands before the reason
 */
export function orFailure<T>(read: () => T, what?: string): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UnreadState || error instanceof RuleParseError)) throw error;
    throw new CommandFailure(what === undefined ? error.message : `${what}: ${error.message}`, { cause: error });
  }
}

export function oneKernel({ live, on, rules }: NamedKernel): void {
  if ([live, on !== undefined, rules !== undefined].filter(Boolean).length > 1) {
    throw new UsageError("--live, --on and --rules are mutually exclusive: each names another kernel");
  }
}

/** Starts programs on the node that the options name, or here. */
export function runnerFor(
  options: Pick<KernelValues, "on"> & AgentAccess,
  context: Pick<Context, "runner" | "env" | "warn">,
): Promise<Runner> {
  const { on } = options;
  return on === undefined ? Promise.resolve(context.runner) : runnerOn(on, agentsOf(options, context));
}

/** Starts programs in the network namespace of a cluster's node. */
async function runnerOn(node: string, agents: Agents): Promise<Runner> {
  return runnerInPod(agents.cluster, await findAgentPod(node, agents));
}

async function savedKernel(file: string, { readStandardInput }: Context): Promise<NodeKernel> {
  const saved = file === "-" ? await readStandardInput() : readBytes(file);
  const bytes = Buffer.from(saved.buffer, saved.byteOffset, saved.byteLength);
  const plan = isPlanText(bytes.toString("latin1", 0, LONGEST_RULE)) ? bytes.toString() : undefined;
  return {
    families: plan === undefined ? [familyOfRules(saved)] : familiesOfPlanText(plan),
    state: async (family, localAddresses) => {
      try {
        if (plan === undefined) return savedState(bytes, family, localAddresses);
        return plannedState(plan, family, { localAddresses });
      } catch (error) {
        throw rulesFailure(`--rules=${file}`, error);
      }
    },
  };
}

/** What a listing says, with as much of its node as is known. */
function savedState(saved: Buffer, family: IPFamily, localAddresses: readonly string[]): KernelState {
  const local = [...localAddresses, "127.0.0.1", "::1"].filter((address) => familyOf(address) === family);
  return { ruleSet: savedRules(saved.toString("utf8"), family), environment: { localAddresses: local } };
}

/** By its comment or the first address in it; rules without any are IPv4's. */
function familyOfRules(saved: Uint8Array): IPFamily {
  const bytes = Buffer.from(saved.buffer, saved.byteOffset, saved.byteLength);
  const head = bytes.toString("latin1", 0, 1_000);
  if (head.includes("# Generated by ip6tables")) return "IPv6";
  const rules = bytes.indexOf("-A ");
  for (let from = Math.max(0, rules); from < bytes.length; from += SEARCHED) {
    const piece = bytes.toString("latin1", from, from + SEARCHED + LONGEST_RULE);
    const [, address] = /^(?:\[\S+\] )?-A .*? -[sd] ([\d.a-f:]+)\/\d/m.exec(piece) ?? [];
    if (address !== undefined) return familyOf(address);
  }
  return "IPv4";
}

/** Bytes that are looked through at once for an address: nearly always the first rules have one. */
const SEARCHED = 1 << 16;
const LONGEST_RULE = 1 << 12;

function readBytes(file: string): Uint8Array {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new CommandFailure(`--rules=${file}: ${errorText(error)}`, { cause: error });
  }
}
