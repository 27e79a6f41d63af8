/** Figures as they are kept. */

import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Machine } from "./process-figures.ts";

/** A benchmark as it is kept: what was asked, where it ran, and every figure. */
export interface Result {
  readonly machine: Machine;
  readonly options: {
    readonly mode: string;
    readonly variant: string;
    readonly services: number;
    readonly endpoints: number;
    readonly runs: number;
    readonly changes: number;
    readonly kubernetes: string;
    readonly kubeProxyVersion: string;
  };
  readonly proxies: { readonly fairlead: ProxyFigures; readonly "kube-proxy"?: ProxyFigures | Unfinished };
}

export async function saveResult(file: string, result: Result): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, jsonText(result));
}

/** What one run of one proxy came to. Times in milliseconds, CPU in seconds, memory in MB (10⁶ bytes). */
export interface RunFigures {
  /** From the start of the process to its first complete sync. */
  readonly firstSync: { readonly ms: number; readonly cpu: number; readonly apiBytes: number };
  /**
   * Milliseconds of the full syncs up to then, as the proxy itself counts them: planning, rendering and the kernel.
   * Absent: not measured.
   */
  readonly fullSyncMs?: number;
  /** CPU from the start of the process until 30 s after its first sync, children included; absent: not measured. */
  readonly restedCpu?: number;
  readonly memory: { readonly synced: number; readonly steady: number; readonly peak: number };
  /** CPU in a minute in which nothing changes; absent: not measured. */
  readonly idleCpu?: number;
  /**
   * From the request to the API until the kernel had the rules, and until the API server had answered; CPU for each
   * change.
   */
  readonly endpointChange: { readonly ms: readonly number[]; readonly apiMs?: readonly number[]; readonly cpu: number };
  readonly serviceAdded: { readonly ms: readonly number[]; readonly apiMs?: readonly number[]; readonly cpu?: number };
  readonly serviceRemoved: {
    readonly ms: readonly number[];
    readonly apiMs?: readonly number[];
    readonly cpu?: number;
  };
  /** All of it, and what the requests took, one after the other. */
  readonly rollOut: { readonly ms: number; readonly apiMs?: number; readonly cpu: number };
}

/** Of all runs of one proxy. */
export interface ProxyFigures {
  readonly runs: readonly RunFigures[];
}

/** Of a proxy whose first sync was not complete after so many milliseconds. */
export interface Unfinished {
  readonly unfinishedAfterMs: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The smallest value that `share` of all do not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Figures as JSON for a file, numbers with four digits after the point. */
export function jsonText(value: unknown): string {
  const rounded = (_: string, field: unknown) =>
    typeof field === "number" ? Math.round(field * 10_000) / 10_000 : field;
  return `${JSON.stringify(value, rounded, 2)}\n`;
}
