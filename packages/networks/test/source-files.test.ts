import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SOURCE_FILES } from "../scripts/source-files.ts";
import { type SourceKind, sourceKinds } from "../src/index.ts";

const textOf = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

test.each(SOURCE_FILES)(
  "$path is as `pnpm --filter @fairlead/networks run sources` writes it",
  ({ path, rewritten }) => {
    const text = textOf(path);
    expect(text).toBe(rewritten(text));
  },
);

/** What only people can write: nodes are in every cluster, and need no resource there. */
test.each([
  ["packages/networks/README.md", (name: string) => `\`${name}\``],
  ["e2e/src/specs/networks/sources.ts", (name: string) => name],
])("%s has every source", (path, written) => {
  const text = textOf(path);
  // Those that nodes write need within, which a flag cannot give.
  const own = Object.entries<SourceKind>(sourceKinds).filter(
    ([, { resources, writtenByNodes }]) => resources.length > 0 && (path.endsWith(".md") || writtenByNodes !== true),
  );
  expect(own.flatMap(([name]) => (text.includes(written(name)) ? [] : [name]))).toEqual([]);
});

test("lab/src/control-plane/network-resources.ts has every resource that is a network's own", () => {
  const text = textOf("lab/src/control-plane/network-resources.ts");
  const own = Object.values(sourceKinds).flatMap(({ resources }) => resources.filter(({ group }) => group !== ""));
  expect(
    own.flatMap(({ group, plural }) => (text.includes(`"${group}"`) && text.includes(`"${plural}"`) ? [] : [plural])),
  ).toEqual([]);
});
