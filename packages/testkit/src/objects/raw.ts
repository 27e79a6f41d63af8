/** An object as the API server sends it; the builders make these so that decoding is a part of what is tested. */
export interface RawObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: RawMetadata;
  readonly [field: string]: unknown;
}

export interface RawMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}
