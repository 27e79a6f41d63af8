import { systemClock } from "@fairlead/base";
import { type NftTable, ruleText } from "@fairlead/netfilter/nft";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect } from "vitest";
import { FakeNftables } from "../../src/fake/index.ts";
import { type NftablesClient, NftablesError, openNftables } from "../../src/index.ts";
import { openListening } from "../../src/netlink/listening.ts";
import { HeldTable } from "../../src/nftables/held-table.ts";
import { insideTest } from "../kernel-test.ts";
import { Draft } from "./draft.ts";

const NAME = "kube-proxy";

/** A copy that follows a table, and how often it read the whole. */
function hold(nft: NftablesClient) {
  const count = { readings: 0 };
  const held = new HeldTable({
    family: "ip",
    name: NAME,
    read: () => {
      count.readings += 1;
      return nft.table("ip", NAME);
    },
    generation: () => nft.generation(),
    listen: openListening,
    clock: systemClock,
  });
  return { held, count };
}

/** Each with the readings of the whole that it takes. */
const WORK: readonly (readonly [script: string, readings: number])[] = [
  [`add table ip ${NAME}; add chain ip ${NAME} a; add chain ip ${NAME} b { type nat hook output priority -100; }`, 1],
  [`add rule ip ${NAME} a ip saddr { 10.0.0.1, 10.0.0.2 } counter accept; add rule ip ${NAME} a drop`, 0],
  [`insert rule ip ${NAME} a ct state new return comment "first"; add rule ip ${NAME} b jump a`, 0],
  [`add rule ip ${NAME} a index 1 tcp dport vmap { 80 : accept, 443 : drop }`, 0],
  [`add set ip ${NAME} s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.1 } }`, 0],
  [`add element ip ${NAME} s { 172.16.0.0/12 }; delete element ip ${NAME} s { 10.0.0.0/8 }`, 0],
  [`add map ip ${NAME} m { type ipv4_addr . inet_service : verdict; }`, 0],
  [`add element ip ${NAME} m { 10.96.0.1 . 80 comment "web" : goto a, 10.96.0.2 . 80 : drop }`, 0],
  ["add table ip other; add chain ip other x; add table ip6 kube-proxy; delete table ip other", 0],
  [`flush chain ip ${NAME} a; add rule ip ${NAME} a accept; flush set ip ${NAME} s`, 0],
  [`add set ip ${NAME} t { type ipv4_addr; flags timeout; timeout 3h; size 100; }; delete set ip ${NAME} s`, 0],
  [`chain ip ${NAME} b { type nat hook output priority -100; policy drop; }`, 0],
  [`insert rule ip ${NAME} a drop; insert rule ip ${NAME} a return`, 1],
  [`rename chain ip ${NAME} a c`, 1],
  [`delete table ip ${NAME}; add table ip ${NAME}`, 1],
  [`delete table ip ${NAME}`, 1],
];

insideTest(
  "a copy that follows is the table whatever nft does, and is read anew only where it must be",
  async ({ runner }) => {
    const nft = await openNftables();
    const { held, count } = hold(nft);
    for (const [script, wanted] of WORK) {
      await runner.run(["nft", "-f", "-"], { input: `${script.replaceAll(/; (?=add|insert|delete|flush)/g, "\n")}\n` });
      count.readings = 0;
      expect(text(await held.table()), script).toEqual(text(await nft.table("ip", NAME)));
      expect(count.readings, script).toBe(wanted);
    }
    held.close();
    await nft.close();
  },
);

function text(table: NftTable | undefined): string {
  const sorted = (of: Iterable<readonly [string, unknown]> = []) =>
    [...of].map(([name, one]) => [name, one] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  const sets = Array.from(
    table?.sets ?? [],
    ([name, { elements, ...set }]) => [name, { ...set, all: sorted(elements) }] as const,
  );
  const plain = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
  return JSON.stringify({ ...table, chains: sorted(table?.chains), sets: sorted(sets) }, plain);
}

type Step = (to: Draft) => unknown;

const step = <T>(weight: number, drawn: fc.Arbitrary<T>, work: (to: Draft, one: T) => unknown) => ({
  weight,
  arbitrary: drawn.map(
    (one): Step =>
      (to) =>
        work(to, one),
  ),
});
const nothing = fc.constant(undefined);
const chain = fc.constantFrom("a", "b", "c");
const any = fc.oneof(chain, fc.constant("n"));
/** The kernel refuses circles, the fake does not. Nothing may lead to a base chain. */
const way = fc.constantFrom(
  ...["na", "nc", "ab", "ac", "bc", "an"].map((both) => [both.charAt(0), both.charAt(1)] as const),
);
const address = fc.integer({ min: 1, max: 3 });
const steps: fc.Arbitrary<Step> = fc.oneof(
  step(4, chain, (to, name) => to.chains(name)),
  step(2, nothing, (to) => to.base("n")),
  step(2, any, (to, name) => to.deleteChain(name)),
  step(2, any, (to, name) => to.flushChain(name)),
  step(4, way, (to, [from, name]) => to.jumps(from, name)),
  step(3, nothing, (to) => to.looksUp("n", "v")),
  step(1, nothing, (to) => to.verdicts("v")),
  step(1, nothing, (to) => to.data("d")),
  step(1, nothing, (to) => to.addresses("d")),
  step(1, fc.constantFrom("v", "d"), (to, name) => to.deleteSet(name)),
  step(1, fc.constantFrom("v", "d"), (to, name) => to.flushSet(name)),
  step(4, fc.tuple(address, any), (to, [n, name]) => to.leads("v", n, { kind: "goto", chain: name })),
  step(2, address, (to, n) => to.deleteElements("v", [to.service(n)])),
  step(3, fc.tuple(address, address), (to, [n, value]) => to.maps("d", n, value)),
  step(2, address, (to, n) => to.deleteElements("d", [to.address(n)])),
  step(1, nothing, (to) => to.deleteTable()),
  step(1, nothing, (to) => to.addTable()),
);
const history = fc.array(fc.array(steps, { minLength: 1, maxLength: 4 }), { minLength: 3, maxLength: 12 });

/** Something to go on from: most that refers to nothing is refused. */
function begin(): Draft {
  const to = new Draft("ip", NAME).addTable().deleteTable().addTable();
  return to.chains("a", "b", "c").base("n").verdicts("v").data("d");
}

function draft(work: readonly Step[]): Draft {
  const batch = new Draft("ip", NAME);
  for (const step of work) step(batch);
  return batch;
}

async function after(client: NftablesClient, work: readonly Step[]): Promise<string> {
  const outcome = await client.commit(draft(work)).then(
    () => "taken",
    (error: unknown) => (error instanceof NftablesError ? error.message : String(error)),
  );
  return JSON.stringify([outcome, listed(await client.table("ip", NAME))], undefined, 1);
}

function listed(table: NftTable | undefined) {
  const chains = Array.from(table?.chains.values() ?? [], ({ name, rules }) => [
    name,
    ...rules.map((rule) => ruleText(rule, { family: "ip", sets: new Map(), ...table })),
  ]);
  const sets = Array.from(table?.sets.values() ?? [], ({ name, data, elements }) => [
    name,
    data,
    Array.from(elements.values(), (element) => JSON.stringify(element)).sort(),
  ]);
  // A copy that follows has what is new at the end.
  return [
    chains.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
    sets.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  ];
}

/** Where they differ in what is refused, and for which message, or in what is there afterwards, it fails. */
insideTest("any transactions: the fake does what the kernel does, and a copy follows", async () => {
  const real = await openNftables();
  let looks = 0;
  const { held, count } = hold(real);
  await fc.assert(
    fc.asyncProperty(history, async (transactions) => {
      const fake = new FakeNftables();
      await Promise.all([real.commit(begin()), fake.commit(begin())]);
      for (const work of transactions) {
        const [expected, found] = [await after(real, work), await after(fake, work)];
        const messages = Array.from({ length: draft(work).count }, (_, at) =>
          JSON.stringify(draft(work).objectOf(at + 1)),
        );
        expect(found, messages.join("\n")).toBe(expected);
        looks += 1;
        expect(listed(await held.table()), messages.join("\n")).toEqual(listed(await real.table("ip", NAME)));
      }
    }),
    { numRuns: runs(25) },
  );
  held.close();
  await real.close();
  expect(count.readings).toBeLessThanOrEqual(looks / 2);
});
