export { type ConnectionOptions, checkedServer, loadConnection } from "./api/connection.ts";
export {
  bearerToken,
  ConnectionError,
  chosenContext,
  execCredentials,
  type Kubeconfig,
  readKubeconfigFile,
} from "./api/credentials.ts";
export type {
  ApiConnection,
  ApiRequest,
  ApiResponse,
  Credentials,
  RequestFacts,
  RequestObserver,
  TlsOptions,
  Transport,
} from "./api/http.ts";
export { type Access, isAllowed, type ObjectRequest, type PostAnswer, postObject, requestObject } from "./api/post.ts";
export { type ApiSourceOptions, createApiSource } from "./api/source.ts";
export type * from "./change.ts";
export { whyNoManifests } from "./manifests/files.ts";
export { createManifestsSnapshot, type ManifestsSnapshotOptions } from "./manifests/snapshot.ts";
export { createManifestsSource, type ManifestsSourceOptions } from "./manifests/source.ts";
export type * from "./report.ts";
