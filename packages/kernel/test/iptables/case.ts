import type { IptablesErrorKind, Variant } from "../../src/index.ts";

/** How a restore is refused: what for, and the payload's line that is told. */
export interface Refused {
  readonly kind: IptablesErrorKind;
  readonly line: number;
  /** Text of the line that is told; absent: that line of the payload. */
  readonly text?: string;
  readonly message?: RegExp;
}

export interface Case {
  readonly name: string;
  /** Restored first; must be taken. */
  readonly given?: string;
  readonly when: string;
  /** Absent: it is taken. */
  readonly refused?: Refused | Partial<Record<Variant, Refused>>;
  /** Rules and own chains afterwards, `table: line`; absent: as before. */
  readonly after?: readonly string[];
}

/** Both variants say it with the line of the rule. */
export const onLine = (line: number, message: RegExp): Refused => ({ kind: "rejected", line, message });
/** What the kernel refuses: legacy knows no better than the COMMIT. */
export const byKernel = (line: number, errno: RegExp, commit: number): Partial<Record<Variant, Refused>> => ({
  nft: { kind: "rejected", line, message: errno },
  legacy: { kind: "rejected", line: commit },
});
/** Found while the lines are taken in; legacy tells no more than the line. */
export const onTheWay = (line: number, message: RegExp): Partial<Record<Variant, Refused>> => ({
  nft: { kind: "rejected", line, message },
  legacy: { kind: "rejected", line },
});
