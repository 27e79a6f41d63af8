import { hostname } from "node:os";
import { expect, test } from "vitest";
import { demandThisHost } from "../src/inputs/this-host.ts";

const NODE = { addresses: ["10.201.0.10", "fd00:201::10"] };

test("a node that has none of this host's addresses is not looked at here", () => {
  expect(() => demandThisHost({ node: "node-b" }, ["127.0.0.1", "192.0.2.7"], NODE)).toThrow(
    "--node=node-b: this host is not that Node (it has none of 10.201.0.10, fd00:201::10); look at it with --on node-b",
  );
});

test.each([
  ["it has one of the Node's addresses", "node-b", NODE],
  ["it has its name", hostname().toUpperCase(), { addresses: ["198.51.100.1"] }],
  ["no node is named", undefined, { addresses: ["198.51.100.1"] }],
  ["nothing is known of the Node", "node-b", undefined],
])("this host is taken where %s", (_why, node, known) => {
  expect(() => demandThisHost({ node }, ["127.0.0.1", "10.201.0.10"], known)).not.toThrow();
});
