import type { IPFamily } from "@fairlead/base";

/** What is asked for from one place; JSON values only: it goes to a pod as an argument. */
export interface Probe {
  readonly id: number;
  readonly protocol: "TCP" | "UDP";
  readonly address: string;
  readonly port: number;
  /** Asked for in place of `address`: a name, in this family. */
  readonly name?: { readonly text: string; readonly family: IPFamily };
  /** As many, each over a connection of its own. */
  readonly requests: number;
  readonly expected: Expected;
}

/** What is right. */
export type Expected =
  | {
      readonly kind: "answered";
      /** Names of servers: no other may answer. */
      readonly by: readonly string[];
      /** Each of them has to answer; only one, whichever; or any. */
      readonly spread: "each" | "one" | "any";
      /** What servers see is an address of the client itself. */
      readonly seesClient?: true;
      /** What servers see is none of these. */
      readonly notSeen?: readonly string[];
    }
  /** No answer, and not a refusal by a timeout: an error at once. */
  | { readonly kind: "refused" }
  /** No server answers. */
  | { readonly kind: "unanswered" }
  /** The name has these addresses. */
  | { readonly kind: "resolved"; readonly addresses: readonly string[] };

/** What came of one request. */
export type Answer =
  | { readonly by: string; readonly seen: string }
  | { readonly resolved: readonly string[] }
  /** `ECONNREFUSED`, `timeout` */
  | { readonly error: string };

export interface Observed {
  readonly id: number;
  /** Addresses of the client. */
  readonly own: readonly string[];
  readonly answers: readonly Answer[];
}

/** What a container of the test is to do. */
export type Role =
  | { readonly kind: "serve"; readonly name: string; readonly port: number }
  | {
      readonly kind: "ask";
      readonly probes: readonly Probe[];
      readonly patienceMs: number;
      /** Asks again and again: its pod is an endpoint as well, and must stay the same. */
      readonly forever?: true;
    }
  | { readonly kind: "load"; readonly address: string; readonly port: number; readonly until: readonly string[] };

/** A line that a container of the test prints. */
export type Line =
  | ({ readonly kind: "observed" } & Observed)
  /** All is asked; with `forever` of one round. */
  | { readonly kind: "done" }
  | { readonly kind: "loading" }
  | { readonly kind: "loaded"; readonly requests: number; readonly failures: Readonly<Record<string, number>> };
