import type { Draft } from "./draft.ts";

export interface Case {
  readonly name: string;
  /** Committed first, in a table that is there; must be taken. */
  readonly given?: (to: Draft) => void;
  readonly when: (to: Draft) => void;
  /** Absent: it is taken. `CODE: what`, the message that is blamed, as `NftablesError` says it. */
  readonly refused?: string;
  /** Of the table afterwards: chains with the number of their rules, sets with the number of their elements. */
  readonly after?: readonly string[];
}
