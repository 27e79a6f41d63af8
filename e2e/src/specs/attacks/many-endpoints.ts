import { endpointSlice, service } from "@fairlead/testkit";
import type { Spec } from "../spec.ts";
import { underAttackFromManifests } from "./from-manifests.ts";

const ENDPOINTS = 100_000;
const IN_A_SLICE = 1_000;
const SERVED_MS = 180_000;
/** The rules of 100,000 endpoints are text of 40 MB, and what is known of each stays. */
const MOST_MIB = 1_024;

const PORTS = [{ port: 80 }];
const fields = { namespace: "large", ports: PORTS } as const;

function* objects() {
  const large = service("large", { ...fields, clusterIPs: ["10.100.255.1"] });
  yield `{"apiVersion":"v1","kind":"List","items":[${JSON.stringify(large)}`;
  for (let from = 0; from < ENDPOINTS; from += IN_A_SLICE) {
    const endpoints = Array.from({ length: IN_A_SLICE }, (_, at) => ({ address: addressOf(from + at) }));
    yield `,${JSON.stringify(endpointSlice(`large-${from}`, { ...fields, service: "large", family: "IPv4", endpoints }))}`;
  }
  yield "]}";
}

function addressOf(index: number): string {
  return `10.${160 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
}

export const manyEndpoints: Spec = underAttackFromManifests({
  name: `attack: ${ENDPOINTS.toLocaleString("en")} endpoints in one service`,
  mostMiB: MOST_MIB,
  unfit: (_, family) => (family === "IPv4" ? undefined : "has IPv4 endpoints"),
  act: async (attacked, mirror) => {
    await mirror.add("large.json", objects());
    const meanwhile = await attacked.change("meanwhile", SERVED_MS);
    const again = await attacked.change("again", SERVED_MS);
    await mirror.drop("large.json");
    return { meanwhile, again };
  },
});
