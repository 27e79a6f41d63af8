import { describe, expect, test } from "vitest";
import { withMode } from "../src/index.ts";
import { configOf, errorsOf, parse, parseFile } from "./parse.ts";

describe("what the agent did as a shadow is fairlead verify --watch: ignored, it would program the node", () => {
  test.each(["--shadow", "--shadow=true", "--shadow-grace-period=5s"])("%s", (flag) => {
    expect(parse([flag])).toMatchObject({
      kind: "usage-error",
      message: expect.stringMatching(/^unknown flag .*run: fairlead verify --watch/),
    });
  });

  test("shadow: true", () => {
    const file = parseFile(
      "mode: nftables\n---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nshadow: true",
    );
    expect(errorsOf(file)).toEqual([expect.stringMatching(/shadow.*run: fairlead verify --watch$/)]);
  });
});

test("the configuration for another mode: what is not set follows the mode", () => {
  const config = configOf(parse(["--masquerade-all"]));
  expect(withMode(config, "nftables")).toMatchObject({ mode: "nftables", nodePortAddresses: ["primary"] });
  expect(withMode(config, "ipvs")).toMatchObject({
    mode: "ipvs",
    nodePortAddresses: ["all"],
    ipvs: { masqueradeAll: true },
  });
  const given = configOf(parse(["--nodeport-addresses=192.0.2.0/24"]));
  expect(withMode(given, "nftables").nodePortAddresses).toEqual(["192.0.2.0/24"]);
});
