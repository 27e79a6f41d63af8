import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FakeIptables } from "../../src/fake/index.ts";
import { cutTransactions } from "../../src/iptables/open.ts";
import { cases } from "./cases.ts";
import { checkAbsentChain, checkCase } from "./check-case.ts";

const chain = (at: number) => `KUBE-SEP-${at}`;
const rule = (at: number, port: number) => `-A ${chain(at)} -p tcp -j DNAT --to-destination 10.1.0.${at}:${port}`;

/** Chains with so many rules each, in one transaction. */
function payload(counts: readonly number[]): string {
  const fills = counts.flatMap((rules, at) => [
    `:${chain(at)} - [0:0]`,
    ...Array.from({ length: rules }, (_, port) => rule(at, port + 1)),
  ]);
  return ["*nat", ...fills, "COMMIT", ""].join("\n");
}

const counts = fc.array(fc.nat({ max: 12 }), { minLength: 1, maxLength: 20 });
const MOST_TRIES = 20;

/** @returns how many times it was refused */
async function restoreUntilTaken(iptables: FakeIptables, text: string): Promise<number> {
  for (let refused = 0; refused < MOST_TRIES; refused++) {
    const error = await iptables.restore(text).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) return refused;
    expect(error).toMatchObject({ kind: "too-large" });
  }
  throw new Error(`refused ${MOST_TRIES} times`);
}

describe("a kernel that takes small transactions only", () => {
  test("gets what any other gets, and the size is remembered", async () => {
    await fc.assert(
      fc.asyncProperty(counts, fc.integer({ min: 80, max: 2_000 }), async (given, room) => {
        const small = new FakeIptables({ family: "IPv4", room });
        const any = new FakeIptables({ family: "IPv4" });
        const text = payload(given);
        await any.restore(text);
        await restoreUntilTaken(small, text);
        expect(small.ruleSet()).toEqual(any.ruleSet());
        expect(await restoreUntilTaken(small, text)).toBe(0);
      }),
    );
  });

  test("each refusal halves: the error says of what, and to what", async () => {
    const small = new FakeIptables({ family: "IPv4", room: 500 });
    const text = payload([12]);
    const size = text.length - "*nat\nCOMMIT\n".length;
    await expect(small.restore(text)).rejects.toThrow(`has ${size} characters`);
    expect(size).toBeGreaterThan(500);
    expect(size).toBeLessThan(1000);
    expect(await restoreUntilTaken(small, text)).toBe(0);
  });

  test("a single line that is too large is named, and the size stays", async () => {
    const small = new FakeIptables({ family: "IPv4", room: 200 });
    const long = `-A ${chain(0)} -m comment --comment "${"x".repeat(200)}" -j RETURN`;
    await restoreUntilTaken(small, payload([12]));
    const refused = await small.restore(["*nat", `:${chain(0)} - [0:0]`, long, "COMMIT", ""].join("\n")).catch(String);
    const again = await small.restore(["*nat", long, "COMMIT", ""].join("\n")).catch(String);
    expect([refused, again]).toEqual([expect.stringContaining(long), expect.stringContaining("by itself")]);
    expect(await restoreUntilTaken(small, payload([12]))).toBe(0);
  });
});

describe("cut transactions", () => {
  test("have at most so many characters, or one line, and hold the same lines in the same order", async () => {
    await fc.assert(
      fc.asyncProperty(counts, fc.integer({ min: 1, max: 2_000 }), async (given, most) => {
        const text = payload(given);
        const transactions = await cut(text, most);
        expect(transactions.flat()).toEqual(text.split("\n").slice(1, -2));
        const sizes = transactions.map((lines) => lines.join("\n").length + 1);
        expect(transactions.filter((lines, at) => (sizes[at] ?? 0) > most && lines.length > 1)).toEqual([]);
      }),
    );
  });

  test("leave a chain whole that fits", async () => {
    await fc.assert(
      fc.asyncProperty(counts, async (given) => {
        for (const lines of await cut(payload(given), 13 * 80)) expect(lines[0]).toMatch(/^:/);
      }),
    );
  });
});

/** @returns the commands of each transaction */
async function cut(text: string, most: number): Promise<readonly (readonly string[])[]> {
  let written = "";
  for await (const piece of cutTransactions([text], most)) written += piece;
  return written
    .split("*nat\n")
    .slice(1)
    .map((section) => section.trimEnd().split("\n").slice(0, -1));
}

for (const family of ["IPv4", "IPv6"] as const) {
  for (const variant of ["nft", "legacy"] as const) {
    describe(`in memory: ${family}, ${variant}`, () => {
      const client = () => new FakeIptables({ family, variant, lacking: ["ipvs", "nosuchmatch"] });
      test.for(cases)("$name", (given) => checkCase(client(), given, true));
      test("chains are asked for by name, and one is not there", () => checkAbsentChain(client()));
    });
  }
}
