import { expectAnswers } from "../expect.ts";
import { endpointAt } from "../multi-cni/endpoint-at.ts";
import { expectForeign, expectNoTrace } from "../multi-cni/untouched.ts";
import { nearAndFar } from "../near-and-far.ts";
import type { Scene } from "../scene.ts";

/** Of the network that `openOthers` has an endpoint in. */
export const CIDR = "10.250.0.0/16";
const PORTS = [{ port: 80 }];

/** A service whose endpoint is in a network that nobody has told of yet, alongside four that are ours. */
export async function openOthers(scene: Scene) {
  const { namespace, cluster } = scene;
  for (const name of ["a", "b", "c"]) await scene.service(name, { ports: PORTS });
  const theirs = await scene.service("theirs", { ports: PORTS });
  await cluster.api.create(endpointAt({ namespace, service: "theirs", family: "IPv4", address: "10.250.0.9" }));
  const { caller, by } = await nearAndFar(scene);
  const ours = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
  const atOurs = { to: ours.clusterIP, port: 80 };
  await expectAnswers(caller, atOurs, { by });
  const foreign = async () => {
    await expectForeign(scene, theirs.name);
    await expectNoTrace(scene, theirs.clusterIP);
  };
  return { caller, by, atOurs, foreign };
}
