import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArguments } from "@fairlead/config";
import { beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { valuesSchema } from "../src/chart/values-schema.ts";
import { agentVersion, deployDir } from "../src/paths.ts";

/** The chart's shape, without helm; tools/chart.tools.ts renders it. */
const chartDir = join(deployDir, "helm/fairlead");
const read = (name: string) => readFile(join(chartDir, name), "utf8");
let values: Record<string, unknown> = {};
let templates = "";

beforeAll(async () => {
  values = parse(await read("values.yaml"));
  const entries = await readdir(join(chartDir, "templates"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const texts = files.map(({ parentPath, name }) => readFile(join(parentPath, name), "utf8"));
  templates = (await Promise.all(texts)).join("\n");
});

/** Paths of a schema's or the values' own leaves: `image.tag`. Free-form objects are leaves. */
function paths(node: Record<string, unknown>, children: (value: unknown) => unknown, prefix = ""): string[] {
  return Object.entries(node).flatMap(([key, value]) => {
    const below = children(value);
    return isRecord(below) ? paths(below, children, `${prefix}${key}.`) : [`${prefix}${key}`];
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const properties = (value: unknown) => (isRecord(value) ? value["properties"] : undefined);

test("values and their schema name the same", async () => {
  const schema = JSON.parse(await read("values.schema.json"));
  // What is in config follows from the agent, and has no defaults here.
  const known = paths(schema.properties, properties).filter((path) => !/^(?:global$|config\.)/.test(path));
  const given = known.filter((path) => valueAt(path) !== undefined);
  expect(given).toEqual(known);
  const topLevel = new Set([...known.map((path) => path.split(".")[0]), "config"]);
  expect(Object.keys(values).filter((key) => !topLevel.has(key))).toEqual([]);
});

test("what of the schema follows from the agent is what `pnpm --filter @fairlead/deploy run chart-schema` writes", async () => {
  const schema = JSON.parse(await read("values.schema.json"));
  const configuration = await readFile(join(deployDir, "../packages/config/schema/configuration.json"), "utf8");
  expect(valuesSchema(schema, JSON.parse(configuration))).toEqual(schema);
  expect(Object.keys(schema.properties.config.properties)).toContain("nodePortAddresses");
  expect(Object.keys(schema.properties.config.properties)).not.toContain("mode");
});

test.each([
  ["10.144.0.0/16", true],
  ["0.0.0.0/0", true],
  ["fd00:144::/48", true],
  ["::/0", true],
  ["::ffff:10.0.0.0/104", true],
  ["10.144.0.0/33", false],
  ["10.144.0.256/16", false],
  ["10.144.0/16", false],
  ["010.144.0.0/16", false],
  ["fd00::/129", false],
  ["10.144.0.0", false],
  ["pods", false],
])("%s as a CIDR: %s", async (cidr, isOne) => {
  const { definitions } = JSON.parse(await read("values.schema.json"));
  expect(new RegExp(definitions.cidrs.items.pattern).test(cidr)).toBe(isOne);
});

test.each([
  ["--mixed-services=skip", true],
  ["--reset-stale-tcp", true],
  ["-v=4", true],
  ["--v=4", true],
  ["--nope=1", false],
  ["--mixed-services-too", false],
  // Without effect alongside a configuration file, the chart's own, or the end of the agent.
  ["--cluster-cidr=10.0.0.0/8", false],
  ["--config=/tmp/other", false],
  ["--cleanup", false],
])("%s in extraArgs: %s", async (flag, isTaken) => {
  const { properties: values } = JSON.parse(await read("values.schema.json"));
  expect(new RegExp(values.extraArgs.items.pattern).test(flag)).toBe(isTaken);
});

test("templates use every value, and none that is not there", () => {
  const used = new Set([...templates.matchAll(/\.Values\.([A-Za-z.]+)/g)].map(([, path = ""]) => path));
  expect([...used].filter((path) => valueAt(path) === undefined)).toEqual([]);
  const tops = new Set([...used].map((path) => path.split(".")[0]));
  expect(Object.keys(values).filter((key) => !tops.has(key))).toEqual([]);
});

test("the chart's pod is the base's: rights, folders of the node, arguments", async () => {
  const chart = await read("templates/daemonset.yaml");
  const base = await readFile(join(deployDir, "base/daemonset.yaml"), "utf8");
  const paths = (text: string) => [...text.matchAll(/mountPath: (\S+)|- (--\S+)|add: (.*)/g)].map(([all]) => all);
  expect(paths(chart)).toEqual(paths(base));
});

test("the chart's shadow is the overlay's: rights, arguments, nothing of the node; and one of the two is there", async () => {
  const chart = await read("templates/shadow.yaml");
  const overlay = await readFile(join(deployDir, "overlays/shadow/daemonset.yaml"), "utf8");
  const parts = (text: string) =>
    [...text.matchAll(/hostPath|initContainers|priorityClassName|- (--\S+)|add: (.*)/g)].map(([all]) =>
      all.replace(/--config=\S+/, "--config"),
    );
  expect(parts(chart)).toEqual(parts(overlay));
  expect(chart).toMatch(/^\{\{- if \.Values\.shadow \}\}\n/);
  expect(await read("templates/daemonset.yaml")).toMatch(/^\{\{- if not \.Values\.shadow \}\}\n/);
});

test("the chart's controller is the overlays': rights of each job, probes, what it may write", async () => {
  const chart = await read("templates/controller.yaml");
  const of = (overlay: string, ...files: readonly string[]) => files.map((file) => `overlays/${overlay}/${file}.yaml`);
  const files = [
    ...of("controller", "serviceaccount", "clusterrole", "clusterrolebinding"),
    ...of("gateways", "clusterrole", "clusterrolebinding"),
    ...of("controller", "role", "rolebinding", "deployment"),
  ];
  const overlay = await Promise.all(files.map((file) => readFile(join(deployDir, file), "utf8")));
  const parts = (text: string) =>
    [
      ...text.matchAll(/^kind: .*|apiGroups: .*|resources: .*|verbs: .*|path: .*|containerPort: .*|runAs.*|drop: .*/gm),
    ].map(([all]) => all);
  expect(parts(chart)).toEqual(parts(overlay.join("---\n")));
  expect(chart).toMatch(/^\{\{- if or \.Values\.serviceNetwork \.Values\.gateways \}\}\n/);
});

test("chart and image have the agent's version", async () => {
  const version = await agentVersion();
  expect(parse(await read("Chart.yaml"))).toMatchObject({ version, appVersion: version });
});

test("the ports that the chart says are those that agents have where nothing is said", async () => {
  const helpers = await read("templates/_helpers.tpl");
  const named = agentPorts(["--service-proxy-name=edge"]);
  expect(helpers).toContain(`ternary ${agentPorts([]).metrics} ${named.metrics} (empty .Values.serviceProxyName)`);
  expect(helpers).toContain(`ternary ${agentPorts([]).health} ${named.health} (empty .Values.serviceProxyName)`);
});

function agentPorts(args: readonly string[]) {
  const parsed = parseArguments(args, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(`an agent with ${args.join(" ")} does not run`);
  const { metricsBindAddress, healthzBindAddress } = parsed.config;
  return { metrics: metricsBindAddress.port, health: healthzBindAddress?.port };
}

function valueAt(path: string): unknown {
  return path.split(".").reduce<unknown>((node, key) => (isRecord(node) ? node[key] : undefined), values);
}
