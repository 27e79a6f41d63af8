import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { KernelState } from "@fairlead/inspect";
import { CommandError, createNodeAddresses, type Runner } from "@fairlead/kernel";
import { readSave } from "@fairlead/netfilter";
import { CommandFailure } from "../frame/errors.ts";
import { liveEnvironment } from "./environment.ts";
import { liveRules } from "./rules.ts";

/**
 * Reads what the kernel of a node holds for one family: rules, sets, virtual servers, addresses, routes.
 *
 * @throws CommandFailure when it cannot be read, for want of rights for example
 */
export async function readKernelState(runner: Runner, family: IPFamily): Promise<KernelState> {
  try {
    const { rules: ruleSet, nftables = [] } = await liveRules(runner, family);
    return { ruleSet, nftables, environment: await liveEnvironment(runner, family) };
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
export function savedState(saved: Uint8Array, family: IPFamily, localAddresses: readonly string[]): KernelState {
  const local = [...localAddresses, "127.0.0.1", "::1"].filter((address) => familyOf(address) === family);
  return { ruleSet: readSave(saved, { family }), environment: { localAddresses: local } };
}
