import { setTimeout as sleep } from "node:timers/promises";
import { networkResource } from "@fairlead/lab/control-plane/network-resources";
import { expectAnswers } from "../expect.ts";
import { startTraffic, withoutFailure } from "../faults/traffic.ts";
import { endpointAt } from "../multi-cni/endpoint-at.ts";
import { expectForeign, expectNoTrace } from "../multi-cni/untouched.ts";
import { able, needs, onlyIPv4 } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { allow, install, learnFrom, make, subnet, untilLearned, untilStage, untilState } from "./learning.ts";
import { CIDR, openOthers } from "./open-others.ts";

const SOURCE = "kube-ovn-subnets";
const LATE = "10.249.0.0/16";
const PORTS = [{ port: 80 }];
const BUSY_MS = 15_000;
/** Nobody may ask more often than `Retry-After` allows: a second, and each node has Subnets and Vpcs to ask for. */
const MOST_A_SECOND = 3;
const TRAFFIC_MS = 5 * 60_000;

/** A service whose endpoint is in that network, which nobody is at. */
async function serviceAt({ cluster, namespace, service }: Scene, name: string, address: string) {
  const made = await service(name, { ports: PORTS });
  await cluster.api.create(endpointAt({ namespace, service: name, family: "IPv4", address }));
  return made;
}

export const tooManyRequests: Spec = {
  name: "429 to every list and watch of the networks: the last known CIDRs count, also for an agent that is started anew",
  suite: "networks",
  eachFamily: false,
  alone: true,
  unfit: (shape) => needs("learn")(shape) ?? needs("busy")(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape),
  run: async (scene) => {
    const { caller, by, atOurs, foreign } = await openOthers(scene);
    const [first] = scene.nodes;
    await allow(scene);
    await install(scene, networkResource("kubeovn.io", "Subnet"));
    await make(scene, subnet("one", CIDR));
    const startAnew = await learnFrom(scene, `--exclude-cidrs-from=${SOURCE}`);
    await untilState(scene, SOURCE, "listed");
    await foreign();
    const traffic = startTraffic([{ from: caller, ...atOurs }], scene.later, TRAFFIC_MS);
    const gate = await able(scene.cluster.apiServer.turnBusy)("/apis/kubeovn.io/");
    scene.later(gate.stop);
    const began = performance.now();
    // What comes now is not learned; services and endpoints are followed all the same.
    await make(scene, subnet("late", LATE));
    const meanwhile = await serviceAt(scene, "meanwhile", "10.250.0.10");
    const late = await serviceAt(scene, "late", "10.249.0.9");
    await expectForeign(scene, meanwhile.name);
    await expectNoTrace(scene, meanwhile.clusterIP);
    await startAnew(first);
    await foreign();
    await expectForeign(scene, meanwhile.name);
    await sleep(BUSY_MS);
    await foreign();
    await expectAnswers(caller, atOurs, { by });
    const asked = Number(await gate.ask("count"));
    const aSecond = (asked * 1_000) / (performance.now() - began) / scene.cluster.nodes.length;
    if (asked < 2 * scene.nodes.length) throw new Error(`wanted lists and watches to be refused; ${asked} were`);
    if (aSecond > MOST_A_SECOND)
      throw new Error(`wanted ${MOST_A_SECOND} requests a second of a node; ${aSecond} came`);
    await untilLearned(scene, `${LATE} not to be learned`, ({ cidrs }) =>
      cidrs.some(({ cidr }) => cidr === LATE) ? "learned" : undefined,
    );
    await gate.stop();
    await untilState(scene, SOURCE, "listed");
    await untilStage(scene, LATE, "effective");
    await expectForeign(scene, late.name);
    await foreign();
    return { ...withoutFailure(await traffic.stop()), "answered with 429": String(asked) };
  },
};
