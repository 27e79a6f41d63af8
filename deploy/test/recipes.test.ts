import { parseArguments } from "@fairlead/config";
import { describe, expect, test } from "vitest";
import { type Recipe, recipes } from "./support/recipes.ts";

const all = await recipes();

function configOf({ multiCNI }: Recipe) {
  const fairlead = { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", multiCNI };
  const kubeProxy = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" };
  const text = [kubeProxy, fairlead].map((document) => JSON.stringify(document)).join("\n---\n");
  return parseArguments(["--config=config.conf"], { readFile: () => text, version: "0.1.0" });
}

test("the documents and the chart have recipes", () => {
  const files = new Set(all.map(({ at }) => at.replace(/:.*/, "")));
  expect([...files]).toEqual(expect.arrayContaining(["docs/multi-cni.md", "deploy/helm/fairlead/values.yaml"]));
  expect(all.length).toBeGreaterThan(4);
});

describe.each(all.map((one) => [one.at, one] as const))("%s", (_, recipe) => {
  test("is a configuration, and each source is believed in some CIDRs only, and nobody is left unanswered", () => {
    const result = configOf(recipe);
    expect(result).toMatchObject({ kind: "run", warnings: [] });
    if (result.kind !== "run") return;
    const { excludeCIDRsFrom, clusterCIDRsFrom, excludedFrontends } = result.config.multiCNI;
    for (const source of [...excludeCIDRsFrom, ...clusterCIDRsFrom]) {
      expect({ ...source, within: source.within ?? [] }).not.toMatchObject({ within: [] });
    }
    expect(excludedFrontends).toBe("excluded-clients");
  });
});
