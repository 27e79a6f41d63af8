import { parseArguments } from "@fairlead/config";
import { expect, test } from "vitest";
import { nodeExclusions } from "../src/index.ts";

const NODE = ["10.201.0.10", "fd00:201::10"];

test.each([
  ["10.244.0.0/16", []],
  ["10.201.0.0/16", ["10.201.0.10"]],
  ["10.244.0.0/16,fd00:201::/64,10.0.0.0/8", ["fd00:201::10", "10.201.0.10"]],
])("written excluded CIDRs with an address of the node are warned of: %s", (cidrs, addresses) => {
  const flags = [`--exclude-cluster-cidr=${cidrs}`];
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  const warnings = nodeExclusions(parsed.config, NODE);
  expect(warnings.map((line) => / contains (\S+), an address of this node/.exec(line)?.[1])).toEqual(addresses);
  for (const line of warnings) expect(line).toMatch(/^--exclude-cluster-cidr=/);
});
