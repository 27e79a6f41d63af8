export { createUserspaceBackend, type RelayingBackend } from "./backend.ts";
export { removeUserspaceMode } from "./cleanup.ts";
export { userspaceFacts, userspaceSemantics } from "./facts.ts";
export {
  createLocalBackend,
  LOCAL_PORT_ANNOTATION,
  type LocalBackend,
  type LocalService,
  relayLookup,
} from "./local-backend.ts";
export { createNodePortRelays, type NodePortRelays } from "./node-port-relays.ts";
export type { PortRange, UserspaceOptions } from "./options.ts";
export { CHAINS } from "./plan/chains.ts";
export type { RulesPort } from "./port.ts";
export type { ListeningRelay, RelayedConnection } from "./relay/traffic.ts";
export { createTraffic, type RelayTraffic, type TrafficCounts } from "./relay/traffic.ts";
