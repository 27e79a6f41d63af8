import { fail, type LightApiServer } from "@fairlead/testkit/api-server";
import { describe, expect, test } from "vitest";
import type { ObjectChange, OtherState, OtherSubscription } from "../src/index.ts";
import { Consumer, type Kept } from "./support/consumer.ts";
import { endAfterEach, fakeApi, run } from "./support/run.ts";

endAfterEach();

const PATH = "/apis/kubeovn.io/v1/subnets";
const DISCOVERY = "/apis/kubeovn.io/v1";
const RESOURCE = { group: "kubeovn.io", version: "v1", plural: "subnets", kind: "Subnet", namespaced: false };
const subnet = (name: string) => ({ metadata: { name }, spec: { cidrBlock: "10.16.0.0/16" } });

/** A server, and a consumer of its Subnets that keeps the states it was told. */
async function following(prepare: (api: LightApiServer) => void, only?: { namespace: string; name: string }) {
  const { api, server } = await fakeApi();
  prepare(api);
  const consumer = new Consumer();
  const states: OtherState[] = [];
  const waiting: { state: OtherState; found: () => void }[] = [];
  const onState = (state: OtherState) => {
    states.push(state);
    for (const one of waiting.splice(0)) one.state === state ? one.found() : waiting.push(one);
  };
  const state = (wanted: OtherState) =>
    states.includes(wanted) ? Promise.resolve() : new Promise<void>((found) => waiting.push({ state: wanted, found }));
  const { decode, onChange } = consumer.subscription;
  const other: OtherSubscription = {
    resource: { ...RESOURCE, ...(only && { only }) },
    decode,
    // What comes is what was decoded.
    onChange: (change) => onChange(change as ObjectChange<Kept>),
    onState,
  };
  const { reports } = run(server, { others: [other] });
  return { api, consumer, states, state, reports };
}

/** Answers for the resource, and for what the server has of its group, as long as `is` says so. */
function answering(api: LightApiServer, is: () => boolean, code: number, resources?: readonly string[]): void {
  const interceptor: Parameters<LightApiServer["intercept"]>[0] = (request, response) => {
    const asked = request.path === PATH || request.path === DISCOVERY;
    if (!is() || !asked) return false;
    if (request.path === PATH) fail(response, code, "Status", "no");
    else if (resources === undefined) fail(response, 404, "NotFound", "no such group");
    else response.writeHead(200).end(JSON.stringify({ resources: resources.map((name) => ({ name })) }));
    // Each is used once.
    api.intercept(interceptor);
    return true;
  };
  api.intercept(interceptor);
}

describe("what is not there", () => {
  test.each([
    ["404", 404, undefined],
    ["403, and the group is not there", 403, undefined],
    ["403, and the group has other resources", 403, ["vpcs"]],
  ])("%s: absent and empty, until it is installed", async (_what, code, resources) => {
    let installed = false;
    const { api, consumer, states, state, reports } = await following((fake) =>
      answering(fake, () => !installed, code, resources),
    );
    await state("absent");
    await consumer.until(() => consumer.synced > 0);
    expect(consumer.changes).toEqual([{ type: "synced" }]);
    expect(reports).toEqual([]);
    api.store.put(PATH, subnet("ovn-default"));
    installed = true;
    await consumer.until(() => consumer.state.has("/ovn-default"));
    await state("listed");
    expect(states.includes("forbidden") || states.includes("unreachable")).toBe(false);
  });

  test("a CRD deleted under the watch: its objects are deleted one by one, then it is absent", async () => {
    let deleted = false;
    const { api, consumer, state } = await following((fake) => {
      fake.store.put(PATH, subnet("a"));
      fake.store.put(PATH, subnet("b"));
      answering(fake, () => deleted, 404);
    });
    await state("listed");
    api.store.delete(PATH, "/a");
    await consumer.until(() => !consumer.state.has("/a"));
    deleted = true;
    api.endWatches();
    await state("absent");
    await consumer.until(() => consumer.state.size === 0);
  });

  test("429 while a CRD is being established is waited out", async () => {
    let established = false;
    const { api, state, states, reports } = await following((fake) => {
      fake.store.put(PATH, subnet("a"));
      answering(fake, () => !established, 429);
    });
    await state("unreachable");
    established = true;
    await state("listed");
    expect(states).not.toContain("absent");
    expect(reports.map(({ type }) => type)).not.toContain("failing");
    expect(api.requests.every((request) => request.path !== DISCOVERY)).toBe(true);
  });
});

describe("what may not be read", () => {
  test("forbidden: what was given stays, the server is not called unreachable, and it is followed again", async () => {
    let revoked = true;
    const { api, consumer, states, state, reports } = await following((fake) => {
      fake.store.put(PATH, subnet("a"));
      answering(fake, () => revoked, 403, ["subnets"]);
    });
    await state("forbidden");
    expect(consumer.changes).toEqual([]);
    revoked = false;
    await state("listed");
    expect(consumer.keys()).toEqual(["/a"]);
    states.length = 0;
    revoked = true;
    api.endWatches();
    await state("forbidden");
    expect(consumer.keys()).toEqual(["/a"]);
    states.length = 0;
    revoked = false;
    await state("listed");
    expect(reports.map(({ type }) => type)).not.toContain("failing");
  });
});

test("of a resource of which only one object is wanted, only that is asked for", async () => {
  const { api, state } = await following(() => {}, { namespace: "kube-flannel", name: "kube-flannel-cfg" });
  await state("listed");
  const [request] = api.requests;
  expect(request?.path).toBe("/apis/kubeovn.io/v1/namespaces/kube-flannel/subnets");
  expect(request?.query.get("fieldSelector")).toBe("metadata.name=kube-flannel-cfg");
});
