import { networkResource } from "@fairlead/lab/control-plane/network-resources";
import { startTraffic, withoutFailure } from "../faults/traffic.ts";
import { needs, onlyIPv4 } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { allow, install, learnFrom, make, makeVpc, subnet, untilLearned, untilStage, untilState } from "./learning.ts";
import { CIDR, openOthers } from "./open-others.ts";

const SOURCE = "kube-ovn-subnets";
/** Of a Subnet that names no VPC. */
const BARE = "10.248.0.0/16";
const TRAFFIC_MS = 5 * 60_000;

export const defaultVpc: Spec = {
  name: "kube-ovn's default VPC has another name: its Vpc tells, may not be read at first, and goes with its CRD",
  suite: "networks",
  eachFamily: false,
  alone: true,
  unfit: (shape) => needs("learn")(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape),
  run: async (scene) => {
    const { caller, atOurs, foreign } = await openOthers(scene);
    const [first] = scene.nodes;
    await install(scene, networkResource("kubeovn.io", "Subnet"));
    const uninstall = await install(scene, networkResource("kubeovn.io", "Vpc"));
    await make(scene, subnet("main-default", CIDR, "main"));
    await make(scene, subnet("bare", BARE));
    await makeVpc(scene, "main", { default: true, subnets: ["main-default"] });
    const revoke = await allow(scene, "vpcs");
    const startAnew = await learnFrom(scene, `--exclude-cidrs-from=${SOURCE}`);
    const traffic = startTraffic([{ from: caller, ...atOurs }], scene.later, TRAFFIC_MS);
    // Who may not read Vpcs takes ovn-cluster for the default one, and says what is missing.
    await untilState(scene, SOURCE, "forbidden");
    await untilStage(scene, BARE, "effective");
    await untilLearned(scene, "Vpcs to be forbidden, and nothing to be learned by them", ({ sources, cidrs }) => {
      const wrong = cidrs.some(({ cidr }) => cidr === CIDR) || sources[0]?.forbidden?.join() !== "vpcs.kubeovn.io";
      return wrong ? JSON.stringify({ sources, cidrs }) : undefined;
    });
    await revoke();
    await allow(scene);
    await untilState(scene, SOURCE, "listed");
    await untilStage(scene, CIDR, "effective");
    await foreign();
    await uninstall();
    await startAnew(first);
    await untilState(scene, SOURCE, "listed");
    await untilStage(scene, CIDR, "effective");
    await foreign();
    return withoutFailure(await traffic.stop());
  },
};
