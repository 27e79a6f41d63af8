import { InvalidArgumentError } from "commander";
import type { Variant } from "../proxy/measured-proxy.ts";

/** What the command line asks for. */
export interface BenchOptions {
  readonly mode: Mode;
  readonly variant: Variant;
  readonly services: number;
  readonly endpoints: number;
  readonly against?: "kube-proxy";
  readonly runs: number;
  readonly changes: number;
  /** Seconds in which nothing changes; 0: not measured. */
  readonly idle: number;
  /** Seconds for a first sync. */
  readonly patience: number;
  /** Of the control plane. */
  readonly kubernetes: string;
  readonly kubeProxyVersion: string;
  readonly output: Output;
  /** A file for the figures. */
  readonly save?: string;
}

/** Something else than the benchmark; at most one of them. */
export interface OtherWork {
  readonly growth?: readonly number[];
  /** Endpoint changes in a second, and what goes with them. */
  readonly churn?: number;
  readonly seconds: number;
  readonly rollOuts: number;
  readonly minSyncPeriod: string;
  /** How many agents are simulated. */
  readonly fleet?: number;
  /** A file of figures. */
  readonly show?: string;
  readonly document?: boolean;
}

export type Mode = "iptables" | "nftables";

type Output = "json" | "table" | "markdown";

/** Reads a number of an option. */
export function numberFrom(least: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (Number.isInteger(number) && number >= least) return number;
    throw new InvalidArgumentError(`give a whole number from ${least}`);
  };
}

/** Reads sizes with commas between them. */
export function sizesFrom(value: string): readonly number[] {
  return value.split(",").map(numberFrom(2));
}
