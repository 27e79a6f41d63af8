import { ClusterState, decodeEndpointSlice, decodeService, Planner } from "@fairlead/core";
import { endpointSlice, service, webA1 } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createLocalBackend, LOCAL_PORT_ANNOTATION, userspaceSemantics } from "../src/index.ts";

interface Fields {
  readonly ports: Parameters<typeof service>[1]["ports"];
  readonly annotation?: string;
  readonly endpoints?: boolean;
}

function local() {
  const state = new ClusterState();
  const planner = new Planner({
    nodeName: "laptop",
    families: ["IPv4"],
    nodeIPs: {},
    detectors: {},
    nodePortAddresses: {},
    masqueradeAll: false,
    semantics: userspaceSemantics,
  });
  const sockets = new FakeSockets();
  const problems: string[] = [];
  const backend = createLocalBackend("IPv4", {
    open: sockets.open,
    onProblem: (problem) => void problems.push(problem),
  });
  let number = 0;
  const put = async (name: string, { ports, annotation, endpoints = true }: Fields) => {
    const annotations = annotation === undefined ? {} : { [LOCAL_PORT_ANNOTATION]: annotation };
    const { object } = decodeService(service(name, { clusterIPs: [`10.96.0.${++number}`], ports, annotations }));
    if (object) state.upsertService(object);
    const at = [{ address: webA1.addresses.IPv4 }];
    const fields = { service: name, family: "IPv4", ports, endpoints: endpoints ? at : [] } as const;
    const slice = decodeEndpointSlice(endpointSlice(`${name}-1`, fields)).object;
    if (slice) state.upsertSlice(slice);
    const steps = planner.replan(state, state.takeDirty().services, { get: () => undefined });
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done !== true) continue;
      const change = step.value.changes.get("IPv4");
      if (change) await backend.apply(planner.plan("IPv4"), change);
      return;
    }
  };
  const address = (name: string) => backend.services().find((one) => one.name === `default/${name}`)?.address;
  return { backend, put, address, sockets, problems };
}

test("the port is the service's own, or 8000 more where that is for root", async () => {
  const { put, address } = local();
  await put("web", { ports: [{ port: 80 }] });
  await put("db", { ports: [{ port: 5432 }] });
  expect([address("web"), address("db")]).toEqual(["127.0.0.1:8080", "127.0.0.1:5432"]);
});

test("an annotation names it, for one port or for each by its name; a wrong one is none", async () => {
  const { put, address } = local();
  await put("web", { ports: [{ port: 80 }], annotation: "9000" });
  const two = [
    { name: "http", port: 80 },
    { name: "metrics", port: 9090 },
  ];
  await put("app", { ports: two, annotation: "http=9001, metrics=9002" });
  await put("odd", { ports: [{ port: 81 }], annotation: "70000" });
  expect([address("web"), address("app:http"), address("app:metrics"), address("odd")]).toEqual([
    "127.0.0.1:9000",
    "127.0.0.1:9001",
    "127.0.0.1:9002",
    "127.0.0.1:8081",
  ]);
  await put("web", { ports: [{ port: 80 }], annotation: "9003" });
  expect(address("web")).toBe("127.0.0.1:9003");
});

test("a port that is taken gives way to a free one", async () => {
  const { put, address, sockets } = local();
  sockets.taken.add("127.0.0.1:8080 tcp");
  await put("web", { ports: [{ port: 80 }] });
  expect(address("web")).toMatch(/^127\.0\.0\.1:4\d{4}$/);
});

test("what is served nowhere says why", async () => {
  const { put, backend, problems } = local();
  await put("none", { ports: [{ port: 80 }], endpoints: false });
  await put("sctp", { ports: [{ port: 80, protocol: "SCTP" }] });
  expect(backend.services()).toEqual([
    { name: "default/none", protocol: "TCP", reason: "no endpoints" },
    { name: "default/sctp", protocol: "SCTP", reason: "SCTP cannot be relayed" },
  ]);
  expect(problems).toHaveLength(1);
});
