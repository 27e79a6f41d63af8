import type { Stage } from "./stage.ts";

/** One line of the table. */
export interface Finding {
  readonly name: string;
  readonly request: string;
  readonly seen: string;
  readonly ok: boolean;
}

export type Check = (stage: Stage) => Promise<readonly Finding[]>;
