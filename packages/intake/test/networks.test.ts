import { type AgentConfig, parseArguments } from "@fairlead/config";
import { sourceKinds } from "@fairlead/networks";
import { expect, test } from "vitest";
import { filterSettings, networksSettings, ruleAnnotations } from "../src/index.ts";

function configOf(...flags: readonly string[]): AgentConfig {
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.config;
}

function filterOf(config: AgentConfig) {
  const settings = filterSettings(config);
  if (!settings.ok) throw new Error(settings.errors.join());
  return settings.options;
}

test("every source that there is can be configured, and no other", () => {
  const names = Object.keys(sourceKinds);
  const { excludeCIDRsFrom } = configOf(`--exclude-cidrs-from=${names.join(",")}`).multiCNI;
  expect(excludeCIDRsFrom.map(({ source }) => source)).toEqual(names);
  expect(() => configOf("--exclude-cidrs-from=others")).toThrow(`must be one of ${names.join(", ")}`);
});

test("sources become settings, beside what was written", () => {
  const config = configOf(
    "--cluster-cidr=10.144.0.0/16",
    "--exclude-cluster-cidr=10.17.0.0/16",
    "--exclude-cidrs-from=kube-ovn-subnets",
    "--cluster-cidr-from=calico-ippools",
  );
  const settings = networksSettings(config, filterOf(config));
  expect(settings).toMatchObject({
    written: { own: ["10.144.0.0/16"], excluded: ["10.17.0.0/16"] },
    debounceMs: 1_000,
    maxForeignPercent: 50,
  });
  expect(settings?.sources.excluded.map(({ id }) => id)).toEqual(["kube-ovn-subnets"]);
  expect(settings?.sources.own.map(({ id }) => id)).toEqual(["calico-ippools"]);
});

test("without sources nothing is learned, and the memory's scope is as ever", () => {
  const config = configOf("--exclude-cluster-cidr=10.17.0.0/16");
  expect(networksSettings(config, filterOf(config))).toBeUndefined();
  expect(filterOf(config)).not.toHaveProperty("sources");
});

const withRules = (serviceRules: AgentConfig["multiCNI"]["serviceRules"], config = configOf()): AgentConfig => ({
  ...config,
  multiCNI: { ...config.multiCNI, serviceRules },
});

test("a rule for annotations follows nothing; one for namespaces does, and both are in the memory's scope", () => {
  const annotation = { annotation: "ovn.kubernetes.io/vpc", notIn: ["ovn-cluster"], ownership: "foreign" } as const;
  const byAnnotation = withRules([annotation]);
  expect(networksSettings(byAnnotation, filterOf(byAnnotation))).toBeUndefined();
  expect(ruleAnnotations(byAnnotation)).toEqual(new Set(["ovn.kubernetes.io/vpc"]));
  const label = { namespaceLabel: "udn", ownership: "foreign" } as const;
  const byBoth = withRules([annotation, label]);
  expect(networksSettings(byBoth, filterOf(byBoth))).toMatchObject({
    rules: [annotation, label],
    sources: { own: [], excluded: [] },
  });
  expect(filterOf(byBoth).sources).toEqual([
    "rule:annotation ovn.kubernetes.io/vpc not in ovn-cluster: foreign",
    "rule:namespace label udn: foreign",
  ]);
});

test("the memory's scope follows the sources that are configured", () => {
  expect(filterOf(configOf("--exclude-cidrs-from=nodes", "--cluster-cidr-from=calico-ippools")).sources).toEqual([
    "excluded:nodes",
    "own:calico-ippools",
  ]);
});

test("a custom source that has not its form is an error that names the field", () => {
  const config = configOf();
  const custom = { source: "custom", resource: "ippools", fields: ["spec.cidr"] } as const;
  const wrong = { ...config, multiCNI: { ...config.multiCNI, excludeCIDRsFrom: [custom] } };
  expect(filterSettings(wrong)).toEqual({
    ok: false,
    errors: ['excludeCIDRsFrom: "ippools" must be plural.version.group, as ippools.v1.crd.projectcalico.org'],
  });
});
