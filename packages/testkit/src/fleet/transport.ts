/** As `@fairlead/watch` has it. */
export interface FleetRequest {
  readonly path: string;
  readonly signal: AbortSignal;
}

export interface FleetAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}
