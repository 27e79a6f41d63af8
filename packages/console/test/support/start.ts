import { request } from "node:http";
import { parseArguments } from "@fairlead/config";
import { Memory } from "@fairlead/endpoint-filter";
import { filterSettings, networksSettings } from "@fairlead/intake";
import type { ObjectSource } from "@fairlead/watch";
import { type AgentSetup, type ConsoleOptions, type RunningConsole, startConsole } from "../../src/index.ts";

/** How agents with these flags are set up. Default: those of `shop`. */
export function setupOf(flags = ["--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.244.0.0/16"]): AgentSetup {
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error("these flags are good");
  const filter = filterSettings(parsed.config);
  if (!filter.ok) throw new Error(filter.errors.join());
  const { config } = parsed;
  const networks = networksSettings(config, filter.options);
  return { mode: "iptables", config, filter: filter.options, networks, memory: Memory.empty };
}

/** The same in nftables mode, with the fast path. */
export function fastPathSetup(): AgentSetup {
  const { config, ...setup } = setupOf(["--cluster-cidr=10.144.0.0/16", "--proxy-mode=nftables"]);
  const nftables = { ...config.nftables, fastPath: { devices: ["cali*"] } };
  return { ...setup, mode: "nftables", config: { ...config, nftables } };
}

/** A console that ends with the block it is used in. */
export async function openConsole(
  source: ObjectSource,
  html: string,
  more: Partial<ConsoleOptions> = {},
): Promise<RunningConsole & AsyncDisposable> {
  const stop = new AbortController();
  const options = { html, port: 0, version: "0.0.0", sourceName: "manifests shop.yaml", source, setup: setupOf() };
  const running = await startConsole({ ...options, nodeName: "node-a", ...more }, stop.signal);
  return {
    ...running,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running.ended;
      await running.close();
    },
  };
}

interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

/** Asks as a program does, with whatever headers it likes. */
export function visit(
  url: string,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Told> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, agent: false }, async (response) => {
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** What the address that is printed is made of. */
export function addressOf(url: string): { readonly base: string; readonly origin: string; readonly token: string } {
  const [base = "", token = ""] = url.split("#token=");
  return { base, origin: new URL(url).origin, token };
}

/** Exchanges the token. */
export async function cookieOf(url: string): Promise<string> {
  const { base, origin, token } = addressOf(url);
  const { headers } = await visit(`${base}session`, {
    method: "POST",
    headers: { origin },
    body: JSON.stringify({ token }),
  });
  const [cookie = ""] = headers["set-cookie"] ?? [];
  return cookie.split(";", 1)[0] ?? "";
}
