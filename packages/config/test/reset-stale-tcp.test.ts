import { describe, expect, test } from "vitest";
import { configOf, errorsOf, parse, parseFile } from "./parse.ts";

describe("reset-stale-tcp", () => {
  test("is off unless asked for", () => {
    expect(configOf(parse([])).resetStaleTCP).toBe(false);
    expect(configOf(parse(["--reset-stale-tcp=false", "--proxy-mode=userspace"])).resetStaleTCP).toBe(false);
  });

  test.each(["iptables", "nftables", "ipvs"])("by flag in %s mode", (mode) => {
    expect(configOf(parse([`--proxy-mode=${mode}`, "--reset-stale-tcp"])).resetStaleTCP).toBe(true);
  });

  test("by file", () => {
    const file = "---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nresetStaleTCP: true";
    expect(configOf(parseFile(`mode: nftables\n${file}`)).resetStaleTCP).toBe(true);
    expect(errorsOf(parseFile(`mode: userspace\n${file}`))).toEqual([
      expect.stringContaining("resetStaleTCP: true: works in iptables, nftables and ipvs mode; in userspace mode"),
    ]);
  });

  test("is refused in userspace mode", () => {
    expect(errorsOf(parse(["--proxy-mode=userspace", "--reset-stale-tcp"]))).toEqual([
      expect.stringContaining(
        "--reset-stale-tcp=true: works in iptables, nftables and ipvs mode; in userspace mode the agent itself terminates the connections",
      ),
    ]);
  });
});
