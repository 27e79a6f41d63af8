import { systemClock, toEnd } from "@fairlead/base";
import { type AgentConfig, parseArguments } from "@fairlead/config";
import { type ConsoleOptions, startConsole } from "@fairlead/console";
import { Memory } from "@fairlead/endpoint-filter";
import { dryRun, type PlannedNode, restored } from "@fairlead/inspect";
import { filterSettings } from "@fairlead/intake";
import { endpointSlice, service } from "@fairlead/testkit";
import { createManifestsSnapshot } from "@fairlead/watch";
import { afterEach, expect, test, vi } from "vitest";
import { check } from "../src/commands/verify/check.ts";

afterEach(() => void vi.restoreAllMocks());

test("while a comparison stands between two of its steps the server answers, and what needs the plan waits", async () => {
  const turn = new HeldTurn();
  const setup = agents();
  const compared = Promise.withResolvers<unknown>();
  const looking: ConsoleOptions["looking"] = (cluster) => ({
    reaches: () => true,
    agent: async () => ({ mode: "iptables", healthy: true, version: "0.0.0" }),
    kernel: (node) =>
      cluster.withPlan(node, async (planned) => {
        const held = await asPlanned(planned, setup.config);
        turn.holdNext();
        const found = await check(planned, setup, "IPv4", held);
        compared.resolve(found);
        return [{ family: "IPv4", ...found }];
      }),
  });
  await using console = await openConsole({ setup, looking });
  await console.look("node-a");
  await turn.held;
  const waiting = console.get("api/service?target=default/web");
  expect(await console.get("api/search?q=web")).toEqual({ services: ["default/web"] });
  expect(await Promise.race([waiting, compared.promise, "neither"])).toBe("neither");
  turn.release();
  expect(await compared.promise).toMatchObject({ services: [] });
  expect(await waiting).toMatchObject({ explanation: { service: "default/web" } });
});

/** The next time that somebody lets others have their turn: it is not given back before it is released. */
class HeldTurn {
  readonly #held = Promise.withResolvers<void>();
  readonly #released = Promise.withResolvers<void>();

  /** Each look at the clock finds the slice used up. */
  holdNext(): void {
    const giveTurn = setImmediate;
    let now = 0;
    const clock = vi.spyOn(systemClock, "monotonic").mockImplementation(() => {
      now += 1_000;
      return now;
    });
    const turns = vi.spyOn(globalThis, "setImmediate").mockImplementation((callback) => {
      clock.mockRestore();
      turns.mockRestore();
      this.#held.resolve();
      void this.#released.promise.then(() => callback());
      return giveTurn(() => {});
    });
  }

  get held(): Promise<void> {
    return this.#held.promise;
  }

  release(): void {
    this.#released.resolve();
  }
}

/** What the kernel holds when all is well. */
async function asPlanned(planned: PlannedNode, config: AgentConfig) {
  const texts = await dryRun(planned.planner.plan("IPv4"), { mode: "iptables", config });
  const pieces = texts.flatMap((text) => text.pieces);
  return {
    rules: toEnd(restored(pieces, "IPv4")),
    nftables: [],
    environment: { localAddresses: ["10.201.0.10"] },
  };
}

function agents() {
  const parsed = parseArguments(["--cluster-cidr=10.144.0.0/16"], { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(`flags of the test are wrong: ${JSON.stringify(parsed)}`);
  const { config } = parsed;
  const filter = filterSettings(config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  return { mode: "iptables", config, filter: filter.options, memory: Memory.empty } as const;
}

const OBJECTS = [
  service("web", { clusterIPs: ["10.96.1.1"], ports: [{ port: 80, targetPort: 8080 }] }),
  endpointSlice("web-1", {
    service: "web",
    family: "IPv4",
    ports: [{ port: 8080 }],
    endpoints: [{ address: "10.144.1.1" }],
  }),
];

/** A console of one service, asked by real requests. */
async function openConsole(options: Pick<ConsoleOptions, "setup" | "looking">) {
  const stop = new AbortController();
  const readStandardInput = async () => Buffer.from(JSON.stringify(OBJECTS));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput });
  const known = { html: "", port: 0, version: "0.0.0", sourceName: "", source, nodeName: "node-a" };
  const running = await startConsole({ ...known, ...options }, stop.signal);
  const [base = "", token = ""] = running.url.split("#token=");
  const origin = { origin: new URL(base).origin };
  const post = (path: string, body: unknown, headers = {}) =>
    fetch(`${base}${path}`, { method: "POST", headers: { ...origin, ...headers }, body: JSON.stringify(body) });
  const cookie = (await post("session", { token })).headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  return {
    get: async (path: string) => (await fetch(`${base}${path}`, { headers: { cookie } })).json(),
    /** As a page that has the node in view. */
    look: async (node: string) => {
      const { body } = await fetch(`${base}events`, { headers: { cookie } });
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      let seen = "";
      while (!seen.includes("event: whole")) {
        const piece = await reader?.read();
        if (piece === undefined || piece.done) throw new Error(`the stream ended: ${seen}`);
        seen += piece.value;
      }
      const stream = /"stream":"(\w+)"/.exec(seen)?.[1];
      await post("api/view", { stream, nodes: [node] }, { cookie });
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running.ended;
      await running.close();
    },
  };
}
