import { noChange, webState } from "@fairlead/testkit/histories";
import { describe, expect, test } from "vitest";
import { weights } from "./support/fake-node.ts";
import { live } from "./support/live.ts";

const some = (count: number) => Array.from({ length: count }, (_, slot) => [slot + 10, webState()] as const);

describe.each([2, 150])("among %d services", (count) => {
  test("one endpoint more, elsewhere: one process", async () => {
    const made = await live([[...some(count), [1, webState({ endpoints: ["ready", "none", "none", "none"] })]]]);
    const processes = await made.node.processes(() =>
      made.change([[1, webState({ endpoints: ["ready", "none", "ready", "none"] })]]),
    );
    expect(processes).toEqual(["ipvsadm --restore"]);
    expect(weights(made.node).get("-t 10.96.3.1:80")).toEqual(["10.144.0.4:8080 1", "10.144.128.6:8080 1"]);
  });

  test("one endpoint more, on this node: two processes", async () => {
    const made = await live([[...some(count), [1, webState()]]]);
    const processes = await made.node.processes(() =>
      made.change([[1, webState({ endpoints: ["ready", "ready", "none", "none"] })]]),
    );
    expect(processes).toEqual(["ipset -exist restore", "ipvsadm --restore"]);
  });

  test("one endpoint fewer, on this node: two processes, the set last", async () => {
    const made = await live([[...some(count), [1, webState({ endpoints: ["ready", "ready", "none", "none"] })]]]);
    const processes = await made.node.processes(() => made.change([[1, webState()]]));
    expect(processes).toEqual(["ipvsadm --restore", "ipset -exist restore"]);
  });

  test("a new service: sets, addresses, servers", async () => {
    const made = await live([some(count)]);
    expect(await made.node.processes(() => made.change([[1, webState()]]))).toEqual([
      "ipset -exist restore",
      "ip -batch -",
      "ipvsadm --restore",
    ]);
  });

  test("a service that goes: servers, addresses, sets", async () => {
    const made = await live([[...some(count), [1, webState()]]]);
    expect(await made.node.processes(() => made.change([[1, undefined]]))).toEqual([
      "ipvsadm --restore",
      "ip -batch -",
      "ipset -exist restore",
    ]);
  });
});

test("the first service that needs a set's rules: they are there before the server", async () => {
  const made = await live([some(2)]);
  const processes = await made.node.processes(() => made.change([[1, webState({ type: "NodePort" })]]));
  expect(processes).toEqual([
    "ipset -exist restore",
    "iptables-legacy-restore --noflush --counters",
    "ip -batch -",
    "ipvsadm --restore",
  ]);
});

test("a change that touches nothing in the kernel starts no process", async () => {
  const made = await live([[[1, webState()]]]);
  expect(await made.node.processes(() => made.backend.apply(made.world.plan, noChange))).toEqual([]);
});
