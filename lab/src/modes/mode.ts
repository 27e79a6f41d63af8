import type { Argv } from "@fairlead/kernel";
import type { ByHand } from "../faults/by-hand.ts";

/** What the test ground knows of a mode: what clients see that differs between modes, and what it takes to run one. */
export interface Mode {
  /** As `--proxy-mode` has it. */
  readonly name: string;
  /** Flags of Fairlead's alongside those of every mode. */
  readonly flags: readonly string[];
  /** Whether this kernel has what the mode needs; where not, clusters of it are in User-Mode Linux. */
  readonly kernelHas: () => Promise<boolean>;
  /** Whether endpoints see the client where Kubernetes keeps its address; else they see the node. */
  readonly keepsSource: boolean;
  /** What a client meets with `internalTrafficPolicy: Local` where no endpoint is. */
  readonly emptyInternalLocal: "lost" | "refused";
  /** Whether nodes without an endpoint drop what comes from outside with `externalTrafficPolicy: Local`. */
  readonly dropsExternalLocal: boolean;
  /** The addresses of a node at which node ports are served, with the defaults. */
  readonly nodePorts: "all, and 127.0.0.1" | "all" | "primary";
  /** Whether connections go on whose service is left to another network. */
  readonly keepsLeft: boolean;
  /** How specs take single promises away; absent: they cannot. */
  readonly byHand?: ByHand;
  /** How long what is broken by hand may stay so, as the test ground runs its agents: a look, and time to write. */
  readonly repairMs: number;
  /** How its rules are read, and shown to people. */
  readonly rules: ModeRules;
}

export interface ModeRules {
  /** Commands that list them, of both families. */
  readonly listings: readonly Argv[];
  /** The lines of a listing that send packets somewhere. */
  readonly linesOf: (listing: string) => readonly string[];
  /** Whether the same cluster leads to the same lines, whatever it was before. */
  readonly canonical: boolean;
  /** The tool that people look at them with says its version. */
  readonly version: Argv;
  /** What somebody who looks around types. */
  readonly look: string;
}

/** IPv4 only. */
export function servesLocalhost({ nodePorts }: Mode): boolean {
  return nodePorts === "all, and 127.0.0.1";
}

export async function everyKernel(): Promise<boolean> {
  return true;
}
