import { readFileSync } from "node:fs";
import { NAMESPACES, sourceKinds } from "@fairlead/networks";
import { expect, test } from "vitest";

const role = readFileSync(new URL("../../../deploy/components/networks/clusterrole.yaml", import.meta.url), "utf8");

/** The rules as they are written there: each a block of lists on one line. */
const rules = [
  ...role.matchAll(/- apiGroups: \[(.*)\]\n +resources: \[(.*)\]\n(?: +resourceNames: \[(.*)\]\n)? +verbs: \[(.*)\]/g),
].map(([, ...lists]) => lists.map((list) => list?.replaceAll('"', "").split(", ")));

test("the role lets an agent read what the sources read, and nothing more", () => {
  // system:node-proxier has Nodes.
  const resources = Object.values(sourceKinds).flatMap(({ resources }) => resources);
  const needed = [...resources.filter(({ plural }) => plural !== "nodes"), NAMESPACES];
  const allowed = rules.flatMap(([groups = [], plurals = [], names]) =>
    groups.flatMap((group) => plurals.map((plural) => `${group}/${plural} ${names ?? ""}`)),
  );
  const wanted = needed.map(
    ({ group, plural, ...rest }) => `${group}/${plural} ${"only" in rest ? rest.only.name : ""}`,
  );
  expect(allowed.sort()).toEqual([...new Set(wanted)].sort());
  expect(rules.map(([, , , verbs]) => verbs)).toEqual(rules.map(() => ["list", "watch"]));
});
