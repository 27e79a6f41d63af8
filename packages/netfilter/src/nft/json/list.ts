/** libnftables' JSON has one thing in place of a list of one. */
export function listOf(json: unknown): readonly unknown[] {
  if (Array.isArray(json)) return json;
  return json === undefined ? [] : [json];
}
