/** What secrets look like: a JWT, a key, a bootstrap token, a word. */
export const SECRETS: readonly string[] = [
  "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl",
  "AKIAIOSFODNN7EXAMPLE_wJalrXUtnFEMI",
  "Hunter2_Passw0rd!",
];

/**
 * The value once for each place with the secret there: in the place of each text, number and flag, as another field of
 * each object, and as another item of each list.
 */
export function* planted(value: unknown, secret: string): Generator<unknown> {
  if (Array.isArray(value)) {
    yield [...value, secret];
    for (const [at, item] of value.entries()) for (const one of planted(item, secret)) yield value.with(at, one);
    return;
  }
  if (typeof value !== "object" || value === null) {
    yield secret;
    yield { data: secret };
    return;
  }
  yield { ...value, token: secret };
  yield { ...value, [secret]: "x" };
  for (const [name, inner] of Object.entries(value)) {
    for (const one of planted(inner, secret)) yield { ...value, [name]: one };
  }
}
