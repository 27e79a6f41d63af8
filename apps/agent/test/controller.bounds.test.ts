import type { RawObject } from "@fairlead/base";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { AGENT_NODE_OPTIONS } from "@fairlead/tooling/agent-node";
import { expect, test } from "vitest";
import { CONTROLLER, mostMegabytes, started } from "./support/bundle.ts";
import { freePort } from "./support/http.ts";
import { AT, pod, service, sliceWrites, writtenAddresses } from "./support/slices.ts";

const PODS = 10_000;
/** MB of resident memory that its pods may take it to. */
const MOST_MB = 150;

const addressOf = (index: number) => `192.168.${100 + (index >> 8)}.${index & 255}`;

/** As large as pods are in clusters: most of it is nothing that slices are made of. */
function largePod(index: number, ready = true): RawObject {
  const small = pod({ name: `web-${index}`, ips: [addressOf(index)], ready });
  const env = Array.from({ length: 60 }, (_, at) => ({
    name: `VARIABLE_${at}`,
    value: `value of pod ${index}, ${at}`,
  }));
  return { ...small, spec: { nodeName: `node-${index % 100}`, containers: [{ name: "web", image: "web:1", env }] } };
}

test(`with ${PODS} pods it stays below ${MOST_MB} MB, and one pod's change is one write`, async ({ annotate }) => {
  const api = new LightApiServer();
  const server = await api.start();
  try {
    api.store.put(AT.services, service({ spec: { ports: [{ port: 80 }] } }));
    for (let index = 0; index < PODS; index++) api.store.put(AT.pods, largePod(index));
    const port = `--metrics-bind-address=127.0.0.1:${await freePort()}`;
    const asImage = [process.execPath, ...AGENT_NODE_OPTIONS, CONTROLLER];
    let pid = 0;
    for await (const line of started(...asImage, `--master=${server}`, port)) {
      if (pid === 0) pid = Number(line);
      if (!line.includes("Leading")) continue;
      await expect.poll(() => writtenAddresses(api).length).toBe(PODS);
      const before = sliceWrites(api).length;
      api.store.put(AT.pods, largePod(17, false));
      await expect.poll(() => writtenAddresses(api)).toContain(`${addressOf(17)} not ready`);
      expect(sliceWrites(api).slice(before)).toEqual(["PUT"]);
      const most = await mostMegabytes(pid);
      await annotate(`${Math.round(most)} MB of resident memory at most`);
      expect(most).toBeLessThan(MOST_MB);
      process.kill(pid, "SIGTERM");
    }
  } finally {
    await api.stop();
  }
});
