import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseArguments } from "../src/index.ts";

const fixture = (name: string) => readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");

/** What kube-proxy v1.37.1 --write-config-to wrote in each mode. */
describe("defaults are those of kube-proxy", () => {
  test.each(["iptables", "ipvs", "nftables"])("flags alone, %s", (mode) => {
    const result = parseArguments([`--proxy-mode=${mode}`, "--write-config-to=/tmp/out"], {
      readFile: () => "",
      version: "0",
    });
    expect(result).toMatchObject({ kind: "run", warnings: [], config: { mode } });
    if (result.kind !== "run" || result.config.action.kind !== "write-config") throw new Error("not written");
    expect(result.config.action.text).toBe(fixture(`defaults-${mode}.yaml`));
  });
});
