import { PATIENCE_MS } from "@fairlead/base/testing";
import { requireAgent } from "@fairlead/lab/agent";
import { type HeldConnection, hold, vanish } from "@fairlead/lab/plain/requests";
import { openScene, type Scene } from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { clientA, clusterObjects, NODE_A, outside, webA1, webB1, workload } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

const PORTS = { tcp: [80, 8080], udp: [] };
const BOTH = ["IPv4", "IPv6"] as const;

/** The states of two services; the other one keeps its traffic on the node. */
const services = (...endpoints: (typeof webA1)[]) =>
  [
    workload(17, { endpoints, families: BOTH, nodePort: true, external: true, loadBalancer: "VIP" }),
    workload(18, { endpoints, families: BOTH, nodePort: true, internal: "Local", externally: "Local" }),
  ] as const;
const [{ clusterIP, nodePort, externalIP, loadBalancerIP }, kept] = services();
const objects = (...endpoints: (typeof webA1)[]) => [
  ...clusterObjects,
  ...services(...endpoints).flatMap((service) => service.objects),
];

describe.each(["iptables", "nftables"])("TCP connections to an endpoint that is gone, in %s mode", (mode) => {
  const lab = labFor({ podPorts: PORTS, landingPorts: PORTS }, requireAgent);
  let scene: Scene | undefined;

  afterEach(() => scene?.close());

  async function serve(...flags: readonly string[]): Promise<void> {
    scene = await openScene(lab, objects(webA1), { flags: [`--proxy-mode=${mode}`, ...flags] });
  }

  async function connection(
    stack: AsyncDisposableStack,
    from: typeof webA1,
    to: string,
    port = 80,
  ): Promise<HeldConnection> {
    const held = stack.use(await hold(lab, from, to, port));
    expect(await held.ask()).toBe(webA1.name);
    return held;
  }

  function connections(stack: AsyncDisposableStack): Promise<readonly HeldConnection[]> {
    const each = BOTH.flatMap((family) => [
      connection(stack, clientA, clusterIP[family]),
      connection(stack, NODE_A, clusterIP[family]),
      connection(stack, outside, externalIP[family]),
      connection(stack, outside, loadBalancerIP[family]),
      connection(stack, outside, NODE_A.addresses[family], nodePort),
      connection(stack, NODE_A, NODE_A.addresses[family], nodePort),
    ]);
    return Promise.all(each);
  }

  /** What becomes of connections whose clients send next. */
  function outcomes(held: readonly HeldConnection[]): Promise<readonly string[]> {
    return Promise.all(held.map((one) => one.ask()));
  }

  /** Puts endpoints in place of those before, and waits until both families' rules have them. */
  async function move(...endpoints: (typeof webA1)[]): Promise<void> {
    const before = BOTH.map(syncs);
    await scene?.folder.write(objects(...endpoints));
    await waitUntil("the sync", PATIENCE_MS, async () =>
      BOTH.every((family, at) => syncs(family) > (before[at] ?? 0)) ? true : undefined,
    );
  }

  async function cleaned(): Promise<void> {
    await waitUntil("the cleaning", PATIENCE_MS, async () =>
      lines("Deleted stale conntrack entries").length === BOTH.length ? true : undefined,
    );
  }

  function lines(text: string): readonly string[] {
    const log = scene?.agent().log() ?? "";
    return log.split("\n").filter((line) => line.includes(`"${text}"`));
  }

  function syncs(family: string): number {
    return lines("Synced").filter((line) => line.includes(`ipFamily="${family}"`)).length;
  }

  test("are reset when their clients send next, pods or others, with --reset-stale-tcp", async () => {
    await serve("--reset-stale-tcp");
    await using stack = new AsyncDisposableStack();
    const held = await connections(stack);
    stack.use(await vanish(lab, webA1));
    await move(webB1);
    await cleaned();
    expect(await outcomes(held)).toEqual(held.map(() => "ECONNRESET"));
  });

  test("are reset where no other endpoint is left, too, and new connections there are refused", async () => {
    await serve("--reset-stale-tcp");
    await using stack = new AsyncDisposableStack();
    const held = await connections(stack);
    stack.use(await vanish(lab, webA1));
    await move();
    await cleaned();
    expect(await outcomes(held)).toEqual(held.map(() => "ECONNRESET"));
    const begun = await Promise.all(BOTH.map((family) => hold(lab, clientA, clusterIP[family], 80)));
    for (const one of begun) stack.use(one);
    expect(await outcomes(begun)).toEqual(begun.map(() => "ECONNREFUSED"));
  });

  test("are reset where the only other endpoint is on another node and traffic stays on this one", async () => {
    await serve("--reset-stale-tcp");
    await using stack = new AsyncDisposableStack();
    const held = await Promise.all(
      BOTH.flatMap((family) => [
        connection(stack, clientA, kept.clusterIP[family]),
        connection(stack, NODE_A, kept.clusterIP[family]),
        connection(stack, outside, NODE_A.addresses[family], kept.nodePort),
      ]),
    );
    stack.use(await vanish(lab, webA1));
    await move(webB1);
    await cleaned();
    expect(await outcomes(held)).toEqual(held.map(() => "ECONNRESET"));
  });

  test("wait where no other endpoint is left, without it", async () => {
    await serve();
    await using stack = new AsyncDisposableStack();
    const held = await connection(stack, clientA, clusterIP.IPv4);
    const gone = await vanish(lab, webA1);
    stack.use(gone);
    await move();
    const asked = held.ask();
    await held.retransmitted();
    await gone[Symbol.asyncDispose]();
    expect(await asked).toBe(webA1.name);
  });

  test("wait without it, and go on when the endpoint is heard of again", async () => {
    await serve();
    await using stack = new AsyncDisposableStack();
    const held = await connection(stack, clientA, clusterIP.IPv4);
    const gone = await vanish(lab, webA1);
    stack.use(gone);
    await move(webB1);
    const asked = held.ask();
    await held.retransmitted();
    await gone[Symbol.asyncDispose]();
    expect(await asked).toBe(webA1.name);
  });
});
