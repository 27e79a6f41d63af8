/** What becomes of a packet, or where it goes on. */
export type Verdict =
  | { readonly kind: "accept" | "drop" | "return" | "continue" }
  | { readonly kind: "jump" | "goto"; readonly chain: string };

/** linux/netfilter/nf_tables.h, enum nft_verdicts; accept and drop are those of netfilter. */
const CODES = { drop: 0, accept: 1, continue: -1, jump: -3, goto: -4, return: -5 } as const;

export function verdictCode({ kind }: Verdict): number {
  return CODES[kind];
}

/** @returns undefined for a code that no rule of nftables has here (queue, or one of a newer kernel) */
export function verdictOf(code: number, chain: string | undefined): Verdict | undefined {
  const found = Object.entries(CODES).find(([, known]) => known === code);
  // The entries of a constant have its own keys.
  const kind = found?.[0] as keyof typeof CODES | undefined;
  if (kind === undefined) return undefined;
  if (kind !== "jump" && kind !== "goto") return { kind };
  return chain === undefined ? undefined : { kind, chain };
}

/** A verdict as nft prints it: `accept`, `jump services`. */
export function verdictText(verdict: Verdict): string {
  return "chain" in verdict ? `${verdict.kind} ${verdict.chain}` : verdict.kind;
}
