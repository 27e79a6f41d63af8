export { FleetCounts, FleetServer, type Limits, runClientGoLoop, seeded } from "./fleet.ts";
