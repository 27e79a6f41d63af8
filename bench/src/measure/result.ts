import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { ProxyFigures, Unfinished } from "./figures.ts";
import { jsonText } from "./json.ts";
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
  readonly proxies: { readonly fairlead: ProxyFigures; readonly "kube-proxy"?: ProxyFigures | Unfinished };
}

export async function saveResult(file: string, result: Result): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, jsonText(result));
}
