import { readFileSync } from "node:fs";
import { NAMESPACES, type ResourceRef, sourceKinds } from "@fairlead/networks";
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

test("the chart's roles have of each source what it reads", () => {
  const table = readFileSync(new URL("../../../deploy/helm/fairlead/templates/_networks.tpl", import.meta.url), "utf8");
  const rows = [...table.matchAll(/^([a-z-]+): \[(.*)\]$/gm)].map(([, name = "", rules = ""]) => [
    name,
    allowedIn(rules),
  ]);
  const wanted = Object.entries(sourceKinds).map(([name, { resources }]) => [
    name,
    [...new Set(resources.flatMap(neededFor))].sort(),
  ]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(wanted));
});

/** Of rules in YAML's short form: `group/plural name`. */
function allowedIn(rules: string): readonly string[] {
  const items = [...rules.matchAll(/\{ apiGroups: \[(.*?)\], resources: \[(.*?)\](?:, resourceNames: \[(.*?)\])? \}/g)];
  const found = items.flatMap(([, groups = "", plurals = "", names = ""]) =>
    groups.split(", ").flatMap((group) => plurals.split(", ").map((plural) => `${group}/${plural} ${names}`)),
  );
  return found.map((text) => text.replaceAll('"', "")).sort();
}

function neededFor({ group, plural, only }: ResourceRef): readonly string[] {
  return plural === "nodes" ? [] : [`${group}/${plural} ${only?.name ?? ""}`];
}
