/** The histories and faults of `pnpm e2e --suite windows`: `suite-main.ts NODE KUBE_PROXY SEED`. */

import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { hcnOf } from "@fairlead/testkit/hcn";
import { type SlotState, slotObjects, webState } from "@fairlead/testkit/histories";
import { WINDOWS_CASES, WINDOWS_NODE, type WindowsCase } from "@fairlead/testkit/windows";
import { runs } from "@fairlead/tooling/runs";
import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { openGround, type WindowsGround } from "./ground.ts";
import { PlayedNode, putNode } from "./play.ts";
import { kubeProxy } from "./proxies.ts";

const [, , node = "", program = "", seed = "0"] = process.argv;

const HISTORIES = runs(10);
const CHANGES = 200;
/** Changes after which both are compared. */
const BATCH = 20;
const READY = ["ready", "none"] as const;
const SLOTS = [1, 2, 3, 4, 5, 6, 7, 8];

/** Another program's load balancers: one leads to an address of no service, one to nothing yet. */
const OTHER: WindowsCase["others"][number] = {
  ID: "1b000000-0000-4000-8000-0000000000f1",
  HostComputeEndpoints: [hcnOf({ network: "L2Bridge" }).endpoints[2]?.ID ?? ""],
  FrontendVIPs: ["192.168.0.1"],
  PortMappings: [{ Protocol: 6, InternalPort: 8080, ExternalPort: 80 }],
};
const UNUSED = {
  ...OTHER,
  ID: "1b000000-0000-4000-8000-0000000000f2",
  HostComputeEndpoints: [],
  FrontendVIPs: ["192.168.0.2"],
};

const failures: string[] = [];
{
  await using ground = await openGround(node);
  const exe = join(ground.folder, "kube-proxy.exe");
  await copyFile(program, exe);
  for (let at = 0; at < HISTORIES; at += 1) await history(ground, exe, Number(seed) + at);
  await faults(ground);
}
for (const failure of failures) console.log(failure);
process.exit(failures.length === 0 ? 0 : 1);

function check(what: string, difference: readonly string[]): void {
  console.log(`${difference.length === 0 ? "ok" : "FAILED"}: ${what}`);
  if (difference.length > 0) failures.push(`${what}:\n${difference.join("\n")}`);
}

function caseOf(name: string): WindowsCase {
  const found = WINDOWS_CASES.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no case ${name}`);
  return { ...found, fails: [], others: [], steps: [] };
}

/** Both service proxies on one API server, through random changes. */
async function history(ground: WindowsGround, exe: string, own: number): Promise<void> {
  const names = ["l2bridge", "l2bridge-hns13", "overlay", "l2bridge-no-dsr"];
  const of = caseOf(names[own % names.length] ?? "");
  const random = xoroshiro128plus(own);
  const pick = <T>(list: readonly T[]): T => list[uniformInt(random, 0, list.length - 1)] as T;
  const server = new LightApiServer();
  putNode(server);
  const nodes = [kubeProxy(exe), ground.agent].map(
    (proxy) => new PlayedNode(of, proxy, ground.wine, ground.folder, server),
  );
  const url = await server.start();
  for (const one of nodes) await one.start(url);
  const slots = new Map<number, SlotState>();
  for (let change = 1; change <= CHANGES; change += 1) {
    const slot = pick(SLOTS);
    const before = slots.get(slot);
    const after = uniformInt(random, 0, 5) === 0 ? undefined : stateOf(pick);
    if (before !== undefined && after === undefined) server.remove(onWindows(slot, before));
    if (after !== undefined) server.put(onWindows(slot, after));
    if (after === undefined) slots.delete(slot);
    else slots.set(slot, after);
    if (change % BATCH !== 0) continue;
    const [theirs = [], ours = []] = await settledTogether(nodes);
    check(`seed ${own}, ${of.name}: ${change} changes`, differences(theirs, ours));
  }
  for (const one of nodes) await one.kill();
  await server.stop();
}

/** One fence for both: what it is waited for is in both logs. */
async function settledTogether(nodes: readonly PlayedNode[]): Promise<readonly (readonly string[])[]> {
  const states: (readonly string[])[] = [];
  // The second one's fences come after the first one's changes, which it has as well.
  for (const one of nodes) states.push((await one.settled()).describe());
  return states;
}

/** Endpoints are ready or gone: what terminates is treated otherwise, as docs/windows.md has it. */
function stateOf(pick: <T>(list: readonly T[]) => T): SlotState {
  return webState({
    type: pick(["ClusterIP", "NodePort", "LoadBalancer"] as const),
    protocol: pick(["TCP", "UDP"] as const),
    ports: pick([1, 2] as const),
    internal: pick(["Cluster", "Local"] as const),
    external: pick(["Cluster", "Local"] as const),
    externalIP: false,
    affinity: pick([true, false]),
    endpoints: [pick(READY), "none", pick(READY), pick(READY)],
  });
}

/** The objects of a slot, with the addresses of the case's pods. */
function onWindows(slot: number, state: SlotState) {
  const local = slot % 2 === 0 ? "10.244.1.10" : "10.244.1.11";
  const text = JSON.stringify(slotObjects(slot, state))
    .replaceAll("node-a", WINDOWS_NODE.name)
    .replaceAll(/10\.144\.0\.\d+/g, local)
    .replaceAll("10.144.128.", "10.244.2.");
  return JSON.parse(text) as ReturnType<typeof slotObjects>;
}

/** Lines that one of them has only. Endpoints to which nothing leads make no difference to a packet. */
function differences(theirs: readonly string[], ours: readonly string[]): readonly string[] {
  const used = (lines: readonly string[]) =>
    lines.filter((line) => {
      const [, address = ""] = /^endpoint (\S+)/.exec(line) ?? [];
      return address === "" || lines.some((other) => other.startsWith("balancer") && other.includes(address));
    });
  const [a, b] = [used(theirs), used(ours)];
  return [
    ...a.filter((line) => !b.includes(line)).map((line) => `  kube-proxy: ${line}`),
    ...b.filter((line) => !a.includes(line)).map((line) => `  Fairlead:   ${line}`),
  ];
}

/** What becomes of the agent by itself. */
async function faults(ground: WindowsGround): Promise<void> {
  const of = { ...caseOf("l2bridge"), others: [OTHER, UNUSED] };
  const [first, more, , back] = WINDOWS_CASES[0]?.steps ?? [];
  const played = new PlayedNode(of, ground.agent, ground.wine, ground.folder);
  const { server } = played;
  putNode(server);
  server.put(first?.put ?? []);
  const url = await server.start();
  await played.start(url);
  const whole = (await played.settled()).describe();

  await played.kill();
  await played.start(url);
  const again = await played.settled();
  check("killed and started again: the same objects", differences(whole, again.describe()));

  server.answerInstead = (_, response) => {
    response.writeHead(503).end();
    return true;
  };
  server.cutWatches();
  server.put(more?.put ?? []);
  check("API server away: the objects stay", differences(whole, (await played.state()).describe()));
  server.answerInstead = () => false;
  const changed = (await played.settled()).describe();
  check("API server back: the change is written", changed.some((line) => line.includes("10.244.2.21")) ? [] : changed);

  server.cutWatches();
  server.put(back?.put ?? []);
  check("watch reset: the change is written", differences(whole, (await played.settled()).describe()));
  check("other programs' load balancers are untouched", await touched(played, of.others));
  await played.kill();

  await played.start(url, ground.stoppable);
  const before = await played.settled();
  await ground.stoppable.stop(ground);
  check("its input is closed: it ends with 0", endedWith(await played.ended()));
  const after = await played.state();
  check("stopped: the objects stay", differences(before.describe(), after.describe()));

  await played.start(url, ground.cleanup);
  check("--cleanup: it ends with 0", endedWith(await played.ended()));
  // What leads to the network may have been another service proxy's.
  check(
    "cleaned up: nothing is left that leads to the network",
    (await played.state()).describe().filter((line) => !line.includes(UNUSED.FrontendVIPs[0] ?? "")),
  );
  check("a load balancer that leads nowhere is untouched", await touched(played, [UNUSED]));
  await server.stop();
}

async function touched(played: PlayedNode, others: WindowsCase["others"]): Promise<readonly string[]> {
  const { loadBalancers } = await played.state();
  return others.flatMap((one) => {
    const now = loadBalancers.get(one.ID);
    return JSON.stringify(now) === JSON.stringify(one) ? [] : [`${one.ID}: ${JSON.stringify(now)}`];
  });
}

function endedWith(code: number | undefined): readonly string[] {
  return code === 0 ? [] : [`exit code ${code}`];
}
