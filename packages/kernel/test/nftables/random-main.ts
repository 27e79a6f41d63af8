import { systemClock } from "@fairlead/base";
import { type NftTable, ruleText } from "@fairlead/netfilter/nft";
import fc from "fast-check";
import { FakeNftables } from "../../src/fake/index.ts";
import { type NftablesClient, NftablesError, openNftables } from "../../src/index.ts";
import { openListening } from "../../src/netlink/listening.ts";
import { HeldTable } from "../../src/nftables/held-table.ts";
import { Draft } from "./draft.ts";

/**
 * Runs in a namespace of its own: the same transactions, of any kind, on the kernel and on the fake. It fails where
 * they differ in what is refused, and for which message, or in what is there afterwards.
 */
const [RUNS = "25"] = process.argv.slice(2);
const TABLE = "fairlead-test";

type Step = (to: Draft) => unknown;

const chain = fc.constantFrom("a", "b", "c");
const any = fc.oneof(chain, fc.constant("n"));
const address = fc.integer({ min: 1, max: 3 });
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: chain.map(
      (name): Step =>
        (to) =>
          to.chains(name),
    ),
  },
  { weight: 2, arbitrary: fc.constant<Step>((to) => to.base("n")) },
  {
    weight: 2,
    arbitrary: any.map(
      (name): Step =>
        (to) =>
          to.deleteChain(name),
    ),
  },
  {
    weight: 2,
    arbitrary: any.map(
      (name): Step =>
        (to) =>
          to.flushChain(name),
    ),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(any, any).map(
      ([from, name]): Step =>
        (to) =>
          to.jumps(from, name),
    ),
  },
  {
    weight: 3,
    arbitrary: any.map(
      (name): Step =>
        (to) =>
          to.looksUp(name, "v"),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Step>(
      (to) => to.verdicts("v"),
      (to) => to.data("d"),
      (to) => to.addresses("d"),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom("v", "d").map(
      (name): Step =>
        (to) =>
          to.deleteSet(name),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom("v", "d").map(
      (name): Step =>
        (to) =>
          to.flushSet(name),
    ),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(address, any).map(
      ([n, name]): Step =>
        (to) =>
          to.leads("v", n, { kind: "goto", chain: name }),
    ),
  },
  {
    weight: 2,
    arbitrary: address.map(
      (n): Step =>
        (to) =>
          to.deleteElements("v", [to.service(n)]),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(address, address).map(
      ([n, value]): Step =>
        (to) =>
          to.addElements("d", [{ key: to.address(n), value: to.address(value) }]),
    ),
  },
  {
    weight: 2,
    arbitrary: address.map(
      (n): Step =>
        (to) =>
          to.deleteElements("d", [to.address(n)]),
    ),
  },
  { weight: 1, arbitrary: fc.constant<Step>((to) => to.deleteTable()) },
  { weight: 1, arbitrary: fc.constant<Step>((to) => to.addTable()) },
);
const history = fc.array(fc.array(steps, { minLength: 1, maxLength: 4 }), { minLength: 3, maxLength: 12 });

/** Something to go on from: most that refers to nothing is refused. */
function begin(): Draft {
  const to = new Draft("ip", TABLE).addTable().deleteTable().addTable();
  return to.chains("a", "b", "c").base("n").verdicts("v").data("d");
}

function draft(work: readonly Step[]): Draft {
  const batch = new Draft("ip", TABLE);
  for (const step of work) step(batch);
  return batch;
}

async function after(client: NftablesClient, work: readonly Step[]): Promise<string> {
  const outcome = await client.commit(draft(work)).then(
    () => "taken",
    (error: unknown) => (error instanceof NftablesError ? error.message : String(error)),
  );
  return JSON.stringify([outcome, listed(await client.table("ip", TABLE))], undefined, 1);
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

const real = await openNftables();
let [readings, looks] = [0, 0];
const held = new HeldTable({
  family: "ip",
  name: TABLE,
  read: () => {
    readings += 1;
    return real.table("ip", TABLE);
  },
  generation: () => real.generation(),
  listen: openListening,
  clock: systemClock,
});
await fc.assert(
  fc.asyncProperty(history, async (transactions) => {
    const fake = new FakeNftables();
    await Promise.all([real.commit(begin()), fake.commit(begin())]);
    for (const work of transactions) {
      const [expected, found] = [await after(real, work), await after(fake, work)];
      const copy = JSON.stringify(listed(await held.table()));
      looks += 1;
      const whole = JSON.stringify(listed(await real.table("ip", TABLE)));
      if (copy !== whole) throw new Error(`the kernel has\n${whole}\nand the copy that follows\n${copy}`);
      if (expected !== found) {
        const messages = Array.from({ length: draft(work).count }, (_, at) =>
          JSON.stringify(draft(work).objectOf(at + 1)),
        );
        throw new Error(`after\n${messages.join("\n")}\nthe kernel has\n${expected}\nand the fake\n${found}`);
      }
    }
  }),
  { numRuns: Number(RUNS) },
);
held.close();
await real.close();
if (readings > looks / 2) throw new Error(`the copy was read anew ${readings} times in ${looks} looks`);
