import type { Rule, TableState } from "@fairlead/netfilter";
import { isGroupChain } from "./plan/group-names.ts";
import { JUMPS } from "./plan/jumps.ts";
import type { IptablesPort } from "./port.ts";

/** What a full sync has to know of the kernel before it writes. */
export interface KernelState {
  readonly filter: TableState;
  /** Rules of nat's built-in chains, as far as they may lead to ours. */
  readonly natJumps: ReadonlyMap<string, readonly Rule[]>;
  /** Chains of service ports and endpoints, wanted or not. */
  readonly groupChains: Set<string>;
}

/** The rules of nat's many chains are not read: all that is wanted of them is written anew. */
export async function readKernel(port: IptablesPort): Promise<KernelState> {
  const filter = await port.save("filter");
  const groupChains = new Set<string>();
  for (const chain of await port.chains("nat")) if (isGroupChain(chain)) groupChains.add(chain);
  return { filter, natJumps: await readNatJumps(port), groupChains };
}

async function readNatJumps(port: IptablesPort): Promise<ReadonlyMap<string, readonly Rule[]>> {
  const rules = new Map<string, readonly Rule[]>();
  for (const { table, chain } of JUMPS) {
    if (table === "nat") rules.set(chain, (await port.list("nat", chain)) ?? []);
  }
  return rules;
}
