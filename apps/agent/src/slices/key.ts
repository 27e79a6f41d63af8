/** `namespace/name`. */
export type Key = `${string}/${string}`;

export function namespacedName(namespace: string, name: string): Key {
  return `${namespace}/${name}`;
}
