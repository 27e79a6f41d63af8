import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Placement, type ProxyName, placementOf, placementPatch } from "../../src/migrate/state.ts";
import { KUBE_PROXY, kubeProxyWith } from "./support/objects.ts";

const placement = fc.constantFrom<Placement>("everywhere", "unless-other", "labeled");
const proxy = fc.constantFrom<ProxyName>("kube-proxy", "fairlead");
const expression = fc.record({
  key: fc.constantFrom("zone", "arch"),
  operator: fc.constant("In"),
  values: fc.constant(["a"]),
});
const term = fc.record({ matchExpressions: fc.array(expression, { minLength: 1, maxLength: 2 }) });
const daemonSet = fc.array(term, { maxLength: 3 }).map((terms) => (terms.length === 0 ? KUBE_PROXY : withTerms(terms)));

function withTerms(nodeSelectorTerms: readonly object[]) {
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return kubeProxyWith({ affinity: { nodeAffinity: required } });
}

/** A merge patch (RFC 7386). */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = { ...(target as object | undefined) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

const placed = (of: ProxyName, object: unknown, to: Placement) => merged(object, placementPatch(of, object, to));

describe("a DaemonSet", () => {
  test("is placed as the patch says, whatever it asks of nodes beside, and however often", () => {
    fc.assert(
      fc.property(proxy, daemonSet, fc.array(placement, { minLength: 1, maxLength: 5 }), (of, object, way) => {
        let now: unknown = object;
        for (const to of way) {
          now = placed(of, now, to);
          expect(placementOf(of, now)).toBe(to);
        }
      }),
    );
  });

  test("has its own terms again at the end", () => {
    fc.assert(
      fc.property(proxy, daemonSet, placement, (of, object, first) => {
        const terms = (one: unknown) => JSON.stringify(one).match(/"nodeSelectorTerms":.*?\]\}\]/)?.[0];
        expect(terms(placed(of, placed(of, object, first), "everywhere"))).toBe(terms(object));
      }),
    );
  });
});

test("each of several terms, which are alternatives, gets the requirement", () => {
  const terms = [
    { matchExpressions: [{ key: "zone", operator: "Exists" }] },
    { matchFields: [{ key: "metadata.name" }] },
  ];
  const own = { key: "fairlead.dev/proxy", operator: "NotIn", values: ["fairlead"] };
  expect(placementPatch("kube-proxy", withTerms(terms), "unless-other")).toMatchObject({
    spec: {
      template: {
        spec: {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: "zone", operator: "Exists" }, own] },
                  { matchFields: [{ key: "metadata.name" }], matchExpressions: [own] },
                ],
              },
            },
          },
        },
      },
    },
  });
});

test("a requirement of somebody else's with our label is none of ours", () => {
  const own = (values: readonly string[]) => [
    { matchExpressions: [{ key: "fairlead.dev/proxy", operator: "In", values }] },
  ];
  expect(placementOf("kube-proxy", withTerms(own(["other"])))).toBe("everywhere");
  expect(placementOf("kube-proxy", withTerms([...own(["kube-proxy"]), { matchExpressions: [] }]))).toBe("everywhere");
  expect(placementOf("kube-proxy", withTerms(own(["kube-proxy"])))).toBe("labeled");
});
