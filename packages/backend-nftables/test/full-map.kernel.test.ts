import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { CLIENTS_SIZE } from "../src/plan/sticky.ts";
import { kernelTest } from "./support/real-kernel.ts";

kernelTest(
  "real packets: where no more clients are remembered, they are served as if none were",
  async ({ runner }) => {
    const main = fileURLToPath(new URL("limits-main.ts", import.meta.url));
    const program = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main] as const;
    const { stdout } = await runner.run(program, { timeoutMs: 0 });
    const seen: Seen = JSON.parse(stdout);
    const [known = [], ...unknown] = seen.full;
    expect(seen.remembered).toBe(CLIENTS_SIZE);
    // Who was there before stays, also over a full sync.
    expect(new Set([...known, ...seen.after]).size).toBe(1);
    expect(unknown.flat()).toHaveLength(2 * unknown.length);
    expect(new Set(unknown.flat()).size).toBe(5);
    // Of two connections of one, drawn each by itself, one in five goes the same way.
    expect(unknown.filter((ends) => new Set(ends).size === 1).length).toBeLessThan(unknown.length / 2);
  },
);

interface Seen {
  /** Where the connections of each client ended, the one that is remembered first. */
  readonly full: readonly (readonly string[])[];
  readonly remembered: number;
  readonly after: readonly string[];
}
