import { fieldsOf, isObject } from "@fairlead/base";
import { expect, test } from "vitest";
import * as z from "zod";
import { fairleadSchema } from "../src/table/fairlead.ts";
import { kubeProxySchema } from "../src/table/kube-proxy.ts";
import { rowOf } from "../src/table/row.ts";
import { INVALID_VALUE, shareableConfiguration } from "../src/table/shareable.ts";
import { configOf, parse } from "./parse.ts";

const same = (text: string) => text;

/** Paths of all fields that hold values: blocks are walked. */
function* leavesOf(schema: z.core.$ZodType, path: readonly string[] = []): Generator<readonly string[]> {
  if (rowOf(schema)?.private !== undefined) return;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) yield* leavesOf(schema.unwrap(), path);
  else if (schema instanceof z.ZodObject) {
    for (const [name, field] of Object.entries(schema.shape)) yield* leavesOf(field, [...path, name]);
  } else yield path;
}

const FIELDS = [
  ...Array.from(leavesOf(kubeProxySchema), (path) => ["KubeProxyConfiguration", path] as const),
  ...Array.from(leavesOf(fairleadSchema), (path) => ["FairleadConfiguration", path] as const),
];

test.each(FIELDS)("of a %s a wrong value of %j is not taken as unset", (kind, path) => {
  const wrong = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), { not: "this" });
  const kept = shareableConfiguration(kind, wrong, same);
  const found = path.reduce<unknown>((inner, name) => fieldsOf(inner)[name], kept);
  // A map takes an object.
  if (isObject(found)) expect(found).toEqual({ not: INVALID_VALUE });
  else expect(found).toBe(INVALID_VALUE);
});

test("what an agent serves of its configuration is kept whole", () => {
  const { kubeProxyConfiguration, fairleadConfiguration } = configOf(
    parse([
      "--cluster-cidr=10.144.0.0/16",
      "--kubeconfig=/etc/kubernetes/kube-proxy.conf",
      "--exclude-cluster-cidr=10.244.0.0/16",
    ]),
  );
  expect(shareableConfiguration("FairleadConfiguration", fairleadConfiguration, same)).toEqual(fairleadConfiguration);
  const { kubeconfig, ...client } = fieldsOf(kubeProxyConfiguration["clientConnection"]);
  expect(kubeconfig).toBe("/etc/kubernetes/kube-proxy.conf");
  expect(shareableConfiguration("KubeProxyConfiguration", kubeProxyConfiguration, same)).toEqual({
    ...kubeProxyConfiguration,
    clientConnection: client,
  });
});

test("unknown fields are left out, and texts are cleaned", () => {
  const given = { serviceProxyName: "edge", token: "x", multiCNI: { excludeClusterCIDRs: ["a", "b"], password: "x" } };
  expect(shareableConfiguration("FairleadConfiguration", given, (text) => `${text}!`)).toEqual({
    serviceProxyName: "edge!",
    multiCNI: { excludeClusterCIDRs: ["a!", "b!"] },
  });
  expect(shareableConfiguration("FairleadConfiguration", "x", same)).toBe(INVALID_VALUE);
});
