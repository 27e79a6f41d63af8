import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { VirtualClock } from "@fairlead/base/testing";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { describe, expect, onTestFinished, test } from "vitest";
import { whyNotReady } from "../src/cluster/resources.ts";
import { waitFor } from "../src/commands/connectivity/act.ts";
import {
  type Case,
  casesOf,
  type Ground,
  PLACES,
  reportText,
  type ServiceName,
  type TestService,
} from "../src/commands/connectivity/plan.ts";
import {
  type Answer,
  ask,
  askAll,
  complaintOf,
  type Expected,
  type Observed,
  type Probe,
} from "../src/commands/connectivity/pod.ts";
import { andCleaned } from "../src/commands/connectivity/run.ts";
import { CommandFailure } from "../src/frame/errors.ts";
import { plain } from "../src/frame/terminal.ts";
import { kubeconfigFor } from "./support/files.ts";
import { endless } from "./support/node-cluster.ts";
import { fairlead } from "./support/run.ts";

test("why a test failed is said before it is cleaned up, and is not lost when that fails", async () => {
  const steps: string[] = [];
  const failed = () => Promise.reject(new CommandFailure("waited 180 s for pod web-a: it is Pending"));
  const clean = async () => {
    steps.push("cleaning");
    throw new CommandFailure("pods/web-a is not gone 120 s after its deletion");
  };
  await expect(andCleaned(failed, clean, (line) => steps.push(line))).rejects.toThrow(
    "the test failed; not everything was removed: pods/web-a is not gone 120 s after its deletion",
  );
  expect(steps).toEqual(["waited 180 s for pod web-a: it is Pending", "cleaning"]);
});

describe("what is waited for", () => {
  /** @param found what the pod is from which millisecond on */
  function stage(found: readonly (readonly [fromMs: number, text: string | object])[]) {
    const [clock, abort, said] = [new VirtualClock(), new AbortController(), [] as string[]];
    const acting = { signal: abort.signal, warn: (line: string) => void said.push(line) };
    const began = clock.monotonic();
    const look = async (): Promise<object | string> =>
      found.findLast(([fromMs]) => fromMs <= clock.monotonic() - began)?.[1] ?? "it is not there";
    const ended = waitFor("pod web-a", acting, look, { patienceMs: 60_000, clock }).catch(({ message }) => message);
    return { clock, abort, said, ended };
  }

  test("is said once it has taken a while, and again when the reason changes", async () => {
    const { clock, said, ended } = stage([
      [1_000, "ErrImagePull"],
      [20_000, "ImagePullBackOff"],
      [30_000, { ready: true }],
    ]);
    await clock.advance(9_000);
    expect(said).toEqual([]);
    await clock.advance(21_000);
    expect(await ended).toEqual({ ready: true });
    expect(said).toEqual([
      "waiting for pod web-a, up to 60 s: ErrImagePull",
      "waiting for pod web-a, up to 60 s: ImagePullBackOff",
    ]);
  });

  test("is given up with the last reason", async () => {
    const { clock, ended } = stage([[0, "it is Pending"]]);
    await clock.advance(61_000);
    expect(await ended).toBe("waited 60 s for pod web-a: it is Pending");
  });

  test("is given up at once by an interrupt", async () => {
    const { clock, abort, said, ended } = stage([]);
    await clock.advance(1_000);
    abort.abort();
    expect(await ended).toBe("stopped");
    expect(said).toEqual([]);
  });
});

test.each<readonly [why: string, status: object]>([
  ["it is not there", {}],
  ["it is Pending", { phase: "Pending" }],
  ["it is Pending", { phase: "Pending", containerStatuses: [{ state: { waiting: {} } }, null, { state: "waiting" }] }],
  ["it is Running", { phase: "Running", containerStatuses: [{ ready: false, state: { running: {} } }] }],
  [
    "ContainerCreating",
    { phase: "Pending", containerStatuses: [{ state: { waiting: { reason: "ContainerCreating" } } }] },
  ],
  [
    "ErrImagePull: no such host",
    {
      phase: "Pending",
      containerStatuses: [
        { state: { running: {} } },
        { state: { waiting: { reason: "ErrImagePull", message: "no such host" } } },
      ],
    },
  ],
])("a pod that is not ready: %s", (why, status) => {
  expect(whyNotReady({ status })).toBe(why);
});

test("a wrong node is refused before anything is made or waited for", async () => {
  const api = new LightApiServer();
  const kubeconfig = kubeconfigFor(await api.start());
  onTestFinished(() => api.stop());
  api.store.put("/api/v1/nodes", { metadata: { name: "node-a" } });
  api.store.put("/api/v1/namespaces", {
    metadata: { name: "fairlead-connectivity", labels: { "app.kubernetes.io/managed-by": "fairlead-connectivity" } },
  });
  const { code, err } = await fairlead(["connectivity", "--node", "node-a", "--node", "node-z"], {
    env: { KUBECONFIG: kubeconfig },
  });
  expect(code).toBe(3);
  expect(err).toMatch(/^--node=node-z: there is no such Node; there are: node-a/);
  expect(api.requests.filter(({ method }) => method !== "GET")).toEqual([]);
  expect(api.requests.filter(({ path }) => path.includes("fairlead-connectivity"))).toEqual([]);
});

test("a client reads no answer without end", async () => {
  const server = createServer((_request, response) => endless(response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  expect(await ask({ protocol: "TCP", address: "127.0.0.1", port })).toEqual({
    error: "an answer without end, which no server of the test gives",
  });
});

test("a client says what is wrong, and of what is right nothing", async () => {
  const probe = { protocol: "TCP", address: "127.0.0.1", port: 1, requests: 1 } as const;
  const answered: Probe = { ...probe, id: 7, expected: { kind: "answered", by: ["a"], spread: "any" } };
  const observed = new Map<number, Observed>();
  const report = (one: Observed) => void observed.set(one.id, one);
  await askAll([answered, { ...probe, id: 8, expected: { kind: "refused" } }], { patienceMs: 0, own: [] }, report);
  expect(observed.get(7)?.complaint).toBe("expected answers of a; got 1 × ECONNREFUSED");
  expect(observed.get(8)).toEqual({ id: 8 });
});

const NAMES: readonly ServiceName[] = [
  "web",
  "web-local",
  "web-internal",
  "web-sticky",
  "web-none",
  "web-headless",
  "web-hairpin",
];
const EXTERNAL: readonly ServiceName[] = ["web", "web-local"];

function service(name: ServiceName, at: number): TestService {
  const own = { IPv4: `10.96.0.${at}`, IPv6: `fd96::${at}` };
  const isExternal = EXTERNAL.includes(name);
  return {
    name,
    clusterIPs: name === "web-headless" ? {} : own,
    port: 80,
    ...(isExternal && { nodePort: 30_000 + at }),
    externalIPs: isExternal ? { IPv4: `192.0.2.${at}` } : {},
    loadBalancerIPs: isExternal ? { IPv4: `192.0.2.${100 + at}` } : {},
  };
}

const GROUND: Ground = {
  namespace: "test",
  families: ["IPv4", "IPv6"],
  here: { name: "node-a", addresses: { IPv4: "172.30.0.11", IPv6: "fd30::11" } },
  there: { name: "node-b", addresses: { IPv4: "172.30.0.12", IPv6: "fd30::12" } },
  servers: {
    "web-a": { name: "web-a", addresses: { IPv4: "10.144.1.5", IPv6: "fd44:1::5" } },
    "web-b": { name: "web-b", addresses: { IPv4: "10.144.2.5", IPv6: "fd44:2::5" } },
  },
  services: NAMES.map((name, at) => service(name, at + 1)),
  places: PLACES,
  dns: true,
  routed: true,
};

function find(cases: readonly Case[], of: Partial<Case>): readonly Case[] {
  return cases.filter((one) => Object.entries(of).every(([name, value]) => one[name as keyof Case] === value));
}

describe("the cases", () => {
  const cases = casesOf(GROUND);

  test("each has a number of its own, and every service is asked in every family", () => {
    expect(new Set(cases.map(({ probe }) => probe.id)).size).toBe(cases.length);
    for (const name of NAMES) {
      for (const family of GROUND.families) expect(find(cases, { service: name, family })).not.toEqual([]);
    }
  });

  test("every frontend of a service with all of them is asked from every place that has a route to it", () => {
    const places = (frontend: string) =>
      find(cases, { service: "web", family: "IPv4", frontend }).map(({ place }) => place);
    const inside = PLACES.filter((place) => place !== "outside");
    expect(places("cluster-ip")).toEqual(inside);
    expect(places("cluster-ip, UDP")).toEqual(inside);
    for (const frontend of ["node-port of node-a", "node-port of node-b", "external-ip", "load-balancer"]) {
      expect(places(frontend)).toEqual(PLACES);
    }
  });

  test("a Local frontend answers on its endpoint's node, and not on other nodes", () => {
    const [here] = find(cases, {
      service: "web-local",
      frontend: "node-port of node-a",
      family: "IPv4",
      place: "outside",
    });
    expect(here?.probe.expected).toMatchObject({
      kind: "answered",
      by: ["web-a"],
      notSeen: expect.arrayContaining(["172.30.0.11"]),
    });
    const there = find(cases, { service: "web-local", frontend: "node-port of node-b", family: "IPv4" });
    expect(there.map(({ place, probe }) => [place, probe.expected.kind])).toEqual([["outside", "unanswered"]]);
  });

  test("an endpoint sees the pod that asks a ClusterIP, and need not see other clients", () => {
    const [pod] = find(cases, { service: "web", frontend: "cluster-ip", place: "pod-there", family: "IPv6" });
    expect(pod?.probe).toMatchObject({ address: "fd96::1", expected: { seesClient: true, spread: "each" } });
    const [node] = find(cases, { service: "web", frontend: "cluster-ip", place: "node-there", family: "IPv6" });
    expect(node?.probe.expected).not.toHaveProperty("seesClient");
  });
});

test("without a route the outside does not ask external addresses, and without a DNS no client asks for names", () => {
  const cases = casesOf({ ...GROUND, routed: false, dns: false });
  expect(find(cases, { frontend: "external-ip", place: "outside" })).toEqual([]);
  expect(find(cases, { frontend: "external-ip", place: "pod-here" })).not.toEqual([]);
  expect(find(cases, { service: "web-headless" })).toEqual([]);
});

const OWN = ["10.144.1.9"];
const from = (by: string, seen = "10.144.1.9"): Answer => ({ by, seen });
const LATE: Answer = { error: "timeout" };
const REFUSED: Answer = { error: "ECONNREFUSED" };
const each: Expected = { kind: "answered", by: ["a", "b"], spread: "each" };

test.each<readonly [what: string, expected: Expected, answers: readonly Answer[], complaint: RegExp | undefined]>([
  ["both answer", each, [from("a"), from("b")], undefined],
  ["one never answers", each, [from("a"), from("a")], /expected answers of each of a, b; got 2 × a/],
  ["one of many is late", each, [from("a"), from("b"), LATE], /1 × timeout/],
  ["another server answers", each, [from("a"), from("c")], /answers of a or b only/],
  ["nothing was asked", each, [], /got nothing/],
  ["affinity holds", { ...each, spread: "one" }, [from("b"), from("b")], undefined],
  ["affinity does not hold", { ...each, spread: "one" }, [from("a"), from("b")], /all answers of one endpoint/],
  ["the client is seen", { ...each, seesClient: true }, [from("a"), from("b")], undefined],
  [
    "a node is seen",
    { ...each, seesClient: true },
    [from("a"), from("b", "172.30.0.11")],
    /own address.*172\.30\.0\.11/,
  ],
  [
    "what must not be seen is",
    { ...each, notSeen: ["172.30.0.11"] },
    [from("a"), from("b", "172.30.0.11")],
    /own address/,
  ],
  ["refused at once", { kind: "refused" }, [REFUSED, REFUSED], undefined],
  ["refused late", { kind: "refused" }, [LATE], /expected a refusal at once; got 1 × timeout/],
  ["answered in place of refused", { kind: "refused" }, [from("a")], /got 1 × a/],
  ["no answer", { kind: "unanswered" }, [LATE, REFUSED], undefined],
  ["an answer in place of none", { kind: "unanswered" }, [LATE, from("a")], /expected no answer; got/],
  [
    "the right addresses",
    { kind: "resolved", addresses: ["10.0.0.2", "10.0.0.1"] },
    [{ resolved: ["10.0.0.1", "10.0.0.2"] }],
    undefined,
  ],
  [
    "one address too few",
    { kind: "resolved", addresses: ["10.0.0.2", "10.0.0.1"] },
    [{ resolved: ["10.0.0.1"] }],
    /expected 10\.0\.0\.1, 10\.0\.0\.2/,
  ],
])("%s", (_what, expected, answers, complaint) => {
  const found = complaintOf(expected, answers, OWN);
  if (complaint === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(complaint);
});

test("the table has a row for each frontend and a column for each place, and names what is wrong below", () => {
  const row = {
    service: "web",
    frontend: "cluster-ip",
    policy: "Cluster",
    family: "IPv4",
    to: "10.96.0.1:80",
  } as const;
  const cases = [
    { ...row, place: "pod-here" },
    { ...row, place: "pod-there", complaint: "expected answers" },
  ] as const;
  const checks = [{ name: "DNS", skipped: "there is none" }, { name: "rolling update" }];
  expect(reportText(cases, checks, plain)).toBe(
    [
      "SERVICE   FRONTEND     POLICY    FAMILY   POD HERE   POD THERE   NODE HERE   NODE THERE   OUTSIDE",
      "web       cluster-ip   Cluster   IPv4     ok         FAIL        -           -            -",
      "",
      "- DNS: not tested: there is none",
      "✓ rolling update",
      "✗ web: cluster-ip 10.96.0.1:80 (Cluster) from pod there: expected answers",
      "",
    ].join("\n"),
  );
});
