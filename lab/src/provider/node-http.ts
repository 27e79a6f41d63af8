import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import type { AgentOnNode } from "./cluster.ts";

/** HTTP/1.0 by the shell: bare nodes have no client. */
const GET = 'exec 3<>"/dev/tcp/$1/$2" && printf "GET %s HTTP/1.0\\r\\nHost: node\\r\\n\\r\\n" "$3" >&3 && cat <&3';

/** `/healthz` and `/livez` are asked of the health port, everything else of the metrics port. */
async function httpGet(runner: Runner, path: string): Promise<string> {
  const port = path === "/healthz" || path === "/livez" ? "10256" : "10249";
  const answer = await ask(runner, "127.0.0.1", port, path);
  const end = answer.indexOf("\r\n\r\n");
  return end === -1 ? answer : answer.slice(end + 4);
}

/** 0 when nothing answers. */
export async function httpStatus(runner: Runner, address: string, port: number, path = "/"): Promise<number> {
  const answer = await ask(runner, address, String(port), path).catch(() => "");
  return Number(/^HTTP\/\S+ (\d+)/.exec(answer)?.[1] ?? "0");
}

/** What an agent is asked, by the node that it is on. */
export function asksOf(
  runner: Runner,
  addresses: Readonly<Partial<Record<IPFamily, string>>>,
): Pick<AgentOnNode, "get" | "status"> {
  return {
    get: (path) => httpGet(runner, path),
    status: (family, port) => httpStatus(runner, addresses[family] ?? "", port),
  };
}

async function ask(runner: Runner, address: string, port: string, path: string): Promise<string> {
  const { stdout } = await runner.run(["bash", "-c", GET, "bash", address, port, path], { timeoutMs: 30_000 });
  return stdout;
}

/**
 * An agent may fall back to another mode, where specs would be green for the wrong reason.
 *
 * @throws Error that names both modes
 */
export async function requireMode({ get }: Pick<AgentOnNode, "get">, mode: string): Promise<void> {
  const answer = (await get("/proxyMode")).trim();
  if (answer !== mode) throw new Error(`Fairlead runs in ${answer} mode where ${mode} was asked for`);
}
