import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { deployDir } from "../src/paths.ts";
import { ownManifests, readKustomization } from "./support/kustomization.ts";
import type { Manifest } from "./support/manifests.ts";

const dir = join(deployDir, "readers");
let roles: Manifest[] = [];
beforeAll(async () => {
  roles = [...(await ownManifests(dir))];
});

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
const rulesOf = (role: Manifest): readonly Rule[] => role["rules"];

test("kustomize takes every file", async () => {
  const { resources } = await readKustomization(dir);
  expect((await readdir(dir)).sort()).toEqual([...resources, "kustomization.yaml"].sort());
  expect(roles.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
    "ClusterRole fairlead-reader",
    "Role fairlead-kernel-reader",
    "Role fairlead-proxy-reader",
    "Role fairlead-reader",
  ]);
});

test("readers read: the only thing that is created is a connection to a pod", () => {
  for (const { resources, verbs } of roles.flatMap(rulesOf)) {
    const isConnection = resources.every((one) => one === "pods/exec" || one === "pods/portforward");
    const allowed = isConnection ? ["get", "create"] : ["get", "list", "watch"];
    expect(verbs.filter((verb) => !allowed.includes(verb))).toEqual([]);
    expect(resources).not.toContain("secrets");
    expect(resources).not.toContain("*");
  }
});

test("programs are started in pods with a role of its own only", () => {
  const starting = roles.filter((role) => rulesOf(role).some(({ resources }) => resources.includes("pods/exec")));
  expect(starting.map(({ metadata }) => metadata.name)).toEqual(["fairlead-kernel-reader"]);
});
