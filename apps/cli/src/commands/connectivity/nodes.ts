import { familyOf, fieldsOf, type IPFamily, itemsOf, parseAddress, stringOf } from "@fairlead/base";
import type { Cluster } from "../../cluster/cluster.ts";
import { NODES } from "../../cluster/resources.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { didYouMean } from "../../inputs/did-you-mean.ts";
import type { TestNode } from "./model.ts";

/**
 * The two nodes of a test.
 *
 * @param asked names; none: the first two that are ready
 * @throws CommandFailure when there are no two
 */
export async function testNodes(cluster: Cluster, asked: readonly string[]): Promise<readonly [TestNode, TestNode]> {
  const nodes = (await cluster.list(NODES)).map((raw) => ({ raw, node: nodeIn(raw) }));
  const names = nodes.map(({ node }) => node.name);
  for (const name of asked) {
    if (names.includes(name)) continue;
    const there = `there are: ${names.join(", ")}`;
    throw new CommandFailure(`--node=${name}: there is no such Node; ${there}${didYouMean(name, names)}`);
  }
  const ready = nodes.filter(({ raw }) => isReady(raw)).map(({ node }) => node);
  const wanted =
    asked.length > 0 ? asked.flatMap((name) => nodes.find((one) => one.node.name === name)?.node ?? []) : ready;
  const [here, there] = wanted;
  if (here !== undefined && there !== undefined) return [here, there];
  throw new CommandFailure(
    `two nodes are needed that are ready; found: ${wanted.map(({ name }) => name).join(", ") || "none"}`,
  );
}

function nodeIn(raw: unknown): TestNode {
  const listed = itemsOf(fieldsOf(fieldsOf(raw)["status"])["addresses"]).map(fieldsOf);
  const own = listed.flatMap(({ type, address }): [IPFamily, string][] => {
    const text = stringOf(address) ?? "";
    return type === "InternalIP" && parseAddress(text) !== undefined ? [[familyOf(text), text]] : [];
  });
  return {
    name: stringOf(fieldsOf(fieldsOf(raw)["metadata"])["name"]) ?? "",
    addresses: Object.fromEntries(own.reverse()),
  };
}

function isReady(raw: unknown): boolean {
  if (fieldsOf(fieldsOf(raw)["spec"])["unschedulable"] === true) return false;
  return itemsOf(fieldsOf(fieldsOf(raw)["status"])["conditions"])
    .map(fieldsOf)
    .some(({ type, status }) => type === "Ready" && status === "True");
}
