import { setTimeout as sleep } from "node:timers/promises";
import type { HostileSeen, HostileWay } from "@fairlead/lab/provider/cluster";
import { expectAnswers } from "../expect.ts";
import { able } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { type Attacked, underAttack } from "./under-attack.ts";
import { untilLogged } from "./until-logged.ts";

const LAST_MS = 20_000;
/** Requests a second that an API server may be asked by one node whatever it answers. */
const MOST_A_SECOND = 20;

/** Services cannot be listed any more; endpoints that come and go still count. */
async function changeEndpoints({ caller, atService, by }: Attacked): Promise<void> {
  const [near, ...others] = by;
  await near?.setReady(false);
  await expectAnswers(caller, atService, { by: others });
  await near?.setReady(true);
  await expectAnswers(caller, atService, { by });
}

function list(way: HostileWay, name: string): Spec {
  return underAttack({
    name: `attack: ${name}`,
    act: async (attacked) => {
      const { scene, node } = attacked;
      const began = performance.now();
      const gate = await able(scene.cluster.apiServer.turnHostile)(way, node);
      scene.later(gate.stop);
      await sleep(LAST_MS);
      await changeEndpoints(attacked);
      const seen: HostileSeen = JSON.parse(await gate.ask("seen"));
      const aSecond = (seen.requests * 1_000) / (performance.now() - began);
      await gate.stop();
      if (seen.requests === 0) throw new Error("wanted lists of services; nobody asked for one");
      if (aSecond > MOST_A_SECOND)
        throw new Error(`wanted ${MOST_A_SECOND} requests a second at most; ${aSecond} came`);
      return { asked: String(seen.requests), sent: `${seen.bytes >> 20} MiB` };
    },
  });
}

/** The agent asks after 70 s without a byte, and waits 15 s for the answer. */
const NOTICED_MS = 100_000;

const silent: Spec = underAttack({
  name: "attack: the API server falls silent, and its connections stay open",
  act: async (attacked) => {
    const { scene, node } = attacked;
    const gate = await able(scene.cluster.apiServer.turnHostile)("silent", node);
    scene.later(gate.stop);
    const before = await attacked.change("before");
    const log = await node.agent.log();
    await gate.ask("silence");
    const noticed = await untilLogged(node, log, /^E.*API server cannot be reached/, NOTICED_MS);
    // Who clings to what is open hears nothing all the same.
    await gate.ask("answer");
    const meanwhile = await attacked.change("meanwhile");
    await gate.stop();
    return { before, noticed, meanwhile };
  },
});

export const lists: readonly Spec[] = [
  list("one string", "a list that is one string of 700 MB"),
  list("nesting", "a list that is 700 MB of nesting"),
  list("endless continue", "a list that has always another page"),
  silent,
];
