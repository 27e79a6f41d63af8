import { NODES } from "@fairlead/networks";
import type { ObjectChange, OtherSubscription } from "@fairlead/watch";
import { expect, test } from "vitest";
import { withOtherNodes } from "../src/index.ts";

function nodeOf(name: string, address: string): ObjectChange<unknown> {
  const object = { metadata: { name }, status: { addresses: [{ type: "InternalIP", address }] } };
  return { type: "upsert", key: `/${name}`, object };
}

function followed(others: readonly OtherSubscription[] = []) {
  const reports: string[] = [];
  const subscriptions = withOtherNodes(others, {
    nodeName: "node-a",
    onAddresses: (addresses) => reports.push(addresses.join(" ")),
    onKnown: () => reports.push("known"),
  });
  const [nodes] = subscriptions;
  if (nodes === undefined) throw new Error("Nodes are not asked for");
  return { reports, nodes, subscriptions };
}

test("the addresses of all Nodes but this one, from the first complete list on", () => {
  const { reports, nodes } = followed();
  void nodes.onChange(nodeOf("node-a", "192.0.2.10"));
  void nodes.onChange(nodeOf("node-c", "192.0.2.101"));
  void nodes.onChange(nodeOf("node-b", "192.0.2.100"));
  expect(reports).toEqual([]);
  nodes.onState("listed");
  void nodes.onChange({ type: "synced" });
  expect(reports).toEqual(["192.0.2.100 192.0.2.101", "known"]);
  reports.length = 0;
  void nodes.onChange(nodeOf("node-a", "192.0.2.11"));
  void nodes.onChange({ type: "delete", key: "/node-c" });
  expect(reports.filter((one) => one !== "known")).toEqual(["192.0.2.100"]);
});

test("Nodes that may not be read are not waited for", () => {
  const { reports, nodes } = followed();
  nodes.onState("forbidden");
  expect(reports).toEqual(["known"]);
});

test("no resource is asked for twice", () => {
  const seen: string[] = [];
  const other: OtherSubscription = {
    resource: NODES,
    decode: (raw) => raw,
    onChange: (change) => void seen.push(change.type),
    onState: (state) => void seen.push(state),
  };
  const { reports, nodes, subscriptions } = followed([other]);
  expect(subscriptions).toHaveLength(1);
  void nodes.onChange(nodeOf("node-b", "192.0.2.100"));
  void nodes.onChange({ type: "synced" });
  nodes.onState("listed");
  expect(seen).toEqual(["upsert", "synced", "listed"]);
  expect(reports[0]).toBe("192.0.2.100");
});
