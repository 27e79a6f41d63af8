import type { IPFamily } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { ClusterState, type ModeSemantics, Planner } from "../src/index.ts";
import { endpoint, OPTIONS, replan, service, slice } from "./objects.ts";

describe("fairlead.dev/balance", () => {
  const HASHES: ModeSemantics = { ...OPTIONS.semantics, sourceHash: true };
  const clusterIPs = ["10.96.0.10", "fd00:10:96::a"];
  const asks = (value: string) => service("web", { clusterIPs, annotations: { "fairlead.dev/balance": value } });

  function planned(semantics: ModeSemantics, value: string) {
    const state = new ClusterState();
    const planner = new Planner({ ...OPTIONS, semantics });
    state.upsertService(asks(value));
    state.upsertSlice(slice("web", [endpoint("10.144.1.5")]));
    const { problems } = replan(planner, state);
    const [group] = planner.plan("IPv4").groups.values();
    return { state, planner, problems: problems.map(({ reason, value: of }) => `${of} ${reason}`), group };
  }

  test("source-hash is in the plan of a mode that can do it", () => {
    const { group, problems } = planned(HASHES, "source-hash");
    expect(group?.balance).toBe("source-hash");
    expect(problems).toEqual([]);
  });

  test("random is how it is without the annotation", () => {
    const { group, problems } = planned(HASHES, "random");
    expect(group?.balance).toBeUndefined();
    expect(problems).toEqual([]);
  });

  test("a mode that cannot do it says so once, and serves", () => {
    const { group, problems, state, planner } = planned(OPTIONS.semantics, "source-hash");
    expect(group?.cluster).toHaveLength(1);
    expect(group?.balance).toBeUndefined();
    expect(problems).toEqual([
      '"source-hash" fairlead.dev/balance: this mode cannot balance by the client\'s address; using random',
    ]);
    state.upsertSlice(slice("web", [endpoint("10.144.1.6")]));
    expect(replan(planner, state).problems).toEqual([]);
  });

  test("anything else is reported once for both families, and taken as random", () => {
    const { group, problems } = planned(HASHES, "least-conn");
    expect(group?.balance).toBeUndefined();
    expect(problems).toEqual(['"least-conn" fairlead.dev/balance must be random or source-hash; using random']);
  });
});

describe("fairlead.dev/fast-path", () => {
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
