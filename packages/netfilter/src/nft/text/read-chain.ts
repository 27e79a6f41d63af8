import { type BaseChain, HOOKS, type NftChain } from "../model.ts";
import { type ReadRule, readRule } from "./read-rule.ts";
import { NAMED_PRIORITIES } from "./table.ts";
import { cut, HANDLE, type Token, TokenReader } from "./tokens.ts";

/** A chain and its rules, from what stands between its braces. */
export function readChain(
  name: string,
  content: readonly Token[],
): { readonly chain: Omit<NftChain, "rules">; readonly rules: readonly ReadRule[] } {
  const rules: ReadRule[] = [];
  let chain: Omit<NftChain, "rules"> = { name };
  for (const line of cut(content, "\n", ";")) {
    const reader = new TokenReader(line);
    if (reader.take("comment")) chain = { ...chain, comment: reader.next().text };
    else if (reader.take("type")) chain = withBase(chain, readBase(reader));
    else if (reader.take("policy")) chain = withPolicy(chain, reader.next().text);
    else if (!reader.peek().startsWith(HANDLE)) rules.push(readRule(line));
  }
  return { chain, rules };
}

function withBase(chain: Omit<NftChain, "rules">, base: BaseChain | undefined): Omit<NftChain, "rules"> {
  return base === undefined ? chain : { ...chain, base };
}

function withPolicy(chain: Omit<NftChain, "rules">, policy: string): Omit<NftChain, "rules"> {
  return chain.base && policy === "drop" ? { ...chain, base: { ...chain.base, policy } } : chain;
}

/** `filter hook input priority filter + 10`; undefined: a hook that is not known here. */
function readBase(reader: TokenReader): BaseChain | undefined {
  const type = reader.next().text;
  reader.take("hook");
  const name = reader.next().text;
  const hook = HOOKS.find((one) => one === name);
  reader.take("priority");
  const priority = readPriority(reader);
  if (hook === undefined || (type !== "filter" && type !== "nat" && type !== "route")) return undefined;
  return { type, hook, priority, policy: "accept" };
}

/** `filter + 10`, `-300`. */
export function readPriority(reader: TokenReader): number {
  const word = reader.next().text;
  const named = NAMED_PRIORITIES.find(([name]) => name === word)?.[1] ?? Number(word);
  if (reader.take("-")) return named - Number(reader.next().text);
  return reader.take("+") ? named + Number(reader.next().text) : named;
}
