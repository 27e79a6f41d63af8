import type { Walk } from "./walk.ts";

/**
 * Whether the entry's status says that the destination was translated; what ip_vs does to the destination leaves no
 * mark there.
 */
export function isDNATed({ translated, server, entry }: Pick<Walk, "translated" | "server" | "entry">): boolean {
  return (translated && server === undefined) || entry !== undefined;
}
