import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, describe } from "vitest";
import { serverTls } from "./support/connections.ts";
import { CIDRS_PATH, NODES_PATH, SERVICES_PATH } from "./support/fake-api.ts";
import { type SpecServer, serverSpecs } from "./support/server-specs.ts";

describe.each([false, true])("the light API server, protobuf: %s", (protobuf) => {
  let light: LightApiServer;
  let server: SpecServer;

  beforeAll(async () => {
    light = new LightApiServer(await serverTls());
    light.token = "light";
    light.store.put(SERVICES_PATH, { metadata: { name: "kubernetes", namespace: "default" }, spec: {} });
    light.store.put(CIDRS_PATH, { metadata: { name: "kubernetes" }, spec: { cidrs: ["10.96.0.0/12"] } });
    light.store.put(NODES_PATH, { metadata: { name: "node-a" } });
    server = { url: await light.start(), token: "light" };
  });

  afterAll(() => light.stop());

  serverSpecs(() => server, "light", protobuf);
});
