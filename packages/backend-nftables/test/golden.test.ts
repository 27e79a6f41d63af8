import { tableText } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import { planTable } from "../src/index.ts";
import { recordings } from "./support/golden.ts";
import { type Block, blocksOf } from "./support/world.ts";

test.each(recordings())("$name, $family: the fixed part is kube-proxy's", ({ plan, text }) => {
  const ours = tableText(planTable(plan));
  expect(fixedPart(ours, text)).toEqual(fixedPart(text, text));
  expect(ours.split("\n").slice(0, 2)).toEqual(text.split("\n").slice(0, 2));
});

test.each(recordings())(
  "$name, $family: the same frontends are served, each service under its name",
  ({ plan, text }) => {
    const dispatch = (listing: string) =>
      blocksOf(listing)
        .filter(({ head }) => VALUES_ARE_OURS.has(head))
        .map(({ head, elements }) => ({
          head,
          keys: elements.map((element) => element.replace(/ (?:comment|:) .*$/, "")),
        }));
    expect(dispatch(tableText(planTable(plan)))).toEqual(dispatch(text));
  },
);

/** Where they lead, and what a service's own chains have in them, is ours; firewall-ips is compared with its values. */
const VALUES_ARE_OURS = new Set(["map service-ips", "map service-nodeports"]);

/** Sets, maps and chains of names that do not come from services, in their order. */
function fixedPart(listing: string, recorded: string): readonly Block[] {
  const fixed = new Set(blocksOf(recorded).flatMap(({ head }) => (isFixed(head) ? [head] : [])));
  return blocksOf(listing)
    .filter(({ head }) => fixed.has(head))
    .map((block) => (VALUES_ARE_OURS.has(block.head) ? { ...block, elements: [] } : block));
}

function isFixed(head: string): boolean {
  return !head.includes("/");
}
