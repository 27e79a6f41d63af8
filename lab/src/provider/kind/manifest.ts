/** A manifest as JSON. */
export type Manifest = Readonly<Record<string, unknown>> & { readonly kind: string };
