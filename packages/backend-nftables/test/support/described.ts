import type { NftTable } from "@fairlead/netfilter/nft";

/**
 * A table as plain data to compare, without what only a kernel that holds it says: handles, how long elements stay yet,
 * user data.
 */
export function described({ comment, chains, sets }: NftTable) {
  return {
    comment,
    chains: byName(chains, ({ base, comment, rules }) => ({
      base,
      comment,
      rules: rules.map(({ expressions, comment }) => ({ expressions, comment })),
    })),
    sets: byName(sets, ({ key, data, flags, timeout, comment, elements }) => ({
      key,
      data,
      flags: flags.toSorted(),
      timeout,
      comment,
      elements: [...elements.values()]
        .map(({ key, value, comment }) => ({ key, value, comment }))
        .sort((a, b) => (a.key < b.key ? -1 : 1)),
    })),
  };
}

function byName<T, D>(objects: ReadonlyMap<string, T>, describe: (object: T) => D): Readonly<Record<string, D>> {
  const sorted = [...objects].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([name, object]) => [name, describe(object)]));
}
