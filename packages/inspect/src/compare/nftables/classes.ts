import type { Verdict } from "@fairlead/netfilter/nft";

/**
 * Services of about as many endpoints share a class, which is in the names of chains and maps: `endpoints-8`,
 * `external-endpoints-8`, `sticky-10800-8`. Which class a service is in depends on what it was before.
 */
const CLASS_CHAIN = /^(?:external-)?(.*?)(?:endpoints|sticky-\d+)-(\d+)$/;
/** What is there for services with affinity has numbers in it, in the order in which they were needed. */
const OF_CLASS =
  /(?:^|-)(?:endpoints-\d+|sticky-(?:gone-)?\d+(?:-\d+)?)$|^(?:local-)?sticky-(?:clients|slots|endpoints)$|^sticky-(?:ips|nodeports)$/;

/** Whether a chain or set is there for a class: one that nothing needs may stay, and one may not be there yet. */
export function isOfClass(name: string): boolean {
  return OF_CLASS.test(name);
}

/** The pool that a chain leads to: maps of this name, with the size behind it; undefined: it is no class's. */
export function poolOf(chain: string): { readonly pool: string; readonly size: string } | undefined {
  const [, prefix, size] = CLASS_CHAIN.exec(chain) ?? [];
  return prefix === undefined || size === undefined ? undefined : { pool: `${prefix}endpoints`, size };
}

/** A verdict as text, without the size of a class. */
export function verdictMeaning(verdict: Verdict): string {
  if (!("chain" in verdict)) return verdict.kind;
  return `${verdict.kind} ${verdict.chain.replace(/((?:^|-)(?:endpoints|sticky-\d+))-\d+$/, "$1-…")}`;
}
