import type { TargetKind } from "./kind.ts";

export interface VerdictTarget<Kind extends "accept" | "drop" | "return"> {
  readonly kind: Kind;
}

export const accept = verdictOf("accept", "ACCEPT");
export const drop = verdictOf("drop", "DROP");
export const returned = verdictOf("return", "RETURN");

function verdictOf<Kind extends "accept" | "drop" | "return">(
  kind: Kind,
  name: string,
): TargetKind<VerdictTarget<Kind>> {
  return { name, options: {}, parse: ({ options }) => (options.length === 0 ? { kind } : undefined), render: () => "" };
}
