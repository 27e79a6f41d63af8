import fc from "fast-check";
import { expect, test } from "vitest";
import { CALLING_RESOURCES, type CallingResource, calledServices } from "../src/index.ts";

const hook = (name: string) => ({ clientConfig: { service: { namespace: "vault", name } } });

function lists(plural: string, ...objects: readonly unknown[]): ReadonlyMap<CallingResource, readonly unknown[]> {
  const resource = CALLING_RESOURCES.find((one) => one.plural === plural);
  if (resource === undefined) throw new Error(`unknown ${plural}`);
  return new Map([[resource, objects]]);
}

test.each([
  [
    "validatingwebhookconfigurations",
    { webhooks: [hook("one"), hook("two"), hook("one"), { clientConfig: { url: "https://192.0.2.1" } }] },
    { "vault/one": ["ValidatingWebhookConfiguration/x"], "vault/two": ["ValidatingWebhookConfiguration/x"] },
  ],
  ["mutatingwebhookconfigurations", { webhooks: [hook("one")] }, { "vault/one": ["MutatingWebhookConfiguration/x"] }],
  [
    "customresourcedefinitions",
    { spec: { conversion: { strategy: "Webhook", webhook: hook("convert") } } },
    { "vault/convert": ["CustomResourceDefinition/x"] },
  ],
  ["customresourcedefinitions", { spec: { conversion: { strategy: "None" } } }, {}],
  [
    "apiservices",
    { spec: { service: { namespace: "kube-system", name: "metrics-server" } } },
    { "kube-system/metrics-server": ["APIService/x"] },
  ],
  ["apiservices", { spec: {} }, {}],
])("Services that the API server calls: %s", (plural, object, expected) => {
  const found = calledServices(lists(plural, { metadata: { name: "x" }, ...object }));
  expect(Object.fromEntries(found)).toEqual(expected);
});

test("objects of several kinds that name one Service are named together", () => {
  const webhooks = { webhooks: [hook("one")] };
  const all = new Map([
    ...lists("validatingwebhookconfigurations", { metadata: { name: "b" }, ...webhooks }),
    ...lists("mutatingwebhookconfigurations", { metadata: { name: "a" }, ...webhooks }),
  ]);
  const expected = ["MutatingWebhookConfiguration/a", "ValidatingWebhookConfiguration/b"];
  expect(calledServices(all).get("vault/one")).toEqual(expected);
});

test("no object makes it throw", () => {
  fc.assert(
    fc.property(fc.constantFrom(...CALLING_RESOURCES), fc.anything(), (resource, raw) => {
      const found = calledServices(new Map([[resource, [raw]]]));
      for (const key of found.keys()) expect(key).toContain("/");
    }),
  );
});
