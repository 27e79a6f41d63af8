import type { IPFamily } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { ClusterState, Planner } from "../src/index.ts";
import { endpoint, OPTIONS, replan, service, slice } from "./objects.ts";

const ANNOTATION = "fairlead.dev/fast-path";
const FAMILIES = ["IPv4", "IPv6"] as const;
const WRONG = `${ANNOTATION} must be on or off; using off`;

function planned(value?: string, families: readonly IPFamily[] = FAMILIES) {
  const state = new ClusterState();
  const planner = new Planner({ ...OPTIONS, families });
  const put = (annotation: string | undefined) => {
    const annotations = annotation === undefined ? undefined : { annotations: { [ANNOTATION]: annotation } };
    state.upsertService(service("web", { clusterIPs: ["10.96.0.10", "fd00:10:96::a"], ...annotations }));
    return replan(planner, state).problems.map(({ reason, value: of }) => `${of} ${reason}`);
  };
  const problems = put(value);
  const groups = families.flatMap((family) => [...planner.plan(family).groups.values()]);
  return { state, planner, put, problems, chosen: groups.map(({ fastPath }) => fastPath) };
}

describe(ANNOTATION, () => {
  test.each([
    [undefined, undefined],
    ["on", undefined],
    ["off", "off"],
  ] as const)("%s: %s in the plans of both families", (value, fastPath) => {
    expect(planned(value)).toMatchObject({ problems: [], chosen: [fastPath, fastPath] });
  });

  test.each(["", "OFF", "false", "0"])('"%s" is reported once for both families, and means off', (value) => {
    expect(planned(value)).toMatchObject({ problems: [`"${value}" ${WRONG}`], chosen: ["off", "off"] });
  });

  test.each(FAMILIES)("a wrong value is reported by a node that serves %s only", (family) => {
    expect(planned("no", [family]).problems).toEqual([`"no" ${WRONG}`]);
  });

  test("a wrong value that stays is not reported again; another one is", () => {
    const { state, planner, put } = planned("no");
    state.upsertSlice(slice("web", [endpoint("10.144.1.6")]));
    expect(replan(planner, state).problems).toEqual([]);
    expect(put("never")).toEqual([`"never" ${WRONG}`]);
    expect(put("off")).toEqual([]);
  });
});
