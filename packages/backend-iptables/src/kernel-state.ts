import { goesOn, type IPFamily, parseSave, type Rule, type TableState } from "@fairlead/netfilter";
import { digestOf } from "./plan/digest.ts";
import { isGroupChain } from "./plan/group-names.ts";
import { JUMPS } from "./plan/jumps.ts";
import type { RulesPort } from "./port.ts";

/** What a full sync has to know of the kernel before it writes. */
export interface KernelState {
  readonly filter: TableState;
  /** Rules of nat's built-in chains, as far as they may lead to ours. */
  readonly natJumps: ReadonlyMap<string, readonly Rule[]>;
  /** Chains of service ports and endpoints, wanted or not, with the digest of what they hold. */
  readonly groupChains: ReadonlyMap<string, string>;
}

export async function readKernel(port: RulesPort): Promise<KernelState> {
  const [filter, nat] = await Promise.all([port.save("filter"), readNat(port)]);
  return { filter, ...nat };
}

async function readNat(port: RulesPort): Promise<Omit<KernelState, "filter">> {
  const nat = new NatReader();
  for await (const line of port.saveLines("nat")) nat.read(line);
  return nat.end(port.family);
}

const BUILT_IN: readonly string[] = JUMPS.filter(({ table }) => table === "nat").map(({ chain }) => chain);

/** Reads nat, which may have hundreds of thousands of rules, and keeps a digest for each chain instead of them. */
class NatReader {
  readonly #groupChains = new Map<string, string>();
  readonly #jumpLines: string[] = [];
  /** Chains are declared before the first rule; what looks like one behind it is in a comment. */
  #declaring = true;
  /** A rule that may go on in the next line. */
  #rule: string | undefined;
  /** The chain whose rules are being read; they stand together. */
  #chain = "";
  #rules: string[] = [];

  read(line: string): void {
    if (this.#rule !== undefined && goesOn(this.#rule, line)) this.#rule += `\n${line}`;
    else {
      this.#endRule();
      if (line.startsWith("-A ")) this.#rule = line;
      else if (line.startsWith(":") && this.#declaring) this.#chainLine(line);
    }
  }

  end(family: IPFamily): Omit<KernelState, "filter"> {
    this.#endRule();
    this.#endChain();
    const text = ["*nat", ...BUILT_IN.map((chain) => `:${chain} ACCEPT [0:0]`), ...this.#jumpLines, "COMMIT", ""];
    const chains = parseSave(text.join("\n"), { family, lenient: true }).get("nat")?.chains;
    const natJumps = new Map(BUILT_IN.map((chain) => [chain, chains?.get(chain)?.rules ?? []]));
    return { natJumps, groupChains: this.#groupChains };
  }

  #chainLine(line: string): void {
    const chain = line.slice(1, line.indexOf(" "));
    if (isGroupChain(chain)) this.#groupChains.set(chain, digestOf([]));
  }

  #endRule(): void {
    const rule = this.#rule;
    if (rule === undefined) return;
    this.#rule = undefined;
    this.#declaring = false;
    const end = rule.indexOf(" ", 3);
    const chain = rule.slice(3, end);
    if (BUILT_IN.includes(chain)) this.#jumpLines.push(rule);
    if (!this.#groupChains.has(chain)) return;
    if (chain !== this.#chain) this.#endChain();
    this.#chain = chain;
    this.#rules.push(rule.slice(end + 1));
  }

  #endChain(): void {
    if (this.#chain !== "") this.#groupChains.set(this.#chain, digestOf(this.#rules));
    this.#rules = [];
  }
}
