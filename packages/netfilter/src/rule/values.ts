export type { IPFamily } from "@fairlead/base";

export interface NameMatch {
  readonly negated?: boolean;
  readonly value: string;
}
