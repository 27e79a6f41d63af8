import { createRunner } from "@fairlead/kernel";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CONTROLLER, started } from "./support/bundle.ts";
import { freePort } from "./support/http.ts";
import { AT, pod, service, writtenAddresses } from "./support/slices.ts";

let api: LightApiServer;
let server: string;
beforeEach(async () => {
  api = new LightApiServer();
  server = await api.start();
});
afterEach(() => api.stop());

test("SIGTERM releases the lease and ends the program", async () => {
  api.store.put(AT.services, service());
  api.store.put(AT.pods, pod({ name: "p", ips: ["192.168.50.10"] }));
  const port = `--metrics-bind-address=127.0.0.1:${await freePort()}`;
  const log: string[] = [];
  for await (const line of started(process.execPath, CONTROLLER, `--master=${server}`, port)) {
    log.push(line);
    if (!line.includes("Leading")) continue;
    await expect.poll(() => writtenAddresses(api)).toEqual(["192.168.50.10"]);
    process.kill(Number(log[0]), "SIGTERM");
  }
  expect(api.store.list(AT.leases)).toMatchObject([
    { metadata: { namespace: "kube-system", name: "fairlead-controller" }, spec: { holderIdentity: "" } },
  ]);
});

test.each([
  ["a flag that does not exist", "--leader-elct=false", 2, /unknown flag.*did you mean --leader-elect/],
  ["a value that is none", "--max-endpoints-per-slice=0", 1, /^--max-endpoints-per-slice=0: .*from 1 to 1000/],
  ["no kubeconfig", "--kubeconfig=/does/not/exist", 1, /\/does\/not\/exist/],
])("%s ends it with what would be right", async (_what, flag, exitCode, message) => {
  const ending = createRunner({ timeoutMs: 0 }).run([process.execPath, CONTROLLER, flag]);
  await expect(ending).rejects.toMatchObject({ exitCode, stderr: expect.stringMatching(message) });
});
