export { runClientGoLoop } from "./client-go.ts";
export { FleetCounts } from "./counts.ts";
export { seeded } from "./seeded.ts";
export { FleetServer, type Limits } from "./server.ts";
