/** An object of the Kubernetes API as JSON. */
export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ApiMetadata;
  readonly [field: string]: unknown;
}

export interface ApiMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly [field: string]: unknown;
}

/** The few verbs of the API that the test ground needs, as its administrator. */
export interface ApiClient {
  /** @throws ApiError */
  get(path: string): Promise<unknown>;
  /** POST to the object's collection; gives what the server made of it. @throws ApiError */
  create(object: ApiObject): Promise<ApiObject>;
  /** JSON merge patch. `path` as in `objectPath`, with `/status` for that. @throws ApiError */
  patch(path: string, patch: unknown): Promise<ApiObject>;
  /** Nothing when it is not there. @throws ApiError */
  delete(path: string, gracePeriodSeconds?: number): Promise<void>;
}
