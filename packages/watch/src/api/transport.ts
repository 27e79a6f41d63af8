/** A request of a watcher: always GET. */
export interface ApiRequest {
  /** Absolute path with query, for example `/api/v1/services?watch=true`. */
  readonly path: string;
  /** The Accept header; absent: JSON. */
  readonly accept?: string;
  /** Aborting ends the request and its body at any time. */
  readonly signal: AbortSignal;
}

/** An answer whose body has not been read. */
export interface ApiResponse {
  /** The HTTP status code. */
  readonly status: number;
  /** The header's value, lower-case name; undefined when absent. */
  header(name: string): string | undefined;
  /**
   * Ends with an error when the connection breaks before the body is complete. Leaving the loop closes the connection.
   */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Sends a request and resolves with the head of the response.
 *
 * @throws Error when there is no connection, or no trust in it
 */
export type Transport = (request: ApiRequest) => Promise<ApiResponse>;
