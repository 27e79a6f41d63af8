export type { ApiConnection, Credentials } from "./api/connection.ts";
export { type ConnectionOptions, loadConnection } from "./api/load.ts";
export { type ApiSourceOptions, createApiSource } from "./api/source.ts";
export type { TlsOptions } from "./api/tls.ts";
export type { ApiRequest, ApiResponse, Transport } from "./api/transport.ts";
export type * from "./change.ts";
export { type Clock, systemClock } from "./clock.ts";
export { createManifestsSource, type ManifestsSourceOptions } from "./manifests/source.ts";
export type * from "./report.ts";
