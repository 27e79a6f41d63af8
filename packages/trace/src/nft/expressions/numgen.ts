import type { Evaluate } from "./kind.ts";

export const numgen: Evaluate<"numgen"> = ({ modulus, to }) => ({ kind: "draw", modulus, to });
