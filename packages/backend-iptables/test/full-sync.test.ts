import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, renderRule, type Table } from "@fairlead/netfilter";
import { changeOf, clusterIPGroup, endpoints, planOf } from "@fairlead/testkit/plans";
import { describe, expect, test, vi } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { RecordingPort } from "./support/recording-port.ts";

const web = clusterIPGroup("web", "10.96.0.10", endpoints(3));
const plan = planOf([web]);

describe("converges", () => {
  test("jumps that are doubled, missing or out of order are put right where the first stood", async () => {
    const { fake, backend } = make();
    await backend.sync(plan);
    const wanted = texts(fake, "filter", "FORWARD");
    await fake.meddle(`*filter
-I FORWARD 1 -i docker0 -j ACCEPT
-D FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -o docker0 -j ACCEPT
COMMIT
`);
    await backend.sync(plan);
    expect(texts(fake, "filter", "FORWARD")).toEqual(["-i docker0 -j ACCEPT", ...wanted, "-o docker0 -j ACCEPT"]);
  });

  test("correct jumps stay, whatever other programs put between them", async () => {
    const { fake, port, backend } = make();
    await backend.sync(plan);
    await fake.meddle("*filter\n-I FORWARD 2 -i docker0 -j ACCEPT\nCOMMIT\n");
    const before = texts(fake, "filter", "FORWARD");
    port.take();
    await backend.sync(plan);
    expect(texts(fake, "filter", "FORWARD")).toEqual(before);
    const touched = port
      .take()
      .flatMap((payload) => payload.flatMap(({ commands }) => commands.map((one) => one.chain)));
    expect(touched).not.toContain("FORWARD");
  });

  test("stale chains of an older proxy go; a chain that another program jumps to stays and is reported", async () => {
    const problems: string[] = [];
    const { fake, backend } = make({ onProblem: (problem: string) => problems.push(problem) });
    await fake.meddle(`*nat
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
-A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-SEP-AAAAAAAAAAAAAAAA
COMMIT
`);
    await backend.sync(plan);
    expect([...fake.table("nat").chains.keys()].filter((chain) => chain.endsWith("AAAA"))).toEqual([]);
    await fake.meddle("*nat\n:KUBE-SVC-BBBBBBBBBBBBBBBB - [0:0]\n-A OUTPUT -j KUBE-SVC-BBBBBBBBBBBBBBBB\nCOMMIT\n");
    await backend.sync(plan);
    expect(problems).toHaveLength(1);
    expect(await backend.difference(plan)).toBeUndefined();
    await backend.sync(plan);
    expect(problems, "once, not once a sync").toHaveLength(1);
    await fake.meddle("*nat\n:KUBE-SVC-CCCCCCCCCCCCCCCC - [0:0]\n-A OUTPUT -j KUBE-SVC-CCCCCCCCCCCCCCCC\nCOMMIT\n");
    await backend.sync(plan);
    expect(problems, "it is another one").toHaveLength(2);
  });

  test("chains of a kube-proxy before 1.24 go, in an order that the kernel takes", async () => {
    const problems: string[] = [];
    const { fake, backend } = make({ onProblem: (problem: string) => problems.push(problem) });
    await fake.meddle(`*nat
:KUBE-NODEPORTS - [0:0]
:KUBE-FW-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-XLB-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
-A KUBE-NODEPORTS -p tcp -m tcp --dport 30080 -j KUBE-XLB-AAAAAAAAAAAAAAAA
-A KUBE-FW-AAAAAAAAAAAAAAAA -j KUBE-XLB-AAAAAAAAAAAAAAAA
-A KUBE-XLB-AAAAAAAAAAAAAAAA -s 10.144.0.0/16 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-SEP-AAAAAAAAAAAAAAAA
COMMIT
`);
    await backend.sync(plan);
    expect([...fake.table("nat").chains.keys()].filter((chain) => chain.endsWith("AAAA"))).toEqual([]);
    expect(problems).toEqual([]);
  });

  test("a service whose chains another program has changed is written anew, and no other", async () => {
    const { fake, port, backend } = make();
    const two = planOf([web, clusterIPGroup("other", "10.96.0.11", endpoints(1, { from: 50 }))]);
    await backend.sync(two);
    const before = fake.ruleSet();
    await fake.meddle("*nat\n-I KUBE-SVC-LOLE4ISW44XBNF3G -j RETURN\nCOMMIT\n");
    port.take();
    await backend.sync(two);
    expect(compareRuleSets(before, fake.ruleSet())).toEqual([]);
    const emptied = port.take().flatMap((payload) => payload.flatMap(({ commands }) => commands));
    const chains = emptied.filter(({ kind, chain }) => kind === "chain" && /^KUBE-(?:SVC|SEP)-/.test(chain));
    expect(chains).toHaveLength(1 + web.cluster.length);
  });
});

test("legacy: one payload, with one transaction for each table", async () => {
  const { port, backend } = make();
  await backend.sync(plan);
  expect(port.take().map((payload) => payload.map(({ table }) => table))).toEqual([["filter", "nat", "mangle"]]);
});

test("legacy: the chains of a batch are made before any of them has rules, the last name first", async () => {
  const { port, backend } = make();
  const [first, second] = [endpoints(2500, { from: 1000 }), endpoints(40, { from: 50 })];
  await backend.sync(
    planOf([clusterIPGroup("a", "10.96.0.11", first), clusterIPGroup("b", "10.96.0.12", second), web]),
  );
  const commands = port.take().flatMap((payload) => payload.find(({ table }) => table === "nat")?.commands ?? []);
  const isGroups = (chain: string) => /^KUBE-(?:SVC|SEP|MARK)-/.test(chain);
  const groups = commands.filter(({ chain }) => isGroups(chain));
  const batches: string[][] = [];
  for (const [index, { kind, chain }] of groups.entries()) {
    if (kind !== "chain") continue;
    if (groups[index - 1]?.kind !== "chain") batches.push([]);
    batches.at(-1)?.push(chain);
  }
  expect(batches.map(({ length }) => length)).toEqual([250, 500, 1000, 1 + 2500 + 1 + 40 + 1 + 4 - 1750]);
  expect(batches).toEqual(batches.map((names) => names.toSorted().reverse()));
});

describe("announced", () => {
  test("a full sync reads the kernel while its plan is made, once", async () => {
    const { saves, backend } = makeCounted();
    backend.prepare?.();
    expect(saves).toEqual(["filter"]);
    await backend.sync(plan);
    expect(saves).toEqual(["filter"]);
    await backend.sync(plan);
    expect(saves).toEqual(["filter", "filter"]);
  });

  test("announced again, what was read a moment ago is kept", async () => {
    const clock = { now: 0 };
    const { saves, backend } = makeCounted({ clock: { monotonic: () => clock.now } });
    for (const at of [0, 4_999]) {
      clock.now = at;
      backend.prepare?.();
      expect(saves).toEqual(["filter"]);
    }
    clock.now = 5_000;
    backend.prepare?.();
    expect(saves).toEqual(["filter", "filter"]);
    await backend.sync(plan);
    expect(saves).toHaveLength(2);
  });

  test("a failed read fails one sync, not the next", async () => {
    const { port, backend } = make();
    const { save } = port;
    port.save = () => Promise.reject(new Error("no filter"));
    backend.prepare?.();
    await expect(backend.sync(plan)).rejects.toThrow("no filter");
    port.save = save;
    backend.prepare?.();
    await backend.sync(plan);
  });

  test("what was read is of no use after a change", async () => {
    const { fake, saves, backend } = makeCounted();
    await backend.sync(plan);
    const before = fake.ruleSet();
    backend.prepare?.();
    const changed = planOf([web, clusterIPGroup("other", "10.96.0.11", [])]);
    await backend.apply(changed, changeOf(plan, changed));
    await backend.sync(plan);
    expect(saves).toHaveLength(3);
    expect(compareRuleSets(before, fake.ruleSet())).toEqual([]);
  });

  test("a kernel that cannot be read fails the sync", async () => {
    const { port, backend } = make();
    port.save = () => Promise.reject(new Error("no filter"));
    backend.prepare?.();
    await expect(backend.sync(plan)).rejects.toThrow("no filter");
  });
});

test("back from several cluster CIDRs to one, nothing of them is left", async () => {
  const { fake, backend } = make();
  await backend.sync(plan);
  const before = fake.ruleSet();
  const detector = { kind: "cidrs", cidrs: ["10.144.0.0/16", "10.244.0.0/16"] } as const;
  await backend.sync(planOf([web], { detector, nodePortAddresses: { kind: "all" } }));
  await backend.sync(plan);
  expect(compareRuleSets(before, fake.ruleSet())).toEqual([]);
});

describe("a check", () => {
  test("is content with a node that has no services and no node ports", async () => {
    const bare = planOf([], { detector: { kind: "none" }, nodePortAddresses: { kind: "list", addresses: [] } });
    const { backend } = make();
    await backend.sync(bare);
    expect(await backend.difference(bare)).toBeUndefined();
  });

  test("reads the services' chains, but not where the kernel says that nothing has changed", async () => {
    const { fake } = make();
    const port = Object.assign(new RecordingPort(fake), { glance: async () => ({ state: "as it was" }) });
    const backend = createIptablesBackend(port);
    const groups = new Map(plan.groups);
    const through = vi.spyOn(groups, "values");
    await backend.sync(plan);
    expect(await backend.difference({ ...plan, groups })).toBeUndefined();
    expect(through).toHaveBeenCalled();
    through.mockClear();
    expect(await backend.difference({ ...plan, groups })).toBeUndefined();
    expect(through).not.toHaveBeenCalled();
  });
});

test("others have their turn while old rules that refuse are looked at, however many there are", async () => {
  const turns = async (refused: number) => {
    let count = 0;
    let looks = 0;
    const { fake, backend } = make({ turn: async () => void count++, clock: { monotonic: () => looks++ } });
    const rules = Array.from(
      { length: refused },
      (_, at) => `-A KUBE-SERVICES -d 10.97.${at >> 8}.${at & 255}/32 -j REJECT\n`,
    );
    await fake.meddle(`*filter\n:KUBE-SERVICES - [0:0]\n${rules.join("")}COMMIT\n`);
    await backend.sync(plan);
    expect(fake.table("filter").chains.get("KUBE-SERVICES")?.rules).toEqual([]);
    return count;
  };
  const none = await turns(0);
  expect((await turns(1_280)) - none).toBeGreaterThanOrEqual(20);
});

function make(options = {}) {
  const fake = new FakeIptables({ family: "IPv4", variant: "legacy" });
  const port = new RecordingPort(fake);
  return { fake, port, backend: createIptablesBackend(port, options) };
}

function makeCounted(options = {}) {
  const made = make(options);
  const saves: Table[] = [];
  const { save } = made.port;
  made.port.save = (table) => {
    saves.push(table);
    return save(table);
  };
  return { ...made, saves };
}

function texts(fake: FakeIptables, table: Table, chain: string): string[] {
  return (fake.table(table).chains.get(chain)?.rules ?? []).map(renderRule);
}
