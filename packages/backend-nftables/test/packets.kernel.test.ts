import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { kernelTest } from "./support/real-kernel.ts";

kernelTest(
  "real packets: endpoints get even shares, and who is remembered stays as long as the endpoint does",
  async ({ runner }) => {
    const main = fileURLToPath(new URL("packets-main.ts", import.meta.url));
    const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
      timeoutMs: 0,
    });
    const seen: Seen = JSON.parse(stdout);
    expect(Object.keys(seen.even)).toHaveLength(5);
    expect(Object.values(seen.even).reduce((sum, count) => sum + count, 0)).toBe(seen.sent);
    expect(chiSquare(seen.even)).toBeLessThan(ONE_IN_A_MILLION);
    expect(Object.values(seen.oneClient)).toEqual([100]);
    expect(Object.keys(seen.clients)).toHaveLength(5);
    expect(chiSquare(seen.clients)).toBeLessThan(ONE_IN_A_MILLION);
    // nft prints who is remembered, and takes what it printed.
    expect(seen.listed).toMatch(
      /elements = \{ 0x\w{8} \. 10\.144\.\d+\.\d+ timeout 10m expires \S+ : 0x\w{8} \. 0x\w{8} \. 0x\w{8}/,
    );
    // The one that went has no client, and the client goes to one of the others only.
    expect(Object.values(seen.afterItWent)).toEqual([100]);
    expect(Object.keys(seen.afterItWent)).not.toContain(seen.chosen);
    expect(seen.afterFullSync).toEqual(seen.afterItWent);
    // By a hash of the client's address each goes one way; when one endpoint of five goes, nearly all others stay.
    expect(new Set(seen.hashedBefore).size).toBe(5);
    expect(seen.hashedBefore.filter((one) => one.includes(" and "))).toEqual([]);
    const stayed = seen.hashedBefore.flatMap((one, at) => (one === "10.144.0.1" ? [] : [one === seen.hashedAfter[at]]));
    expect(stayed.filter(Boolean).length / stayed.length).toBeGreaterThan(0.95);
    expect(seen.hashedAfter).not.toContain("10.144.0.1");
  },
);

type Counts = Readonly<Record<string, number>>;

interface Seen {
  readonly sent: number;
  readonly listed: string;
  readonly even: Counts;
  readonly oneClient: Counts;
  readonly clients: Counts;
  readonly chosen: string;
  readonly afterItWent: Counts;
  readonly afterFullSync: Counts;
  /** The endpoint of each client. */
  readonly hashedBefore: readonly string[];
  readonly hashedAfter: readonly string[];
}

/** The quantile of chi-square with four degrees of freedom: the test fails by chance once in a million runs. */
const ONE_IN_A_MILLION = 33.4;

function chiSquare(counts: Counts): number {
  const values = Object.values(counts);
  const expected = values.reduce((sum, count) => sum + count, 0) / values.length;
  return values.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}
