import type { AgentOptions, ConformanceCase, RawObject } from "@fairlead/testkit";

/** Rows with equal options, which share one cluster. */
export interface CaseGroup {
  readonly options: AgentOptions;
  readonly rows: readonly ConformanceCase[];
  /** The histories of all rows as one: each state is complete, the last is the last of every row. */
  readonly history: readonly (readonly RawObject[])[];
}

/** @param largest how many rows may share one cluster */
export function groupCases(rows: readonly ConformanceCase[], largest = LARGEST): readonly CaseGroup[] {
  const groups = Map.groupBy(rows, ({ options }) => JSON.stringify(options));
  return [...groups.values()]
    .flatMap((all) => inParts(all, largest))
    .flatMap((members) => {
      const options = members[0]?.options;
      return options === undefined ? [] : [{ options, rows: members, history: mergedHistory(members) }];
    });
}

/**
 * A plain user's netlink buffer ends at net.core.wmem_max, some 200 KB, and iptables-nft-restore sends a whole table at
 * once ("Message too long" from about 450 rules on): a cluster of this many rows stays below.
 */
const LARGEST = 25;

function inParts(rows: readonly ConformanceCase[], largest: number): readonly (readonly ConformanceCase[])[] {
  const parts = Math.ceil(rows.length / largest);
  return Array.from({ length: parts }, (_, part) => rows.slice(part * largest, (part + 1) * largest));
}

function mergedHistory(rows: readonly ConformanceCase[]): readonly (readonly RawObject[])[] {
  const length = Math.max(...rows.map(({ history }) => history.length));
  return Array.from({ length }, (_, index) => mergedState(rows, index));
}

/** A row whose history is shorter stays in its last state. */
function mergedState(rows: readonly ConformanceCase[], index: number): readonly RawObject[] {
  const objects = rows.flatMap(({ history }) => history[Math.min(index, history.length - 1)] ?? []);
  const keyOf = ({ kind, metadata }: RawObject) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`;
  return [...new Map(objects.map((object) => [keyOf(object), object])).values()];
}
