/** Learning while the API server is away, or refuses. */

import { networkResource } from "@fairlead/lab/control-plane/network-resources";
import { startTraffic, withoutFailure } from "../faults/stage.ts";
import { needs, onlyIPv4, type Scene, type Spec } from "../spec.ts";
import {
  allow,
  CIDR,
  install,
  learnFrom,
  make,
  openOthers,
  subnet,
  untilLearned,
  untilStage,
  untilState,
} from "./learning.ts";

const SOURCE = "kube-ovn-subnets";

const TRAFFIC_MS = 15 * 60_000;

export const apiServer: Spec = {
  name: "a CRD that comes late, goes and comes back; a role that is given, revoked and given back; 1,000 subnets, and garbage",
  suite: "networks",
  eachFamily: false,
  unfit: (shape) => needs("learn")(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape),
  run: async (scene) => {
    const { caller, atOurs, foreign } = await openOthers(scene);
    const [first] = scene.nodes;
    const subnets = networkResource("kubeovn.io", "Subnet");
    const startAnew = await learnFrom(scene, `--exclude-cidrs-from=${SOURCE}`);
    const traffic = startTraffic([{ from: caller, ...atOurs }], scene.later, TRAFFIC_MS);
    await untilState(scene, SOURCE, "absent");
    // 403 once it is there: the role is missing.
    const uninstall = await install(scene, subnets);
    await untilState(scene, SOURCE, "forbidden");
    const revoke = await allow(scene);
    await untilState(scene, SOURCE, "empty");
    await make(scene, subnet("one", CIDR));
    await foreign();
    for (const [name, cidr] of [
      ["garbage", "no CIDR"],
      ["host-bits", "10.251.0.1/16"],
      ["everything", "0.0.0.0/0"],
      ["services", atOurs.to.replace(/\d+$/, "0/24")],
    ] as const) {
      await make(scene, subnet(name, cidr));
      await untilStage(scene, cidr, "refused");
    }
    // An open watch goes on without its role; the agent that is started anew is refused, and knows what the one before
    // knew.
    await revoke();
    await startAnew(first);
    await foreign();
    await allow(scene);
    await untilState(scene, SOURCE, "listed");
    await uninstall();
    await untilState(scene, SOURCE, "absent");
    await foreign();
    await install(scene, subnets);
    await make(scene, subnet("again", CIDR));
    await untilState(scene, SOURCE, "listed");
    const added = await many(scene);
    await foreign();
    return { ...withoutFailure(await traffic.stop()), ...added };
  },
};

const MANY = 1_000;

const PREFIX = "Subnet/many-";

/** As many subnets as some clusters have: all of them count. */
async function many(scene: Scene) {
  const { api } = scene.cluster;
  const name = (at: number) => `many-${at}`;
  const cidr = (at: number) => `10.${252 + (at >>> 8)}.${at & 255}.0/24`;
  const started = performance.now();
  for (let at = 0; at < MANY; at += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, n) => api.create(subnet(name(at + n), cidr(at + n)))));
  }
  const made = performance.now();
  await untilLearned(scene, `${MANY} subnets`, ({ cidrs }) => {
    const counting = cidrs.filter(
      ({ stage, objects }) => stage === "effective" && objects[0]?.startsWith(PREFIX),
    ).length;
    return counting === MANY ? undefined : `${counting}`;
  });
  const seconds = (from: number) => `${((performance.now() - from) / 1_000).toFixed(1)} s`;
  return { "1,000 subnets": `learned ${seconds(made)} after the last was made, ${seconds(started)} after the first` };
}
