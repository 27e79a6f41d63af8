import type { Refusal } from "./decide-route.ts";

/** How a way ended. */
export type End =
  | { readonly kind: "accept" | "drop" }
  | { readonly kind: "reject"; readonly with: string }
  /** No route takes it. */
  | Refusal;
