import { parseSave, type Rule, type TableState } from "@fairlead/netfilter";
import { digestOf } from "./plan/digest.ts";
import { isGroupChain } from "./plan/group-names.ts";
import { JUMPS } from "./plan/jumps.ts";
import type { IptablesPort } from "./port.ts";

/** What a full sync has to know of the kernel before it writes. */
export interface KernelState {
  readonly filter: TableState;
  /** Rules of nat's built-in chains, as far as they may lead to ours. */
  readonly natJumps: ReadonlyMap<string, readonly Rule[]>;
  /** Chains of service ports and endpoints, wanted or not, with the digest of what they hold. */
  readonly groupChains: ReadonlyMap<string, string>;
}

export async function readKernel(port: IptablesPort): Promise<KernelState> {
  const [filter, nat] = await Promise.all([port.save("filter"), readNat(port)]);
  return { filter, ...nat };
}

async function readNat(port: IptablesPort): Promise<Omit<KernelState, "filter">> {
  const nat = new NatReader();
  for await (const line of port.saveLines("nat")) nat.read(line);
  return nat.end(port.family);
}

const BUILT_IN: readonly string[] = JUMPS.filter(({ table }) => table === "nat").map(({ chain }) => chain);

/** Reads nat, which may have hundreds of thousands of rules, and keeps a digest for each chain instead of them. */
class NatReader {
  readonly #groupChains = new Map<string, string>();
  readonly #jumpLines: string[] = [];
  /** The chain whose rules are being read; they stand together. */
  #chain = "";
  #rules: string[] = [];

  read(line: string): void {
    if (line.startsWith(":")) this.#chainLine(line);
    else if (line.startsWith("-A ")) this.#ruleLine(line);
  }

  end(family: IptablesPort["family"]): Omit<KernelState, "filter"> {
    this.#endChain();
    const text = ["*nat", ...BUILT_IN.map((chain) => `:${chain} ACCEPT [0:0]`), ...this.#jumpLines, "COMMIT", ""];
    const chains = parseSave(text.join("\n"), { family }).get("nat")?.chains;
    const natJumps = new Map(BUILT_IN.map((chain) => [chain, chains?.get(chain)?.rules ?? []]));
    return { natJumps, groupChains: this.#groupChains };
  }

  #chainLine(line: string): void {
    const chain = line.slice(1, line.indexOf(" "));
    if (isGroupChain(chain)) this.#groupChains.set(chain, digestOf([]));
  }

  #ruleLine(line: string): void {
    const end = line.indexOf(" ", 3);
    const chain = line.slice(3, end);
    if (BUILT_IN.includes(chain)) this.#jumpLines.push(line);
    if (!this.#groupChains.has(chain)) return;
    if (chain !== this.#chain) this.#endChain();
    this.#chain = chain;
    this.#rules.push(line.slice(end + 1));
  }

  #endChain(): void {
    if (this.#chain !== "") this.#groupChains.set(this.#chain, digestOf(this.#rules));
    this.#rules = [];
  }
}
