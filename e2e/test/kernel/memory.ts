import { rm } from "node:fs/promises";
import { PATIENCE_MS } from "@fairlead/base/testing";
import { whoAnswers } from "@fairlead/lab/plain/requests";
import { openScene, type Scene, web } from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { clientA, clusterObjects, ovnA, workload } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

const PORTS = { tcp: [80, 8080], udp: [] };
const states = { serving: [ovnA], empty: [] } as const;
const foreign = (state: keyof typeof states) => [
  ...clusterObjects,
  ...web.objects,
  ...workload(14, { endpoints: states[state] }).objects,
];
const { clusterIP } = workload(14, { endpoints: [] });

describe("the memory of ownership on the real kernel", () => {
  const lab = labFor({ podPorts: PORTS, landingPorts: PORTS });
  let scene: Scene;

  beforeAll(async () => {
    scene = await openScene(lab, foreign("serving"));
  });

  afterAll(() => scene.close());

  test("a rollout to zero and a restart do not touch a foreign service; without its memory it is refused", async () => {
    expect(await whoAnswers(lab, clientA, clusterIP.IPv4)).toBe("sink");
    await scene.folder.write(foreign("empty"));
    await waitUntil("the rollout", PATIENCE_MS, async () =>
      scene.agent().log().includes("ownership") ? true : undefined,
    );
    await scene.agent().stop();
    await scene.restart();
    expect(await whoAnswers(lab, clientA, clusterIP.IPv4)).toBe("sink");
    await scene.agent().stop();
    await rm(scene.folder.state, { recursive: true });
    await scene.restart();
    expect(await whoAnswers(lab, clientA, clusterIP.IPv4)).toBe("refused");
  });
});
