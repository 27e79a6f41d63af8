import { describe, expect, test } from "vitest";
import { ClusterState, type ModeSemantics, Planner } from "../src/index.ts";
import { endpoint, OPTIONS, replan, service, slice } from "./objects.ts";

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

describe("fairlead.dev/balance", () => {
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
