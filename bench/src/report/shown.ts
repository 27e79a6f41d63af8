import { readFile } from "node:fs/promises";
import type { Result } from "../measure/result.ts";
import { machineText } from "./overview.ts";
import { textTable } from "./render.ts";
import { rowsOf } from "./rows.ts";

/** The figures of a file that `--save` wrote, as a table, and where they were measured. */
export async function shown(file: string): Promise<string> {
  const kept: Result = JSON.parse(await readFile(file, "utf8"));
  const { runs, changes, kubernetes, kubeProxyVersion } = kept.options;
  const how = `${runs} runs of each with ${changes} endpoint changes; kube-proxy ${kubeProxyVersion}, API server ${kubernetes}`;
  return `${textTable(rowsOf(kept.proxies.fairlead, kept.proxies["kube-proxy"]))}\n${how}; ${machineText(kept.machine)}.\n`;
}
