import { isObject, type RawObject } from "@fairlead/base";
import * as z from "zod";
import * as fairlead from "./fairlead.ts";
import * as kubeProxy from "./kube-proxy.ts";
import { rowOf } from "./row.ts";

/**
 * The documents of a --config file as a JSON Schema (2020-12), for editors: what a field may hold as it is written.
 * Ranges that depend on other fields are left to the agent. Null and "" are the default, for kube-proxy and here, so
 * every field may hold null, and every text may be empty.
 */
export function configurationSchema(): RawObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Configuration of fairlead-proxy",
    description: `A ${kubeProxy.KIND} (${kubeProxy.API_VERSION}), or a ${fairlead.KIND} (${fairlead.API_VERSION}) as second document.`,
    type: "object",
    required: ["apiVersion", "kind"],
    properties: { kind: { enum: [kubeProxy.KIND, fairlead.KIND] } },
    if: { properties: { kind: { const: fairlead.KIND } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: documentSchema(fairlead.fairleadSchema),
    else: documentSchema(kubeProxy.kubeProxySchema),
  };
}

function documentSchema(schema: z.ZodObject): RawObject {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: "input",
    override: ({ zodSchema, jsonSchema }) => {
      const description = descriptionOf(zodSchema);
      if (description !== undefined) jsonSchema.description = description;
    },
  });
  return relaxed(rest, false);
}

/** What editors show of a field, without the links of a page. */
function descriptionOf(schema: z.core.$ZodType): string | undefined {
  const { help, meaning, notApplicable } = rowOf(schema) ?? {};
  const text = help ?? meaning ?? notApplicable;
  return text?.replace(/ ?\(\[[^\]]*\]\([^)]*\)\)/g, "").replaceAll("`", "");
}

function relaxed(schema: RawObject, nullable: boolean): RawObject {
  const { type, properties, default: _none, readOnly: _ours, ...rest } = schema;
  const below = isObject(properties) ? { properties: relaxedFields(properties) } : {};
  if (Array.isArray(rest["enum"])) return { ...rest, enum: [...rest["enum"], "", null] };
  const alternatives = rest["anyOf"];
  if (Array.isArray(alternatives)) return { ...rest, anyOf: [...alternatives, { type: "null" }] };
  const types = typeof type === "string" && nullable ? [type, "null"] : type;
  return { ...(types === undefined ? {} : { type: types }), ...rest, ...below };
}

function relaxedFields(fields: RawObject): RawObject {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      isObject(field) && !("const" in field) ? relaxed(field, true) : field,
    ]),
  );
}
