/**
 * Names as the API server lets them pass (RFC 1123). Names end up in rule texts and chain names, and manifests are read
 * without an API server in between, so they are checked here whatever the source.
 */

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LONGEST_SUBDOMAIN = 253;

export const SUBDOMAIN_FORM =
  "must be lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit";
export const LABEL_FORM =
  "must be at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit";

export function isLabel(name: string): boolean {
  return LABEL.test(name);
}

export function isSubdomain(name: string): boolean {
  return name.length <= LONGEST_SUBDOMAIN && (LABEL.test(name) || SUBDOMAIN.test(name));
}
