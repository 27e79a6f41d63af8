import { parseArguments } from "@fairlead/config";

type Schema = { readonly [name: string]: unknown };

/** What the chart's own values say, so that `config` may not. */
const OWN_FIELDS = ["apiVersion", "kind", "mode", "clusterCIDR", "metricsBindAddress"];

/** Flags that the chart gives itself, or that end the agent. */
const OWN_FLAGS = [
  ...["cleanup", "config", "hostname-override", "init-only", "service-proxy-name", "state-dir"],
  ...["version", "write-config-to"],
];

/**
 * The schema of the chart's values with what follows from the agent: the fields of `config`, and the flags that may be
 * in `extraArgs`. All else in it is written by hand.
 *
 * @param schema values.schema.json
 * @param configuration the JSON Schema that the package config publishes
 */
export function valuesSchema(schema: Schema, configuration: Schema): Schema {
  const fields = propertiesOf(configuration["else"]);
  const config = Object.entries(fields).filter(([name]) => !OWN_FIELDS.includes(name));
  return {
    ...schema,
    properties: {
      ...propertiesOf(schema),
      config: { type: "object", additionalProperties: false, properties: Object.fromEntries(config) },
      extraArgs: { type: "array", items: { type: "string", pattern: `^(--(${flagNames().join("|")})(=|$)|-v)` } },
    },
  };
}

function propertiesOf(schema: unknown): Schema {
  return (schema as { readonly properties: Schema }).properties;
}

/** The flags that take effect although there is a configuration file, which --help marks; without the chart's own. */
function flagNames(): readonly string[] {
  const help = parseArguments(["--help"], { readFile: () => "", version: "" });
  if (help.kind !== "help") throw new Error("the agent has no --help");
  const marked = help.text.matchAll(/^ +(?:-v, )?--([a-z][-a-z0-9]*)(?: <\S+>)?\s+\* /gm);
  const names = [...marked].map(([, name = ""]) => name);
  return names.filter((name) => !OWN_FLAGS.includes(name)).sort();
}
