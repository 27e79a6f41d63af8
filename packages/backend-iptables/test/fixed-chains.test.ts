import { FakeIptables } from "@fairlead/kernel/fake";
import { renderRule, type Table } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { createIptablesBackend, type RulesPort } from "../src/index.ts";
import { changeOf, clusterIPGroup, endpoints, planOf } from "./support/groups.ts";

/** A kernel that tells its generation and of single chains, as nf_tables does, and the calls of its tools. */
function reporting() {
  const kernel = new FakeIptables({ family: "IPv4" });
  const calls: string[] = [];
  let generation = 0;
  const ids = new WeakMap<object, string>();
  let lastId = 0;
  const idOf = (chain: object) => {
    const id = ids.get(chain) ?? String(++lastId);
    ids.set(chain, id);
    return id;
  };
  const port: RulesPort = {
    family: "IPv4",
    variant: "nft",
    restore: async (payload) => {
      let text = "";
      for await (const piece of payload) text += piece;
      calls.push(`restore ${[...text.matchAll(/^:(\S+) |^-I (\S+)/gm)].map(([, made, at]) => made ?? at).join(" ")}`);
      await kernel.restore(text);
      generation++;
    },
    save: async (table) => {
      calls.push("save");
      return kernel.save(table);
    },
    saveLines: (table) => kernel.saveLines(table),
    chains: (table) => kernel.chains(table),
    list: (table, chain, number) => kernel.list(table, chain, number),
    texts: async (table, asked) => {
      calls.push(`texts ${table} ${asked.map(({ chain }) => chain).join(" ")}`);
      return kernel.texts(table, asked);
    },
    glance: async () => ({ state: String(generation) }),
    tally: async (table, chains) => {
      const all = kernel.table(table).chains;
      const found = chains.flatMap((name) => all.get(name) ?? []);
      return new Map(found.map((chain) => [chain.name, { rules: chain.rules.length, mark: idOf(chain) }]));
    },
  };
  const meddle = async (text: string) => {
    generation++;
    await kernel.meddle(text);
  };
  return { kernel, port, calls, meddle };
}

const PROXY = { verdict: "proxy", set: "cluster", masquerade: true } as const;
const TREATMENTS = { pod: PROXY, node: PROXY, outside: PROXY };

/** Each has a ClusterIP and a node port: six rules of nat. */
function plan(services: number) {
  return planOf(
    Array.from({ length: services }, (_, i) => {
      const group = clusterIPGroup(`s${i}`, `10.96.${i >> 8}.${i & 255}`, endpoints(1, { from: i }));
      const nodePort = {
        kind: "node-port",
        reach: "external",
        at: "node-port",
        port: 30_000 + i,
        policy: "Cluster",
        treatments: TREATMENTS,
      } as const;
      return { ...group, frontends: [...group.frontends, nodePort] };
    }),
  );
}

/** Of a chain's second rule. */
function deletion(kernel: FakeIptables, table: Table, chain: string): string {
  const [, rule] = kernel.table(table).chains.get(chain)?.rules ?? [];
  return `-D ${chain} ${rule && renderRule(rule)}`;
}

const SIZES = { small: 3, large: 1000 } as const;

describe.each(["small", "large"] as const)("a %s table, of whose chains the kernel tells", (size) => {
  const wanted = plan(SIZES[size]);

  /** After a full sync and the look that follows it. */
  async function synced() {
    const node = reporting();
    const problems: string[] = [];
    const backend = createIptablesBackend(node.port, {
      onProblem: (problem) => problems.push(problem),
      clock: { monotonic: () => 0 },
    });
    await backend.sync(wanted);
    expect(await backend.difference(wanted)).toBeUndefined();
    const before = rules(node.kernel);
    node.calls.length = 0;
    return { ...node, backend, problems, before };
  }

  function rules(kernel: FakeIptables): readonly string[] {
    return [...kernel.ruleSet()].flatMap(([table, { chains }]) =>
      [...chains.values()].flatMap((chain) => chain.rules.map((rule) => `${table} ${chain.name} ${renderRule(rule)}`)),
    );
  }

  test("what others do elsewhere starts no process", async () => {
    const { backend, calls, meddle } = await synced();
    await meddle("*nat\n:THEIRS - [0:0]\n-A THEIRS -j RETURN\nCOMMIT\n");
    expect(await backend.difference(wanted)).toBeUndefined();
    expect(calls).toEqual([]);
  });

  test.each<readonly [Table, string, string]>([
    ["nat", "-F KUBE-SERVICES", "KUBE-SERVICES"],
    ["nat", "-F KUBE-NODEPORTS", "KUBE-NODEPORTS"],
    ["nat", "-D", "KUBE-NODEPORTS"],
    ["nat", "-D", "KUBE-SERVICES"],
    ["nat", "-D", "KUBE-POSTROUTING"],
    ["nat", "-F PREROUTING", "PREROUTING"],
    ["filter", "-D", "KUBE-FORWARD"],
    ["filter", "-A KUBE-EXTERNAL-SERVICES -j DROP", "KUBE-EXTERNAL-SERVICES"],
  ])("%s %s: the next look writes that chain and no other", async (table, edit, chain) => {
    const { backend, kernel, calls, meddle, problems, before } = await synced();
    await meddle(`*${table}\n${edit === "-D" ? deletion(kernel, table, chain) : edit}\nCOMMIT\n`);
    expect(rules(kernel)).not.toEqual(before);
    expect(await backend.difference(wanted)).toBeUndefined();
    expect(rules(kernel).toSorted()).toEqual(before.toSorted());
    expect(calls.filter((call) => call.startsWith("restore"))).toEqual([`restore ${chain}`]);
    expect(problems).toEqual([`another program changed ${chain} in the ${table} table of IPv4; restored`]);
    expect(await backend.difference(wanted)).toBeUndefined();
    calls.length = 0;
    expect(await backend.difference(wanted)).toBeUndefined();
    expect(calls).toEqual([]);
  });

  test("so it is after changes of its own, of which no rule of the shared chains is read again in a large table", async () => {
    const { kernel, backend, calls, meddle } = await synced();
    const groups = [...wanted.groups.values()];
    const less = planOf(groups.slice(1));
    await backend.apply(less, changeOf(wanted, less));
    calls.length = 0;
    expect(await backend.difference(less)).toBeUndefined();
    expect(calls.filter((call) => call.startsWith("texts nat"))).toHaveLength(size === "large" ? 0 : 1);
    calls.length = 0;
    await meddle(`*nat\n${deletion(kernel, "nat", "KUBE-NODEPORTS")}\nCOMMIT\n`);
    expect(await backend.difference(less)).toBeUndefined();
    expect(calls.filter((call) => call.startsWith("restore"))).toEqual(["restore KUBE-NODEPORTS"]);
  });

  test("a flush, which empties the chains of services as well, is a full sync's matter", async () => {
    const { backend, kernel, meddle } = await synced();
    kernel.flush("nat");
    await meddle("*nat\n-A INPUT -j RETURN\nCOMMIT\n");
    expect(await backend.difference(wanted)).toBeDefined();
  });

  test("a chain that cannot be written by itself is a full sync's matter, and the log says why", async () => {
    const { backend, problems, meddle, kernel } = await synced();
    const [service] = [...kernel.table("nat").chains.keys()].filter((name) => name.startsWith("KUBE-EXT-"));
    await meddle(`*nat\n-F KUBE-NODEPORTS\n-F ${service}\n-X ${service}\nCOMMIT\n`);
    expect(await backend.difference(wanted)).toBeDefined();
    expect(problems).toEqual([expect.stringContaining("and restoring only that failed; starting a full sync: ")]);
  });
});
