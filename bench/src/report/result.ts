import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { ProxyFigures } from "../measure/figures.ts";
import type { Machine } from "./machine.ts";

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
  readonly proxies: { readonly fairlead: ProxyFigures; readonly "kube-proxy"?: ProxyFigures };
}

/** As JSON, numbers with four digits after the point. */
export function resultText(result: Result): string {
  const rounded = (_: string, value: unknown) =>
    typeof value === "number" ? Math.round(value * 10_000) / 10_000 : value;
  return `${JSON.stringify(result, rounded, 2)}\n`;
}

export async function saveResult(file: string, result: Result): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, resultText(result));
}
